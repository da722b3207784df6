"""Sheaves of quivers, signs and phases, against their equations written out."""

from __future__ import annotations

import cmath
import math

import pytest
import torch
from graphs import (
    ODD_GRAPHS,
    graphs,
    randn,
    random_maps,
    random_orthogonal,
    random_sheaf,
    random_weight,
)
from hypothesis import given, settings
from laws import EXACT, UNDIRECTED, check_operator, check_sheaf
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import FlatSheaf, Graph, Sheaf, out_laplacian, sheaf_laplacian, spectrum
from coopsheaf.sheaves import fold_directions, magnetic_sheaf, quiver_sheaf, signed_sheaf

SOME = settings(deadline=None, max_examples=25)
ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)


def odd(name: str) -> Graph:
    n, edge_index = ODD_GRAPHS[name]
    return Graph(edge_index, n)


# ---- quivers


def quiver_matrix(graph: Graph, maps: Tensor, weight: Tensor) -> Tensor:
    """BᵀWB, block by block."""
    n, d = graph.num_nodes, maps.shape[-1]
    matrix = maps.new_zeros(n, n, d, d)
    for e, (i, j) in enumerate(graph.edge_index.T.tolist()):
        a, w = maps[e], weight[e]
        matrix[i, i] += w * a.T @ a
        matrix[j, j] += w * torch.eye(d).double()
        matrix[i, j] -= w * a.T
        matrix[j, i] -= w * a
    return matrix.transpose(1, 2).reshape(n * d, n * d)


@ALL_GRAPHS
def test_the_laplacian_of_a_quiver(name: str) -> None:
    graph = odd(name)
    maps, weight = random_maps(graph.num_edges, 2, 2), random_weight(graph.num_edges)
    sheaf = quiver_sheaf(graph, maps, edge_weight=weight)
    laplacian = sheaf_laplacian(sheaf)
    assert_close(laplacian.to_dense(), quiver_matrix(graph, maps, weight), **EXACT)
    check_operator(laplacian)
    assert spectrum(laplacian).min() > -1e-10
    for build in UNDIRECTED.values():
        check_sheaf(sheaf, build)


def test_the_kernel_of_a_quiver_are_its_sections() -> None:
    graph, a = Graph(torch.tensor([[0, 1], [1, 2]])), random_maps(2, 3, 3)
    x0 = randn(3, 2)
    x = torch.stack([x0, a[0] @ x0, a[1] @ a[0] @ x0])
    assert_close(sheaf_laplacian(quiver_sheaf(graph, a)).mv(x), torch.zeros_like(x), **EXACT)


def test_isometries_make_a_quiver_an_undirected_sheaf() -> None:
    """A_e = T_jᵀ S_i with orthogonal S and T: the sheaf whose ends have the maps S_i and T_j."""
    graph = odd("random-directed")
    s, t = random_orthogonal(9, 2), random_orthogonal(9, 2, seed=1)
    first, second = s[graph.source], t[graph.target]
    quiver = sheaf_laplacian(quiver_sheaf(graph, second.mT @ first))
    sheaf = sheaf_laplacian(Sheaf(graph, torch.stack([first, second], dim=1)))
    assert_close(quiver.to_dense(), sheaf.to_dense(), **EXACT)


def test_a_reversed_arc_with_the_adjoint_of_an_isometry_changes_nothing() -> None:
    graph, a = odd("parallel"), random_orthogonal(5, 2)
    one = sheaf_laplacian(quiver_sheaf(graph, a)).to_dense()
    other = sheaf_laplacian(quiver_sheaf(graph.edge_index.flip(0), a.mT, 3)).to_dense()
    assert_close(one, other, **EXACT)


def test_a_quiver_is_not_the_directed_sheaf() -> None:
    """A_e = T_jᵀ S_i: both send the same along an arc, and only the quiver sends something back."""
    graph, n, d = odd("one-way"), 4, 2
    s, t = random_orthogonal(n, d), random_orthogonal(n, d, seed=1)
    quiver = sheaf_laplacian(quiver_sheaf(graph, t[graph.target].mT @ s[graph.source])).to_dense()
    one_way = out_laplacian(FlatSheaf(graph, s, t)).to_dense()
    assert_close(quiver, quiver.T, **EXACT)
    assert not torch.allclose(one_way, one_way.T)
    assert not torch.allclose(quiver, one_way)
    blocks, directed = quiver.view(n, d, n, d), one_way.view(n, d, n, d)
    for i, j in graph.edge_index.T.tolist():
        assert_close(directed[j, :, i], -t[j].T @ s[i], **EXACT)
        assert_close(blocks[j, :, i], directed[j, :, i], **EXACT)
        assert_close(blocks[i, :, j], blocks[j, :, i].T, **EXACT)
        assert directed[i, :, j].abs().max() == 0


# ---- signs


def test_signed_graphs() -> None:
    edges, signs = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([1, -1, -1])
    laplacian = sheaf_laplacian(signed_sheaf(edges, signs.double()))
    expected = torch.tensor([[2.0, -1, 1], [-1, 2, 1], [1, 1, 2]]).double()
    assert_close(laplacian.to_dense(), expected, **EXACT)
    assert spectrum(laplacian)[0].abs() < 1e-10  # balanced: one sign of -1 is undone by the other
    unbalanced = sheaf_laplacian(signed_sheaf(edges, torch.tensor([1.0, 1, -1]).double(), 2))
    assert spectrum(unbalanced)[0] > 0.1


# ---- phases


def magnetic_matrix(sheaf: Sheaf, charges: Tensor, q: float) -> Tensor:
    """The complex Laplacian, block by block."""
    n, d = sheaf.num_nodes, sheaf.stalk_dim
    matrix = torch.zeros(n, n, d, d, dtype=torch.complex128)
    ones = torch.ones(sheaf.num_edges).double()
    weight = ones if sheaf.edge_weight is None else sheaf.edge_weight
    for e, (u, v) in enumerate(sheaf.edge_index.T.tolist()):
        f, g = sheaf.maps[e].to(torch.complex128)
        phase = cmath.exp(2j * math.pi * q * float(charges[e]))
        matrix[u, u] += weight[e] * f.T @ f
        matrix[v, v] += weight[e] * g.T @ g
        matrix[u, v] -= weight[e] * f.T @ g * phase
        matrix[v, u] -= weight[e] * g.T @ f * phase.conjugate()
    return matrix.transpose(1, 2).reshape(n * d, n * d)


def as_real(matrix: Tensor, n: int, d: int) -> Tensor:
    """A complex matrix of n blocks as a real one: real parts before imaginary parts per node."""
    blocks = matrix.view(n, d, n, d)
    real = torch.stack(
        [torch.stack([blocks.real, -blocks.imag], 3), torch.stack([blocks.imag, blocks.real], 3)], 1
    )  # (n, 2, d, n, 2, d)
    return real.reshape(2 * n * d, 2 * n * d)


@pytest.mark.parametrize("q", [0.0, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_phases_are_rotations(q: float, weighted: bool) -> None:
    graph = Graph(torch.tensor([[0, 0, 1, 2, 1], [1, 2, 2, 3, 3]]), 5)
    sheaf = random_sheaf(graph, 2, weighted=weighted)
    charges = torch.tensor([1, -1, 0, 1, -1])
    turned = magnetic_sheaf(sheaf, charges, q)
    expected = magnetic_matrix(sheaf, charges, q)
    laplacian = sheaf_laplacian(turned)
    assert_close(laplacian.to_dense(), as_real(expected, 5, 2), **EXACT)
    twice = torch.linalg.eigvalsh(expected).repeat_interleave(2)
    assert_close(spectrum(laplacian), twice, **EXACT)
    for build in UNDIRECTED.values():
        check_sheaf(turned, build)
    values = spectrum(sheaf_laplacian(turned, "augmented"))
    assert values.min() > -1e-10
    assert values.max() <= 2 + 1e-10


def test_a_phase_on_a_pair_with_arcs_both_ways_is_refused() -> None:
    sheaf = random_sheaf(Graph(torch.tensor([[0, 1, 2], [1, 2, 1]])), 2)
    with pytest.raises(ValueError, match=r"0 where a pair is listed both ways; got 1 for \(2, 1\)"):
        magnetic_sheaf(sheaf, torch.tensor([1, 0, 1]))
    magnetic_sheaf(sheaf, torch.tensor([1, 0, 0]))


def test_without_a_phase_there_are_two_copies() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 2]]))
    sheaf = random_sheaf(graph, 2)
    for q, charges in ((0.0, torch.tensor([1, -1])), (0.3, torch.tensor([0, 0]))):
        x = randn(3, 4, 2)
        got = sheaf_laplacian(magnetic_sheaf(sheaf, charges, q), "augmented").mv(x)
        plain = sheaf_laplacian(sheaf, "augmented")
        expected = torch.cat([plain.mv(x[:, :2]), plain.mv(x[:, 2:])], dim=1)
        assert_close(got, expected, **EXACT)


def test_reversing_all_arcs_conjugates() -> None:
    graph = Graph(torch.tensor([[0, 0, 1], [1, 2, 2]]))
    sheaf, charges = random_sheaf(graph, 2), torch.tensor([1, -1, 1])
    one = sheaf_laplacian(magnetic_sheaf(sheaf, charges))
    other = sheaf_laplacian(magnetic_sheaf(sheaf, -charges))
    conjugate = torch.tensor([1.0, 1, -1, -1]).double()[:, None]
    x = randn(3, 4, 2)
    assert_close(other.mv(conjugate * x), conjugate * one.mv(x), **EXACT)
    assert_close(spectrum(one), spectrum(other), **EXACT)


def test_q_can_be_learned() -> None:
    sheaf, q = random_sheaf(Graph(torch.tensor([[0], [1]])), 1), torch.tensor(0.2).double()
    x = randn(2, 2, 1)

    def energy(turn: Tensor) -> Tensor:
        laplacian = sheaf_laplacian(magnetic_sheaf(sheaf, torch.tensor([1]), turn))
        return (x * laplacian.mv(x)).sum()

    assert torch.autograd.gradcheck(energy, q.requires_grad_())


@SOME
@given(graphs())
def test_directions_folded(graph: Graph) -> None:
    arcs = {(i, j) for i, j in graph.edge_index.T.tolist() if i != j}
    kept = torch.tensor(sorted(arcs), dtype=torch.int64).reshape(-1, 2).T
    pairs, charges = fold_directions(kept, graph.num_nodes)
    expected = {
        (min(i, j), max(i, j)): ((min(i, j), max(i, j)) in arcs) - ((max(i, j), min(i, j)) in arcs)
        for i, j in arcs
    }
    found = {tuple(pair): int(c) for pair, c in zip(pairs.T.tolist(), charges, strict=True)}
    assert found == expected
    assert pairs.T.tolist() == sorted(pairs.T.tolist())


def test_an_arc_listed_twice_counts_once() -> None:
    pairs, charges = fold_directions(torch.tensor([[1, 1, 2], [0, 0, 0]]))
    assert pairs.tolist() == [[0, 0], [1, 2]]
    assert charges.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quiver_sheaf(torch.tensor([[0], [1]]), torch.ones(1, 2, 3)), r"`maps` must have shape \(m, d, d\) with stalk dimension"),
        (lambda: quiver_sheaf(torch.tensor([[0], [1]]), torch.ones(2, 2, 2)), r"`maps` must have shape \(m, d, d\) with m = 1"),
        (lambda: signed_sheaf(torch.tensor([[0], [1]]), torch.tensor([0.5])), "`signs` must be 1 or -1; got 0.5 for edge 0"),
        (lambda: magnetic_sheaf(random_sheaf(odd("one-way"), 1), torch.tensor([1, 2, 0])), "`charges` must be 1, 0 or -1; got 2 for edge 1"),
        (lambda: magnetic_sheaf(random_sheaf(odd("one-way"), 1), torch.tensor([1, 0])), r"`charges` must have shape \(m,\) with m = 3"),
        (lambda: fold_directions(torch.tensor([[0, 2], [1, 2]])), r"no loops: they have no phase; got \(2, 2\)"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
