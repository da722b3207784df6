"""Pictures that are the same every time, unfold what is folded, and keep components apart."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from pages.explorer.pages import board, shape

from coopsheaf.pages.explorer import force
from coopsheaf.pages.explorer.adjacency import Adjacency, pair_up
from coopsheaf.pages.explorer.force import force_positions
from coopsheaf.pages.explorer.layout import lay_out


def ring(n: int) -> Adjacency:
    nodes = np.arange(n)
    return pair_up(nodes, (nodes + 1) % n, n)


def random_graph(n: int, m: int, seed: int = 0) -> Adjacency:
    """Connected: a tree with further edges."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, n)
    parent = (rng.random(n - 1) * child).astype(np.int64)
    more = rng.integers(0, n, (2, m))
    return pair_up(np.concatenate([child, more[0]]), np.concatenate([parent, more[1]]), n)


def test_a_board_is_its_grid_and_so_is_a_part_of_it() -> None:
    graph = shape(board(7, 5), 35)
    whole = lay_out(graph)
    assert whole.kind == "grid"
    nodes = np.array([3, 4, 11, 30])
    part = lay_out(graph, nodes)
    assert part.kind == "grid"
    assert part.positions.tolist() == whole.positions[nodes].tolist()


@pytest.mark.parametrize("graph", [ring(40), ring(700), random_graph(1500, 900)], ids=["pairs", "mesh", "tree"])  # fmt: skip
def test_the_same_picture_every_time(graph: Adjacency) -> None:
    first, second = lay_out(graph), lay_out(graph)
    assert first.kind == "forces"
    assert np.array_equal(first.positions, second.positions)
    assert np.isfinite(first.positions).all()
    assert len(np.unique(first.positions.round(6), axis=0)) == graph.num_nodes


def test_neighbours_are_near() -> None:
    graph = random_graph(2000, 500)
    place = lay_out(graph).positions
    linked = np.linalg.norm(place[graph.rows] - place[graph.other], axis=1)
    rng = np.random.default_rng(1)
    any_two = np.linalg.norm(place[rng.permutation(2000)] - place[rng.permutation(2000)], axis=1)
    assert np.median(linked) < 0.25 * np.median(any_two)


def test_a_ring_is_round() -> None:
    """Neither folded nor twisted: all nodes at one distance from the middle, in order."""
    place = lay_out(ring(600)).positions
    middle = place - place.mean(0)
    radius = np.linalg.norm(middle, axis=1)
    assert radius.std() < 0.05 * radius.mean()
    turn = np.diff(np.unwrap(np.arctan2(middle[:, 1], middle[:, 0])))
    assert (np.sign(turn) == np.sign(turn[0])).all()


def test_a_board_with_holes_unfolds() -> None:
    rng = np.random.default_rng(0)
    kept = np.flatnonzero(rng.random(900) < 0.9)
    graph = shape(board(30, 30), 900).within(kept)
    place = lay_out(graph).positions
    truth = np.stack([kept % 30, kept // 30], axis=1).astype(float)
    truth -= truth.mean(0)
    place = place - place.mean(0)
    map_, *_ = np.linalg.lstsq(place, truth, rcond=None)
    left = ((place @ map_ - truth) ** 2).sum() / (truth**2).sum()
    assert left < 0.05  # the board, but for a turn and a stretch


def test_the_mesh_pushes_as_pairs_do() -> None:
    """Beyond a cell the mesh is the sum over all pairs; within, it is weaker."""
    rng = np.random.default_rng(3)
    place = torch.from_numpy(rng.random((600, 2)) * 40)
    mass = torch.from_numpy(rng.random(600) + 0.5)
    apart = place[:, None] - place
    far = apart.norm(dim=-1)
    far.fill_diagonal_(torch.inf)
    exact = (apart * (mass[:, None] * mass / far**3)[..., None]).sum(1)
    lonely = far.amin(1) > 1.2
    assert int(lonely.sum()) > 20
    error = (exact - force._push_mesh(place, mass))[lonely].norm(dim=1)
    assert (error / exact[lonely].norm(dim=1)).median() < 0.25


def test_small_graphs_together_are_as_alone() -> None:
    parts = [random_graph(9, 4, seed) for seed in range(5)]
    together = force.small_positions(parts)
    for part, place in zip(parts, together, strict=True):
        assert torch.allclose(force_positions(part), place, atol=1e-9)


def test_merging_halves_a_graph_and_keeps_its_mass() -> None:
    graph = random_graph(3000, 4000)
    row, column = torch.from_numpy(graph.rows), torch.from_numpy(graph.other)
    once = row < column
    ones = torch.ones(3000, dtype=torch.float64)
    level = force._Level(row[once], column[once], ones.new_ones(int(once.sum())), ones)
    coarser, parent = force._coarsen(level)
    assert coarser.num_nodes <= 1500
    assert torch.equal(coarser.mass, torch.bincount(parent).double())
    inside = parent[level.one] == parent[level.other]
    assert coarser.weight.sum() == level.weight[~inside].sum()
    assert (coarser.one < coarser.other).all()


def test_components_do_not_overlap() -> None:
    parts = [ring(30), ring(30), random_graph(50, 20), ring(5), ring(3), *([pair_up(np.array([0]), np.array([1]), 2)] * 4)]  # fmt: skip
    source, target, n = [], [], 0
    for part in parts:
        source.append(part.rows + n)
        target.append(part.other + n)
        n += part.num_nodes
    lonely = 7
    graph = pair_up(np.concatenate(source), np.concatenate(target), n + lonely)
    place = lay_out(graph).positions
    boxes, start = [], 0
    for size in [part.num_nodes for part in parts] + [1] * lonely:
        inside = place[start : start + size]
        boxes.append((inside.min(0), inside.max(0)))
        start += size
    for a, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[a + 1 :]:
            assert ((other_low > high) | (other_high < low)).any()
    assert np.array_equal(place, lay_out(graph).positions)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_hardly_any_nodes(n: int) -> None:
    graph = pair_up(np.arange(max(n - 1, 0)), np.arange(1, max(n, 1)), n)
    place = lay_out(graph).positions
    assert place.shape == (n, 2)
    assert np.isfinite(place).all()


def test_extreme_shapes_are_finite() -> None:
    star = pair_up(np.zeros(1200, dtype=np.int64), np.arange(1, 1201), 1201)
    clique = pair_up(*np.triu_indices(80, 1), 80)
    for graph in (star, clique):
        place = force_positions(graph)
        assert place.isfinite().all()
        assert float(place.norm(dim=1).max()) < 1e4


def test_ten_thousand_nodes_in_seconds() -> None:
    """The aim is 20 s; it takes two or three, and this machine may be busy."""
    graph = random_graph(10_000, 30_000)
    start = time.process_time()
    lay_out(graph)
    assert time.process_time() - start < 20
