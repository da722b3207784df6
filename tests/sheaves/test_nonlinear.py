"""Nonlinear Laplacians: the linear one, orientations, energies."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_sheaf
from laws import EXACT
from torch.testing import assert_close

from coopsheaf import Graph, Sheaf, coboundary, sheaf_laplacian
from coopsheaf.sheaves import BoundedConfidence, NonlinearLaplacian, norm_bound, odd_part

ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)


def sheaf_on(name: str) -> Sheaf:
    n, edge_index = ODD_GRAPHS[name]
    return random_sheaf(Graph(edge_index, n), 2, weighted=True)


@ALL_GRAPHS
def test_the_identity_gives_the_linear_one(name: str) -> None:
    sheaf = sheaf_on(name)
    x = randn(sheaf.num_nodes, 2, 3)
    got = NonlinearLaplacian(sheaf, lambda y: y)(x)
    assert_close(got, sheaf_laplacian(sheaf).mv(x), **EXACT)


@ALL_GRAPHS
def test_a_convex_potential_does_not_grow(name: str) -> None:
    """tanh is the gradient of log cosh, and no steeper than the identity: steps of 1/‖L‖ do."""
    sheaf = sheaf_on(name)
    laplacian = NonlinearLaplacian(sheaf, torch.tanh)
    step = 1 / float(norm_bound(sheaf_laplacian(sheaf)).clamp(min=1))
    x, energies = 3 * randn(sheaf.num_nodes, 2, 2), []
    for _ in range(30):
        energies.append(float(torch.log(torch.cosh(coboundary(sheaf).mv(x))).sum()))
        x = x - step * laplacian(x)
    assert all(b <= a + 1e-12 for a, b in pairwise(energies))
    assert energies[-1] < energies[0] or energies[0] == 0


def test_which_end_comes_first_matters_unless_phi_is_odd() -> None:
    sheaf = sheaf_on("random-directed")
    turned = Sheaf(
        sheaf.edge_index.flip(0), sheaf.maps.flip(1), sheaf.num_nodes, edge_weight=sheaf.edge_weight
    )
    x = randn(sheaf.num_nodes, 2, 2)

    def lopsided(y: torch.Tensor) -> torch.Tensor:
        return torch.relu(y) + y.square()

    one, other = (NonlinearLaplacian(s, lopsided)(x) for s in (sheaf, turned))
    assert not torch.allclose(one, other)
    one, other = (NonlinearLaplacian(s, odd_part(lopsided))(x) for s in (sheaf, turned))
    assert_close(one, other, **EXACT)


def test_sections_stay_where_they_are() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    constant = Sheaf.constant(edges, 2, dtype=torch.float64)
    x = randn(1, 2, 2).expand(3, 2, 2)
    for phi in (torch.tanh, BoundedConfidence(1.0)):
        assert_close(NonlinearLaplacian(constant, phi)(x), torch.zeros(3, 2, 2).double(), **EXACT)


def test_ends_beyond_the_threshold_do_not_hear_each_other() -> None:
    phi = BoundedConfidence(2.0)
    near, far = torch.tensor([[[1.0, 0.5]]]).double(), torch.tensor([[[2.0, 0.1]]]).double()
    assert_close(phi(near), (1 - 1.25 / 4) ** 2 * near, **EXACT)
    assert phi(far).abs().max() == 0
    assert_close(phi(-near), -phi(near), **EXACT)


def test_gradients() -> None:
    sheaf = sheaf_on("path")
    x = randn(5, 2, 2).requires_grad_()
    assert torch.autograd.gradcheck(NonlinearLaplacian(sheaf, torch.tanh), x)


def test_bad_input() -> None:
    sheaf = sheaf_on("path")
    with pytest.raises(ValueError, match=r"`phi` must keep the shape \(m, e, h\) = \(8, 2, 3\)"):
        NonlinearLaplacian(sheaf, lambda y: y.sum())(randn(5, 2, 3))
    with pytest.raises(ValueError, match="`threshold` must be positive; got 0"):
        BoundedConfidence(0)
