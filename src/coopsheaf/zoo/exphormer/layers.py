"""The attention of Exphormer, and its layer: gated sums and attention side by side."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.nn.edge_attention import divide, edge_exponentials, edge_sums, split_heads
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.exphormer.routes import Routes
from coopsheaf.zoo.lrgb.gated import GatedGCNLayer
from coopsheaf.zoo.lrgb.network import normalize
from coopsheaf.zoo.platonov.layers import check_heads


class ExphormerAttention(nn.Module):
    r"""Attention along any list of edges, whose features take part in the scores.

    .. math::
        s_e = \exp \operatorname{clamp}\Bigl(\sum_r \frac{(K x_j)_r (Q x_i)_r (E w_e)_r}{\sqrt{c}},
        -5, 5\Bigr), \qquad
        y_i = \frac{\sum_{e = (j \to i)} s_e\, V x_j}{\sum_{e = (j \to i)} s_e + 10^{-6}}

    for every head by itself. Nothing has a bias, and the heads stand side by side as they are.

    Args:
        channels: number of channels that come in and go out.
        num_heads: number of heads; divides ``channels``.

    Shapes:
        x ``(n, channels)``; source, target ``(m,)``; edges ``(m, channels)``, w. Returns
        ``(n, channels)``; zeros where no edge ends.
    """

    def __init__(self, channels: int, *, num_heads: int = 4) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_heads = check_heads(num_heads, channels)
        for name in ("query", "key", "edge", "value"):
            self.add_module(name, nn.Linear(channels, channels, bias=False))

    query: nn.Linear
    key: nn.Linear
    edge: nn.Linear
    value: nn.Linear

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, source: Tensor, target: Tensor, edges: Tensor) -> Tensor:
        parts = (self.query(x), self.key(x), self.edge(edges), self.value(x))
        asked, offered, said, values = (split_heads(part, self.num_heads) for part in parts)
        weights = edge_exponentials(asked, offered, said, source, target)
        return divide(*edge_sums(values, weights, source, target))

    def __repr__(self) -> str:
        return f"ExphormerAttention({self.channels}, num_heads={self.num_heads})"


class ExphormerLayer(nn.Module):
    r"""Gated sums and attention side by side, and a perceptron.

    .. math::
        Z = \operatorname{BN}(\mathrm{gated}(X))
            + \operatorname{BN}(X + \operatorname{dropout}(\mathrm{attention}(X))), \qquad
        Y = \operatorname{BN}(Z + \mathrm{FFN}(Z))

    with :class:`~coopsheaf.zoo.lrgb.gated.GatedGCNLayer` along the edges of the graph, which adds X
    itself and changes its own features of edges, and :class:`ExphormerAttention` along all routes,
    whose features are the same in every layer. A virtual node becomes what attention gives it:
    nothing is added, and it sees no perceptron.

    Args:
        channels: number of channels; the perceptron is twice as wide.
        num_heads: number of heads.
        dropout: dropout probability.

    Shapes:
        x ``(n, channels)``; virtual ``(graphs · V, channels)``; graph of n nodes and m edges; edges
        ``(m, channels)``; routes and their features ``(r, channels)``. Returns new x, virtual and
        edges.
    """

    def __init__(self, channels: int, *, num_heads: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = check_probability("dropout", dropout)
        self.gated = GatedGCNLayer(channels, dropout=dropout)
        self.gated_norm = nn.BatchNorm1d(channels)
        self.attention = ExphormerAttention(channels, num_heads=num_heads)
        self.attention_norm = nn.BatchNorm1d(channels)
        self.lin_in, self.lin_out = (
            nn.Linear(channels, 2 * channels),
            nn.Linear(2 * channels, channels),
        )
        self.out_norm = nn.BatchNorm1d(channels)

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(
        self, x: Tensor, virtual: Tensor, graph: Graph, edges: Tensor, routes: Routes, said: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        near, edges = self.gated(x, edges, graph)
        every = torch.cat([x, virtual])
        heard = self.attention(every, routes.source, routes.target, said)
        heard, virtual = heard[: x.shape[0]], heard[x.shape[0] :]
        far = x + self._drop(heard)
        z = normalize(self.gated_norm, near) + normalize(self.attention_norm, far)
        inner = self._drop(F.relu(self.lin_in(z)))
        z = z + self._drop(self.lin_out(inner))
        return normalize(self.out_norm, z), virtual, edges

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def __repr__(self) -> str:
        return f"ExphormerLayer({self.attention}, dropout={self.dropout})"
