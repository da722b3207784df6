"""No network makes anything of the size edges × width, or nodes × nodes, forward or backward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from graphs import randn

from coopsheaf import Graph
from coopsheaf.models.registry import MODELS
from coopsheaf.zoo.h2gcn import hops

N, WIDTH, F_IN = 48, 32, 6
MANY = 1000

# Small settings where the defaults would make something else large.
SETTINGS: dict[str, dict[str, Any]] = {
    "bunn": {"hidden_channels": WIDTH, "num_bundles": 2, "phi_layers": 1},
    "gprgnn-lab": {"hidden_channels": WIDTH, "num_hops": 3},
    "h2gcn": {"hidden_channels": WIDTH, "num_layers": 1},
    "h2gcn-linkx": {"hidden_channels": WIDTH, "num_layers": 1},
    "fsgnn": {"hidden_channels": WIDTH, "num_layers": 2},
}

# PyG's own layers, on the trees of NeighborsMatch, which have an edge per node; and networks whose
# edges have features as wide as those of nodes.
MESSAGES = ("gin", "ggnn", "gat-match", "gine", "gatedgcn", "gps", "san", "exphormer")
MESSAGES += ("graph-vit", "graph-mixer")


def complete(n: int) -> Graph:
    """Every node hears all others: far more edges than nodes."""
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    return Graph(pairs[:, pairs[0] != pairs[1]], n)


# Sheaf networks have tests of their own: what belongs to an edge there is a block.
EACH = [name for name in MODELS if MODELS[name].kinship is None and name not in MESSAGES]


@pytest.mark.parametrize("name", EACH)
def test_a_step_has_no_message_per_edge(name: str) -> None:
    graph = complete(N)
    settings = SETTINGS.get(name, {"hidden_channels": WIDTH, "num_layers": 2})
    torch.manual_seed(0)
    model = MODELS[name].settings(**settings).build(F_IN, 3, graph_level=False, num_nodes=N)
    model.train()
    x = randn(N, F_IN, seed=1).float()
    with torch.no_grad():
        model(x, graph)  # what is made once per graph
    with LargestTensor() as seen:
        out = model(x, graph)
        out.square().sum().backward()
    assert seen.numel < graph.num_edges * WIDTH, seen.where


# Attention of every node to all others of its graph: n² is what these are about.
ALL_PAIRS = ("gps", "san")


def sparse(n: int) -> Graph:
    """A ring with as many chords, both ways: few edges for many nodes."""
    generator = torch.Generator().manual_seed(0)
    nodes = torch.arange(n)
    chords = torch.stack([nodes, torch.randint(n, (n,), generator=generator)])
    pairs = torch.cat([torch.stack([nodes, (nodes + 1) % n]), chords[:, chords[0] != chords[1]]], 1)
    return Graph(torch.cat([pairs, pairs.flip(0)], 1).unique(dim=1), n)


def largest(name: str) -> LargestTensor:
    """The largest array of a step on a sparse graph, with all that is made once for the graph."""
    graph = sparse(MANY)
    settings = SETTINGS.get(name, {"num_layers": 2}) | {"hidden_channels": 8}
    torch.manual_seed(0)
    model = MODELS[name].settings(**settings).build(F_IN, 3, graph_level=False, num_nodes=MANY)
    x = randn(MANY, F_IN, seed=1).float()
    with LargestTensor(inside=True) as seen:
        model.train()(x, graph).square().sum().backward()
    return seen


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ALL_PAIRS])
def test_nothing_has_the_size_of_all_pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Walks of two steps are counted for so many rows at a time as memory allows: for a few here.
    monkeypatch.setattr(hops, "COUNTS", 100 * MANY)
    seen = largest(name)
    assert seen.numel < MANY * MANY // 3, seen.where


@pytest.mark.parametrize("name", ALL_PAIRS)
def test_an_array_of_all_pairs_would_be_seen(name: str) -> None:
    assert largest(name).numel >= MANY * MANY
