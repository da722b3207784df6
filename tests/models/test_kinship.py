"""What is said of sheaf networks: facts of the registry against their operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from allocations import LargestTensor
from graphs import generator, randn
from models.test_all import F_IN, SMALL, build, simple_graph
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.analysis.hops import hop_distances
from coopsheaf.models.kinship import Kinship, sheaf_systems
from coopsheaf.models.network import Network
from coopsheaf.models.registry import MODELS
from coopsheaf.sheaves.operator import Operator
from coopsheaf.zoo.bunn.network import BuNN
from coopsheaf.zoo.copresheaf.network import Copresheaf
from coopsheaf.zoo.platonov.attention import edge_scores, edge_softmax

SYSTEMS = sheaf_systems()
EACH_SYSTEM = pytest.mark.parametrize("name", SYSTEMS)
LINEAR = [name for name, info in SYSTEMS.items() if info.kinship.normal is not None]
EACH_LINEAR = pytest.mark.parametrize("name", LINEAR)
DRAWS = 5
N = 9


def bundle_matrix(model: Network, x: Tensor, graph: Graph) -> Tensor:
    """BuNN moves features without an Operator: its matrix, column by column."""
    assert isinstance(model, BuNN)
    conv, maps = (
        model.convs[0],
        model.learners[0](torch.nn.functional.gelu(model.encoder(x)), graph),
    )
    n, bundles, d = maps.shape[:3]
    units = torch.eye(n * bundles * d).double().view(n, bundles, d, -1)  # a column per channel
    moved = (maps @ units).flatten(2)
    heard = conv.heat(moved, graph).view_as(units)
    return (maps.mT @ heard).reshape(n * bundles * d, -1)


def carried_matrix(model: Network, x: Tensor, graph: Graph) -> Tensor:
    """What the first head of copresheaf attention carries, with maps that have left the identity."""
    assert isinstance(model, Copresheaf)
    conv, features = model.convs[0], torch.nn.functional.gelu(model.encoder(x))
    query, key = (
        linear(features).unflatten(1, (conv.num_heads, -1)) for linear in (conv.query, conv.key)
    )
    kind, n, p = conv.maps[0], x.shape[0], query.shape[2]
    torch.nn.init.normal_(kind.lin.weight)
    share = edge_softmax(edge_scores(query, key, graph) / p**0.5, graph)[:, 0]
    units = torch.eye(n * p).double().view(n, p, n * p)
    maps = kind(query[:, 0], key[:, 0], graph)
    return kind.carry(maps, share, units, graph).reshape(n * p, n * p)


# Networks whose layers call no Operator. A function gets the network, x and the graph, and gives
# the matrix of the first layer, n·k rows for stalks of dimension k.
WITHOUT_OPERATOR: dict[type[Network], Callable[[Any, Tensor, Graph], Tensor]] = {
    BuNN: bundle_matrix,
    Copresheaf: carried_matrix,
}


def first_matrix(
    model: Network, x: Tensor, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> Tensor:
    """The matrix of the first operator that a network multiplies features with."""
    if type(model) in WITHOUT_OPERATOR:
        return WITHOUT_OPERATOR[type(model)](model, x, graph).detach()
    used: list[Operator] = []

    def record(operator: Operator, features: Tensor) -> Tensor:
        used.append(operator)
        return operator._mv(features)

    with monkeypatch.context() as patched, torch.no_grad():
        patched.setattr(Operator, "mv", record)
        model(x, graph)
    assert used, f"{type(model).__name__} calls no Operator: add it to WITHOUT_OPERATOR"
    return used[0].to_dense()


def one_way_graph(seed: int) -> Graph:
    """Some edges of a simple graph in one direction only."""
    edges = simple_graph(N, seed=seed)
    kept = torch.rand(edges.shape[1], generator=generator(seed)) < 0.7
    return Graph(edges[:, kept], N)


def is_normal(matrix: Tensor) -> bool:
    return bool((matrix @ matrix.T - matrix.T @ matrix).abs().max() < 1e-10)


def is_psd(matrix: Tensor) -> bool:
    symmetric = bool((matrix - matrix.T).abs().max() < 1e-10)
    return symmetric and bool(torch.linalg.eigvalsh(matrix).min() > -1e-10)


@EACH_LINEAR
@pytest.mark.parametrize(("claim", "test"), [("normal", is_normal), ("psd", is_psd)])
def test_claims_hold(
    name: str, claim: str, test: Callable[[Tensor], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    info = SYSTEMS[name]
    said = getattr(info.kinship, claim)
    both_ways = [Graph(simple_graph(N, seed=seed), N) for seed in range(DRAWS)]
    kinds = {"undirected": both_ways}
    if info.directed:
        kinds["directed"] = [one_way_graph(seed) for seed in range(DRAWS)]
    found = {
        kind: [
            test(
                first_matrix(build(name, seed=seed), randn(N, F_IN, seed=seed), graph, monkeypatch)
            )
            for seed, graph in enumerate(some)
        ]
        for kind, some in kinds.items()
    }
    if said == "no":
        assert not all(found["undirected"])
        return
    assert all(found["undirected"])
    if info.directed:
        assert all(found["directed"]) == (said == "yes")
    else:
        assert said == "yes"


@EACH_LINEAR
def test_a_layer_reaches_as_far_as_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a path: something from the last node in reach, nothing from the next."""
    info = SYSTEMS[name]
    nodes = torch.arange(13)
    path = torch.stack([nodes[:-1], nodes[1:]])
    graph = Graph(torch.cat([path, path.flip(0)], dim=1), 13)
    settings = info.settings(**SMALL[name][0])
    reach = info.kinship.count_hops(settings)
    if info.kinship.hops == "num_steps":  # an operator of one hop, several times
        reach = 1
    matrix = first_matrix(build(name, 13), randn(13, F_IN), graph, monkeypatch)
    k = matrix.shape[0] // 13
    size = matrix.view(13, k, 13, k).abs().amax(dim=(1, 3))
    distance = hop_distances(graph, list(range(13)))
    assert size[distance == reach].max() > 1e-12
    assert size[distance > reach].max() == 0


@pytest.mark.parametrize("name", [n for n in SYSTEMS if SYSTEMS[n].kinship.place == "nodes"])
def test_maps_at_nodes_cost_nothing_at_edges(name: str) -> None:
    """Forward and backward, nothing has the size edges × stalk × channels."""
    n = 40
    edges = (1 - torch.eye(n)).nonzero().T  # every node beside every other
    model, graph = build(name, n).train(), Graph(edges, n)
    width = model.embedding_channels
    with LargestTensor() as largest:
        model(randn(n, F_IN), graph).square().sum().backward()
    assert largest.numel < edges.shape[1] * width, largest.where


@EACH_SYSTEM
def test_a_setting_that_says_the_reach_exists(name: str) -> None:
    kin = SYSTEMS[name].kinship
    assert isinstance(kin, Kinship)
    if isinstance(kin.hops, str):
        assert kin.hops in SYSTEMS[name].settings.__dataclass_fields__


def test_every_network_that_learns_maps_says_how_it_is_related() -> None:
    silent = [n for n in MODELS if n not in SYSTEMS and build(n).map_learners()]
    assert silent == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normal": "maybe"}, "`normal` must be one of yes, undirected, no or None; got 'maybe'"),
        ({"maps": "a | b"}, "`maps` must not hold"),
    ],
)
def test_bad_facts(change: dict[str, str], message: str) -> None:
    facts: dict[str, Any] = {"place": "nodes", "maps": "any", "operator": "A", "step": "A X"}
    facts |= {"normal": "yes", "psd": None, "hops": 1, "cost": "c"}
    with pytest.raises(ValueError, match=message):
        Kinship(**(facts | change))
