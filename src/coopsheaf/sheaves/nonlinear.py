r"""Laplacians with a function on edges, :math:`L^\varphi(X) = \delta^\top \varphi(\delta X)`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from coopsheaf.sheaves.coboundaries import coboundary
from coopsheaf.sheaves.sheaf import Sheaf

Phi = Callable[[Tensor], Tensor]


class NonlinearLaplacian:
    r"""The nonlinear Laplacian of an undirected sheaf (Hansen & Ghrist, 2021; Zaghen et al., 2024).

    .. math::
        L^\varphi(X)_u = \sum_{e = \{u, v\}} F_{u \unlhd e}^\top\,
            \varphi(F_{u \unlhd e} x_u - F_{v \unlhd e} x_v)

    with odd φ, so that it does not matter which end of an edge comes first; φ = id gives
    :func:`~coopsheaf.sheaf_laplacian`. If φ is the gradient of a convex U, small steps
    :math:`X - s L^\varphi(X)` do not increase :math:`\sum_e U((\delta X)_e)`. Weights are inside:
    δ has the factor :math:`\sqrt{w_e}`.

    It is no :class:`~coopsheaf.Operator`: not linear, no matrix, no transpose. What φ sees has one
    e×h block per edge, e the dimension of the stalks of edges.

    Args:
        sheaf: an undirected sheaf.
        phi: from ``(m, e, h)`` to ``(m, e, h)``, odd; :func:`odd_part` makes any function odd.
    """

    def __init__(self, sheaf: Sheaf, phi: Phi) -> None:
        self.coboundary, self.phi = coboundary(sheaf), phi

    def __call__(self, x: Tensor) -> Tensor:
        """``(n, d, h)`` to ``(n, d, h)``."""
        disagreement = self.coboundary.mv(x)  # (m, e, h)
        answer = self.phi(disagreement)
        if answer.shape != disagreement.shape:
            raise ValueError(
                f"`phi` must keep the shape (m, e, h) = {tuple(disagreement.shape)}; "
                f"got {tuple(answer.shape)}"
            )
        return self.coboundary.T.mv(answer)


def odd_part(phi: Phi) -> Phi:
    r""":math:`y \mapsto (\varphi(y) - \varphi(-y)) / 2`, the same for both orientations."""
    return lambda y: (phi(y) - phi(-y)) / 2


class BoundedConfidence:
    r"""Ends that are too far apart do not hear each other, :math:`\varphi(y) = \psi(\|y\|)\, y`.

    :math:`\psi(r) = \max(0, 1 - r^2 / \tau^2)^2` for the norm r of the d×h block of an edge: 1 for
    ends that agree, smoothly 0 from the threshold τ on. Not the gradient of a convex function:
    ends far apart may stay there, which is what it is for.

    Args:
        threshold: τ, positive.
    """

    def __init__(self, threshold: float) -> None:
        if not threshold > 0:
            raise ValueError(f"`threshold` must be positive; got {threshold}")
        self.threshold = threshold

    def __call__(self, y: Tensor) -> Tensor:
        square = y.square().sum(dim=(-2, -1), keepdim=True)
        return torch.relu(1 - square / self.threshold**2).square() * y
