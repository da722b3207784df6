"""The plain networks of the tables on small graphs: MLP, GCN, GAT and GraphSAGE.

Their last layer maps to the outputs: the readout is nothing, graph outputs are pooled node outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, Linear
from torch_geometric.utils import add_self_loops, remove_self_loops

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_act, make_norm
from coopsheaf.nn.sage import SAGEConv
from coopsheaf.nn.sparse_inputs import SparseInputs, apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.zoo.platonov.attention import attend, edge_softmax
from coopsheaf.zoo.platonov.layers import check_heads


class PlainNetwork(Network):
    """Layers one after the other, with norm, activation and dropout between them.

    A subclass says how a layer is made and called; layers draw their parameters when they are made.

    Args:
        in_channels: size of the input features.
        hidden_channels: size between the layers.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        input_dropout: dropout probability of the input features.
        dropout: dropout probability between the layers.
        act: the activation σ: a name that PyG resolves, a module, or ``"identity"`` / ``None``.
        norm: ``None``, ``"layer"`` or ``"batch"``, before the activation.
        act_first: the norm comes after the activation instead.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        layer_options: what else :meth:`make_layer` is to know.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    draws_twice = False
    takes_sparse_inputs = False

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.5,
        act: str | Callable[[Tensor], Tensor] | None = "relu",
        norm: str | None = None,
        act_first: bool = False,
        pool: str | None = None,
        **layer_options: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        self.act = make_act(act)
        self.act_first = act_first
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), width]
        last = num_layers - 1
        self.layers = nn.ModuleList(
            self.make_layer(before, after, t == last, **layer_options)
            for t, (before, after) in enumerate(pairwise(sizes))
        )
        self.norms = nn.ModuleList(make_norm(norm, size) for size in sizes[1:-1])
        self.readout = nn.Identity()
        if self.draws_twice:
            self.reset_parameters()

    def make_layer(self, before: int, after: int, last: bool) -> nn.Module:
        """A layer between features of these sizes."""
        raise NotImplementedError

    def step(self, layer: Any, x: Tensor, graph: Graph, edge_weight: Tensor | None) -> Tensor:
        """One layer, called as it wants to be called."""
        raise NotImplementedError

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        drops = self.training and self.input_dropout > 0
        if self.takes_sparse_inputs and not drops:
            inputs: Any = take_inputs(x)
        else:  # masks stay what they were when results were recorded
            inputs = F.dropout(x, self.input_dropout, self.training)
        for layer, norm in zip(self.layers, self.norms, strict=False):
            x = self.step(layer, inputs, graph, edge_weight)
            x = norm(self.act(x)) if self.act_first else self.act(norm(x))
            inputs = F.dropout(x, self.dropout, self.training)
        return self.step(self.layers[-1], inputs, graph, edge_weight)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels})"
        )


class PlainMLP(PlainNetwork):
    r"""A multi-layer perceptron: features only, no edges.

    .. math:: H_{t+1} = \operatorname{dropout}(\sigma(H_t W_t + b_t)), \qquad Z = H_{L-1} W_L + b_L

    with :math:`H_0 = \operatorname{dropout}(X)`. Parameters start as those of PyG's ``MLP``.

    Arguments and shapes are those of :class:`PlainNetwork`.
    """

    sees_edges = False

    draws_twice = True  # as PyG's MLP does
    takes_sparse_inputs = True

    def make_layer(self, before: int, after: int, last: bool) -> nn.Module:
        return Linear(before, after)

    def step(self, layer: Any, x: Any, graph: Graph, edge_weight: Tensor | None) -> Tensor:
        return apply_to_inputs(layer, x)


class PlainGCN(PlainNetwork):
    r"""The graph convolutional network of Kipf & Welling (ICLR 2017), without skip connections.

    .. math:: H_{t+1} = \operatorname{dropout}(\sigma(S H_t W_t + b_t)), \qquad
              S = D^{-1/2} (A + I) D^{-1/2}

    Node by node, :math:`(S H)_i = \sum_{j \to i} w_{ji} h_j / \sqrt{d_i d_j} + h_i / d_i` with
    :math:`d_i = 1 + \sum_{j \to i} w_{ji}`. The layers hold PyG's parameters, which start as those
    of its ``GCN``, and compute the same (:func:`graph_convolution`). On directed edges both factors
    are in-degrees, and a node that has a loop gets no second one.

    The networks of the tables on Texas, Wisconsin, Cornell and Film were run on the edge lists as
    they are stored, with the first node of a line as the receiver and row sums on both sides: this
    network on ``direction="rows"`` and ``self_loops="double"`` of the data.

    Arguments and shapes are those of :class:`PlainNetwork`.
    """

    takes_edge_weight = True
    takes_sparse_inputs = True

    def make_layer(self, before: int, after: int, last: bool) -> nn.Module:
        return GCNConv(before, after)

    def step(self, layer: Any, x: Any, graph: Graph, edge_weight: Tensor | None) -> Tensor:
        return graph_convolution(layer, x, graph, edge_weight)


class PlainGAT(PlainNetwork):
    r"""The graph attention network of Veličković et al. (ICLR 2018).

    For every head, with :math:`y = W h`,

    .. math::
        \alpha_{ij} = \operatorname{softmax}_{j \in N(i) \cup \{i\}}
            \operatorname{LeakyReLU}_{0.2}(p^\top y_i + q^\top y_j), \qquad
        h_i' = \sum_{j \in N(i) \cup \{i\}} \operatorname{dropout}(\alpha_{ij})\, y_j + b,

    that is :math:`H' = \alpha H W^\top + b`. Heads are concatenated, and averaged after the last
    layer. Loops are replaced by one loop per node. The layers hold PyG's parameters and compute
    the same (:func:`graph_attention`). The network that the tables on small graphs were made with
    has one variant for sparse matrices that scores with
    :math:`\exp(-\operatorname{LeakyReLU})`; this is the usual softmax.

    Args:
        in_channels: size of the input features.
        hidden_channels: size between the layers, all heads together.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_heads: heads of all layers but the last; divides hidden_channels.
        output_heads: heads of the last layer, averaged.
        input_dropout: dropout probability of the input features.
        dropout: dropout probability between the layers.
        attention_dropout: dropout probability of α.
        act: the activation: a name that PyG resolves, a module, or ``"identity"`` / ``None``.
        output_act: apply the activation to the output too, as some implementations do.
        norm: ``None``, ``"layer"`` or ``"batch"``, before the activation.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    takes_sparse_inputs = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_heads: int = 8,
        output_heads: int = 1,
        input_dropout: float = 0.6,
        dropout: float = 0.6,
        attention_dropout: float = 0.6,
        act: str | Callable[[Tensor], Tensor] | None = "elu",
        output_act: bool = False,
        norm: str | None = None,
        pool: str | None = None,
    ) -> None:
        check_int("hidden_channels", hidden_channels, minimum=1)
        check_int("output_heads", output_heads, minimum=1)
        check_heads(num_heads, hidden_channels)
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            input_dropout=input_dropout,
            dropout=dropout,
            act=act,
            norm=norm,
            pool=pool,
            num_heads=num_heads,
            output_heads=output_heads,
            attention_dropout=check_probability("attention_dropout", attention_dropout),
        )
        self.num_heads, self.output_act = num_heads, output_act

    def make_layer(  # type: ignore[override]
        self,
        before: int,
        after: int,
        last: bool,
        *,
        num_heads: int,
        output_heads: int,
        attention_dropout: float,
    ) -> nn.Module:
        options: dict[str, Any] = {"dropout": attention_dropout, "add_self_loops": False}
        if last:
            return GATConv(before, after, heads=output_heads, concat=False, **options)
        return GATConv(before, after // num_heads, heads=num_heads, **options)

    def step(self, layer: Any, x: Any, graph: Graph, edge_weight: Tensor | None) -> Tensor:
        # Once per graph: PyG would look for loops in every layer, and wait for the device.
        return graph_attention(layer, x, give_loops(graph))

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        x = super().embed(x, graph)
        return self.act(x) if self.output_act else x

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, num_heads={self.num_heads})"


def graph_attention(layer: GATConv, x: Tensor | SparseInputs, graph: Graph) -> Tensor:
    """What PyG's ``GATConv`` computes on a graph that has its loops, head by head.

    The sums are one sparse product per head, in place of a message per edge.
    """
    y = apply_to_inputs(layer.lin, x).unflatten(1, (layer.heads, layer.out_channels))
    at_source, at_target = (y * layer.att_src).sum(-1), (y * layer.att_dst).sum(-1)  # (n, heads)
    scores = at_source.index_select(0, graph.source) + at_target.index_select(0, graph.target)
    weights = edge_softmax(F.leaky_relu(scores, layer.negative_slope), graph)  # (m, heads)
    out = attend(y, F.dropout(weights, layer.dropout, layer.training), graph)
    return (out.flatten(1) if layer.concat else out.mean(1)) + layer.bias


def give_loops(graph: Graph) -> Graph:
    """The same graph with one loop per node in place of those that there are, made once."""
    return graph.remember("one loop per node", _give_loops)


def _give_loops(graph: Graph) -> Graph:
    edges, _ = remove_self_loops(graph.edge_index)
    return type(graph)(add_self_loops(edges, num_nodes=graph.num_nodes)[0], graph.num_nodes)


class PlainSAGE(PlainNetwork):
    r"""GraphSAGE of Hamilton et al. (NeurIPS 2017) with the mean over all neighbours.

    .. math:: H_{t+1} = \operatorname{dropout}\bigl(\sigma(D^{-1} A H_t W_l^\top + b
              + H_t W_r^\top)\bigr)

    Node by node, :math:`W_l \operatorname{mean}_{j \to i} h_j + b + W_r h_i`
    (:class:`~coopsheaf.nn.SAGEConv`, the same function as PyG's). The authors draw a few neighbours
    per node and train on mini-batches; here all neighbours count and a step sees the whole graph.

    Arguments and shapes are those of :class:`PlainNetwork`.
    """

    def make_layer(self, before: int, after: int, last: bool) -> nn.Module:
        return SAGEConv(before, after)

    def step(self, layer: Any, x: Tensor, graph: Graph, edge_weight: Tensor | None) -> Tensor:
        return layer(x, graph)


def graph_convolution(
    layer: GCNConv, x: Tensor | SparseInputs, graph: Graph, edge_weight: Tensor | None = None
) -> Tensor:
    """What PyG's ``GCNConv`` computes, by one sparse product instead of one message per edge.

    PyG takes the loops off the list and gives every node one loop: that of the list, else one of
    weight 1. Here the list is summed as it is, and the loops are set right node by node. Where a
    node has several loops with weights, PyG keeps any one of them, and this their mean.
    """
    x, like = apply_to_inputs(layer.lin, x), layer.bias
    count = graph.remember("loops at nodes", _count_loops).to(like.dtype)  # (n,)
    if edge_weight is None:
        blocks, listed, kept = None, count, torch.ones_like(count)
        degree = graph.in_degree.to(like.dtype)
    else:
        is_loop = (graph.source == graph.target).to(like.dtype)  # (m,)
        zeros = torch.zeros_like(count)
        blocks = edge_weight.view(-1, 1, 1)
        listed = zeros.index_add(0, graph.target, is_loop * edge_weight)
        kept = torch.where(count > 0, listed / count.clamp(min=1), torch.ones_like(count))
        degree = zeros.index_add(0, graph.target, edge_weight)
    extra = kept - listed
    degree = degree + extra
    # A loop of weight 0 can leave nothing.
    root = torch.where(degree > 0, degree, torch.ones_like(degree)).rsqrt() * (degree > 0)
    sent = root.unsqueeze(1) * x
    heard = sparse_product(sent.unsqueeze(1), graph, blocks).squeeze(1)
    return root.unsqueeze(1) * (heard + extra.unsqueeze(1) * sent) + layer.bias


def _count_loops(graph: Graph) -> Tensor:
    is_loop = (graph.source == graph.target).long()  # (m,)
    return is_loop.new_zeros(graph.num_nodes).index_add(0, graph.target, is_loop)  # (n,)
