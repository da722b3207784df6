"""GPS: messages along the edges beside attention among all nodes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.models.network import reset_children
from coopsheaf.nn.dropout import dropout
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.lrgb.attention import PaddedAttention, Tables, make_tables
from coopsheaf.zoo.lrgb.gated import GatedGCNLayer
from coopsheaf.zoo.lrgb.network import LongRangeNetwork, normalize


class Places(NamedTuple):
    """Who hears whom: along edges, and within a graph."""

    graph: Graph
    tables: Tables | None


class GPSLayer(nn.Module):
    r"""The layer of GPS (Rampášek et al., NeurIPS 2022) with GatedGCN and full attention.

    .. math::
        l, e' &= \operatorname{GatedGCN}(h, e), \qquad
        g = h + \operatorname{dropout}(\operatorname{attention}(h)) \\
        u &= \operatorname{BN}(l) + \operatorname{BN}(g), \qquad
        h' = \operatorname{BN}(u + \operatorname{FFN}(u))

    GatedGCN has GELU and adds h itself. FFN is linear to twice the width, GELU, dropout, linear,
    dropout.

    Args:
        width: number of channels.
        dropout: dropout probability.
        num_heads: number of heads of the attention.
        attention_dropout: dropout probability of the weights of attention.

    Shapes:
        x ``(n, width)``; e ``(m, width)``. Returns both anew.
    """

    def __init__(
        self,
        width: int,
        *,
        dropout: float = 0.1,
        num_heads: int = 4,
        attention_dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.local = GatedGCNLayer(width, dropout=dropout, act=F.gelu)
        self.attention = PaddedAttention(width, num_heads, dropout=attention_dropout)
        self.local_norm, self.global_norm = nn.BatchNorm1d(width), nn.BatchNorm1d(width)
        self.inner, self.outer = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.last_norm = nn.BatchNorm1d(width)

    def reset_parameters(self) -> None:
        reset_children(self)

    def forward(self, x: Tensor, e: Tensor, where: Places) -> tuple[Tensor, Tensor]:
        near, e = self.local(x, e, where.graph)
        far = x + dropout(self.attention(x, where.tables), self.dropout, self.training)
        x = normalize(self.local_norm, near) + normalize(self.global_norm, far)
        y = dropout(F.gelu(self.inner(x)), self.dropout, self.training)
        y = dropout(self.outer(y), self.dropout, self.training)
        return normalize(self.last_norm, x + y), e

    def __repr__(self) -> str:
        return f"GPSLayer({self.inner.in_features}, num_heads={self.attention.num_heads})"


class GPS(LongRangeNetwork):
    """GPS as it was tuned for long ranges: :class:`GPSLayer` in a
    :class:`~coopsheaf.zoo.lrgb.network.LongRangeNetwork`, which has the other arguments.

    Every node attends to all nodes of its graph: of one large graph that is more than a machine
    can hold.

    Args:
        num_heads: number of heads of the attention, of which the width is a multiple.
        attention_dropout: dropout probability of the weights of attention.
    """

    @arguments_of(LongRangeNetwork, without=("make_layer",))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 76,
        num_layers: int = 6,
        out_channels: int | None = None,
        *,
        num_heads: int = 4,
        attention_dropout: float = 0.5,
        head_layers: int = 2,
        **others: Any,
    ) -> None:
        sizes = (in_channels, hidden_channels, num_layers, out_channels)
        layer = partial(GPSLayer, num_heads=num_heads, attention_dropout=attention_dropout)
        super().__init__(*sizes, make_layer=layer, head_layers=head_layers, **others)

    def prepare(
        self, x: Tensor, graph: Graph, batch: Tensor | None, edge_weight: Tensor | None
    ) -> Places:
        return Places(graph, None if batch is None else make_tables(batch))
