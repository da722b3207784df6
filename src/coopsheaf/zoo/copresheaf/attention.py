"""Attention whose values are carried along arcs."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice
from coopsheaf.models.network import reset_children
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.copresheaf.maps import ARC_MAPS, ArcMaps
from coopsheaf.zoo.platonov.attention import edge_scores, edge_softmax
from coopsheaf.zoo.platonov.layers import check_heads


class CopresheafAttention(nn.Module):
    r"""Copresheaf attention (Hajij et al., NeurIPS 2025) along the arcs of a graph.

    .. math::
        y_i = W_o \Vert_k \sum_{e = j \to i} \operatorname{softmax}_j\Bigl(
              \frac{\langle q_i^k, k_j^k \rangle}{\sqrt p}\Bigr)\, \rho_e^k\, v_j^k

    with queries, keys and values of p numbers per head, linear in x, and a map
    :math:`\rho_e^k` of the query of i and the key of j, per arc and head. Where all maps are
    identities this is multi-head attention. No loops are added; a node that hears nobody has 0.

    Maps belong to arcs: m·p² numbers per head (m·p for diagonal maps).

    Args:
        channels: number c of channels.
        num_heads: number of heads; divides c.
        maps: ``"fc"``, :math:`I + \tanh(W[q \Vert k])`, which starts as plain attention; ``"spd"``,
            :math:`I + QQ^\top`; or ``"diagonal"``, numbers in (0, 1).

    Shapes:
        x ``(n, c)``; graph of n nodes and m arcs. Returns ``(n, c)``.
    """

    def __init__(self, channels: int, *, num_heads: int = 4, maps: str = "fc") -> None:
        super().__init__()
        self.num_heads = check_heads(num_heads, channels)
        self.channels, p = channels, channels // num_heads
        kind = check_choice("maps", maps, ARC_MAPS)
        self.query = nn.Linear(channels, channels, bias=False)
        self.key = nn.Linear(channels, channels, bias=False)
        self.value = nn.Linear(channels, channels, bias=False)
        self.out = nn.Linear(channels, channels, bias=False)
        self.maps = nn.ModuleList(kind(p) for _ in range(num_heads))

    def reset_parameters(self) -> None:
        reset_children(self)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        queries, keys, values = (
            linear(x).unflatten(1, (self.num_heads, -1))  # (n, heads, p)
            for linear in (self.query, self.key, self.value)
        )
        scores = edge_scores(queries, keys, graph) / math.sqrt(queries.shape[2])
        share = edge_softmax(scores, graph)  # (m, heads)
        heads = []
        for k, kind in enumerate(self.maps):
            assert isinstance(kind, ArcMaps)
            carried = kind(queries[:, k], keys[:, k], graph)
            value = values[:, k].unsqueeze(2)  # (n, p, 1)
            heads.append(kind.carry(carried, share[:, k], value, graph).squeeze(2))
        return self.out(torch.cat(heads, dim=1))

    def __repr__(self) -> str:
        return f"CopresheafAttention({self.channels}, num_heads={self.num_heads}, {self.maps[0]})"
