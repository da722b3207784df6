"""Second order in time for the layers of a CSNN: features that swing instead of settling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice
from coopsheaf.nn.dropout import dropout

STEPS = {
    "euler": "X moves by what the diffusion says, the paper's",
    "wave": "the diffusion moves a velocity, and the velocity X",
}
LARGEST_STEP = 1.0  # s² λ < 4 with the spectrum of equal maps, [0, 4)


class Swing:
    r"""The velocity of features within one pass through a network, at rest when it begins.

    .. math::
        V_{t+1} = (1 + \tanh \varepsilon_t) \odot V_t - s\, \sigma(Y_t(X_t)), \qquad
        X_{t+1} = X_t + s\, V_{t+1},

    with Y the diffusion of a layer (:class:`~coopsheaf.nn.CSNNConv`). ε < 0 damps and ε > 0 drives;
    ε = 0, where it starts, without σ is leapfrog (:func:`~coopsheaf.sheaves.propagate`). Dropout is
    on what is diffused and on what comes of it, never on X itself.

    Where S = T, all edges go both ways and :math:`W_1`, :math:`W_2` are identities, the paper's
    operator is symmetric with its spectrum in [0, 4): steps up to 1 are stable, and linear ones
    keep an energy. In general its eigenvalues are complex, and without damping no step is stable
    for all of them (:func:`~coopsheaf.sheaves.propagate` says why); with it,
    :func:`~coopsheaf.sheaves.stable_steps` of r = -tanh(ε) / s has those that are. Eigenvalues of
    ``"messages"`` have both signs even where all maps are equal; no ε holds negative ones.

    Args:
        step_size: s.
        act: the activation σ.
        drop: dropout probability, 0 outside of training.
    """

    def __init__(self, step_size: float, act: Callable[[Tensor], Tensor], drop: float) -> None:
        self.step_size, self.act, self.drop = step_size, act, drop
        self.velocity: Tensor | None = None

    def layer(self, conv: nn.Module, epsilon: Tensor, x: Tensor, *inputs: Any) -> Tensor:
        """One layer; ``inputs`` is what the diffusion takes beside x."""
        push = dropout(conv(dropout(x, self.drop, True), *inputs), self.drop, True)
        return self.step(x, self.act(push), 1 + torch.tanh(epsilon))

    def step(self, x: Tensor, push: Tensor, kept: Tensor) -> Tensor:
        """Where the features ``(n, d, h)`` are after a step; the velocity is remembered."""
        moved = -self.step_size * push
        self.velocity = moved if self.velocity is None else kept * self.velocity + moved
        return x + self.step_size * self.velocity


def check_steps(step: str, step_size: float, others: dict[str, bool]) -> None:
    """Refuse steps that are not there, and whatever does not go with waves.

    Args:
        step: ``"euler"`` or ``"wave"``.
        step_size: of waves.
        others: options that waves do not have, and whether they were asked for.
    """
    check_choice("step", step, STEPS)
    if not (math.isfinite(step_size) and 0 < step_size <= LARGEST_STEP):
        raise ValueError(
            "`step_size` must be above 0 and at most 1, beyond which waves grow even where all "
            f"maps are equal; got {step_size!r}"
        )
    if step == "euler":
        if step_size != LARGEST_STEP:
            raise ValueError(f"`step_size` goes with `step` 'wave'; got {step_size!r} alone")
        return
    for name, asked in others.items():
        if asked:
            raise ValueError(f"`{name}` does not go with `step` 'wave'; leave it out")
