"""The networks of NeighborsMatch: their parts, and how far they see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, randn
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.utils import add_self_loops, remove_self_loops

from coopsheaf import Graph
from coopsheaf.zoo.match.network import KINDS, MatchNetwork, PairEmbedding

N, EDGES = ODD_GRAPHS["random-directed"]
EACH_KIND = pytest.mark.parametrize("kind", KINDS)

# conv, relu, residual, norm
TABLE = {
    "gcn": ("GCNConv", True, True, True),
    "gin": ("GINConv", True, True, True),
    "gat": ("GATConv", False, True, True),
    "ggnn": ("GatedGraphConv", False, False, False),
}


def build(kind: str, num_layers: int = 3, **options: Any) -> MatchNetwork:
    torch.manual_seed(0)
    model = MatchNetwork(5, 8, num_layers, 4, kind=kind, **options).double()
    model.train()
    for seed in range(3):  # running means of batch norms that are not at their start
        x = torch.randint(0, 5, (N, 2)) if options.get("encoder") else randn(N, 5, seed=seed)
        model(x, EDGES)
    return model.eval()


@EACH_KIND
def test_a_layer_is_as_the_table_says(kind: str) -> None:
    model, x = build(kind), randn(N, 5)
    conv_name, relu, residual, norm = TABLE[kind]
    h, edges = model.encoder(x), EDGES
    if kind == "gat":  # one loop per node, given once
        edges, _ = add_self_loops(remove_self_loops(EDGES)[0], num_nodes=N)
    for k in range(3):
        conv = model.convs[k]
        assert type(conv).__name__ == conv_name
        y = conv(h, edges)
        y = y.relu() if relu else y
        y = h + y if residual else y
        h = model.norms[k](y) if norm else y
    want = h @ model.readout.weight.T
    assert model.readout.bias is None
    assert_close(model(x, EDGES), want, rtol=0, atol=1e-12)


def test_the_gin_layer_and_the_gat_layer() -> None:
    (conv,) = build("gin", 1).convs
    names = [type(part).__name__ for part in conv.nn]
    assert names == ["Linear", "BatchNorm1d", "ReLU"] * 2
    assert not isinstance(conv.eps, torch.nn.Parameter)
    (conv,) = build("gat", 1).convs
    assert (conv.heads, conv.out_channels, conv.concat) == (4, 2, True)
    with pytest.raises(ValueError, match="`hidden_channels` must be a multiple of 4"):
        MatchNetwork(5, 6, 1, 4, kind="gat")


@EACH_KIND
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_it_sees_exactly_as_far_as_it_has_layers(kind: str, num_layers: int) -> None:
    """Output i depends on input j if and only if a walk of at most k edges leads from j to i."""
    edges = torch.tensor([[0, 1, 2, 3, 0, 6, 7], [1, 2, 3, 4, 5, 3, 6]])
    n = 9
    torch.manual_seed(0)
    model = MatchNetwork(5, 32, num_layers, 4, kind=kind).double().eval()
    depends = torch.zeros(n, n, dtype=torch.bool)
    for seed in range(3):  # ReLU may hide a dependence at one point
        x = randn(n, 5, seed=seed)
        jacobian = torch.autograd.functional.jacobian(lambda x: model(x, edges), x)
        depends |= jacobian.abs().sum((1, 3)) > 0  # (n, n)
    step = torch.eye(n, dtype=torch.int64)
    step[edges[1], edges[0]] = 1
    assert torch.equal(depends, torch.linalg.matrix_power(step, num_layers) > 0)


def tree(depth: int) -> tuple[int, Tensor]:
    """A complete binary tree with edges towards its root 0 and a loop at every node."""
    n = 2 ** (depth + 1) - 1
    children, nodes = torch.arange(1, n), torch.arange(n)
    up = torch.stack([children, (children - 1) // 2])
    return n, torch.cat([up, nodes.expand(2, n)], dim=1)


@EACH_KIND
@pytest.mark.parametrize("depth", [2, 3])
def test_leaves_reach_the_root_of_a_tree_in_as_many_layers_as_it_is_deep(
    kind: str, depth: int
) -> None:
    n, edges = tree(depth)
    size = 2**depth + 1
    x = torch.randint(0, size, (n, 2), generator=torch.Generator().manual_seed(0))
    other = x.clone()
    other[-1, 1] = (x[-1, 1] + 1) % size  # the value of one leaf
    for num_layers, seen in ((depth - 1, False), (depth, True), (depth + 1, True)):
        torch.manual_seed(0)
        model = MatchNetwork(
            2, 8, num_layers, size, kind=kind, encoder=PairEmbedding(size, size, 8)
        )
        model = model.double().eval()
        differs = not torch.equal(model(x, edges)[0], model(other, edges)[0])
        assert differs == seen, num_layers


def test_a_pair_is_embedded_as_the_sum_of_its_parts() -> None:
    encoder = PairEmbedding(6, 7, 4).double()
    pairs = torch.tensor([[0, 0], [5, 6], [2, 3]])
    want = torch.stack(
        [encoder.key_table.weight[k] + encoder.value_table.weight[v] for k, v in pairs]
    )
    assert torch.equal(encoder(pairs), want)
    assert torch.equal(encoder(pairs.double()), want)
    assert repr(encoder) == "PairEmbedding(6, 7, 4)"
    for sizes, name in (
        ((0, 1, 1), "num_keys"),
        ((1, 0, 1), "num_values"),
        ((1, 1, 0), "channels"),
    ):
        with pytest.raises(ValueError, match=f"`{name}`"):
            PairEmbedding(*sizes)


@EACH_KIND
def test_integers_are_taken_where_they_are_embedded(kind: str) -> None:
    model = MatchNetwork(2, 8, 2, 4, kind=kind, encoder=PairEmbedding(5, 5, 8)).double().eval()
    x = torch.randint(0, 5, (N, 2))
    out = model(x, EDGES)
    assert out.shape == (N, 4)
    assert out.dtype == torch.float64
    assert torch.equal(model(x.int(), Graph(EDGES, N)), out)
    assert torch.equal(model(x.double(), EDGES), out)
    with pytest.raises(ValueError, match="`x` must have shape"):
        model(x[:, :1], EDGES)
    plain = MatchNetwork(2, 8, 2, 4, kind=kind)
    with pytest.raises(ValueError, match="`x` must have a floating point dtype"):
        plain(x, EDGES)


def test_an_encoder_is_drawn_anew_with_the_rest() -> None:
    model = MatchNetwork(2, 8, 2, 4, kind="gcn", encoder=PairEmbedding(5, 5, 8))
    before = model.encoder.key_table.weight.clone()
    model.reset_parameters()
    assert not torch.equal(model.encoder.key_table.weight, before)


@EACH_KIND
def test_unrolled_it_has_one_layer_and_uses_it_often(kind: str) -> None:
    model, x = build(kind, 3, unroll=True), randn(N, 5)
    assert len(model.convs) == 1
    apart = build(kind, 3)
    for part in apart.convs:
        part.load_state_dict(model.convs[0].state_dict())
    rest = {key: value for key, value in model.state_dict().items() if "convs" not in key}
    apart.load_state_dict(rest, strict=False)
    assert_close(model(x, EDGES), apart(x, EDGES), rtol=0, atol=1e-12)


def test_repr_states_the_transformation() -> None:
    assert repr(build("ggnn")) == ("MatchNetwork(5, 8, num_layers=3, out_channels=4, kind='ggnn')")
    assert repr(build("gin", unroll=True)).endswith("kind='gin', unroll=True)")


@pytest.mark.parametrize(
    ("sizes", "options", "name"),
    [
        ((0, 8, 2, 3), {}, "in_channels"),
        ((5, 0, 2, 3), {}, "hidden_channels"),
        ((5, 8, 0, 3), {}, "num_layers"),
        ((5, 8, 2, 0), {}, "out_channels"),
        ((5, 8, 2, 3), {"kind": "sage"}, "kind"),
        ((5, 8, 2, 3), {"pool": "?"}, "pool"),
    ],
)
def test_bad_arguments_are_named(sizes: Any, options: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        MatchNetwork(*sizes, **({"kind": "gcn"} | options))
