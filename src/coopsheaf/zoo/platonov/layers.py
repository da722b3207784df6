r"""The blocks and the residual stack of the benchmark networks of Platonov et al. (ICLR 2023).

"A critical look at the evaluation of GNNs under heterophily" compares classic networks inside one
pre-norm residual skeleton. A block maps ``(n, channels)`` to ``(n, channels)``; the stack adds it
to what entered it. All of them but attention end in the same two-layer :class:`FeedForward`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.sheaves import laplacian
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.zoo.platonov.attention import attend, edge_scores, edge_softmax


class FeedForward(nn.Module):
    r"""Two linear layers: linear, dropout, GELU, linear, dropout.

    Args:
        in_channels: size of the input.
        hidden_channels: size between the two layers.
        out_channels: size of the output.
        dropout: dropout probability.

    Shapes:
        x ``(n, in_channels)``; returns ``(n, out_channels)``.
    """

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = check_probability("dropout", dropout)
        self.lin_in = nn.Linear(in_channels, hidden_channels)
        self.lin_out = nn.Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        self.lin_in.reset_parameters()
        self.lin_out.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(F.dropout(self.lin_in(x), self.dropout, self.training))
        return F.dropout(self.lin_out(x), self.dropout, self.training)

    def __repr__(self) -> str:
        sizes = self.lin_in.in_features, self.lin_in.out_features, self.lin_out.out_features
        return f"FeedForward({', '.join(map(str, sizes))}, dropout={self.dropout})"


class Block(nn.Module):
    """What stands in a residual branch.

    Args:
        channels: number of channels that come in and go out.
        hidden_multiplier: size between the two linear layers, in multiples of ``channels``.
        dropout: dropout probability.

    Shapes:
        x ``(n, channels)``; graph of n nodes; edge_weight ``(m,)``, for the blocks that use it.
        Returns ``(n, channels)``.
    """

    # How many rows of features, beside one another, the feed-forward network of a block sees.
    inputs = 1

    def __init__(
        self, channels: int, *, hidden_multiplier: float = 1.0, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        hidden_channels = hidden_width(channels, hidden_multiplier)
        self.feed_forward = FeedForward(
            self.inputs * channels, hidden_channels, channels, dropout=dropout
        )

    def reset_parameters(self) -> None:
        for child in self.children():
            child.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels})"


class FeedForwardBlock(Block):
    """A :class:`FeedForward` network at every node; sees no edges."""

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        return self.feed_forward(x)


class GCNBlock(Block):
    r"""The graph convolution of Kipf & Welling (2017), before a feed-forward network.

    .. math::
        Y = \operatorname{FFN}\bigl(D^{-1/2} (A + I) D^{-1/2} X\bigr), \qquad
        y_i = \operatorname{FFN}\Bigl(\frac{x_i}{d_i}
              + \sum_{j \to i} \frac{w_{ji}\, x_j}{\sqrt{d_j d_i}}\Bigr)

    with :math:`d_i = 1 + \sum_{i \to k} w_{ik}`: every node gets one loop, whatever is there
    already, and both degrees are out-degrees. PyG's ``GCNConv`` takes in-degrees, leaves loops
    that are there alone, and multiplies by a weight before the sum; on an undirected graph without
    loops its ``gcn_norm`` gives the same coefficients.
    """

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        scale = (1 + weighted_degree(graph.reverse(), x, edge_weight)).rsqrt().unsqueeze(-1)
        sent = scale * x
        return self.feed_forward(scale * (neighbour_sum(sent, graph, edge_weight) + sent))


class SAGEBlock(Block):
    r"""The mean of the neighbours beside the node itself (Hamilton et al., 2017).

    .. math::
        y_i = \operatorname{FFN}\Bigl(x_i \,\Big\Vert\,
              \frac{\sum_{j \to i} w_{ji}\, x_j}{\sum_{j \to i} w_{ji}}\Bigr)

    The mean of no neighbours is 0; no loops are added. :class:`~coopsheaf.nn.SAGEConv` has one
    linear map in place of the feed-forward network.
    """

    inputs = 2

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        mean = neighbour_mean(x, graph, edge_weight)
        return self.feed_forward(torch.cat([x, mean], dim=1))


class GATBlock(Block):
    r"""The graph attention of Veličković et al. (2018), before a feed-forward network.

    .. math::
        z_i &= W x_i + b, \qquad
        s_{ji}^k = \operatorname{LeakyReLU}(\langle a^k, z_j \rangle + c^k
                   + \langle a'^k, z_i \rangle), \\
        y_i &= \operatorname{FFN}\Bigl(\Big\Vert_k \sum_{j \to i}
               \operatorname{softmax}_j(s_{ji}^k)\, z_j^k\Bigr)

    with slope 0.2, over the graph with one more loop per node. The head is the last axis:
    :math:`z^k` holds the channels k, k + heads, k + 2·heads, … PyG's ``GATConv`` puts it first,
    scores a head by its own channels alone (here :math:`a^k` sees all of z) and has neither b
    nor :math:`c^k`. Edge weights are not used.

    Args:
        channels: number of channels that come in and go out.
        num_heads: number of heads; divides ``channels``.
        hidden_multiplier: size between the two linear layers, in multiples of ``channels``.
        dropout: dropout probability.
    """

    def __init__(
        self,
        channels: int,
        *,
        num_heads: int = 8,
        hidden_multiplier: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(channels, hidden_multiplier=hidden_multiplier, dropout=dropout)
        self.num_heads = check_heads(num_heads, channels)
        self.lin = nn.Linear(channels, channels)
        self.score_source = nn.Linear(channels, num_heads)
        self.score_target = nn.Linear(channels, num_heads, bias=False)

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        z = self.lin(x)
        return self.feed_forward(self.message(z, graph.with_self_loops()))

    def message(self, z: Tensor, graph: Graph) -> Tensor:
        """The weighted sums of z over the edges of ``graph`` as it is, ``(n, channels)``."""
        heads = z.unflatten(1, (-1, self.num_heads)).transpose(1, 2)  # (n, heads, c)
        return attend(heads, self.weights(z, graph), graph).transpose(1, 2).flatten(1)

    def weights(self, z: Tensor, graph: Graph) -> Tensor:
        """The attention of every edge, ``(m, heads)``."""
        at_source, at_target = self.score_source(z), self.score_target(z)  # (n, heads)
        scores = at_source.index_select(0, graph.source) + at_target.index_select(0, graph.target)
        return edge_softmax(F.leaky_relu(scores, 0.2), graph)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, num_heads={self.num_heads})"


class GATSepBlock(GATBlock):
    r"""Graph attention with the node beside its message, and without loops.

    :math:`y_i = \operatorname{FFN}(z_i \,\Vert\, m_i)` with z and the message m of
    :class:`GATBlock`; a node without neighbours has the message 0.
    """

    inputs = 2

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        z = self.lin(x)
        return self.feed_forward(torch.cat([z, self.message(z, graph)], dim=1))


class AttentionBlock(nn.Module):
    r"""The attention of transformers, along the edges (Shi et al., 2021).

    .. math::
        m_i = \Big\Vert_k \sum_{j \to i} \operatorname{softmax}_j\Bigl(
              \frac{\langle q_j^k, k_i^k \rangle}{\sqrt{c}}\Bigr) v_j^k, \qquad
        y_i = W m_i + b

    with queries, keys and values :math:`q, k, v` linear in x, c = channels / heads, over the graph
    with one more loop per node; dropout follows. As in the authors' released code the query is
    taken at the source and the key at the target; PyG's
    ``TransformerConv(root_weight=False)`` is the message m with the names of the two swapped. Edge
    weights are not used. In a layer a :class:`FeedForwardBlock` follows.

    Args:
        channels: number of channels that come in and go out.
        num_heads: number of heads; divides ``channels``.
        dropout: dropout probability.

    Shapes:
        x ``(n, channels)``; graph of n nodes. Returns ``(n, channels)``.
    """

    inputs = 1

    def __init__(self, channels: int, *, num_heads: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.num_heads = check_heads(num_heads, channels)
        self.dropout = check_probability("dropout", dropout)
        self.lin_query = nn.Linear(channels, channels)
        self.lin_key = nn.Linear(channels, channels)
        self.lin_value = nn.Linear(channels, channels)
        self.lin_out = nn.Linear(self.inputs * channels, channels)

    def reset_parameters(self) -> None:
        for linear in self.children():
            linear.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        y = self.lin_out(self.message(x, graph.with_self_loops()))
        return F.dropout(y, self.dropout, self.training)

    def message(self, x: Tensor, graph: Graph) -> Tensor:
        """The weighted sums of the values over the edges of ``graph`` as it is."""
        value = self._heads(self.lin_value(x))
        return attend(value, self.weights(x, graph), graph).flatten(1)

    def weights(self, x: Tensor, graph: Graph) -> Tensor:
        """The attention of every edge, ``(m, heads)``."""
        query, key = self._heads(self.lin_query(x)), self._heads(self.lin_key(x))
        scores = edge_scores(key, query / key.shape[-1] ** 0.5, graph)
        return edge_softmax(scores, graph)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (self.num_heads, -1))  # (n, heads, c)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, num_heads={self.num_heads})"


class AttentionSepBlock(AttentionBlock):
    r"""Transformer attention with the node beside its message, and without loops.

    :math:`y_i = W (x_i \,\Vert\, m_i) + b` with the message m of :class:`AttentionBlock`; a node
    without neighbours has the message 0.
    """

    inputs = 2

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        y = self.lin_out(torch.cat([x, self.message(x, graph)], dim=1))
        return F.dropout(y, self.dropout, self.training)


class ResidualStack(nn.Module):
    r"""An encoder, blocks in pre-norm residual branches, and a last norm.

    .. math::
        x \gets \operatorname{GELU}(\operatorname{dropout}(W x + b)), \qquad
        x \gets x + \operatorname{block}(\operatorname{norm}(x)) \text{ for each block}, \qquad
        x \gets \operatorname{norm}(x)

    Args:
        in_channels: size of the input features.
        channels: number of channels inside.
        blocks: the blocks, in order.
        norm: makes a norm of a size, called once per block and once for the end.
        dropout: dropout probability of the encoder.

    Shapes:
        x ``(n, in_channels)``; graph of n nodes; edge_weight ``(m,)``. Returns ``(n, channels)``.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        blocks: Iterable[nn.Module],
        *,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = check_probability("dropout", dropout)
        self.encoder = nn.Linear(in_channels, channels)
        self.blocks = nn.ModuleList(blocks)
        self.norms = nn.ModuleList(norm(channels) for _ in self.blocks)
        self.last_norm = norm(channels)

    def reset_parameters(self) -> None:
        for module in (self.encoder, *self.blocks, *self.norms, self.last_norm):
            module.reset_parameters()

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        for y in self.block_outputs(x, graph, edge_weight):  # noqa: B007 -- the last one is wanted
            pass
        return self.last_norm(y)

    def block_outputs(
        self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None
    ) -> Iterator[Tensor]:
        """The features before any block and after each, before the last norm."""
        x = F.gelu(F.dropout(self.encoder(x), self.dropout, self.training))
        yield x
        for block, norm in zip(self.blocks, self.norms, strict=True):
            x = x + block(norm(x), graph, edge_weight)
            yield x

    def __repr__(self) -> str:
        inside = ", ".join(map(repr, self.blocks))
        return f"ResidualStack({self.encoder.in_features}, {self.encoder.out_features}, [{inside}])"


def neighbour_sum(x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
    """The sum over incoming edges of ``(n, c)`` features, weighted if there are weights."""
    blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
    return sparse_product(x.unsqueeze(1), graph, blocks).squeeze(1)


def neighbour_mean(x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
    """The mean over incoming edges, weighted if there are weights; 0 where their sum is 0."""
    degree = weighted_degree(graph, x, edge_weight)
    degree = torch.where(degree > 0, degree, torch.ones_like(degree))
    return neighbour_sum(x, graph, edge_weight) / degree.unsqueeze(-1)


def weighted_degree(graph: Graph, like: Tensor, edge_weight: Tensor | None = None) -> Tensor:
    """The number, or the sum of the weights, of the edges into each node, ``(n,)``."""
    return laplacian.weighted_degree(graph, edge_weight).to(like.dtype)


def hidden_width(channels: int, multiplier: float) -> int:
    """The size between two linear layers, rounded down."""
    if isinstance(multiplier, bool) or not isinstance(multiplier, int | float):
        raise ValueError(f"`hidden_multiplier` must be a number; got {multiplier!r}")
    width = int(channels * multiplier) if 0 < multiplier < float("inf") else 0
    if width < 1:
        raise ValueError(
            f"`hidden_multiplier` must give a width of at least 1 for {channels} channels; "
            f"got {multiplier!r}"
        )
    return width


def check_heads(num_heads: int, channels: int) -> int:
    """A number of heads that divides the channels."""
    check_int("num_heads", num_heads, minimum=1)
    if channels % num_heads:
        raise ValueError(
            f"`num_heads` must divide the number of channels, {channels}; got {num_heads}"
        )
    return num_heads
