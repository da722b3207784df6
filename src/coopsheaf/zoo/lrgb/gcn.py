"""GCN with residuals."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.encoders import BondEncoder
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.lrgb.network import LongRangeNetwork
from coopsheaf.zoo.plain.propagation import Propagation


class ResidualGCNLayer(nn.Module):
    r"""A graph convolution, GELU and dropout, added to what came in.

    .. math:: H' = H + \operatorname{dropout}(\operatorname{GELU}(S H W + b)),
              \qquad S = D^{-1/2} (A + I) D^{-1/2}

    PyG's ``GCNConv`` gives :math:`S H W + b` on graphs without loops, and starts where this does.

    Args:
        width: number of channels.
        dropout: dropout probability.

    Shapes:
        x ``(n, width)``; propagate, the matrix S. Returns the new x, and e as it was.
    """

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout, self.linear = dropout, nn.Linear(width, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(
        self, x: Tensor, e: Tensor | None, propagate: Propagation
    ) -> tuple[Tensor, Tensor | None]:
        y = F.gelu(self.linear(propagate(x)))
        return x + dropout(y, self.dropout, self.training), e

    def __repr__(self) -> str:
        return f"ResidualGCNLayer({self.linear.in_features})"


class ResidualGCN(LongRangeNetwork):
    """GCN as it was tuned for long ranges: :class:`ResidualGCNLayer` in a
    :class:`~coopsheaf.zoo.lrgb.network.LongRangeNetwork`, which has the arguments.

    A GCN has no use for features of edges, and takes none.

    Args:
        bond_table: have the table of vectors of bonds that the published network has, and counts
            among its parameters: it is never looked up, and no gradient reaches it.
    """

    takes_edge_weight = True

    @arguments_of(LongRangeNetwork, without=("make_layer", "edge_channels"))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 235,
        num_layers: int = 6,
        out_channels: int | None = None,
        *,
        bond_table: bool = False,
        **others: Any,
    ) -> None:
        sizes = (in_channels, hidden_channels, num_layers, out_channels)
        super().__init__(*sizes, make_layer=ResidualGCNLayer, **others)
        self.bonds = BondEncoder(hidden_channels) if bond_table else None

    def _make_edges(self, encoder: str) -> None:
        return None

    def prepare(
        self, x: Tensor, graph: Graph, batch: Tensor | None, edge_weight: Tensor | None
    ) -> Propagation:
        return Propagation(graph, x, edge_weight)
