"""Steps of a wave on a learned sheaf."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph, as_weighted_graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.tensor_checks import check_edge_weight
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner


class WaveConv(NSDConv):
    r"""Steps of :math:`X'' = -\Delta (I_n \otimes W_1) X W_2 - R(X) \odot X' + \Phi(X)`.

    From :math:`V = 0`, several times,

    .. math::
        V &\leftarrow V - s\,\Delta (I_n \otimes W_1) X W_2 - s\,R(X) \odot V + s\,\Phi(X), \\
        X &\leftarrow X + s V,

    with Δ of :class:`~coopsheaf.zoo.nsd.NSDConv`, damping
    :math:`R(X) = \operatorname{softplus}(X W_R + b_R)` and forcing :math:`\Phi(X) = \tanh(X W_\Phi
    + b_\Phi)`, channel by channel, both optional. The forms of V at the start, R and Φ are ours:
    the paper leaves them open.

    Without damping and forcing and with :math:`W_1 = I`, :math:`W_2 = I` this is leapfrog
    (:func:`~coopsheaf.sheaves.propagate`): reversible in time, and stable where
    :math:`s^2 \lambda_{max} < 4`. The augmented Δ has :math:`\lambda_{max} < 2`, so that
    :math:`s < \sqrt 2` is asked for; another Laplacian is nobody's promise, and
    :math:`\|W_1\| \|W_2\|`, 1 at the start, multiplies the bound as they are learned.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        num_steps: steps.
        step_size: s.
        dissipation: damp, with a learned R(X) > 0.
        forcing: force, with a learned Φ(X).
        options: as for :class:`~coopsheaf.zoo.nsd.NSDConv`.

    Shapes:
        x ``(n, total_dim, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; edge_weight ``(m,)``, the same both ways. Returns
        ``(n, total_dim, h)``.
    """

    @arguments_of(NSDConv)
    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        num_steps: int = 4,
        step_size: float = 0.1,
        dissipation: bool = False,
        forcing: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(channels, stalk_dim, **options)
        self.num_steps = check_int("num_steps", num_steps, minimum=1)
        self.step_size = check_step(step_size, self.normalization)
        self.dissipation = nn.Linear(channels, channels) if dissipation else None
        self.forcing = nn.Linear(channels, channels) if forcing else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for name in ("dissipation", "forcing"):
            linear = getattr(self, name, None)  # none while the base is being built
            if linear is not None:
                linear.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        *,
        laplacian: Operator | None = None,
    ) -> Tensor:
        """Where the features are after all steps: on one sheaf if its ``laplacian`` is given, else
        on one that is learned anew in every step."""
        self._check(x)
        if laplacian is not None and edge_weight is not None:
            raise ValueError("`edge_weight` must be None with a `laplacian`, which has its own")
        s, v = self.step_size, torch.zeros_like(x)
        for _ in range(self.num_steps):
            operator = laplacian
            if operator is None:
                operator = self.laplacian(x, edge_index, edge_weight)
            push = -operator.mv(self.mix(x))
            if self.dissipation is not None:
                push = push - F.softplus(self.dissipation(x)) * v
            if self.forcing is not None:
                push = push + torch.tanh(self.forcing(x))
            v = v + s * push
            x = x + s * v
        return x


class DirectionalWaveConv(WaveConv):
    r"""The same on a sheaf with two maps per arc, one for either end.

    .. math::
        L(X)_i = \sum_{e = j \to i} w_e T_e^\top (T_e x_i - S_e x_j), \qquad
        T_e = \operatorname{maps}(\sigma(V [x_i \,\Vert\, x_j])), \quad
        S_e = \operatorname{maps}(\sigma(V' [x_i \,\Vert\, x_j])),

    so that an edge that is there both ways has four. Normalised with D, the sum of
    :math:`w_e T_e^\top T_e`. Neither symmetric nor normal: no step is stable for all of them
    (:func:`~coopsheaf.sheaves.propagate` says why), and damping is what holds them.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        num_steps, step_size, dissipation, forcing: as for :class:`WaveConv`.
        options: as for :class:`~coopsheaf.zoo.nsd.NSDConv`, without fixed coordinates and learned
            weights, which belong to undirected edges.

    Shapes:
        x ``(n, d, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight ``(m,)``.
        Returns ``(n, d, h)``.
    """

    @arguments_of(WaveConv, without=("sparse_reading", "add_lp", "add_hp", "learn_weights"))
    def __init__(self, channels: int, stalk_dim: int, **options: Any) -> None:
        for name in ("sparse_reading", "add_lp", "add_hp", "learn_weights"):
            if options.get(name) not in (None, False, "summed"):
                raise ValueError(
                    f"`{name}` must not be given: maps of arcs have no such thing; "
                    f"got {options[name]!r}"
                )
        super().__init__(channels, stalk_dim, **(options | {"learn_weights": False}))
        mine = self.map_learner
        self.sender_learner = (
            None if mine is None else EdgeLearner(mine.in_channels, mine.out_channels)
        )

    def reset_parameters(self) -> None:
        super().reset_parameters()
        sender = getattr(self, "sender_learner", None)
        if sender is not None:
            sender.reset_parameters()

    def laplacian(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None
    ) -> Operator:
        """The Laplacian of the maps that are learned from x."""
        self._check(x)
        graph, weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        if weight is not None:
            weight = check_edge_weight(weight, graph.num_edges, "x", x)
        kind, here = self.edge_maps, self.maps(x, graph)
        there = here
        if self.sender_learner is not None:
            seen = self._summed(x) if self.sparse_learner else x.flatten(1)
            there = kind.make(self.map_act(self.sender_learner(seen, graph)))
        degree = kind.degree(here, graph, weight)
        operator = kind.between(here, there, graph, weight, degree)
        return kind.normalized(operator, degree, graph, weight, self.normalization)


def check_step(step_size: float, normalization: str | None) -> float:
    """A step size that is stable for the Laplacian that is not learned yet, if any is."""
    if not (math.isfinite(step_size) and step_size > 0):
        raise ValueError(f"`step_size` must be positive; got {step_size}")
    if normalization == "augmented" and step_size**2 * 2 >= 4:
        raise ValueError(
            "`step_size` must be below √2 = 1.414, where waves on a normalised sheaf begin to "
            f"grow; got {step_size}"
        )
    return float(step_size)
