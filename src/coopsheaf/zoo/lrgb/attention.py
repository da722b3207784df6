"""Attention among all nodes of each graph of a batch."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.nn.dropout import dropout

AT_ONCE = 16  # graphs that are padded to one size: more of them waste more


class Padded(NamedTuple):
    """Some graphs in one table: a row per graph, as long as the largest of them."""

    place: Tensor  # (graphs, longest) which node; any where there is none
    there: Tensor  # (graphs, longest) whether there is one


class Tables(NamedTuple):
    """All graphs of a batch in tables of graphs of about the same size."""

    parts: list[Padded]
    back: Tensor  # (n,) where each node is among the nodes of all tables


def make_tables(batch: Tensor, at_once: int = AT_ONCE) -> Tables:
    """Graphs sorted by their size and cut into tables.

    Args:
        batch: ``(n,)`` the graph of each node, in any order.
        at_once: graphs in a table.
    """
    order = torch.argsort(batch, stable=True)
    counts = torch.bincount(batch)
    starts = counts.cumsum(0) - counts
    parts = []
    some = counts.nonzero().squeeze(1)  # a graph without nodes has no row
    for graphs in some[counts[some].argsort(stable=True)].split(at_once):
        step = torch.arange(int(counts[graphs].max()), device=batch.device)
        there = step < counts[graphs].unsqueeze(1)
        place = (starts[graphs].unsqueeze(1) + step).clamp(max=batch.numel() - 1)
        parts.append(Padded(order[place], there))
    nodes = torch.cat([part.place[part.there] for part in parts])
    return Tables(parts, nodes.argsort())


class PaddedAttention(nn.Module):
    r"""Multi-head attention of every node to all nodes of its graph.

    .. math:: y_i = W_O\, \Vert_h \sum_{j \in G(i)} \operatorname{softmax}_j
              \Bigl(\frac{q_{h,i} \cdot k_{h,j}}{\sqrt{d_h}}\Bigr) v_{h,j}

    with dropout on the weights of attention. The same as ``nn.MultiheadAttention`` of the padded
    batch. Graphs are padded to the largest of a few that are about as large, and not to the largest
    of the batch; what is padded is never seen. Memory grows with the squares of the graphs' sizes.

    Args:
        width: number of channels, a multiple of ``num_heads``.
        num_heads: number of heads.
        dropout: dropout probability of the weights.

    Shapes:
        x ``(n, width)``; tables, or ``None`` for one graph. Returns ``(n, width)``.
    """

    def __init__(self, width: int, num_heads: int = 4, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = check_int("num_heads", num_heads, minimum=1)
        if width % num_heads:
            raise ValueError(
                f"`hidden_channels` must be a multiple of num_heads = {num_heads}; got {width}"
            )
        self.dropout = check_probability("attention_dropout", dropout)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As ``nn.MultiheadAttention`` starts."""
        nn.init.xavier_uniform_(self.project.weight)
        self.out.reset_parameters()
        nn.init.zeros_(self.project.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, tables: Tables | None = None) -> Tensor:
        y = self.project(x)  # (n, 3 width)
        if tables is None:
            return self.out(self._attend(y.unsqueeze(0), None).squeeze(0))
        heard = []
        for place, there in tables.parts:
            rows = y.index_select(0, place.flatten()).unflatten(0, place.shape)
            heard.append(self._attend(rows, there)[there])
        return self.out(torch.cat(heard).index_select(0, tables.back))

    def _attend(self, y: Tensor, there: Tensor | None) -> Tensor:
        """``(graphs, longest, 3 width)`` to ``(graphs, longest, width)``."""
        heads = y.unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind(0)  # (graphs, heads, longest, width / heads) each
        # Written out: fused attention has no second derivative, and no dropout on the CPU.
        scores = (q * q.shape[-1] ** -0.5) @ k.mT
        if there is not None:
            scores = scores.masked_fill(~there[:, None, None, :], -math.inf)
        weights = dropout(scores.softmax(-1), self.dropout, self.training)
        return (weights @ v).transpose(1, 2).flatten(2)

    def __repr__(self) -> str:
        return f"PaddedAttention({self.out.in_features}, num_heads={self.num_heads})"
