"""Waves: energies, time turned round, and where they grow."""

from __future__ import annotations

import cmath
import math
import random

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_flat, random_sheaf
from laws import EXACT
from torch.testing import assert_close

from coopsheaf import Graph, sheaf_laplacian, spectrum
from coopsheaf.sheaves import (
    needed_damping,
    out_laplacian,
    paper_diffusion,
    propagate,
    stable_step,
    stable_steps,
    transient_bound,
)
from coopsheaf.sheaves.operator import BlockDiagonal, Identity, Operator

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


def growth(eigenvalue: complex, s: float, r: float) -> float:
    """The larger root of u'' = (1 + q - s² λ) u' - q u, the recursion that `propagate` steps."""
    q = 1 - s * r
    middle = 1 + q - s * s * eigenvalue
    root = cmath.sqrt(middle * middle - 4 * q)
    return max(abs((middle + root) / 2), abs((middle - root) / 2))


def test_stable_steps_are_those_whose_roots_are_inside() -> None:
    draw, late = random.Random(0), 0
    for _ in range(20_000):
        value, r = complex(draw.uniform(-0.5, 4), draw.gauss(0, 1)), draw.uniform(0.01, 4)
        low, high = stable_steps(value, r)
        s = draw.uniform(0.01, 3)
        assert (low < s < high) == (growth(value, s, r) < 1), (value, r, s)
        late += low > 0
    assert late > 100  # modes that a longer step holds and a shorter one does not


def test_a_longer_step_may_hold_what_a_shorter_one_does_not() -> None:
    value, r = 1 + 1j, 0.95  # in continuous time it needs r > 1
    low, high = stable_steps(value, r)
    assert needed_damping(value) > r
    assert 0.1 < low < high < 2 / r
    middle = (low + high) / 2
    assert growth(value, 0.9 * low, r) > 1 > growth(value, middle, r)
    assert growth(value, low, r) == pytest.approx(1) == growth(value, high, r)


def test_stable_steps_at_the_edges() -> None:
    assert stable_steps(2.89) == (0.0, pytest.approx(2 / 1.7))  # leapfrog
    assert stable_steps(1 + 1e-9j) == (0.0, 0.0)
    assert stable_steps(1j, 3.0) == stable_steps(-1 + 0j, 3.0) == (0.0, 0.0)
    assert stable_steps(0.0) == (0.0, math.inf)
    assert stable_steps(0.0, 0.5) == (0.0, 4.0)
    low, high = stable_steps(1.0, 0.7)  # s² a < 2 (1 + q)
    assert (low, high**2) == (0.0, pytest.approx(2 * (2 - 0.7 * high)))
    # What is lost to rounding where r is tiny or huge would show here.
    assert stable_steps(1.0, 1e-9)[1] == pytest.approx(2.0)
    assert stable_steps(1e-6, 1e4)[1] == pytest.approx(2e-4)
    for r in (0.5, 1.1, 3.0):  # q → -1 closes the ellipse: no step reaches 2 / r
        assert stable_steps(1 + 0.4j, r)[1] < 2 / r
    value = 1 + 0.4j
    assert stable_steps(value, needed_damping(value) * 1.01)[0] == 0.0
    assert stable_steps(value, 1e-3) == (0.0, 0.0)


def skewed(shift: float = 0.0) -> Operator:
    """The paper's operator with maps that were drawn: not normal, with complex eigenvalues."""
    n, edge_index = ODD_GRAPHS["random-directed"]
    flat = random_flat(Graph(edge_index, n), 2)
    found = paper_diffusion(flat.graph, flat.source, flat.target)
    return found + shift * Identity(*found.domain, dtype=torch.float64) if shift else found


def test_waves_of_a_sheaf_that_is_not_normal_grow_just_outside_and_not_inside() -> None:
    operator, x, r = skewed(), randn(9, 2, 1), 1.0
    matrix = operator.to_dense()
    assert (matrix @ matrix.T - matrix.T @ matrix).norm() > 0.1 * matrix.norm() ** 2
    limits = [stable_steps(complex(value), r) for value in spectrum(operator).tolist()]
    low, high = max(a for a, _ in limits), min(b for _, b in limits)
    assert low == 0 < high < 2 / r

    def last(s: float, damping: float = r) -> float:
        return float(propagate(operator, x, 4000, s, damping=damping).x.abs().max())

    assert last(0.98 * high) < 1e-3
    assert last(1.02 * high) > 1e6
    # The other way out: as much damping as the modes need, and less.
    needed = max(needed_damping(complex(value)) for value in spectrum(operator).tolist())
    assert last(0.05, 1.3 * needed) < 10 < 1e3 < last(0.05, 0.7 * needed)


def test_the_numerical_range_bounds_what_comes_before() -> None:
    """Every step of waves from anywhere, against the bound; which is no idle one."""
    operator, s, r = skewed(0.4), 0.9, 0.8
    q, bound = 1 - s * r, transient_bound(operator, s, r)
    matrix = operator.to_dense()
    assert 1 < bound < 20
    size, state = 18, torch.eye(36).double()  # (X_t, X_{t-1}) from every pair before
    eye, zero = torch.eye(size).double(), torch.zeros(size, size).double()
    step = torch.cat(
        [torch.cat([(1 + q) * eye - s * s * matrix, -q * eye], 1), torch.cat([eye, zero], 1)]
    )
    highest = 0.0
    for _ in range(200):
        highest = max(highest, float(torch.linalg.matrix_norm(state[:size], ord=2)))
        state = step @ state
    assert 1 <= highest <= bound * math.hypot(1, q)  # ‖a‖ + |q| ‖b‖ of a unit pair (a, b)
    x, v = randn(9, 2, 1), randn(9, 2, 1, seed=1)
    start = x.norm() + abs(q) * (x - s * v).norm()
    for _ in range(100):
        assert x.norm() <= bound * start
        x, v = propagate(operator, x, 1, s, velocity=v, damping=r)


def test_the_bound_is_the_distance_of_eigenvalues_where_an_operator_is_normal() -> None:
    rate, s, r = torch.tensor([0.4, 1.3]).double(), 0.9, 0.5
    q = 1 - s * r
    turns = [2 * math.pi * k / 100_000 for k in range(100_000)]
    distance = min(
        abs(complex((1 + q) * math.cos(t), (1 - q) * math.sin(t)) - (1 + q - s * s * value))
        for t in turns
        for value in rate.tolist()
    )
    found = [transient_bound(BlockDiagonal(rate, 1), s, r, angles=k) for k in (100, 4000)]
    assert 1 / distance < found[1] < found[0]
    assert found[1] == pytest.approx(1 / distance, rel=0.01)


def test_eigenvalues_alone_bound_nothing() -> None:
    """A way of one direction: every mode decays, and the wave rises a million times before."""
    n = 12
    way = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    found = []
    for weight in (0.1, 8.0):
        matrix = torch.eye(n).double()
        matrix[way[1], way[0]] = -weight
        operator = BlockDiagonal(matrix[None])
        s, r, x = 0.5, 1.0, torch.zeros(1, n, 1).double()
        low, high = stable_steps(1.0, r)
        assert low < s < high
        x[0, 0] = 1
        sizes = [float(propagate(operator, x, t, s, damping=r).x.norm()) for t in range(400)]
        assert sizes[-1] < 1e-6
        found.append((max(sizes), transient_bound(operator, s, r)))
    assert found[0][0] < 2 * found[0][1] < math.inf
    assert found[1][0] > 1e6
    assert found[1][1] == math.inf


def test_nothing_is_guaranteed_where_the_numerical_range_leaves() -> None:
    operator = skewed()  # its eigenvalues are fine, and its numerical range is not
    assert spectrum(operator).real.min() > 0
    assert transient_bound(operator, 0.5, 1.0) == math.inf
    constant = laplacian_on("path", "augmented")  # a kernel touches the ellipse
    assert transient_bound(out_laplacian(random_flat(constant.graph, 2)), 0.5, 1.0) == math.inf
    assert transient_bound(BlockDiagonal(torch.ones(0).double(), 1), 0.5, 1.0) == 0.0


def test_bad_input() -> None:
    laplacian, x = laplacian_on("path"), randn(5, 2, 1)
    with pytest.raises(ValueError, match="`step_size` must be positive; got 0"):
        propagate(laplacian, x, 1, 0)
    with pytest.raises(ValueError, match="`damping` must not be negative; got -1"):
        propagate(laplacian, x, 1, 0.1, damping=-1)
    with pytest.raises(ValueError, match="`damping` must not be negative; got nan"):
        stable_steps(1.0, math.nan)
    with pytest.raises(ValueError, match=r"`damping` must be between 0 and 2 / .* = 4; got 4"):
        transient_bound(laplacian, 0.5, 4.0)
    with pytest.raises(ValueError, match="`operator` must have at most 1024 rows for this; got 1"):
        transient_bound(BlockDiagonal(torch.ones(1025).double(), 1), 0.5, 1.0)
