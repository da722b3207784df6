"""Spectra, harmonic spaces, energies."""

from __future__ import annotations

import cmath
import math

import pytest
import torch
from graphs import generator, graphs, path, randn, random_flat, random_orthogonal, random_sheaf
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import EXACT
from torch.testing import assert_close

from coopsheaf import (
    Graph,
    Sheaf,
    coboundary,
    dirichlet_energy,
    harmonic_space,
    out_laplacian,
    sheaf_laplacian,
    spectrum,
)
from coopsheaf.sheaves import cohomology, numerical_radius, paper_diffusion
from coopsheaf.sheaves.operator import BlockDiagonal, Identity


def test_the_spectrum_of_a_cycle_is_known() -> None:
    n = 6
    nodes = torch.arange(n)
    ones = torch.ones(n, 2, 1, 1, dtype=torch.float64)
    cycle = Sheaf(torch.stack([nodes, (nodes + 1) % n]), ones)
    expected = torch.tensor([2 - 2 * math.cos(2 * math.pi * k / n) for k in range(n)]).double()
    assert_close(spectrum(sheaf_laplacian(cycle)), expected.sort().values)


def test_the_spectrum_of_a_directed_laplacian_is_complex_and_sorted() -> None:
    values = spectrum(out_laplacian(random_flat(Graph(path(4)), 2)))
    assert values.is_complex()
    assert (values.real.diff() >= 0).all()


@settings(deadline=None, max_examples=25)
@given(graphs(), st.integers(1, 3), st.integers(0, 99))
def test_harmonic_features_are_the_kernel(graph: Graph, d: int, seed: int) -> None:
    sheaf = random_sheaf(graph, d, seed=seed)
    laplacian = sheaf_laplacian(sheaf)
    basis = harmonic_space(laplacian)
    k = basis.shape[-1]
    assert_close(laplacian.mv(basis), torch.zeros_like(basis), rtol=0, atol=1e-8)
    flat = basis.flatten(0, 1)
    assert_close(flat.T @ flat, torch.eye(k).double(), rtol=0, atol=1e-10)
    rank = int(torch.linalg.matrix_rank(coboundary(sheaf).to_dense()))
    assert k == graph.num_nodes * d - rank


def test_global_sections_of_a_flat_bundle_are_one_stalk_per_component() -> None:
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])  # components {0, 1, 2}, {3, 4}, {5}
    q = random_orthogonal(6, 3)
    bundle = Sheaf(edges, torch.stack([q[edges[0]], q[edges[1]]], dim=1), 6)
    assert harmonic_space(sheaf_laplacian(bundle)).shape == (6, 3, 9)


@settings(deadline=None, max_examples=25)
@given(graphs(), st.integers(0, 99), st.sampled_from([None, "augmented", "plain"]))
def test_energy_is_the_disagreement_over_the_edges(graph: Graph, seed: int, norm) -> None:
    sheaf, x = random_sheaf(graph, 2, weighted=True, seed=seed), randn(graph.num_nodes, 2, 3)
    energy = dirichlet_energy(sheaf, x, norm)
    assert energy >= -1e-10
    flat = x.flatten(0, 1)
    matrix = sheaf_laplacian(sheaf, norm).to_dense()
    assert_close(energy, (flat * (matrix @ flat)).sum(), rtol=1e-9, atol=1e-10)
    if norm is None:
        assert_close(energy, coboundary(sheaf).mv(x).square().sum())


def test_large_operators_are_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 8192 rows and columns.*got 9000 x 9000"):
        spectrum(Identity(3000, 3))


def test_only_square_operators_have_a_spectrum() -> None:
    delta = coboundary(Sheaf(torch.tensor([[0], [1]]), randn(1, 2, 2, 2)))
    with pytest.raises(ValueError, match=r"must be square to have a spectrum; got \(2, 4\)"):
        spectrum(delta)
    assert harmonic_space(delta).shape == (2, 2, 2)


def test_half_precision_and_other_things_than_operators() -> None:
    sheaf = Sheaf(torch.tensor([[0], [1]]), torch.ones(1, 2, 1, 1, dtype=torch.bfloat16))
    assert_close(spectrum(sheaf_laplacian(sheaf)), torch.tensor([0.0, 2.0]))
    with pytest.raises(ValueError, match="`operator` must be an Operator; got Tensor"):
        spectrum(torch.eye(2))  # type: ignore[arg-type]


def test_nearly_harmonic_is_not_harmonic() -> None:
    maps = torch.ones(1, 2, 1, 1, dtype=torch.float64)
    maps[0, 1] = 1 + 1e-6
    assert harmonic_space(sheaf_laplacian(Sheaf(torch.tensor([[0], [1]]), maps))).shape[-1] == 1
    wide = Sheaf(torch.tensor([[0, 1, 0], [1, 2, 2]]), maps.expand(3, 2, 1, 1))
    assert harmonic_space(sheaf_laplacian(wide)).shape[-1] == 0


def test_cohomology_counts() -> None:
    """k₀ - k₁ = (n - m) d; components and independent cycles of a constant sheaf."""
    edges = torch.tensor([[0, 1, 2, 2, 4], [1, 2, 0, 3, 5]])  # a triangle with a tail, and an edge
    found = cohomology(Sheaf.constant(edges, 1, dtype=torch.float64))
    assert (found.sections.shape[-1], found.obstructions.shape[-1]) == (2, 1)
    cycle = found.obstructions[:, 0, 0]
    assert_close(cycle.abs(), torch.tensor([1.0, 1, 1, 0, 0]).double() / 3**0.5, **EXACT)
    dense = torch.tensor([[0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]])
    twisted = random_sheaf(Graph(dense, 4), 2)
    found = cohomology(twisted)
    assert found.sections.shape[-1] - found.obstructions.shape[-1] == (4 - 6) * 2
    assert cohomology(Sheaf.constant(dense, 2, dtype=torch.float64)).sections.shape == (4, 2, 2)
    delta = coboundary(twisted)
    assert_close(delta.T.mv(found.obstructions), torch.zeros(4, 2, 4).double(), **EXACT)
    gram = found.obstructions.flatten(0, 1).T @ found.obstructions.flatten(0, 1)
    assert_close(gram, torch.eye(4).double(), **EXACT)


# ---- numerical radius


def radius_of(matrix: torch.Tensor, angles: int = 2000) -> float:
    """From very many directions, without a bound: from below, to 1e-6."""
    reach = 0.0
    for k in range(angles):
        turned = matrix * cmath.exp(1j * math.pi * k / angles)
        values = torch.linalg.eigvalsh((turned + turned.mH) / 2)
        reach = max(reach, float(values[-1]), -float(values[0]))
    return reach


def shift(n: int) -> BlockDiagonal:
    """One on the second diagonal: no eigenvalue but 0."""
    return BlockDiagonal(torch.diag(torch.ones(n - 1).double(), 1)[None])


@pytest.mark.parametrize("n", [2, 3, 7])
def test_the_numerical_radius_of_a_shift_is_known(n: int) -> None:
    want = math.cos(math.pi / (n + 1))
    for angles in (4, 16, 100):
        found = numerical_radius(shift(n), angles=angles)
        assert want * (1 - 1e-12) <= found <= want / math.cos(math.pi / (2 * angles)) * (1 + 1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_numerical_radius_bounds_products_and_powers(seed: int) -> None:
    edges = torch.randint(0, 9, (2, 20), generator=generator(seed))
    flat = random_flat(Graph(edges, 9), 2, seed=seed)
    paper = paper_diffusion(flat.graph, flat.source, flat.target)
    for operator in (out_laplacian(flat), paper):
        matrix = operator.to_dense()
        found, want = numerical_radius(operator), radius_of(matrix.to(torch.complex128))
        assert want <= found * (1 + 1e-9) <= want * 1.006
        norm = float(torch.linalg.matrix_norm(matrix, ord=2))
        assert norm / 2 <= found <= 1.005 * norm
        x = torch.complex(randn(18, 50), randn(18, 50, seed=1))
        heights = ((x.conj() * (matrix.to(x) @ x)).sum(0) / x.abs().square().sum(0)).abs()
        assert heights.max() <= found
        power = matrix
        for k in range(2, 7):
            power = power @ matrix
            assert radius_of(power.to(torch.complex128), 200) <= found**k
            assert torch.linalg.matrix_norm(power, ord=2) <= 2 * found**k


def test_the_numerical_radius_of_a_normal_operator_is_its_norm() -> None:
    laplacian = sheaf_laplacian(random_sheaf(Graph(path(6)), 2))
    for operator in (laplacian, laplacian * -1.0):
        largest = float(spectrum(operator).abs().max())
        assert numerical_radius(operator) == pytest.approx(largest, rel=1e-12)
    turn = torch.tensor([[0.0, -3.0], [3.0, 0.0]]).double()  # eigenvalues ±3i
    for angles in (5, 16):  # none of five looks along the imaginary axis: what is added makes it up
        assert numerical_radius(BlockDiagonal(turn[None]), angles=angles) >= 3 * (1 - 1e-12)
    assert numerical_radius(BlockDiagonal(turn[None]), angles=5) == pytest.approx(3)
    assert numerical_radius(BlockDiagonal(torch.ones(0).double(), 1)) == 0.0


def test_the_numerical_radius_of_a_large_operator_needs_products_alone(monkeypatch) -> None:
    edges = torch.randint(0, 20, (2, 60), generator=generator(0))
    operators = (
        out_laplacian(random_flat(Graph(edges, 20), 2)),
        sheaf_laplacian(random_sheaf(Graph(edges, 20), 2)),
    )
    dense = [numerical_radius(operator, angles=6) for operator in operators]
    monkeypatch.setattr("coopsheaf.sheaves.spectral.QUICK_SIZE", 0)
    monkeypatch.setattr(type(operators[0]), "to_dense", None)
    for operator, want in zip(operators, dense, strict=True):
        found = numerical_radius(operator, angles=6, tolerance=1e-6)
        assert want <= found * (1 + 1e-9) <= want * (1 + 1e-5)


def test_the_numerical_radius_refuses_what_has_none() -> None:
    delta = coboundary(random_sheaf(Graph(path(3)), 2))
    with pytest.raises(ValueError, match="`operator` must end where it begins"):
        numerical_radius(delta)
    with pytest.raises(ValueError, match="`angles` must be"):
        numerical_radius(shift(2), angles=0)
    with pytest.raises(ValueError, match="`tolerance` must be positive; got 0"):
        numerical_radius(shift(2), tolerance=0)
