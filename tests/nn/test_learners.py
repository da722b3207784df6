"""Map learners."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, randn
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.nn import GATConv

from coopsheaf import Graph
from coopsheaf.nn import MapLearner, MLPLearner, ProjectedSAGELearner, SAGEConv, sage
from coopsheaf.nn.learners import LEARNERS, learn_maps
from coopsheaf.sheaves.orthogonal import ExpScale, FixedIdentity, Householder, UnitScale, make_scale

N, EDGES = ODD_GRAPHS["random-directed"]
GRAPH = Graph(EDGES, N)


def make(learner, scale=None) -> MapLearner:
    return MapLearner(6, learner, orthogonal=Householder(3), scale=scale or ExpScale()).double()


class Foreign(nn.Module):
    """A user's module: PyG inside, a plain edge_index as argument."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GATConv(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        assert isinstance(edge_index, Tensor)
        return self.conv(x, edge_index)


@pytest.mark.parametrize("learner", [*LEARNERS, Foreign, Foreign(6, 4)], ids=str)
def test_every_kind_of_learner_gives_conformal_maps(learner) -> None:
    maps = make(learner)(randn(N, 6), GRAPH)
    assert maps.scale.shape == (N,)
    assert (maps.scale > 0).all()
    assert_close(maps.orthogonal.mT @ maps.orthogonal, torch.eye(3).double().expand(N, 3, 3))


def test_the_last_output_is_the_scale_and_the_others_are_bounded_parameters() -> None:
    class Constant(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return torch.tensor([0.3, -2.0, 0.7, 0.5], dtype=x.dtype).expand(x.shape[0], 4)

    maps = make(Constant())(randn(2, 6), Graph(torch.empty(2, 0).long(), 2))
    assert_close(maps.scale, torch.full((2,), 0.5).double().exp())
    expected = Householder(3)(torch.tanh(torch.tensor([[0.3, -2.0, 0.7]]).double()))
    assert_close(maps.orthogonal, expected.expand(2, 3, 3))


def test_a_unit_scale_takes_one_output_less() -> None:
    learner = make("mlp", UnitScale())
    assert learner.out_channels == 3
    assert torch.equal(learner(randn(N, 6), GRAPH).scale, torch.ones(N).double())


def test_a_given_module_is_copied_and_drawn_anew() -> None:
    module = Foreign(6, 4)
    a, b = make(module), make(module)
    assert not torch.equal(a.learner.conv.lin.weight, b.learner.conv.lin.weight)
    assert a.learner is not module


def test_kind_two_drops_out_a_fifth_whatever_the_model_does() -> None:
    learner = ProjectedSAGELearner(64, 2)(6, 4)
    assert learner.dropout == 0.2
    x = torch.randn(N, 6)
    learner.train()
    assert not torch.equal(learner(x, GRAPH), learner(x, GRAPH))
    learner.eval()
    assert torch.equal(learner(x, GRAPH), learner(x, GRAPH))


def test_recipes_compare_and_print_by_their_settings() -> None:
    assert MLPLearner(64) == MLPLearner(hidden_channels=64)
    assert repr(ProjectedSAGELearner(64, 5)) == (
        "ProjectedSAGELearner(hidden_channels=64, num_layers=5, dropout=0.2)"
    )
    assert repr(make("mlp")) == "MapLearner(6 -> Householder(3), ExpScale(), learner=MLP)"


def test_bad_input() -> None:
    with pytest.raises(ValueError, match=r"`learner` must be one of 'mlp', .*; got 'gat'"):
        make("gat")
    with pytest.raises(ValueError, match=r"`learner` must return shape \(9, 4\).* got \(9, 5\)"):
        make(Foreign(6, 5))(randn(N, 6), GRAPH)
    with pytest.raises(ValueError, match=r"must make a torch.nn.Module .*; got int"):
        make(lambda a, b: 3)
    with pytest.raises(ValueError, match="`num_layers` must be an integer of at least 1; got 0"):
        ProjectedSAGELearner(32, 0)
    with pytest.raises(ValueError, match=r"`dropout` must be a number in \[0, 1\); got 5.0"):
        ProjectedSAGELearner(32, 2, dropout=5.0)
    with pytest.raises(ValueError, match="`hidden_channels` must be an integer of at least 1"):
        MLPLearner(0)


def test_with_nothing_to_learn_the_maps_are_constant() -> None:
    learner = MapLearner(6, "mlp", orthogonal=FixedIdentity(3), scale=UnitScale())
    assert list(learner.parameters()) == []
    learner.reset_parameters()
    maps = learner(randn(N, 6), GRAPH)
    assert torch.equal(maps.to_dense(), torch.eye(3, dtype=torch.float64).expand(N, 3, 3))
    assert repr(learner) == "MapLearner(6 -> FixedIdentity(3), UnitScale(), learner=NoneType)"


def test_scales_alone_can_be_learned() -> None:
    learner = MapLearner(6, "mlp", orthogonal=FixedIdentity(3), scale=ExpScale()).double()
    maps = learner(randn(N, 6), GRAPH)
    assert torch.equal(maps.orthogonal, torch.eye(3, dtype=torch.float64).expand(N, 3, 3))
    assert maps.scale.unique().numel() == N


def entrywise(x: Tensor, p: float, training: bool = True) -> Tensor:
    """A dropout whose mask depends on the entry alone, wherever it stands."""
    return x * (torch.sin(1e4 * x.detach()) > -0.6) / 0.7


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_together_are_learners_one_by_one(learner: str, monkeypatch) -> None:
    monkeypatch.setattr(sage, "dropout", entrywise)
    pair = [make(learner), make(learner)]
    parameters = [p for one in pair for p in one.parameters()]
    x = randn(N, 6).requires_grad_()
    weights = randn(N, 3, 3, seed=4)
    results = []
    for maps in (learn_maps(pair, x, GRAPH), [one(x, GRAPH) for one in pair]):
        total = sum((m.to_dense() * weights).sum() * (k + 1) for k, m in enumerate(maps))
        first = torch.autograd.grad(total, [x, *parameters], create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), [x, *parameters])
        results.append([*(part for m in maps for part in m), *first, *second])
    for got, expected in zip(*results, strict=True):
        assert_close(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("learner", ["mlp", "sage-projected", "sage-graph-norm"])
def test_hooks_inside_learners_are_called(learner: str) -> None:
    pair, seen = [make(learner), make(learner)], []
    expected = learn_maps(pair, randn(N, 6), GRAPH)[0].scale
    for one in pair:
        inner = next(part for part in one.modules() if isinstance(part, nn.Linear | SAGEConv))
        inner.register_forward_hook(lambda module, inputs, output: seen.append(module))
    pair = [one.eval() for one in pair]
    assert learn_maps(pair, randn(N, 6), GRAPH)[0].scale.shape == expected.shape
    assert len(seen) == 2


@pytest.mark.parametrize("scale", ["exp", "softplus", "rectified"])
def test_maps_of_a_model_in_half_precision_are_made_in_single(scale: str) -> None:
    """Half precision would lose the orthogonality, and scales that differ by less than 1 %."""
    torch.manual_seed(0)
    learner = MapLearner(4, "mlp", orthogonal=Householder(3), scale=make_scale(scale)).bfloat16()
    maps = learner(randn(5, 4).bfloat16(), Graph(torch.tensor([[0], [1]]), 5))
    assert maps.scale.dtype == maps.orthogonal.dtype == torch.float32
    eye = torch.eye(3).expand(5, 3, 3)
    assert_close(maps.orthogonal.mT @ maps.orthogonal, eye, rtol=0, atol=1e-5)
