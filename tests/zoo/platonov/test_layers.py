"""The blocks of the benchmark networks, against dense equations and PyG's layers."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, path, randn, random_weight
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.nn import GATConv, SimpleConv, TransformerConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from coopsheaf import Graph
from coopsheaf.zoo.platonov.layers import (
    AttentionBlock,
    AttentionSepBlock,
    Block,
    FeedForward,
    FeedForwardBlock,
    GATBlock,
    GATSepBlock,
    GCNBlock,
    ResidualStack,
    SAGEBlock,
    neighbour_mean,
)

H, HEADS = 6, 3
EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)


def make(kind: type[nn.Module], **options: object) -> nn.Module:
    torch.manual_seed(0)
    return kind(H, **options).double().eval()


def graph_of(name: str) -> Graph:
    n, edges = ODD_GRAPHS[name]
    return Graph(edges, n)


def adjacency(graph: Graph, weight: Tensor | None = None) -> Tensor:
    """A_ij: the weight of the edges j→i."""
    weight = torch.ones(graph.num_edges, dtype=torch.float64) if weight is None else weight
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    return matrix.index_put((graph.target, graph.source), weight, accumulate=True)


def close(got: Tensor, expected: Tensor, *leaves: Tensor) -> None:
    assert_close(got, expected, rtol=0, atol=1e-12)
    cotangent = randn(*expected.shape, seed=9)
    for a, b in zip(
        torch.autograd.grad(got, leaves, cotangent, retain_graph=True),
        torch.autograd.grad(expected, leaves, cotangent, retain_graph=True),
        strict=True,
    ):
        assert_close(a, b, rtol=0, atol=1e-12)


# --- sums -----------------------------------------------------------------------------------------


@EACH_GRAPH
@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_is_the_dense_equation(name: str, weighted: bool) -> None:
    graph, block = graph_of(name), make(GCNBlock)
    x = randn(graph.num_nodes, H).requires_grad_()
    weight = random_weight(graph.num_edges).requires_grad_() if weighted else None
    matrix = adjacency(graph, weight) + torch.eye(graph.num_nodes, dtype=torch.float64)
    root = matrix.sum(0).rsqrt()  # columns: what a node sends
    expected = block.feed_forward(root.diag() @ matrix @ root.diag() @ x)
    leaves = [x] if weight is None or graph.num_edges == 0 else [x, weight]
    close(block(x, graph, weight), expected, *leaves)


def test_gcn_keeps_constant_features_of_a_regular_graph() -> None:
    """On a cycle the aggregate of a constant is that constant."""
    nodes = torch.arange(7)
    cycle = torch.stack([nodes, (nodes + 1) % 7])
    graph = Graph(torch.cat([cycle, cycle.flip(0)], dim=1), 7)
    block, x = make(GCNBlock), randn(1, H).expand(7, H)
    assert_close(block(x, graph), block.feed_forward(x), rtol=0, atol=1e-13)


def test_gcn_has_pygs_coefficients_on_undirected_graphs() -> None:
    block, x = make(GCNBlock), randn(5, H)
    edges, weight = gcn_norm(path(5), num_nodes=5, dtype=torch.float64)
    message = torch.zeros(5, H, dtype=torch.float64).index_add(
        0, edges[1], weight.unsqueeze(-1) * x[edges[0]]
    )
    assert_close(block(x, Graph(path(5), 5)), block.feed_forward(message), rtol=0, atol=1e-13)


@EACH_GRAPH
@pytest.mark.parametrize("weighted", [False, True])
def test_sage_is_the_dense_equation(name: str, weighted: bool) -> None:
    graph, block = graph_of(name), make(SAGEBlock)
    x = randn(graph.num_nodes, H).requires_grad_()
    weight = random_weight(graph.num_edges).requires_grad_() if weighted else None
    matrix = adjacency(graph, weight)
    total = matrix.sum(1, keepdim=True)
    mean = torch.where(total > 0, matrix @ x / torch.where(total > 0, total, 1.0), 0.0)
    expected = block.feed_forward(torch.cat([x, mean], dim=1))
    leaves = [x] if weight is None or graph.num_edges == 0 else [x, weight]
    close(block(x, graph, weight), expected, *leaves)
    if not weighted:
        theirs = SimpleConv(aggr="mean")(x, graph.edge_index)
        assert_close(neighbour_mean(x, graph), theirs, rtol=0, atol=1e-13)


def test_the_mean_with_weights_zero_is_zero() -> None:
    graph = graph_of("path")
    weight = torch.zeros(graph.num_edges, dtype=torch.float64)
    assert (neighbour_mean(randn(5, H), graph, weight) == 0).all()


# --- attention ------------------------------------------------------------------------------------


def attention_by_edges(weights: Tensor, values: Tensor, graph: Graph) -> Tensor:
    """Messages made one by one: ``(m, heads)`` and ``(n, heads, c)`` to ``(n, heads, c)``."""
    messages = weights.unsqueeze(-1) * values[graph.source]
    return torch.zeros_like(values).index_add(0, graph.target, messages)


def softmax_by_target(scores: Tensor, graph: Graph) -> Tensor:
    weights = scores.exp()
    total = torch.zeros(graph.num_nodes, scores.shape[1], dtype=scores.dtype)
    return weights / total.index_add(0, graph.target, weights)[graph.target]


@EACH_GRAPH
@pytest.mark.parametrize("kind", [GATBlock, GATSepBlock])
def test_gat_is_the_equation(name: str, kind: type[GATBlock]) -> None:
    graph, block = graph_of(name), make(kind, num_heads=HEADS)
    x = randn(graph.num_nodes, H).requires_grad_()
    seen = graph.with_self_loops() if kind is GATBlock else graph
    z = block.lin(x)
    a, c, a_target = block.score_source.weight, block.score_source.bias, block.score_target.weight
    scores = (z @ a.T + c)[seen.source] + (z @ a_target.T)[seen.target]
    weights = softmax_by_target(torch.where(scores > 0, scores, 0.2 * scores), seen)
    # Head k has the channels k, k + heads, …
    by_head = torch.stack([z[:, k::HEADS] for k in range(HEADS)], dim=1)
    by_head = attention_by_edges(weights, by_head, seen)
    message = torch.empty_like(z)
    for k in range(HEADS):
        message[:, k::HEADS] = by_head[:, k]
    rows = [message] if kind is GATBlock else [z, message]
    expected = block.feed_forward(torch.cat(rows, dim=1))
    close(block(x, graph), expected, x)


@EACH_GRAPH
@pytest.mark.parametrize("kind", [AttentionBlock, AttentionSepBlock])
def test_transformer_attention_is_the_equation(name: str, kind: type[AttentionBlock]) -> None:
    graph, block = graph_of(name), make(kind, num_heads=HEADS)
    n = graph.num_nodes
    x = randn(n, H).requires_grad_()
    seen = graph.with_self_loops() if kind is AttentionBlock else graph
    q, k, v = (
        linear(x).view(n, HEADS, H // HEADS)
        for linear in (block.lin_query, block.lin_key, block.lin_value)
    )
    scores = (q[seen.source] * k[seen.target]).sum(-1) / (H // HEADS) ** 0.5
    message = attention_by_edges(softmax_by_target(scores, seen), v, seen).view(n, H)
    rows = [message] if kind is AttentionBlock else [x, message]
    close(block(x, graph), block.lin_out(torch.cat(rows, dim=1)), x)


@EACH_GRAPH
@pytest.mark.parametrize("kind", [GATBlock, AttentionBlock])
def test_attention_sums_to_one_per_target_and_head(name: str, kind: type[GATBlock]) -> None:
    graph, block = graph_of(name).with_self_loops(), make(kind, num_heads=HEADS)
    weights = block.weights(3 * randn(graph.num_nodes, H), graph)
    total = torch.zeros(graph.num_nodes, HEADS, dtype=torch.float64)
    total = total.index_add(0, graph.target, weights)
    assert_close(total, torch.ones_like(total), rtol=0, atol=1e-13)


@EACH_GRAPH
def test_transformer_message_is_pygs_with_query_and_key_swapped(name: str) -> None:
    graph, block = graph_of(name), make(AttentionBlock, num_heads=HEADS)
    theirs = TransformerConv(H, H // HEADS, heads=HEADS, root_weight=False).double()
    theirs.lin_query.load_state_dict(block.lin_key.state_dict())
    theirs.lin_key.load_state_dict(block.lin_query.state_dict())
    theirs.lin_value.load_state_dict(block.lin_value.state_dict())
    x = randn(graph.num_nodes, H).requires_grad_()
    close(block.message(x, graph), theirs(x, graph.edge_index), x)


@EACH_GRAPH
def test_gat_message_is_pygs_with_its_heads_in_front(name: str) -> None:
    """Without biases, each head scored by its own channels, and with the channels reordered."""
    graph, block = graph_of(name), make(GATBlock, num_heads=HEADS)
    theirs = GATConv(H, H // HEADS, heads=HEADS, add_self_loops=False, bias=False).double()
    order = torch.arange(H).view(-1, HEADS).T.flatten()  # ours in PyG's order
    with torch.no_grad():
        block.lin.bias.zero_()
        block.score_source.bias.zero_()
        theirs.lin.weight.copy_(block.lin.weight[order])
        for ours, att in (
            (block.score_source, theirs.att_src),
            (block.score_target, theirs.att_dst),
        ):
            for k in range(HEADS):
                own = torch.arange(H) % HEADS == k
                ours.weight[k, ~own] = 0.0
                att[0, k] = ours.weight[k, own]
    x = randn(graph.num_nodes, H).requires_grad_()
    close(block.message(block.lin(x), graph)[:, order], theirs(x, graph.edge_index), x)


@pytest.mark.parametrize("kind", [GATSepBlock, AttentionSepBlock, SAGEBlock])
def test_with_messages_zeroed_a_sep_block_acts_node_by_node(kind: type[nn.Module]) -> None:
    n, edges = ODD_GRAPHS["path"]
    graph, x = Graph(edges, n), randn(n, H)
    block = make(kind) if kind is SAGEBlock else make(kind, num_heads=HEADS)
    apart = ~torch.eye(n, dtype=torch.bool)

    def across() -> Tensor:
        jacobian = torch.autograd.functional.jacobian(lambda a: block(a, graph), x)
        return jacobian.transpose(1, 2)[apart]  # derivatives between different nodes

    assert across().abs().max() > 1e-6
    linear = block.lin_out if kind is AttentionSepBlock else block.feed_forward.lin_in
    with torch.no_grad():
        linear.weight[:, H:] = 0.0  # the half that sees the message
    assert (across() == 0).all()


@pytest.mark.parametrize("kind", [GATSepBlock, AttentionSepBlock])
def test_a_node_without_neighbours_has_no_message(kind: type[GATBlock]) -> None:
    graph, block = graph_of("isolated"), make(kind, num_heads=HEADS)
    message = block.message(randn(6, H), graph)
    silent = graph.in_degree == 0
    assert (message[silent] == 0).all()
    assert (message[~silent] != 0).all()


# --- the rest -------------------------------------------------------------------------------------


def test_feed_forward_drops_twice() -> None:
    torch.manual_seed(0)
    ffn, x = FeedForward(H, 5, 4, dropout=0.5).double(), randn(3, H)
    torch.manual_seed(1)
    got = ffn(x)
    torch.manual_seed(1)
    hidden = nn.functional.gelu(nn.functional.dropout(ffn.lin_in(x), 0.5))
    expected = nn.functional.dropout(ffn.lin_out(hidden), 0.5)
    assert torch.equal(got, expected)
    assert (got == 0).any()
    assert torch.equal(make(FeedForwardBlock)(x, graph_of("path")), make(FeedForwardBlock)(x, None))


def test_stack_adds_blocks_to_what_enters_them() -> None:
    torch.manual_seed(0)
    graph, x = graph_of("random-directed"), randn(9, 4)
    stack = ResidualStack(4, H, [SAGEBlock(H), GCNBlock(H)], dropout=0.3).double().eval()
    y = nn.functional.gelu(stack.encoder(x))
    for block, norm in zip(stack.blocks, stack.norms, strict=True):
        y = y + block(nn.functional.layer_norm(y, (H,), norm.weight, norm.bias), graph)
    expected = nn.functional.layer_norm(y, (H,))
    assert_close(stack(x, graph), expected, rtol=0, atol=1e-13)


def test_reprs_state_the_transformation() -> None:
    assert repr(FeedForward(6, 5, 4, dropout=0.1)) == "FeedForward(6, 5, 4, dropout=0.1)"
    assert repr(GCNBlock(H)) == "GCNBlock(6)"
    assert repr(GATSepBlock(H, num_heads=3)) == "GATSepBlock(6, num_heads=3)"
    assert repr(AttentionBlock(H, num_heads=3)) == "AttentionBlock(6, num_heads=3)"
    assert repr(ResidualStack(4, H, [GCNBlock(H)])) == "ResidualStack(4, 6, [GCNBlock(6)])"


def test_the_hidden_width_is_a_multiple() -> None:
    block = GCNBlock(H, hidden_multiplier=2.5)
    assert block.feed_forward.lin_in.out_features == 15


@pytest.mark.parametrize(
    ("make_block", "message"),
    [
        (lambda: GCNBlock(0), "`channels` must be an integer of at least 1; got 0"),
        (lambda: GCNBlock(H, dropout=1.0), r"`dropout` must be a number in \[0, 1\); got 1.0"),
        (lambda: GCNBlock(H, hidden_multiplier=0.1), "`hidden_multiplier` must give a width"),
        (lambda: GCNBlock(H, hidden_multiplier=float("nan")), "`hidden_multiplier` must give"),
        (lambda: GCNBlock(H, hidden_multiplier="2"), "`hidden_multiplier` must be a number"),
        (lambda: GATBlock(H, num_heads=4), "`num_heads` must divide the number of channels, 6"),
        (lambda: AttentionBlock(H, num_heads=0), "`num_heads` must be an integer of at least 1"),
    ],
)
def test_bad_arguments_are_named(make_block: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_block()


def test_a_block_says_what_it_does() -> None:
    with pytest.raises(NotImplementedError):
        Block(H)(randn(1, H), graph_of("single-node"))


def test_degrees_of_half_precision_weights_do_not_stop_growing() -> None:
    """A sum of 2,000 ones in bfloat16 would end at 256."""
    leaves = torch.arange(1, 2001)
    graph = Graph(torch.stack([leaves, torch.zeros_like(leaves)]), 2001)
    ones = torch.ones(2000, dtype=torch.bfloat16)
    mean = neighbour_mean(torch.ones(2001, 1, dtype=torch.bfloat16), graph, ones)
    assert_close(mean[0, 0].float(), torch.tensor(1.0), rtol=0.02, atol=0)
