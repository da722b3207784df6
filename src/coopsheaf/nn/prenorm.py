"""A pre-norm residual block around the diffusion of a CSNN layer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.linear import apply_linear
from coopsheaf.nn.norm import apply_norm


class PreNormBlock(nn.Module):
    r"""What a node makes of itself and of its neighbours, added to what it was.

    .. math::
        Z = N(X), \qquad
        X' = X + W_b\, \sigma\bigl(W_a [\, Z \,\Vert\, Y(Z) \,] + b_a\bigr) + b_b

    with N a norm of each node's own features, Y the diffusion of a layer
    (:class:`~coopsheaf.nn.CSNNConv`) and, in training, dropout on Z where it stands for the node
    itself, on Y, behind σ and at the end. The two halves of :math:`W_a` belong to the node and to
    its neighbours: neither has to pass through the other. A node that hears nothing, T = 0, is
    moved by itself alone.

    Args:
        width: size d·h of a node's features.
        norm: makes N of a width.
        act: the activation σ.
        dropout: dropout probability.
        own_dropout: that of Z where it stands for the node itself; ``dropout`` if not given.

    Shapes:
        x and what the diffusion takes and gives ``(n, d, h)``; returns the same.
    """

    def __init__(
        self,
        width: int,
        *,
        norm: Callable[[int], nn.Module],
        act: Callable[[Tensor], Tensor],
        dropout: float = 0.0,
        own_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.norm = norm(width)
        self.lin_in = nn.Linear(2 * width, width)
        self.lin_out = nn.Linear(width, width)
        self.act, self.dropout = act, dropout
        self.own_dropout = dropout if own_dropout is None else own_dropout

    def reset_parameters(self) -> None:
        for module in (self.norm, self.lin_in, self.lin_out):
            module.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, diffuse: Callable[[Tensor], Tensor]) -> Tensor:
        z = apply_norm(self.norm, x.flatten(1))  # (n, d·h)
        heard = self._drop(diffuse(z.view_as(x)).flatten(1))
        own = dropout(z, self.own_dropout, self.training)
        hidden = apply_linear(self.lin_in, torch.cat([own, heard], dim=1), self.act)
        return x + self._drop(self.lin_out(self._drop(hidden))).view_as(x)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

    def __repr__(self) -> str:
        return f"PreNormBlock({self.lin_out.out_features}, norm={type(self.norm).__name__})"
