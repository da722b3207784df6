"""Features layer by layer, and maps held still."""

from __future__ import annotations

import pytest
import torch
from analysis.networks import binary_tree, build, csnn
from graphs import path, randn
from models.test_all import EACH_LAYERED, EACH_MODEL, EDGES, F_IN, NOT_LAYERED, N
from torch import Tensor, nn

from coopsheaf import Graph
from coopsheaf.analysis import frozen_maps, influence, layer_features, receptive_field
from coopsheaf.models.network import Network
from coopsheaf.nn import ProjectedSAGELearner


@EACH_LAYERED
def test_there_is_a_state_before_and_after_each_layer(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    states = layer_features(model, x, EDGES)
    assert len(states) == model.num_layers + 1
    assert all(state.shape[0] == N for state in states)
    assert torch.equal(states[-1], model.embed(x, Graph(EDGES, N)))
    assert torch.equal(model.readout(states[-1]), model(x, EDGES))


def test_the_states_of_csnn_are_those_of_its_equation() -> None:
    model, x = csnn(num_layers=3), randn(N, F_IN)
    states = layer_features(model, x, EDGES)
    torch.testing.assert_close(states[0].flatten(1), model.act(model.encoder(x)))
    for conv, epsilon, before, after in zip(
        model.convs, model.epsilons, states, states[1:], strict=False
    ):
        want = (1 + torch.tanh(epsilon)) * before - model.act(conv(before, EDGES))
        torch.testing.assert_close(after.flatten(1), want.flatten(1))


def test_blocks_of_csnn_are_read_before_their_norms() -> None:
    model, x = csnn(num_layers=2, block="prenorm"), randn(N, F_IN)
    states = layer_features(model, x, EDGES)
    torch.testing.assert_close(states[0].flatten(1), model.act(model.encoder(x)))
    conv, graph = model.convs[0], Graph(EDGES, N)
    step = model.blocks[0](states[0], lambda z: conv(z, graph, None, None))
    torch.testing.assert_close(states[1], step)


def test_a_layer_used_many_times_is_read_many_times() -> None:
    model = build("gcn-match", unroll=True, num_layers=4)
    assert len(model.convs) == 1
    assert len(layer_features(model, randn(N, F_IN), EDGES)) == 5


def test_pre_norm_networks_are_read_outside_the_norm() -> None:
    model, x = build("gcn"), randn(N, F_IN)
    states = layer_features(model, x, EDGES)
    stack = model.stack
    step = states[0] + stack.blocks[0](stack.norms[0](states[0]), Graph(EDGES, N), None)
    torch.testing.assert_close(states[1], step)


class Odd(Network):
    """No list of layers."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.readout = nn.Linear(2, 2)

    def embed(self, x: Tensor, graph: Graph, **inputs: object) -> Tensor:
        return x


def test_models_that_cannot_be_read_are_named() -> None:
    x = randn(3, 2).float()
    with pytest.raises(ValueError, match="`model` must have a list of layers"):
        layer_features(Odd(), x, path(3))
    for name in NOT_LAYERED:
        with pytest.raises(ValueError, match="`model` must have a list of layers"):
            layer_features(build(name), randn(N, F_IN), EDGES)
    with pytest.raises(ValueError, match="`model` must be a coopsheaf Network"):
        layer_features(nn.Linear(2, 2), x, path(3))


@EACH_MODEL
def test_frozen_maps_change_derivatives_only(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    for learner in model.map_learners():
        for parameter in learner.parameters():
            if not parameter.any():  # learners that start at zero do not look at x yet
                nn.init.normal_(parameter, std=0.1)
    want, free = model(x, EDGES), influence(model, x, EDGES).squared
    with frozen_maps(model):
        assert torch.equal(model(x, EDGES), want)
        frozen = influence(model, x, EDGES).squared
    assert torch.equal(influence(model, x, EDGES).squared, free)  # thawed
    learns = any(sum(p.numel() for p in m.parameters()) for m in model.map_learners())
    trained = any(p.requires_grad for m in model.map_learners() for p in m.parameters())
    if learns and trained:
        assert not torch.allclose(frozen, free)
    elif not learns:
        assert torch.equal(frozen, free)


def test_frozen_maps_are_a_linear_diffusion() -> None:
    """With the maps of x as constants, identity activation and no encoder: x ↦ (1 - P) x."""
    model, x = csnn(num_layers=1, act=None, left_weights=False, right_weights=False), randn(N, F_IN)
    state = layer_features(model, x, EDGES)[0].detach()
    source, target = model.convs[0].maps(state, EDGES)
    operator = model.convs[0].diffusion(Graph(EDGES, N), source, target, None)
    step = torch.eye(2 * N).double() - operator.to_dense()
    blocks = step.reshape(N, 2, N, 2).transpose(1, 2)  # 4 channels, each the same block
    want = 4 * blocks.square().sum((2, 3))
    with frozen_maps(model):
        got = influence(model, x, EDGES, at="embedding", wrt="encoder").squared
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-14)


def test_learned_edge_weights_are_frozen_too() -> None:
    model, x = build("nsd-orthogonal", learn_weights=True, num_layers=1), randn(3, F_IN)
    with frozen_maps(model):
        reached = receptive_field(model, x, path(3), targets=0)
    assert reached.tolist() == [[True, True, False]]  # one hop; the learners look one further


# NeighborsMatch on a tree of depth 2: who brings the leaves to the root?
ROOT, LEAVES, TREE = 0, [3, 4, 5, 6], binary_tree(2)
LOOPS = torch.arange(7).repeat(2, 1)


def root_from_leaves(model: nn.Module, edges: Tensor, *, frozen: bool) -> Tensor:
    x = randn(7, F_IN, seed=4)
    if not frozen:
        return influence(model, x, edges, targets=ROOT, sources=LEAVES).norms[0]
    with frozen_maps(model):
        return influence(model, x, edges, targets=ROOT, sources=LEAVES).norms[0]


SAGE = ProjectedSAGELearner(8, 3)


def test_as_released_only_the_learners_bring_leaves_to_the_root() -> None:
    """Edges child → parent with loops, gathered at the child: diffusion moves away from the root."""
    model = csnn(num_layers=3, learner=SAGE, semantics="released")
    edges = torch.cat([TREE, LOOPS], dim=1)
    assert (root_from_leaves(model, edges, frozen=False) > 0).all()
    assert (root_from_leaves(model, edges, frozen=True) == 0).all()


@pytest.mark.parametrize("learner", ["mlp", SAGE])
@pytest.mark.parametrize(
    ("semantics", "edges"),
    [
        ("paper", TREE),  # to the root
        ("released", TREE.flip(0)),  # to the root, said the other way round
        ("paper", torch.cat([TREE, TREE.flip(0)], dim=1)),  # both ways
        ("released", torch.cat([TREE, TREE.flip(0)], dim=1)),
    ],
)
def test_in_other_directions_the_diffusion_does(
    semantics: str, edges: Tensor, learner: object
) -> None:
    model = csnn(num_layers=3, learner=learner, semantics=semantics)
    assert (root_from_leaves(model, edges, frozen=True) > 0).all()
