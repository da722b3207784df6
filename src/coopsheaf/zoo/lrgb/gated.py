"""GatedGCN: edges have features of their own, which are gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.models.network import reset_children
from coopsheaf.nn.dropout import dropout
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import sum_at
from coopsheaf.zoo.lrgb.network import LongRangeNetwork, normalize

EPSILON = 1e-6  # beside the sum of gates: a node without edges hears nothing


class GatedGCNLayer(nn.Module):
    r"""The convolution of Bresson & Laurent (2017), with batch norms and residuals.

    .. math::
        e_{ji}' &= D h_i + E h_j + C e_{ji}, \qquad \sigma_{ji} = \operatorname{sigmoid}(e_{ji}') \\
        h_i' &= A h_i + \frac{\sum_{j \to i} \sigma_{ji} \odot B h_j}
                {\sum_{j \to i} \sigma_{ji} + 10^{-6}}

    then, of nodes and of edges alike, a batch norm, the activation, dropout, and what came in is
    added. PyG's ``ResGatedGraphConv`` neither divides by the gates nor updates the edges.

    Args:
        width: number of channels.
        dropout: dropout probability.
        act: the activation.

    Shapes:
        x ``(n, width)``; e ``(m, width)``. Returns both anew.
    """

    def __init__(
        self, width: int, *, dropout: float = 0.1, act: Callable[[Tensor], Tensor] = F.relu
    ) -> None:
        super().__init__()
        self.dropout, self.act = dropout, act
        self.own, self.sent = nn.Linear(width, width), nn.Linear(width, width)  # A, B
        self.edge = nn.Linear(width, width)  # C
        self.target, self.source = nn.Linear(width, width), nn.Linear(width, width)  # D, E
        self.node_norm, self.edge_norm = nn.BatchNorm1d(width), nn.BatchNorm1d(width)

    def reset_parameters(self) -> None:
        reset_children(self)

    def forward(self, x: Tensor, e: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        y, f = self.convolve(x, e, graph)
        return x + self._finish(self.node_norm, y), e + self._finish(self.edge_norm, f)

    def convolve(self, x: Tensor, e: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """The two equations: new features of nodes ``(n, width)`` and of edges ``(m, width)``."""
        source, target, n = graph.source, graph.target, x.shape[0]
        f = self.target(x).index_select(0, target) + self.source(x).index_select(0, source)
        f = f + self.edge(e)
        gate = f.sigmoid()
        heard = sum_at(target, gate * self.sent(x).index_select(0, source), n)
        return self.own(x) + heard / (sum_at(target, gate, n) + EPSILON), f

    def _finish(self, norm: nn.BatchNorm1d, y: Tensor) -> Tensor:
        return dropout(self.act(normalize(norm, y)), self.dropout, self.training)

    def __repr__(self) -> str:
        return f"GatedGCNLayer({self.own.in_features})"


class GatedGCN(LongRangeNetwork):
    """GatedGCN as it was tuned for long ranges: :class:`GatedGCNLayer`, with ReLU, in a
    :class:`~coopsheaf.zoo.lrgb.network.LongRangeNetwork`, which has the arguments."""

    @arguments_of(LongRangeNetwork, without=("make_layer",))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 95,
        num_layers: int = 10,
        out_channels: int | None = None,
        **others: Any,
    ) -> None:
        sizes = (in_channels, hidden_channels, num_layers, out_channels)
        super().__init__(*sizes, make_layer=GatedGCNLayer, **others)
