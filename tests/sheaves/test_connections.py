"""Connections of local PCA: against the equation written out, and what must not change them."""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor
from graphs import bidirected, generator, randn, random_orthogonal
from laws import EXACT, UNDIRECTED, check_sheaf
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph, sheaf_laplacian, spectrum
from coopsheaf.sheaves import (
    connection_maps,
    connection_sheaf,
    connections,
    frames,
    random_connection,
)

N, P = 12, 6


def simple(n: int = N, pairs: int = 24, seed: int = 0) -> Tensor:
    drawn = torch.randint(0, n, (2, 4 * pairs), generator=generator(seed))
    codes = torch.unique(drawn.amin(0) * n + drawn.amax(0))
    u, v = codes // n, codes % n
    return bidirected(torch.stack([u, v])[:, u != v][:, :pairs])


EDGES, X = simple(), randn(N, P)


def slow(x: Tensor, edges: Tensor, d: int) -> Tensor:
    """Node by node and edge by edge, for features in general position."""
    n = len(x)
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for j, i in edges.T.tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    frames = []
    for v in range(n):
        others = sorted(neighbours[v])
        rest = [u for u in range(n) if u != v and u not in neighbours[v]]
        rest.sort(key=lambda u, v=v: float((x[u] - x[v]).norm()))
        others += rest[: max(0, d - len(others))]
        columns = torch.stack([x[u] - x[v] for u in others], dim=1)  # (p, count)
        left = torch.linalg.svd(columns).U[:, :d]
        frames.append(left * (left.T @ columns).sum(1).sign())
    maps = []
    for j, i in edges.T.tolist():
        u, _, vh = torch.linalg.svd(frames[i].T @ frames[j])
        maps.append(u @ vh)
    return torch.stack(maps)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_the_equation(d: int) -> None:
    assert_close(connection_maps(X, EDGES, d), slow(X, EDGES, d), **EXACT)


def test_maps_are_orthogonal_and_transposed_exactly() -> None:
    maps = connection_maps(X, EDGES, 3)
    assert_close(maps @ maps.mT, torch.eye(3).double().expand_as(maps), **EXACT)
    half = EDGES.shape[1] // 2
    assert torch.equal(maps[:half], maps[half:].mT)


def test_the_laplacian_and_its_laws() -> None:
    maps = connection_maps(X, EDGES, 2)
    sheaf = connection_sheaf(Graph(EDGES, N), maps)
    matrix = torch.zeros(N, N, 2, 2).double()
    for e, (j, i) in enumerate(EDGES.T.tolist()):
        matrix[i, j] = -maps[e]
        matrix[i, i] += torch.eye(2)
    want = matrix.transpose(1, 2).reshape(2 * N, 2 * N)
    assert_close(sheaf_laplacian(sheaf).to_dense(), want, **EXACT)
    for build in UNDIRECTED.values():
        check_sheaf(sheaf, build)
    values = spectrum(sheaf_laplacian(sheaf, "augmented"))
    assert values.min() > -1e-10
    assert values.max() < 2


def test_neither_a_shift_nor_a_rotation_of_all_features_counts() -> None:
    want = connection_maps(X, EDGES, 3)
    assert_close(connection_maps(X + randn(P, seed=5), EDGES, 3), want, **EXACT)
    turned = X @ random_orthogonal(1, P, seed=3)[0]
    assert_close(connection_maps(turned, EDGES, 3), want, **EXACT)
    assert_close(connection_maps(3.5 * X, EDGES, 3), want, **EXACT)


def test_renamed_nodes_have_the_same_maps() -> None:
    names = torch.randperm(N, generator=generator(1))
    got = connection_maps(X[names.argsort()], names[EDGES], 3)
    assert_close(got, connection_maps(X, EDGES, 3), **EXACT)


def test_of_one_dimension_it_is_a_signed_graph() -> None:
    maps = connection_maps(X, EDGES, 1)
    assert set(maps.flatten().tolist()) == {1.0, -1.0}
    laplacian = sheaf_laplacian(connection_sheaf(Graph(EDGES, N), maps)).to_dense()
    signs = torch.zeros(N, N).double()
    signs[EDGES[1], EDGES[0]] = maps.flatten()
    assert torch.equal(laplacian, torch.diag(signs.abs().sum(1)) - signs)


def test_direction_repetition_and_loops_do_not_change_neighbours() -> None:
    half = EDGES.shape[1] // 2
    once = connection_maps(X, Graph(EDGES[:, :half], N), 2)
    assert_close(once, connection_maps(X, EDGES, 2)[:half], **EXACT)
    more = torch.cat([EDGES[:, :half], EDGES[:, :3], torch.tensor([[4], [4]])], dim=1)
    maps = connection_maps(X, Graph(more, N), 2)
    assert_close(maps[: half + 3], torch.cat([once, once[:3]]), **EXACT)
    assert torch.equal(maps[-1], torch.eye(2).double())
    sheaf = connection_sheaf(Graph(more, N), maps)
    assert sheaf.num_edges == half


# ---- what the equation leaves open


def orthogonal(maps: Tensor) -> bool:
    d = maps.shape[-1]
    return bool((maps @ maps.mT - torch.eye(d).double()).abs().max() < 1e-10)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_features_that_do_not_differ_have_identities(d: int) -> None:
    """Every frame is completed by the same directions."""
    x = torch.ones(5, 4).double()
    maps = connection_maps(x, simple(5, 6), d)
    assert_close(maps, torch.eye(d).double().expand_as(maps), **EXACT)


@pytest.mark.parametrize("d", [2, 3])
def test_duplicates_are_completed_the_same_every_time(d: int) -> None:
    bags = (torch.rand(N, P, generator=generator(2)) < 0.3).double()
    bags[3:7] = bags[3]  # neighbours whose features are the same
    maps = connection_maps(bags, EDGES, d)
    assert orthogonal(maps)
    assert torch.equal(maps, connection_maps(bags.clone(), EDGES, d))
    half = EDGES.shape[1] // 2
    assert torch.equal(maps[:half], maps[half:].mT)


def test_missing_directions_are_those_of_all_nodes() -> None:
    """Node 0 and its neighbours lie on a line; the plane of the others completes its frame."""
    x = torch.zeros(7, 5).double()
    x[:3, 0] = torch.tensor([0.0, 1.0, 2.0])
    x[3:, :3] = randn(4, 3)
    edges = bidirected(torch.tensor([[0, 0, 3, 3, 3], [1, 2, 4, 5, 6]]))
    pairs = frames.Pairs(edges[0], edges[1])
    frame = frames.LocalFrames(x, pairs, 2, None)(torch.tensor([0]))[0]
    assert_close(frame.T @ frame, torch.eye(2).double(), **EXACT)
    assert_close(frame[:, 0], torch.eye(5)[0].double(), **EXACT)
    centred = x - x.mean(0)
    axes = torch.linalg.svd(centred).Vh[:3]
    assert_close((axes @ frame[:, 1]).norm(), torch.tensor(1.0).double(), **EXACT)


def test_directions_that_are_there_already_complete_nothing() -> None:
    """All features lie on one line, the first principal axis: coordinate axes are next."""
    line = torch.tensor([4.0, 3.0, 0.0, 0.0]).double() / 5
    x = torch.tensor([0.0, 1.0, 3.0]).double()[:, None] * line
    pairs = frames.Pairs(torch.tensor([0, 1]), torch.tensor([1, 2]))
    frame = frames.LocalFrames(x, pairs, 3, None)(torch.tensor([0]))[0]
    beside = torch.tensor([3.0, -4.0, 0.0, 0.0]).double() / 5
    want = torch.stack([line, beside, torch.eye(4)[2].double()])
    assert_close(frame.T, want, **EXACT)


def test_too_few_nodes_for_a_frame() -> None:
    """A pair alone: nobody is left to make up for missing neighbours."""
    maps = connection_maps(randn(2, 5), torch.tensor([[0, 1], [1, 0]]), 4)
    assert orthogonal(maps)


def test_orthogonal_frames_have_the_nearest_map_to_the_identity() -> None:
    q = random_orthogonal(1, 3, seed=4)[0]
    some = torch.stack([torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0, 0]))]).double()
    some = torch.cat([some, (q * torch.tensor([1.0, 0.5, 0.0]))[None]])
    found = connections.nearest_orthogonal(some)
    assert orthogonal(found)
    eye = torch.eye(3).double()
    assert_close(found[0], eye, **EXACT)
    assert_close(found[1], eye, **EXACT)
    assert_close(connections.nearest_orthogonal(some.mT), found.mT, **EXACT)
    left, right = random_orthogonal(2, 3, seed=6)
    low = (left * torch.tensor([1.0, 0.0, 0.0])) @ right  # two directions are left over
    u, _, vh = torch.linalg.svd(low + 1e-7 * eye)
    assert_close(connections.nearest_orthogonal(low[None])[0], u @ vh, rtol=0, atol=1e-5)
    # The nearest: no other orthogonal matrix has a larger inner product.
    best = (found * some).sum((1, 2))
    assert_close(best, torch.linalg.svdvals(some).sum(1), **EXACT)


def test_isolated_nodes_have_no_frame_and_change_nothing() -> None:
    """Without neighbours that are missing, nodes far away do not count."""
    dense = simple(6, 15)
    x = randn(9, P)
    assert_close(connection_maps(x, dense, 2), connection_maps(x[:6], dense, 2), **EXACT)
    nothing = connection_maps(x, torch.empty(2, 0, dtype=torch.int64), 2)
    assert nothing.shape == (0, 2, 2)


def test_a_batch_is_its_graphs() -> None:
    """A graph whose nodes lack neighbours takes none from another one."""
    edges = bidirected(torch.tensor([[0, 1], [1, 2]]))
    a, b = randn(5, P, seed=1), randn(5, P, seed=2)
    both = torch.cat([a, b])
    batch = torch.arange(2).repeat_interleave(5)
    maps = connection_maps(both, torch.cat([edges, edges + 5], dim=1), 3, batch=batch)
    alone = torch.cat([connection_maps(a, edges, 3), connection_maps(b, edges, 3)])
    assert_close(maps, alone, **EXACT)


# ---- size


def test_frames_are_never_all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    n, p, d = 200, 40, 3
    edges, x = simple(n, 500), randn(n, p)
    want = connection_maps(x, edges, d)
    monkeypatch.setattr(connections, "FRAME_NUMBERS", 40 * p * d)
    for module in (frames, connections):
        monkeypatch.setattr(module, "PART_NUMBERS", 20 * p * d)
    pairs = frames.Pairs(edges[0], edges[1])
    with LargestTensor() as largest:
        maps = connections.align(frames.LocalFrames(x, pairs, d, None), pairs)
    assert_close(pairs.at_edges(maps), want, **EXACT)
    assert largest.numel < n * p * d / 2, largest.where


# ---- controls


def test_random_maps_of_pairs_and_of_nodes() -> None:
    half = EDGES.shape[1] // 2
    for features in (None, P):
        maps = random_connection(EDGES, 3, N, features=features, seed=1, dtype=torch.float64)
        assert orthogonal(maps)
        assert torch.equal(maps[:half], maps[half:].mT)
        order = torch.randperm(EDGES.shape[1], generator=generator(0))
        again = random_connection(
            EDGES[:, order], 3, N, features=features, seed=1, dtype=torch.float64
        )
        assert torch.equal(again, maps[order])
        other = random_connection(EDGES, 3, N, features=features, seed=2, dtype=torch.float64)
        assert not torch.allclose(other, maps)


def test_frames_of_nodes_are_aligned_as_those_of_local_pca() -> None:
    """With p = d frames are orthogonal matrices: the connection is flat, O_ij = O_iᵀ O_j."""
    maps = random_connection(EDGES, 3, N, features=3, dtype=torch.float64)
    drawn = frames.RandomFrames(3, 3, N, 0)(torch.arange(N))
    assert_close(maps, drawn[EDGES[1]].mT @ drawn[EDGES[0]], **EXACT)
    flat = sheaf_laplacian(connection_sheaf(Graph(EDGES, N), maps))
    assert (spectrum(flat) < 1e-10).sum() >= 3
    loose = random_connection(EDGES, 3, N, dtype=torch.float64)
    crooked = sheaf_laplacian(connection_sheaf(Graph(EDGES, N), loose))
    assert (spectrum(crooked) < 1e-10).sum() == 0


def test_random_maps_are_uniform() -> None:
    """Entries have mean 0 and variance 1/d; so do products of frames in many dimensions."""
    edges = torch.stack([torch.arange(400), torch.arange(400) + 400])
    for features in (None, 60):
        maps = random_connection(edges, 2, features=features, dtype=torch.float64)
        assert maps.mean(0).abs().max() < 0.15
        assert (maps.square().mean(0) - 0.5).abs().max() < 0.1
        assert (torch.linalg.det(maps) < 0).double().mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: connection_maps(X, EDGES, P + 1), "`stalk_dim` must be at most the number of features, 6: .* got 7"),
        (lambda: connection_maps(X, EDGES, 0), "`stalk_dim` must be .*at least 1"),
        (lambda: connection_maps(X[:3], EDGES, 2), "below the number of nodes, 3"),
        (lambda: connection_maps(X[0], EDGES, 2), r"`x` must have shape \(n, p\)"),
        (lambda: connection_maps(X / 0, EDGES, 2), "`x` must be finite for local PCA"),
        (lambda: random_connection(EDGES, 4, features=3), "at most the number of features, 3"),
        (lambda: connection_sheaf(EDGES, randn(3, 2, 2)), r"`transports` must have shape \(m, d, d\)"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
