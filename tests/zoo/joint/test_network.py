"""Maps that move with the features: against their equations, edge by edge, and what must not change."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from allocations import LargestTensor
from coboundaries import (
    atlas,
    augmented_matrix,
    inverse_roots,
    laplacian_matrix,
    reverse_of,
    symmetric_weight,
)
from graphs import randn, random_orthogonal
from laws import EXACT, check_operator
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.joint import InvariantConv, JdSNN, JointConv, RiSNN
from coopsheaf.zoo.joint.learners import pulls
from coopsheaf.zoo.nsd import NSD

N, EDGES = atlas()[-2]
D, H, F_IN, OUT = 2, 4, 5, 3
KINDS = {"joint": JointConv, "invariant": InvariantConv}


def layer(kind: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    conv = KINDS[kind](H, D, **settings).double()
    for parameter in conv.parameters():  # none of them an identity
        nn.init.normal_(parameter)
    return conv


def network(kind: Any, **settings: Any) -> Any:
    torch.manual_seed(0)
    return kind(F_IN, H, 3, OUT, stalk_dim=D, **settings).double().eval()


def slow_pulls(maps: Tensor, x: Tensor) -> Tensor:
    """Every directed edge by itself: the difference of its ends times the features of the target."""
    back, found = reverse_of(EDGES), []
    for e, (j, i) in enumerate(EDGES.T.tolist()):
        found.append((maps[e] @ x[i] - maps[back[e]] @ x[j]) @ x[i].T)
    return torch.stack(found)


def slow_maps(conv: Any, before: Tensor, x: Tensor) -> Tensor:
    if isinstance(conv, JointConv):
        y = inverse_roots(x @ x.mT + torch.eye(D).double()) @ x
        mixed = conv.mixing.left.weight @ before @ conv.mixing.right.weight.T
        return before - torch.tanh(conv.map_step * slow_pulls(mixed, y))
    first, second = conv.invariant_learner.first, conv.invariant_learner.second
    flat = slow_pulls(before, x).flatten(1) / H
    hidden = flat @ first.weight.T + first.bias
    hidden = torch.where(hidden > 0, hidden, hidden.expm1())
    return torch.tanh(hidden @ second.weight.T + second.bias).unflatten(1, (D, D))


@pytest.mark.parametrize("kind", KINDS)
def test_the_equation(kind: str) -> None:
    settings = {"map_step": 0.7} if kind == "joint" else {}
    conv, x, before = layer(kind, **settings), randn(N, D, H), randn(EDGES.shape[1], D, D, seed=1)
    weight = symmetric_weight(EDGES)
    maps = slow_maps(conv, before, x)
    assert_close(conv.maps(x, EDGES, before), maps, **EXACT)
    want = augmented_matrix(laplacian_matrix(N, EDGES, maps, weight), N)
    got = conv.laplacian(x, EDGES, weight, before=before)
    assert_close(got.to_dense(), want, **EXACT)
    check_operator(got)
    mixed = (conv.left.weight @ x @ conv.right.weight.T).flatten(0, 1)
    assert_close(conv(x, EDGES, laplacian=got).flatten(0, 1), want @ mixed, **EXACT)


@pytest.mark.parametrize("kind", [JdSNN, RiSNN])
def test_a_network_hands_its_maps_on(kind: Any) -> None:
    """The whole network from dense matrices; the maps before the first layer are identities."""
    model, x = network(kind), randn(N, F_IN)
    for conv in model.convs:
        for learner in (conv.left, conv.right, *conv.children()):
            for parameter in learner.parameters():
                nn.init.normal_(parameter, std=0.5)
    maps = torch.eye(D).double().repeat(EDGES.shape[1], 1, 1)
    state = nn.functional.elu(model.encoder(x)).view(N, D, H)
    for conv, epsilon in zip(model.convs, model.epsilons, strict=True):
        maps = slow_maps(conv, maps, state)
        matrix = augmented_matrix(laplacian_matrix(N, EDGES, maps), N)
        mixed = conv.left.weight @ state @ conv.right.weight.T
        moved = (matrix @ mixed.flatten(0, 1)).view(N, D, H)
        state = (1 + torch.tanh(epsilon)) * state - nn.functional.elu(moved)
    assert_close(model(x, EDGES), model.readout(state.flatten(1)), **EXACT)


def test_pulls_are_derivatives_of_the_energy() -> None:
    maps, x = randn(EDGES.shape[1], D, D, seed=1).requires_grad_(), randn(N, D, H)
    back = torch.tensor(reverse_of(EDGES))
    gap = maps @ x[EDGES[1]] - maps[back] @ x[EDGES[0]]
    (gap.square().sum() / 4).backward()  # each pair of neighbours is there twice
    assert_close(pulls(maps, x, Graph(EDGES, N)), maps.grad, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("maps", ["general", "orthogonal", "diagonal"])
def test_rotated_channels_have_the_same_maps(kind: str, maps: str) -> None:
    if kind == "joint" and maps != "general":
        pytest.skip("its maps are what diffusion makes of identities")
    conv = layer(kind, right_weights=False, **({"maps": maps} if kind == "invariant" else {}))
    x, turn = randn(N, D, H), random_orthogonal(1, H)[0].double()
    assert not torch.allclose(x @ turn, x)
    first, turned = conv.maps(x, EDGES), conv.maps(x @ turn, EDGES)
    assert_close(turned, first, **EXACT)
    again = conv.maps(x @ turn, EDGES, turned)  # and in the next layer
    assert_close(again, conv.maps(x, EDGES, first), **EXACT)
    assert_close(conv(x @ turn, EDGES), conv(x, EDGES) @ turn, **EXACT)


def test_where_ends_agree_joint_maps_stay_identities() -> None:
    """Features that do not differ pull at nothing: Neural Sheaf Diffusion with identities."""
    model, plain = network(JdSNN), network(NSD, maps="identity")
    plain.load_state_dict(model.state_dict(), strict=False)
    n = 6
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    ring = torch.cat([ring, ring.flip(0)], dim=1)
    x = randn(1, F_IN).expand(n, -1)  # every node alike, of one degree: alike after each layer
    assert_close(model(x, ring), plain(x, ring), **EXACT)
    assert not torch.allclose(model(randn(n, F_IN), ring), plain(randn(n, F_IN), ring))


@pytest.mark.parametrize("step", [0.3, 1.0])
def test_linear_steps_of_the_maps_descend_their_energy(step: float) -> None:
    conv, x = JointConv(H, D, map_act="identity", map_step=step).double(), 3 * randn(N, D, H)
    y = inverse_roots(x @ x.mT + torch.eye(D).double()) @ x
    back, maps, energies = torch.tensor(reverse_of(EDGES)), None, []
    for _ in range(8):
        maps = conv.maps(x, EDGES, maps)
        gap = (maps @ y[EDGES[1]] - maps[back] @ y[EDGES[0]]).detach()
        energies.append(float(gap.square().sum()))
    assert all(after <= before for before, after in pairwise(energies))
    assert energies[-1] < energies[0]


@pytest.mark.parametrize("training", [True, False])
def test_in_training_no_gradient_flows_through_the_normaliser(training: bool) -> None:
    conv, x = layer("joint").train(training), randn(N, D, H).requires_grad_()
    conv.maps(x, EDGES).sum().backward()
    want = x.detach().requires_grad_()
    root = inverse_roots(want @ want.mT + torch.eye(D).double())
    eye = torch.eye(D).double().repeat(EDGES.shape[1], 1, 1)
    mixed = conv.mixing.left.weight @ eye @ conv.mixing.right.weight.T
    pulled = slow_pulls(mixed, (root.detach() if training else root) @ want)
    (eye - torch.tanh(pulled)).sum().backward()
    assert_close(x.grad, want.grad, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_learning_maps_makes_no_message_per_edge(kind: str) -> None:
    n, channels = 24, 32
    graph = Graph((1 - torch.eye(n)).nonzero().T, n)
    conv = KINDS[kind](channels, D)
    conv.maps(torch.randn(n, D, channels), graph)  # what is remembered of a graph
    with LargestTensor() as largest:
        x = torch.randn(n, D, channels, requires_grad=True)
        conv.maps(x, graph).square().sum().backward()
    assert largest.numel < graph.num_edges * D * channels, largest.where


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer("joint", map_step=0.0), "`map_step` must be positive; got 0.0"),
        (lambda: layer("joint", add_lp=True), "`add_lp` must be False for JointConv; got True"),
        (lambda: layer("invariant", learn_weights=True), "`learn_weights` must be False for InvariantConv"),
        (lambda: layer("invariant", maps="identity"), "`maps` must have something to learn; got IdentityMaps"),
        (lambda: layer("joint")(randn(3, D, H), torch.tensor([[0, 1], [1, 2]])), "every edge both ways"),
        (lambda: layer("invariant")(randn(2, D, H), torch.tensor([[0, 0, 1], [0, 1, 0]])), "must not hold self-loops"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
