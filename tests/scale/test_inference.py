"""Outputs chunk by chunk are those of the whole graph, and never hold more than three arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from graphs import ODD_GRAPHS, generator, randn, random_weight
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_geometric.nn import GraphNorm

from coopsheaf import CSNN, Graph
from coopsheaf.nn import (
    CSNNConv,
    EmbeddedSAGELearner,
    GraphNormSAGELearner,
    MLPLearner,
    NodeNormSAGELearner,
    ProjectedSAGELearner,
    edge_means,
    record_maps,
)
from coopsheaf.nn.learners import MLP
from coopsheaf.scale import infer
from coopsheaf.scale.chunks import sum_rows
from coopsheaf.train.build import Rescaled
from coopsheaf.zoo.plain import PlainGCN

# Wide ones do not narrow: their means come before their weights.
RECIPES = [
    MLPLearner(6),
    GraphNormSAGELearner(6, 3),
    GraphNormSAGELearner(50, 2),
    NodeNormSAGELearner(6, 2),
    ProjectedSAGELearner(6, 2),
    ProjectedSAGELearner(50, 2),
    EmbeddedSAGELearner(6, 2),
    EmbeddedSAGELearner(6, 2, residual=True),
]
N = 70
GRAPH = Graph(torch.randint(0, N, (2, 300), generator=generator(0)), N)


def whole(model: nn.Module, x: torch.Tensor, graph: Graph, **options) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        return model(x, graph, **options)


@pytest.mark.parametrize("learner", RECIPES, ids=str)
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_whole_graph(learner, semantics: str, weighted: bool) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 3, learner=learner, semantics=semantics, norm="batch", dropout=0.5)
    model = model.double()
    for epsilon in model.epsilons:
        nn.init.normal_(epsilon)
    x = randn(N, 5)
    weight = random_weight(GRAPH.num_edges) if weighted else None
    model.train()(x, GRAPH)  # other than initial statistics
    want = whole(model, x, GRAPH, edge_weight=weight)
    model.train()
    got = infer(model, x, GRAPH, edge_weight=weight, chunk=16)
    assert_close(got, want, rtol=0, atol=1e-10)
    assert model.training
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize("semantics", ["paper", "messages"])
@pytest.mark.parametrize("options", [{"step": "wave", "step_size": 0.5}, {"block": "prenorm"}])
def test_options_of_csnn_are_the_whole_graph(semantics: str, options: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 3, 3, semantics=semantics, dropout=0.5, **options).double()
    for epsilon in model.epsilons:
        nn.init.normal_(epsilon)
    x, weight = randn(N, 5), random_weight(GRAPH.num_edges)
    got = infer(model, x, GRAPH, edge_weight=weight, chunk=16)
    assert_close(got, whole(model, x, GRAPH, edge_weight=weight), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_odd_graphs(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    graph, x = Graph(edges, n), randn(n, 5)
    model = CSNN(5, 4, 2, 3, stalk_dim=2, learner="sage-graph-norm", readout_layers=2).double()
    for chunk in (1, 4, 100):
        assert_close(
            infer(model, x, graph, chunk=chunk), whole(model, x, graph), rtol=0, atol=1e-10
        )


def test_single_precision_and_other_networks() -> None:
    x = torch.randn(N, 5, generator=generator(1))
    for options in ({}, {"left_weights": False, "right_weights": False, "norm": "layer"}, {"orthogonal": "identity", "scale": "unit"}):  # fmt: skip
        model = CSNN(5, 16, 3, 2, learner="sage-projected", **options)
        assert (infer(model, x, GRAPH, chunk=9) - whole(model, x, GRAPH)).abs().max() < 1e-5
    model = PlainGCN(5, 4, 2, 2, dropout=0.5)
    assert torch.equal(infer(model, x, GRAPH), whole(model, x, GRAPH))


def test_what_is_around_a_network_is_applied() -> None:
    model = Rescaled(CSNN(5, 4, 1, 1), 1).double()
    model.fit(torch.tensor([3.0, 50.0, -7.0], dtype=torch.float64))
    x = randn(N, 5)
    assert_close(infer(model, x, GRAPH, chunk=7), whole(model, x, GRAPH), rtol=0, atol=1e-10)


def test_a_part_remembers_the_whole_graph() -> None:
    model, x = CSNN(5, 4, 2, 2).double(), randn(N, 5)
    part = GRAPH.subgraph(torch.arange(0, N, 2))
    want = whole(model, x[part.nodes], part.graph)
    assert_close(infer(model, x[part.nodes], part.graph, chunk=9), want, rtol=0, atol=1e-10)


class Neighbours(nn.Module):
    """A learner of the user's own."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x, edge_index):
        return self.linear(x.index_add(0, edge_index[1], x[edge_index[0]]))


def test_a_learner_of_ones_own_sees_the_whole_graph() -> None:
    model, x = CSNN(5, 4, 2, 2, learner=Neighbours).double(), randn(N, 5)
    assert_close(infer(model, x, GRAPH, chunk=9), whole(model, x, GRAPH), rtol=0, atol=1e-10)


class TwiceTheLayer(CSNN):
    def _layer(self, x, *others):
        return 2 * super()._layer(x, *others)


class OtherEmbedding(CSNN):
    def embed(self, x, graph, **options):
        return super().embed(x, graph, **options) + 0.75


class TwiceTheConv(CSNNConv):
    def forward(self, *inputs):
        return 2 * super().forward(*inputs)


class Shifted(MLP):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + 1


def replace(model: CSNN, make: Callable[[nn.Module], nn.Module]) -> CSNN:
    model.convs[1] = make(model.convs[1])
    return model


def patched(model: CSNN, name: str, method) -> CSNN:
    setattr(model, name, method.__get__(model))
    return model


def halved(self: CSNN, x, *others):
    return CSNN._layer(self, x, *others) / 2


def watched(model: CSNN) -> CSNN:
    model.convs[0].register_forward_hook(lambda module, inputs, output: 3 * output)
    return model


def with_norm(model: CSNN, norm: nn.Module) -> CSNN:
    model.norms[0] = norm
    return model


OTHERS: dict[str, Callable[[], nn.Module]] = {
    "a subclass with another layer": lambda: TwiceTheLayer(5, 4, 2, 3),
    "a subclass with another embedding": lambda: OtherEmbedding(5, 4, 2, 3),
    "another layer put in": lambda: replace(CSNN(5, 4, 2, 3), lambda conv: TwiceTheConv(4, 3)),
    "a learner that is almost known": lambda: CSNN(5, 4, 2, 3, learner=lambda i, o: Shifted(i, 6, o)),
    "a hook that changes outputs": lambda: watched(CSNN(5, 4, 2, 3)),
    "a method put into the network": lambda: patched(CSNN(5, 4, 2, 3), "_layer", halved),
    "all layers": lambda: CSNN(5, 4, 2, 3, jk="cat"),
    "a norm over all nodes": lambda: with_norm(CSNN(5, 4, 2, 3), GraphNorm(12)),
    "an activation over all nodes": lambda: CSNN(5, 4, 2, 3, act=lambda x: x - x.mean(0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_whatever_was_changed_is_not_undone(kind: str) -> None:
    """The steps are written down twice: a network that takes others was computed wrongly."""
    torch.manual_seed(0)
    model, x = OTHERS[kind]().double(), randn(N, 5)
    assert_close(infer(model, x, GRAPH, chunk=9), whole(model, x, GRAPH), rtol=0, atol=1e-10)


def test_methods_put_into_the_class_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, layer = CSNN(5, 4, 2, 3).double(), randn(N, 5), CSNN._layer
    monkeypatch.setattr(CSNN, "_layer", lambda self, *inputs: 2 * layer(self, *inputs))
    assert_close(infer(model, x, GRAPH, chunk=9), whole(model, x, GRAPH), rtol=0, atol=1e-10)


def test_maps_are_recorded_once_per_layer() -> None:
    model, x = CSNN(5, 4, 2, 3).double(), randn(N, 5)
    with record_maps(model) as maps:
        infer(model, x, GRAPH, chunk=9)
    assert [layer.source.scale.shape for layer in maps] == [(N,), (N,)]


def test_edge_weights_are_checked() -> None:
    model, x = CSNN(5, 4, 2, 3).double(), randn(N, 5)
    with pytest.raises(ValueError, match="`edge_weight` must have shape"):
        infer(model, x, GRAPH, edge_weight=torch.ones(3).double())


class Large(TorchDispatchMode):
    """Counts new tensors of at least so many entries."""

    def __init__(self, numel: int) -> None:
        super().__init__()
        self.numel, self.count = numel, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if not func.is_view and not func._schema.is_mutable:
            leaves = (leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor))
            self.count += any(leaf.numel() >= self.numel for leaf in leaves)
        return out


@pytest.mark.parametrize("learner", [MLPLearner(6), GraphNormSAGELearner(6, 2), ProjectedSAGELearner(6, 2)], ids=str)  # fmt: skip
@pytest.mark.parametrize("layers", [1, 4])
def test_three_arrays_are_whole_whatever_the_depth(learner, layers: int) -> None:
    n, d, h = 400, 3, 16  # wider than maps, edges and the learners' layers
    graph = Graph(torch.randint(0, n, (2, 900), generator=generator(0)), n)
    model = CSNN(5, h, layers, 2, learner=learner)
    with Large(n * d * h) as guard:
        infer(model, torch.randn(n, 5), graph, chunk=50)
    assert guard.count == 3


def test_arrays_can_be_files(tmp_path: Path) -> None:
    model, x = CSNN(5, 4, 2, 2).double(), randn(N, 5)
    got = infer(model, x, GRAPH, chunk=9, scratch=tmp_path)
    assert torch.equal(got, infer(model, x, GRAPH, chunk=9))
    assert not list(tmp_path.iterdir())


def test_rows_are_summed_in_any_precision() -> None:
    x, weight = randn(N, 3), random_weight(GRAPH.num_edges)
    for values in (None, weight):
        matrix = torch.zeros(N, N, dtype=torch.float64)
        ones = torch.ones(GRAPH.num_edges, dtype=torch.float64) if values is None else values
        matrix.index_put_((GRAPH.target, GRAPH.source), ones, accumulate=True)
        rows = slice(10, 31)
        want = (matrix @ x)[rows]
        assert_close(sum_rows(x, GRAPH.by_target, rows, values), want, rtol=0, atol=1e-12)
        half = sum_rows(x.to(torch.bfloat16), GRAPH.by_target, rows, values)
        assert_close(half.double(), want, rtol=0.1, atol=0.2)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (CSNN(5, 4, 1, 2), {"chunk": 0}, "`chunk` must be an integer of at least 1; got 0"),
        (CSNN(6, 4, 1, 2), {}, r"`x` must have shape \(70, 6\); got \(70, 5\)"),
        (CSNN(5, 4, 1, 2, pool="mean"), {}, "`model` must give outputs for nodes; it pools them"),
        (CSNN(5, 4, 1, 2, pe_channels=2), {}, "`model` must do without positional encodings"),
    ],
    ids=["chunk", "width", "pool", "encodings"],
)
def test_bad_input(model: CSNN, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        infer(model, torch.randn(N, 5), GRAPH, **options)


@pytest.mark.parametrize("learner", RECIPES, ids=str)
def test_learners_see_the_features_of_edges_chunk_by_chunk(learner, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 3, learner=learner, edge_channels=2).double()
    x, attr = randn(N, 5), randn(GRAPH.num_edges, 2, seed=1)
    want = whole(model, x, GRAPH, edge_attr=attr)
    for given in (attr, edge_means(GRAPH, attr)):
        got = infer(model, x, GRAPH, edge_attr=given, chunk=16, scratch=tmp_path)
        assert_close(got, want, rtol=0, atol=1e-10)


def test_features_of_edges_are_checked() -> None:
    x, attr = randn(N, 5), randn(GRAPH.num_edges, 2)
    model = CSNN(5, 4, 1, 2, edge_channels=2).double()
    with pytest.raises(ValueError, match=r"`edge_attr` must have shape \(m, 2\): CSNN was built"):
        infer(model, x, GRAPH)
    with pytest.raises(ValueError, match=r"`edge_attr` must have shape \(m, 2\) with m = 300"):
        infer(model, x, GRAPH, edge_attr=attr[1:])
    with pytest.raises(ValueError, match="`edge_attr` must be None: CSNN was built without"):
        infer(CSNN(5, 4, 1, 2).double(), x, GRAPH, edge_attr=attr)
    with pytest.raises(ValueError, match="PlainGCN does not use edge features"):
        infer(PlainGCN(5, 4, 1, 2).double(), x, GRAPH, edge_attr=attr)
