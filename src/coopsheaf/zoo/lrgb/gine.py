"""GINE with residuals."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.nn.dropout import dropout
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import sum_at
from coopsheaf.zoo.lrgb.network import LongRangeNetwork


class GINELayer(nn.Module):
    r"""The convolution of GINE (Hu et al., ICLR 2020) with ε = 0, added to what came in.

    .. math:: h_i' = h_i + \operatorname{MLP}\Bigl(h_i + \sum_{j \to i}
              \operatorname{ReLU}(h_j + e_{ji})\Bigr)

    The MLP is linear, GELU, dropout, linear, dropout. PyG's ``GINEConv`` gives the same sum.

    Args:
        width: number of channels.
        dropout: dropout probability.

    Shapes:
        x ``(n, width)``; e ``(m, width)``. Returns the new x, and e as it was.
    """

    def __init__(self, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = dropout
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def reset_parameters(self) -> None:
        self.inner.reset_parameters()
        self.outer.reset_parameters()

    def forward(self, x: Tensor, e: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        sent = F.relu(x.index_select(0, graph.source) + e)  # (m, width)
        y = F.gelu(self.inner(x + sum_at(graph.target, sent, x.shape[0])))
        y = self.outer(dropout(y, self.dropout, self.training))
        return x + dropout(y, self.dropout, self.training), e

    def __repr__(self) -> str:
        return f"GINELayer({self.inner.in_features})"


class GINE(LongRangeNetwork):
    """GINE as it was tuned for long ranges: :class:`GINELayer` in a
    :class:`~coopsheaf.zoo.lrgb.network.LongRangeNetwork`, which has the arguments."""

    @arguments_of(LongRangeNetwork, without=("make_layer",))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 160,
        num_layers: int = 8,
        out_channels: int | None = None,
        **others: Any,
    ) -> None:
        sizes = (in_channels, hidden_channels, num_layers, out_channels)
        super().__init__(*sizes, make_layer=GINELayer, **others)
