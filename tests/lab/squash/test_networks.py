"""The networks of NeighborsMatch on forests: what they compute and what reaches the root."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis import frozen_maps
from coopsheaf.data.synthetic import neighbors_match
from coopsheaf.nn import CSNNConv
from coopsheaf.zoo.match.network import KINDS, MatchNetwork, PairEmbedding
from lab.squash.networks import CSNNTreeLayer, PlainSAGELearner, TreeMatchNetwork, tree_network
from lab.squash.settings import (
    DIRECTIONS,
    LEARNERS,
    SEMANTICS,
    TREE_MODELS,
    TreeModel,
    batch_size,
)
from lab.squash.trees import Forest

CSNNS = [TreeModel("csnn", *parts) for parts in product(DIRECTIONS, LEARNERS, SEMANTICS)]
EVERY = [*(TreeModel(name) for name in TREE_MODELS if name != "csnn"), *CSNNS]
EACH = pytest.mark.parametrize("model", EVERY, ids=lambda model: model.label)


def examples(depth: int, count: int = 6) -> Tensor:
    return neighbors_match(depth).features[:: 97 if depth > 2 else 7][:count]


def build(model: TreeModel, depth: int, num_layers: int | None = None) -> torch.nn.Module:
    torch.manual_seed(0)
    return tree_network(model, depth, num_layers=num_layers).double()


@EACH
def test_a_forest_gives_what_its_trees_give_one_by_one(model: TreeModel) -> None:
    pairs, net = examples(3), build(model, 3).eval()
    one_by_one = torch.cat([net(tree.unsqueeze(0), Forest(3, 1)) for tree in pairs])
    assert one_by_one.shape == (6, 9)
    assert_close(net(pairs, Forest(3, 6)), one_by_one, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("num_layers", [1, 3, 4, 6])
def test_fast_trees_equal_the_published_network_on_ordinary_graphs(
    kind: str, training: bool, num_layers: int
) -> None:
    depth, data = 3, neighbors_match(3)
    fast = build(TreeModel(kind), depth, num_layers)
    plain = MatchNetwork(2, 32, num_layers, 9, kind=kind, encoder=PairEmbedding(9, 9, 32)).double()
    plain.load_state_dict(fast.state_dict())
    pairs, n = examples(depth), data.num_nodes
    shift = n * torch.arange(6).view(1, -1, 1)
    graph = Graph((data.edge_index.unsqueeze(1) + shift).flatten(1), 6 * n)
    fast.train(training)
    plain.train(training)
    found = fast(pairs, Forest(depth, 6))
    want = plain(pairs.flatten(0, 1).long(), graph)[::n]
    assert_close(found, want, rtol=0, atol=1e-11)
    for network, out in ((fast, found), (plain, want)):
        network.zero_grad()
        out.square().sum().backward()
    for (name, a), b in zip(fast.named_parameters(), plain.parameters(), strict=True):
        if a.grad is None:  # an attention among one neighbour learns nothing
            assert b.grad is None or not b.grad.any(), name
            continue
        assert_close(a.grad, b.grad, rtol=0, atol=1e-9)


@pytest.mark.parametrize("direction", ["to-root", "bidirected"])
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_a_layer_is_csnn_conv_where_both_have_one_graph(direction: str, semantics: str) -> None:
    learner = PlainSAGELearner(8, 3)
    layer = CSNNTreeLayer(direction, learner, semantics=semantics, channels=4).double()
    conv = CSNNConv(4, 2, learner=learner, semantics=semantics).double()
    conv.load_state_dict({k: v for k, v in layer.state_dict().items() if k != "epsilon"})
    with torch.no_grad():
        layer.epsilon.copy_(torch.tensor([[0.3], [-0.7]]))
    forest = Forest(3, 2)
    x = torch.randn(forest.num_nodes, 8, dtype=torch.float64)
    graph = forest.graph(DIRECTIONS[direction].diffusion)
    source, target = conv.maps(x.view(-1, 2, 4), graph)
    # Released semantics gather at the source: the direction is the flow of information.
    flow = graph.reverse() if semantics == "released" else graph
    y = conv.right(conv.left.weight @ x.view(-1, 2, 4))
    y = conv.diffusion(flow, source, target, None).mv(y)
    want = (1 + layer.epsilon.tanh()) * x.view(-1, 2, 4) - y
    assert_close(layer(x, forest), want.flatten(1), rtol=0, atol=1e-12)


def reaches_root(net: torch.nn.Module, depth: int) -> bool:
    """Whether the embedding of any leaf moves the logits of the root."""
    forest, pairs = Forest(depth, 2), examples(depth, 2)
    embedded: list[Tensor] = []

    def keep(module: torch.nn.Module, inputs: object, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    handle = net.encoder.register_forward_hook(keep)
    net(pairs, forest).square().sum().backward()
    handle.remove()
    gradient = embedded[0].grad
    assert gradient is not None
    return bool(gradient[forest.up_to(depth - 1) :].abs().max() > 0)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_leaves_reach_the_root_in_as_many_layers_as_the_tree_is_deep(kind: str, depth: int) -> None:
    model = TreeModel(kind)
    assert not reaches_root(build(model, depth, depth - 1).eval(), depth)
    assert reaches_root(build(model, depth, depth).eval(), depth)


@pytest.mark.parametrize("model", CSNNS, ids=lambda model: model.label)
def test_what_the_diffusion_carries_and_what_the_learners_carry(model: TreeModel) -> None:
    """With maps held still nothing comes to the root in the direction as released."""
    net = build(model, 3)
    with frozen_maps(net):
        by_diffusion = reaches_root(net, 3)
    assert by_diffusion == (model.direction != "as-released")
    # SAGE learners bring leaves to the root in that direction too; learners at a node do not.
    assert reaches_root(net, 3) == (by_diffusion or model.learner == "sage")


@EACH
def test_the_root_depends_on_nothing_but_its_tree(model: TreeModel) -> None:
    pairs, net = examples(2), build(model, 2).eval()
    other = pairs.clone()
    other[0, 1:, 1] = 0
    before, after = net(pairs, Forest(2, 6)), net(other, Forest(2, 6))
    assert_close(before[1:], after[1:], rtol=0, atol=1e-12)


def test_sizes_are_as_published() -> None:
    depth, classes = 4, 17
    net = tree_network(TreeModel("csnn", "as-released", "sage", "released"), depth)
    assert net.encoder.key_table.weight.shape == (classes, 64)
    assert net.readout.weight.shape == (classes, 64)
    assert net.readout.bias is None
    assert len(net.layers) == len(net.norms) == depth + 1
    sage = net.layers[0].source_learner.learner
    shapes = [tuple(conv.lin_l.weight.shape) for conv in sage.convs]
    assert shapes == [(32, 64), (32, 32), (32, 32), (32, 32), (2, 32)]
    assert sum(type(m).__name__ == "SAGEConv" for m in net.modules()) == 2 * (depth + 1) ** 2
    # Tables and readout; per layer W₁, W₂, ε, norm and two learners.
    learner = sum(2 * a * b + b for a, b in ((64, 32), (32, 32), (32, 32), (32, 32), (32, 2)))
    count = 3 * classes * 64 + (depth + 1) * (4 + 1024 + 2 + 128 + 2 * learner)
    assert sum(p.numel() for p in net.parameters()) == count
    gcn = tree_network(TreeModel("gcn"), depth)
    assert isinstance(gcn, TreeMatchNetwork)
    assert gcn.encoder.key_table.weight.shape == (classes, 32)


def test_batches_are_as_published() -> None:
    assert [batch_size("csnn", r) for r in (2, 3, 4, 6, 7, 8)] == [
        (64, 1), (64, 1), (1024, 1), (1024, 1), (2048, 1), (1024, 2),
    ]  # fmt: skip
    assert [batch_size("gin", r) for r in (6, 7, 8)] == [(1024, 1), (1024, 2), (512, 4)]


def test_repr_states_the_transformation() -> None:
    assert repr(tree_network(TreeModel("gat"), 2)) == (
        "TreeMatchNetwork(depth=2, kind='gat', num_layers=3, hidden_channels=32)"
    )
    net = tree_network(TreeModel("csnn", "to-root", "mlp", "paper"), 2)
    assert repr(net) == (
        "TreeSheafNetwork(depth=2, num_layers=3, "
        "layer=CSNNTreeLayer('to-root', MLP, semantics='paper'))"
    )
    assert "NSDTreeLayer(32, stalk_dim=2)" in repr(tree_network(TreeModel("nsd"), 2))
    assert "BuNNTreeLayer(32, stalk_dim=2)" in repr(tree_network(TreeModel("bunn"), 2))


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("mlp",), "model"),
        (("csnn", "up", "sage", "paper"), "direction"),
        (("csnn", "to-root", "gat", "paper"), "learner"),
        (("csnn", "to-root", "sage", "mine"), "semantics"),
        (("gcn", "to-root"), "direction"),
    ],
)
def test_bad_settings_are_named(parts: tuple[str, ...], name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        TreeModel(*parts)
