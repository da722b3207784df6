"""Patches against sets written out: parts, neighbours, edges, overlaps; the same every time."""

from __future__ import annotations

import sys

import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, generator, path
from torch import Tensor
from torch_geometric.utils import barabasi_albert_graph

from coopsheaf import Graph
from coopsheaf.extras import MissingExtra
from coopsheaf.zoo.graph_vit import Patches, make_patches, patches

EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)


def grid(width: int, height: int) -> tuple[int, Tensor]:
    nodes = torch.arange(width * height).view(height, width)
    across = torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    down = torch.stack([nodes[:-1].flatten(), nodes[1:].flatten()])
    return width * height, bidirected(torch.cat([across, down], 1))


def members(found: Patches) -> dict[int, set[int]]:
    sets: dict[int, set[int]] = {}
    for node, patch in zip(found.node.tolist(), found.patch.tolist(), strict=True):
        assert node not in sets.setdefault(patch, set())  # a copy each
        sets[patch].add(node)
    return sets


@EACH_GRAPH
@pytest.mark.parametrize("count", [1, 3, 32])
def test_patches_are_parts_and_their_neighbours(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, edges = ODD_GRAPHS[name]
    kept: list[Tensor] = []
    real = patches._find_parts
    monkeypatch.setattr(patches, "_find_parts", lambda *a: kept.append(real(*a)) or kept[-1])
    found = make_patches(Graph(edges, n), num_patches=count)
    part = kept[0].tolist()
    want: dict[int, set[int]] = {}
    for i in range(n):
        want.setdefault(part[i], set()).add(i)
    for j, i in edges.T.tolist():
        want[part[i]].add(j)
        want[part[j]].add(i)
    assert members(found) == want
    assert max(part) == count - 1  # the last patch is never empty
    inside = {
        (m, p)
        for m, (j, i) in enumerate(edges.T.tolist())
        for p, nodes in want.items()
        if {i, j} <= nodes
    }
    ends = zip(found.edge.tolist(), found.source.tolist(), found.target.tolist(), strict=True)
    got = set()
    for m, s, t in ends:
        assert found.patch[s] == found.patch[t]
        assert [int(found.node[s]), int(found.node[t])] == edges[:, m].tolist()
        got.add((m, int(found.patch[s])))
    assert got == inside
    assert len(found.edge) == len(inside)
    for p in range(count):
        for q in range(count):
            assert found.overlap[0, p, q] == len(want.get(p, set()) & want.get(q, set()))
    assert found.filled[0].nonzero().flatten().tolist() == sorted(want)


def test_metis_cuts_few_edges_and_leaves_no_node_out() -> None:
    n, edges = grid(8, 8)
    found = make_patches(Graph(edges, n), num_patches=4)
    assert set(found.node.tolist()) == set(range(n))
    sizes = found.overlap[0].diagonal()
    assert int(sizes.max()) <= 30  # about sixteen, and their neighbours
    assert found.filled.all()


def test_the_same_parts_every_time_whatever_the_order_of_edges() -> None:
    n, edges = grid(7, 6)
    order = torch.randperm(edges.shape[1], generator=generator(0))
    one, other = (make_patches(Graph(e, n), num_patches=5) for e in (edges, edges[:, order]))
    assert torch.equal(one.node, other.node)
    assert torch.equal(one.patch, other.patch)
    assert torch.equal(one.overlap, other.overlap)
    before = torch.get_rng_state()
    make_patches(Graph(path(3), 3), num_patches=5)
    assert torch.equal(torch.get_rng_state(), before)  # nothing is drawn


def test_a_batch_is_its_graphs_one_by_one() -> None:
    """Nodes of a graph may stand anywhere, and a number of a batch may have no node."""
    graphs = [grid(4, 4), (3, path(3)), (12, path(12)), (1, path(1))]
    numbers = (0, 1, 3, 4)
    rows = torch.cat([torch.full((n,), k) for k, (n, _) in zip(numbers, graphs, strict=True)])
    batch = rows[torch.randperm(rows.numel(), generator=generator(1))]
    edges, places = [], []
    for k, (_, ends) in zip(numbers, graphs, strict=True):
        places.append((batch == k).nonzero().squeeze(1))
        edges.append(places[-1][ends])
    together = make_patches(Graph(torch.cat(edges, 1), batch.numel()), batch, num_patches=6)
    found = members(together)
    assert together.overlap.shape == (5, 6, 6)
    assert not together.filled[2].any()
    for k, (n, ends), place in zip(numbers, graphs, places, strict=True):
        alone = members(make_patches(Graph(ends, n), num_patches=6))
        mine = {p - 6 * k: nodes for p, nodes in found.items() if p // 6 == k}
        assert mine == {p: set(place[list(nodes)].tolist()) for p, nodes in alone.items()}


def test_training_draws_other_parts_from_the_seed() -> None:
    torch.manual_seed(0)
    edges = barabasi_albert_graph(60, 2)
    graph = Graph(edges, 60)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(make_patches(graph, num_patches=8, drop=0.3))
    same, again, other = (members(part) for part in found)
    assert same == again
    assert same != other
    # Edges that METIS did not see are in the patches all the same.
    assert set(found[0].edge.tolist()) == set(range(graph.num_edges))


def test_small_graphs_have_a_part_per_node() -> None:
    n, edges = 5, path(5)
    fixed = make_patches(Graph(edges, n), num_patches=16)
    assert sorted(map(sorted, members(fixed).values())) == [
        [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4]
    ]  # fmt: skip
    drawn = []
    for seed in range(6):
        torch.manual_seed(seed)
        drawn.append(
            tuple(sorted(members(make_patches(Graph(edges, n), num_patches=16, drop=0.3))))
        )
    assert len(set(drawn)) > 1
    assert all(patches[-1] == 15 for patches in drawn)


def test_without_metis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    rule = r"patches of graphs need pymetis.*pip install 'coopsheaf\[partition\]'"
    with pytest.raises(MissingExtra, match=rule):
        make_patches(Graph(path(9), 9), num_patches=4)
    make_patches(Graph(path(3), 3), num_patches=4)  # nothing to cut


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"num_patches": 0}, "`num_patches` must be an integer of at least 1"),
        ({"drop": 1.0}, r"`drop` must be a number in \[0, 1\)"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, float], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        make_patches(Graph(path(3), 3), **options)  # type: ignore[arg-type]
