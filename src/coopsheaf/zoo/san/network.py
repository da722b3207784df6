"""SAN: real edges and the pairs without one have queries, keys and shares of their own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_linear
from coopsheaf.nn.edge_attention import CLAMP, divide, edge_exponentials, edge_sums, split_heads
from coopsheaf.nn.inputs import EdgeInputs, NodeInputs, check_steps, take_pe
from coopsheaf.nn.per_batch import remember_with_batch
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.lrgb.network import normalize
from coopsheaf.zoo.platonov.layers import check_heads
from coopsheaf.zoo.san.pairs import Block, check_size, pair_blocks


class SANAttention(nn.Module):
    r"""Attention along the edges, and with the share γ between all other pairs.

    .. math::
        s_{ij} = \begin{cases}
          \frac{1}{1 + \gamma} \exp\operatorname{clamp}\bigl(\sum_r (Q x_i)_r (K x_j)_r (E e_{ji})_r
          / \sqrt{c}\bigr) & \text{if } j \to i, \\
          \frac{\gamma}{1 + \gamma} \exp\operatorname{clamp}\bigl(\sum_r (Q' x_i)_r (K' x_j)_r
          (E' f)_r / \sqrt{c}\bigr) & \text{otherwise, also for } j = i,
        \end{cases} \qquad
        y_i = \frac{\sum_j s_{ij}\, V x_j}{\sum_j s_{ij} + 10^{-6}}

    for every head by itself, clamped to [-5, 5], with one vector f for all pairs without an edge.
    Nothing has a bias. Parallel edges count one by one.

    Args:
        channels: number of channels that come in and go out.
        num_heads: number of heads; divides ``channels``.
        gamma: the share γ of the pairs without an edge.

    Shapes:
        x ``(n, channels)``; graph of n nodes and m edges; edges ``(m, channels)``; other
        ``(1, channels)``, f; blocks, the pairs without an edge. Returns ``(n, channels)``.
    """

    def __init__(self, channels: int, *, num_heads: int = 4, gamma: float = 1e-6) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_heads = check_heads(num_heads, channels)
        self.gamma = check_share(gamma)
        for name in ("query", "key", "edge", "value", "far_query", "far_key", "far_edge"):
            self.add_module(name, nn.Linear(channels, channels, bias=False))

    query: nn.Linear
    key: nn.Linear
    edge: nn.Linear
    value: nn.Linear
    far_query: nn.Linear
    far_key: nn.Linear
    far_edge: nn.Linear

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(
        self, x: Tensor, graph: Graph, edges: Tensor, other: Tensor, blocks: list[Block]
    ) -> Tensor:
        values = self._heads(self.value(x))
        sums, totals = self.near(x, values, graph, edges)
        far_sums, far_totals = self.far(x, values, other, blocks)
        share, rest = 1 / (1 + self.gamma), self.gamma / (1 + self.gamma)
        return divide(share * sums + rest * far_sums, share * totals + rest * far_totals)

    def near(self, x: Tensor, values: Tensor, graph: Graph, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Weighted values and weights, summed over the edges."""
        asked, offered = self._heads(self.query(x)), self._heads(self.key(x))
        ends = graph.source, graph.target
        weights = edge_exponentials(asked, offered, self._heads(self.edge(edges)), *ends)
        return edge_sums(values, weights, *ends)

    def far(
        self, x: Tensor, values: Tensor, other: Tensor, blocks: list[Block]
    ) -> tuple[Tensor, Tensor]:
        """The same over the pairs without an edge."""
        # One vector for all pairs: it can be the queries' as well.
        asked = self._heads(self.far_query(x) * self.far_edge(other)) / self._width() ** 0.5
        offered = self._heads(self.far_key(x))
        sums, totals = torch.zeros_like(values), values.new_zeros(values.shape[:2])
        for block in blocks:
            q, k, v = (part[block.nodes].transpose(1, 2) for part in (asked, offered, values))
            weights = (q @ k.mT).clamp(-CLAMP, CLAMP).exp()  # (g, h, s, s)
            weights = weights * block.apart.unsqueeze(1)
            nodes, real = block.nodes.flatten(), block.real.flatten().to(x.dtype)
            heard = (weights @ v).transpose(1, 2).flatten(0, 1) * real.view(-1, 1, 1)
            weighed = weights.sum(-1).transpose(1, 2).flatten(0, 1) * real.view(-1, 1)
            sums, totals = sums.index_add(0, nodes, heard), totals.index_add(0, nodes, weighed)
        return sums, totals

    def _heads(self, x: Tensor) -> Tensor:
        return split_heads(x, self.num_heads)

    def _width(self) -> int:
        return self.channels // self.num_heads

    def __repr__(self) -> str:
        return f"SANAttention({self.channels}, num_heads={self.num_heads}, gamma={self.gamma})"


class SANLayer(nn.Module):
    r"""Attention and a perceptron, each added to what entered it and normed over the batch.

    .. math:: Z = \operatorname{BN}(X + O\,\mathrm{attention}(X)), \qquad
              Y = \operatorname{BN}(Z + W_2 \operatorname{ReLU}(W_1 Z))

    Args:
        channels: number of channels that come in and go out; the perceptron is twice as wide.
        num_heads: number of heads.
        gamma: the share of the pairs without an edge.
        dropout: dropout probability of the attention's output, and inside the perceptron.

    Shapes:
        as of :class:`SANAttention`.
    """

    def __init__(
        self, channels: int, *, num_heads: int = 4, gamma: float = 1e-6, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = check_probability("dropout", dropout)
        self.attention = SANAttention(channels, num_heads=num_heads, gamma=gamma)
        self.out = nn.Linear(channels, channels)
        self.norm = nn.BatchNorm1d(channels)
        self.lin_in, self.lin_out = (
            nn.Linear(channels, 2 * channels),
            nn.Linear(2 * channels, channels),
        )
        self.last_norm = nn.BatchNorm1d(channels)

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(
        self, x: Tensor, graph: Graph, edges: Tensor, other: Tensor, blocks: list[Block]
    ) -> Tensor:
        heard = self._drop(self.attention(x, graph, edges, other, blocks))
        x = normalize(self.norm, x + self.out(heard))
        inner = self._drop(F.relu(self.lin_in(x)))
        return normalize(self.last_norm, x + self.lin_out(inner))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def __repr__(self) -> str:
        return f"SANLayer({self.attention}, dropout={self.dropout})"


class SAN(Network):
    """SAN of Kreuzer et al. (NeurIPS 2021), in the form of the Long Range Graph Benchmark.

    Layers of :class:`SANLayer`: every node attends to all others of its graph, to its neighbours
    with weights of their own and to the rest with the share ``gamma``. The encoding of places is a
    concatenation to the features, as the benchmark has it, and not the authors' transformer of
    eigenvectors. Pairs without an edge are dense within each graph: a graph of n nodes costs n²
    numbers per head, and graphs above ``most_nodes`` are refused.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_heads: number of heads; divides ``hidden_channels``.
        gamma: the share of the pairs without an edge, not negative; 0 for edges alone.
        dropout: dropout probability.
        encoder: ``"linear"``, or ``"atoms"`` for the codes of atoms and bonds.
        pe_kind: ``"none"``, ``"rwse"`` or ``"lappe"``, the encoding of places beside the features.
        pe_width: size of the encoding in the first layer.
        pe_steps: how many steps of random walks are looked at; all of the data's if not given.
        most_nodes: largest number of nodes of a graph.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        pe_channels: number of columns of the encoding in the data.
        edge_channels: number of features of an edge; 0 for one vector for all edges.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``; pe ``(n, pe_channels)``; edge_attr ``(m, edge_channels)``. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    exportable = False
    why_not_exportable = "this network needs the pairs of nodes that no edge joins"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 4,
        out_channels: int | None = None,
        *,
        num_heads: int = 4,
        gamma: float = 1e-6,
        dropout: float = 0.0,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_width: int = 16,
        pe_steps: int | None = None,
        most_nodes: int = 5000,
        pool: str | None = None,
        pe_channels: int = 0,
        edge_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.most_nodes = check_int("most_nodes", most_nodes, minimum=1)
        self.gamma = check_share(gamma)
        self.encoder = NodeInputs(
            in_channels,
            hidden_channels,
            encoder=encoder,
            pe_kind=pe_kind,
            pe_channels=check_steps(pe_kind, pe_channels, pe_steps),
            pe_width=pe_width,
        )
        self.pe_channels = pe_channels
        self.edge_encoder = EdgeInputs(edge_channels, hidden_channels, encoder=encoder)
        self.edge_channels = self.edge_encoder.edge_channels
        self.other = nn.Parameter(torch.empty(1, hidden_channels))
        self.layers = nn.ModuleList(
            SANLayer(hidden_channels, num_heads=num_heads, gamma=gamma, dropout=dropout)
            for _ in range(num_layers)
        )
        self.readout = make_linear(self._end_layers(hidden_channels), out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.normal_(self.other)

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        blocks = self._blocks(graph, batch)
        if self.pe_channels:
            pe = take_pe(pe, x, self.pe_channels)[:, : self.encoder.pe_channels]
        x, edges = self.encoder(x, pe), self.edge_encoder(edge_attr, graph)
        for layer in self.layers:
            x = layer(x, graph, edges, self.other, blocks)
        return x

    def _blocks(self, graph: Graph, batch: Tensor | None) -> list[Block]:
        if batch is None:  # also where another network has left its blocks
            check_size(graph.num_nodes, self.most_nodes)

        def make() -> list[Block]:
            return pair_blocks(graph, batch, most_nodes=self.most_nodes)

        return remember_with_batch(graph, "pairs without an edge", batch, make)

    def __repr__(self) -> str:
        return (
            f"SAN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, gamma={self.gamma})"
        )


def check_share(gamma: float) -> float:
    """A number that is finite and not negative."""
    if isinstance(gamma, bool) or not 0 <= gamma < float("inf"):
        raise ValueError(f"`gamma` must be finite and not negative; got {gamma!r}")
    return float(gamma)
