"""The smallest eigenvalues from products alone, against dense matrices."""

from __future__ import annotations

import pytest
import torch
from graphs import randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import FlatSheaf, Sheaf, coboundary, out_laplacian, sheaf_laplacian, spectrum
from coopsheaf.sheaves import smallest_eigenpairs
from coopsheaf.sheaves.operator import DirectSum, Identity, Operator

DOUBLE = torch.float64
NONE = torch.empty(2, 0, dtype=torch.long)


def cycle(n: int) -> Tensor:
    nodes = torch.arange(n)
    return torch.stack([nodes, (nodes + 1) % n])


def pairs(count: int) -> Tensor:
    """Components of two nodes each."""
    return torch.stack([2 * torch.arange(count), 2 * torch.arange(count) + 1])


def scattered(n: int, m: int) -> Tensor:
    return torch.randint(0, n, (2, m), generator=torch.Generator().manual_seed(0))


def constant(edges: Tensor, n: int, d: int = 1) -> Operator:
    return sheaf_laplacian(Sheaf.constant(edges, d, n, dtype=DOUBLE))


def drawn(kind: str, normalization: str | None) -> Operator:
    sheaf = Sheaf.random(scattered(60, 150), 3, 60, kind=kind, dtype=DOUBLE)
    return sheaf_laplacian(sheaf, normalization)


# Each with how many are wanted.
OPERATORS = {
    "cycle, pairs of equal values": (constant(cycle(60), 60), 6),
    "equal values at the border of k": (constant(cycle(60), 60), 4),
    "path, close together": (constant(cycle(200)[:, :-1], 200), 5),
    "every value three times": (constant(cycle(31), 31, 3), 8),
    "complete, one value only": (constant(torch.combinations(torch.arange(30)).T, 30, 2), 7),
    "more components than vectors": (constant(pairs(100), 200), 5),
    "isolated nodes": (constant(cycle(20), 90), 5),
    "star": (
        constant(torch.stack([torch.zeros(80, dtype=torch.long), torch.arange(80) + 1]), 81),
        5,
    ),
    "no edges": (constant(NONE, 40), 3),
    "orthogonal maps": (drawn("orthogonal", None), 9),
    "general maps, normalised": (drawn("general", "augmented"), 9),
    "below zero": (-1.0 * drawn("diagonal", None), 4),
    "shifted": (drawn("general", None) - 5 * Identity(60, 3, dtype=DOUBLE), 4),
    "all of them": (constant(cycle(7), 7), 7),
    "a direct sum": (DirectSum([constant(cycle(40), 40), constant(cycle(40), 40)]), 6),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_as_dense(name: str) -> None:
    operator, k = OPERATORS[name]
    found = smallest_eigenpairs(operator, k)
    matrix = operator.to_dense()
    want = torch.linalg.eigvalsh(matrix)
    size = max(want.abs().max().item(), 1.0)
    assert_close(found.values, want[:k], rtol=0, atol=1e-11 * size)
    n, d = operator.domain
    assert found.features.shape == (n, d, k)
    vectors = found.features.flatten(0, 1)
    assert_close(vectors.T @ vectors, torch.eye(k, dtype=DOUBLE), rtol=0, atol=1e-11)
    assert_close(matrix @ vectors, vectors * found.values, rtol=0, atol=1e-10 * size)


def paths(count: int, length: int) -> Operator:
    nodes = torch.arange(count * length).view(count, length)
    edges = torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    return constant(edges, count * length)


def test_zero_may_occur_more_often_than_the_block_has_vectors() -> None:
    """A filter that begins at the largest Ritz value comes to nothing here."""
    found = smallest_eigenpairs(paths(40, 30), 5, max_products=1500).values
    assert_close(found, torch.zeros(5, dtype=DOUBLE), rtol=0, atol=1e-11)


def test_close_eigenvalues_take_products_like_the_length_of_the_path() -> None:
    """With filters of one degree it would be its square."""
    found = smallest_eigenpairs(paths(1, 800), 5, max_products=3000).values
    want = 4 * torch.sin(torch.arange(5, dtype=DOUBLE) * torch.pi / 1600) ** 2
    assert_close(found, want, rtol=0, atol=1e-11)


def test_single_precision() -> None:
    sheaf = Sheaf.random(scattered(60, 150), 2, 60)
    found = smallest_eigenpairs(sheaf_laplacian(sheaf, "augmented"), 5).values
    assert found.dtype == torch.float32
    want = torch.linalg.eigvalsh(sheaf_laplacian(sheaf, "augmented").to_dense().double())[:5]
    assert_close(found.double(), want, rtol=0, atol=1e-5)


def test_eigenvalues_have_derivatives() -> None:
    """The first three values of random maps are simple: dense and free derivatives agree."""
    edges, maps = scattered(30, 60), randn(60, 2, 2, 2)
    gradients = []
    for values in (
        lambda a: torch.linalg.eigvalsh(a.to_dense())[:3],
        lambda a: smallest_eigenpairs(a, 3).values,
    ):
        leaf = maps.clone().requires_grad_()
        values(sheaf_laplacian(Sheaf(edges, leaf, 30))).sum().backward()
        gradients.append(leaf.grad)
    assert_close(gradients[0], gradients[1], rtol=0, atol=1e-8)


def test_a_spectrum_can_be_asked_for_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    small = constant(cycle(12), 12)
    assert_close(spectrum(small, 4), spectrum(small)[:4], rtol=0, atol=0)
    large = constant(pairs(5000), 10_000)
    monkeypatch.setattr(type(large), "to_dense", None)  # nobody may ask for it
    assert_close(spectrum(large, 3), torch.zeros(3, dtype=DOUBLE), rtol=0, atol=1e-10)


def test_operators_that_are_not_symmetric() -> None:
    flat = out_laplacian(FlatSheaf.random(cycle(300), 2, dtype=DOUBLE))
    assert_close(spectrum(flat, 5), spectrum(flat)[:5])  # small enough to be made dense
    with pytest.raises(ValueError, match=r"`operator` must be symmetric.*A\.T @ A is"):
        smallest_eigenpairs(flat, 5)
    with pytest.raises(ValueError, match="`operator` must be symmetric"):
        spectrum(out_laplacian(FlatSheaf.random(cycle(5000), 2, dtype=DOUBLE)), 5)
    assert_close(
        smallest_eigenpairs(flat.T @ flat, 4).values,
        torch.linalg.svdvals(flat.to_dense()).flip(0)[:4] ** 2,
        rtol=0,
        atol=1e-10,
    )


def test_bad_arguments_are_named() -> None:
    small = constant(cycle(12), 12)
    for ask in (smallest_eigenpairs, spectrum):
        with pytest.raises(
            ValueError, match="`k` must be at most the size of the operator, 12; got 13"
        ):
            ask(small, 13)
        with pytest.raises(ValueError, match="`k` must be an integer of at least 1; got 0"):
            ask(small, 0)
        with pytest.raises(ValueError, match="`operator` must be an Operator; got Tensor"):
            ask(torch.eye(3), 2)
        with pytest.raises(ValueError, match="`operator` must be square to have a spectrum"):
            ask(coboundary(Sheaf.constant(cycle(12)[:, :9], 1, 12)), 2)
    with pytest.raises(ValueError, match=r"`max_products` must be larger.*after .* products"):
        smallest_eigenpairs(constant(cycle(2000), 2000), 5, max_products=50)
    half = sheaf_laplacian(Sheaf.constant(cycle(12), dtype=torch.bfloat16))
    with pytest.raises(ValueError, match=r"single or double precision; got torch\.bfloat16"):
        smallest_eigenpairs(half, 2)
