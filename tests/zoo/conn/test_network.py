"""Sheaf diffusion on connections: against the equation, what is remembered, and the controls."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from coboundaries import atlas, symmetric_weight
from graphs import generator, randn
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.sheaves import connection_maps, connection_sheaf, random_connection, sheaf_laplacian
from coopsheaf.zoo.conn import ConnectionConv, ConnNSD, RandomConnNSD
from coopsheaf.zoo.conn import network as module
from coopsheaf.zoo.nsd import NSD

N, EDGES = atlas()[-2]
F_IN, H, OUT, D = 5, 4, 3, 2


def network(**settings: Any) -> ConnNSD:
    torch.manual_seed(0)
    model = ConnNSD(F_IN, H, 2, OUT, stalk_dim=D, **settings).double().eval()
    for epsilon in model.epsilons:
        torch.nn.init.normal_(epsilon)
    for conv in model.convs:
        torch.nn.init.normal_(conv.left.weight)
    return model


def dense_laplacian(maps: Tensor, weight: Tensor) -> Tensor:
    """(D + I)^-½ L (D + I)^-½ with blocks -O_ij, edge by edge."""
    blocks = torch.zeros(N, N, D, D).double()
    degree = torch.zeros(N).double()
    for e, (_, i) in enumerate(EDGES.T.tolist()):
        degree[i] += weight[e]
    for e, (j, i) in enumerate(EDGES.T.tolist()):
        blocks[i, j] = -weight[e] * maps[e] / ((degree[i] + 1) * (degree[j] + 1)).sqrt()
    for i in range(N):
        blocks[i, i] = degree[i] / (degree[i] + 1) * torch.eye(D).double()
    return blocks.transpose(1, 2).reshape(N * D, N * D)


def test_layers_follow_the_equation() -> None:
    model, x, weight = network(), randn(N, F_IN), symmetric_weight(EDGES)
    matrix = dense_laplacian(connection_maps(x, EDGES, D), weight)
    state = F.elu(model.encoder(x)).view(N, D, H)
    for conv, epsilon in zip(model.convs, model.epsilons, strict=True):
        mixed = conv.left.weight @ state @ conv.right.weight.T
        y = (matrix @ mixed.reshape(N * D, H)).view(N, D, H)
        state = (1 + epsilon.tanh()) * state - F.elu(y)
    assert_close(model(x, EDGES, weight), model.readout(state.flatten(1)), **EXACT)


def test_it_is_the_laplacian_of_the_sheaf_of_the_connection() -> None:
    x, conv = randn(N, D, H), ConnectionConv(H, D).double()
    maps = connection_maps(randn(N, F_IN), EDGES, D)
    operator = conv.connect(maps, x, EDGES)
    check_operator(operator)
    want = sheaf_laplacian(connection_sheaf(Graph(EDGES, N), maps), "augmented")
    assert_close(operator.to_dense(), want.to_dense(), **EXACT)


def test_identities_for_maps_give_nsd() -> None:
    """And with fixed coordinates, too."""
    model = network(add_lp=True, second_linear=True)
    plain = NSD(F_IN, H, 2, OUT, stalk_dim=D, maps="identity", add_lp=True, second_linear=True)
    plain = plain.double().eval()
    plain.load_state_dict(model.state_dict())
    same = torch.ones(N, F_IN).double()  # features that do not differ
    assert_close(model(same, EDGES), plain(same, EDGES), **EXACT)
    assert not torch.allclose(model(randn(N, F_IN), EDGES), plain(randn(N, F_IN), EDGES))


def test_maps_are_found_once_and_again_for_other_features(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(x: Tensor, *args: Any, **named: Any) -> Tensor:
        calls.append(x)
        return connection_maps(x, *args, **named)

    monkeypatch.setattr(module, "connection_maps", counted)
    model, graph, x = network(), Graph(EDGES, N), randn(N, F_IN)
    first = model(x, graph)
    for same in (x, x.clone(), x.clone().requires_grad_()):
        assert torch.equal(model(same, graph), first)
    with torch.inference_mode():
        model(x, graph)
        model(x + 0, graph)
    assert len(calls) == 1
    other = randn(N, F_IN, seed=1)
    assert_close(model(other, graph), model(other, EDGES), **EXACT)  # EDGES: nothing remembered
    assert len(calls) == 3
    x_again = model(x, graph)
    assert torch.equal(x_again, first)
    # Written to in place: the memory is the same, the features are not.
    x.copy_(other)
    assert_close(model(x, graph), model(other, EDGES), **EXACT)
    assert not torch.allclose(model(x, graph), first)


def test_runs_side_by_side_find_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under vmap over parameters, after a pass of a network alone."""
    model, graph, x = network(), Graph(EDGES, N), randn(N, F_IN)
    alone = model(x, graph)
    monkeypatch.setattr(module, "connection_maps", None)  # nobody may ask again
    twice = {key: torch.stack([p.detach()] * 2) for key, p in model.named_parameters()}

    def run(parameters: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(model, parameters, (x, graph))

    got = torch.func.vmap(run)(twice)
    assert_close(got, torch.stack([alone.detach()] * 2), **EXACT)


def test_batches_of_graphs_are_told_apart() -> None:
    """The same features on the same graph, but in other batches: missing neighbours differ."""
    edges = torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]])
    graph, x, model = Graph(edges, 6), randn(6, F_IN), network()
    together = model(x, graph, batch=torch.zeros(6, dtype=torch.int64))
    apart = model(x, graph, batch=torch.tensor([0, 0, 0, 1, 1, 1]))
    assert not torch.allclose(together, apart)
    alone = torch.cat([model(part, edges[:, :2]) for part in x.split(3)])
    assert_close(apart, alone, **EXACT)


def test_dropout_does_not_touch_the_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noted(x: Tensor, *args: Any, **named: Any) -> Tensor:
        seen.append(x.clone())
        return connection_maps(x, *args, **named)

    monkeypatch.setattr(module, "connection_maps", noted)
    x = randn(N, F_IN)
    network(input_dropout=0.5, dropout=0.5).train()(x, EDGES)
    assert torch.equal(seen[0], x)


def test_controls_diffuse_on_what_is_drawn() -> None:
    x, weight = randn(N, F_IN), symmetric_weight(EDGES)
    for draw, features in (("edge", None), ("node", F_IN)):
        torch.manual_seed(0)
        model = RandomConnNSD(F_IN, H, 1, OUT, stalk_dim=D, num_nodes=N, draw=draw, map_seed=3)
        model = model.double().eval()
        maps = random_connection(EDGES, D, N, features=features, seed=3, dtype=torch.float64)
        matrix = dense_laplacian(maps, weight)
        state = F.elu(model.encoder(x)).view(N, D, H)
        mixed = state @ model.convs[0].right.weight.T
        y = (matrix @ mixed.reshape(N * D, H)).view(N, D, H)
        want = model.readout((state - F.elu(y)).flatten(1))
        assert_close(model(x, EDGES, weight), want, **EXACT)
        order = torch.randperm(EDGES.shape[1], generator=generator(0))
        assert_close(model(x, EDGES[:, order], weight[order]), want, **EXACT)
        other = RandomConnNSD(F_IN, H, 1, OUT, stalk_dim=D, num_nodes=N, draw=draw, map_seed=4)
        other = other.double().eval()
        other.load_state_dict(model.state_dict())
        assert not torch.allclose(other(x, EDGES, weight), want)


def test_maps_of_pairs_need_no_features() -> None:
    model = RandomConnNSD(1, H, 1, OUT, stalk_dim=3, num_nodes=N, draw="edge").double()
    assert model(randn(N, 1), EDGES).shape == (N, OUT)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConnNSD(2, H, stalk_dim=3), "`stalk_dim` must be at most the number of features, 2: .* got 3"),
        (lambda: ConnNSD(0, H), "`in_channels` must be an integer of at least 1; got 0"),
        (lambda: network()(randn(4, F_IN), torch.tensor([[0, 1], [1, 2]])), r"every edge both ways; \(0, 1\) is there without"),
        (lambda: network()(randn(2, F_IN), torch.tensor([[0, 0, 1], [0, 1, 0]])), "must not hold self-loops"),
        (lambda: network()(randn(N, F_IN) / 0, EDGES), "`x` must be finite for local PCA"),
        (lambda: network(normalization="degree"), "`normalization` must be 'augmented' or None for Conn"),
        (lambda: RandomConnNSD(2, H, num_nodes=3, draw="node"), "at most the number of features, 2: .* got 3"),
        (lambda: RandomConnNSD(F_IN, H, num_nodes=3, draw="face"), "`draw` must be one of 'edge', 'node'"),
        (lambda: RandomConnNSD(F_IN, H, num_nodes=3, pool="mean"), "`pool` must be None"),
        (lambda: ConnectionConv(H, D)(torch.ones(N, D, H), EDGES), "`laplacian` must be given"),
        (lambda: ConnectionConv(H, D).connect(torch.ones(3, D, D), torch.ones(N, D, H), EDGES), "`transports` must have shape"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
