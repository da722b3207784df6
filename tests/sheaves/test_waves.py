"""Waves: energies, time turned round, and where they grow."""

from __future__ import annotations

import cmath
import math

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_flat, random_sheaf
from laws import EXACT
from torch.testing import assert_close

from coopsheaf import Graph, sheaf_laplacian, spectrum
from coopsheaf.sheaves import needed_damping, paper_diffusion, propagate, stable_step
from coopsheaf.sheaves.operator import BlockDiagonal

ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)


def laplacian_on(name: str, normalization: str | None = None):
    n, edge_index = ODD_GRAPHS[name]
    return sheaf_laplacian(random_sheaf(Graph(edge_index, n), 2), normalization)


@ALL_GRAPHS
def test_the_modified_energy_stays(name: str) -> None:
    laplacian = laplacian_on(name)
    s, x, v = (
        stable_step(laplacian),
        randn(*laplacian.domain, 2),
        randn(*laplacian.domain, 2, seed=1),
    )

    def energy() -> torch.Tensor:
        pull = laplacian.mv(x)
        return (v.square() + x * pull - s * v * pull).sum()

    before = energy()
    for _ in range(40):
        x, v = propagate(laplacian, x, 1, s, velocity=v)
    assert_close(energy(), before, rtol=1e-10, atol=1e-10)


def test_time_turns_round() -> None:
    laplacian = laplacian_on("random-directed", "augmented")
    x, v = randn(9, 2, 2), randn(9, 2, 2, seed=1)
    s = 0.7
    there = propagate(laplacian, x, 25, s, velocity=v)
    back_x, back_v = there
    for _ in range(25):  # the steps, undone one by one
        back_x = back_x - s * back_v
        back_v = back_v + s * laplacian.mv(back_x)
    assert_close(back_x, x, rtol=0, atol=1e-9)
    assert_close(back_v, v, rtol=0, atol=1e-9)


def test_modes_swing_as_they_should() -> None:
    """cos((l + ½)θ) / cos(θ/2) with θ = 2 arcsin(s √λ / 2) after l steps from rest."""
    rate, s = torch.tensor([0.4, 1.3, 2.9]).double(), 0.9
    x = torch.ones(3, 1, 1).double()
    theta = 2 * torch.asin(s * rate.sqrt() / 2)
    for steps in (1, 2, 7):
        got = propagate(BlockDiagonal(rate, 1), x, steps, s).x.flatten()
        assert_close(got, torch.cos((steps + 0.5) * theta) / torch.cos(theta / 2), **EXACT)


def test_steps_that_are_too_long_grow() -> None:
    rate, x = torch.tensor([1.0]).double(), torch.ones(1, 1, 1).double()
    assert propagate(BlockDiagonal(rate, 1), x, 300, 1.99).x.abs().max() < 20
    assert propagate(BlockDiagonal(rate, 1), x, 300, 2.05).x.abs().max() > 1e6


@ALL_GRAPHS
def test_the_stable_step_is_stable(name: str) -> None:
    laplacian = laplacian_on(name)
    largest = float(spectrum(laplacian).max()) if laplacian.domain[0] else 0.0
    assert stable_step(laplacian) ** 2 * largest < 4


def test_complex_eigenvalues_grow_however_short_the_step() -> None:
    """A pair a ± ib as a rotation block; its roots multiply to 1, and one is outside."""
    block = torch.tensor([[[1.0, -0.4], [0.4, 1.0]]]).double()
    for s in (0.5, 0.1):
        wave = propagate(BlockDiagonal(block), torch.ones(1, 2, 1).double(), int(120 / s), s)
        assert wave.x.abs().max() > 1e3
    r = needed_damping(1 + 0.4j)
    assert r == pytest.approx(0.4)
    calm = propagate(
        BlockDiagonal(block), torch.ones(1, 2, 1).double(), 12000, 0.01, damping=1.1 * r
    )
    assert calm.x.abs().max() < 2


def test_the_operator_of_a_csnn_has_complex_eigenvalues() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    flat = random_flat(Graph(edge_index, n), 2)
    values = spectrum(paper_diffusion(flat.graph, flat.source, flat.target))
    assert values.imag.abs().max() > 1e-3


@pytest.mark.parametrize("value", [1 + 0.4j, 0.2 - 2j, 3 + 0.01j])
def test_needed_damping_is_where_a_root_crosses(value: complex) -> None:
    def growth(r: float) -> float:
        root = cmath.sqrt(r * r - 4 * value)
        return max(((-r + root) / 2).real, ((-r - root) / 2).real)

    r = needed_damping(value)
    assert abs(growth(r)) < 1e-12
    assert growth(0.9 * r) > 0 > growth(1.1 * r)


def test_needed_damping_at_the_edges() -> None:
    assert needed_damping(2.0) == 0.0
    assert needed_damping(1j) == math.inf
    assert needed_damping(-1 + 0j) == math.inf


def test_bad_input() -> None:
    laplacian, x = laplacian_on("path"), randn(5, 2, 1)
    with pytest.raises(ValueError, match="`step_size` must be positive; got 0"):
        propagate(laplacian, x, 1, 0)
    with pytest.raises(ValueError, match="`damping` must not be negative; got -1"):
        propagate(laplacian, x, 1, 0.1, damping=-1)
