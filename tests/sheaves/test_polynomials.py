"""Polynomials of operators, bounds and the heat kernel, against matrices."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_directed, random_flat, random_sheaf
from laws import EXACT, check_operator, close
from torch.testing import assert_close

from coopsheaf import Graph, coboundary, in_laplacian, out_laplacian, sheaf_laplacian
from coopsheaf.sheaves import Chebyshev, Polynomial, heat, norm_bound, paper_diffusion
from coopsheaf.sheaves.laplacian import GraphOperator
from coopsheaf.sheaves.operator import BlockDiagonal, Complex, DirectSum, Identity, Operator

ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)


def operators(name: str) -> dict[str, Operator]:
    n, edge_index = ODD_GRAPHS[name]
    graph = Graph(edge_index, n)
    flat, directed = random_flat(graph, 2, weighted=True), random_directed(graph, 2)
    undirected = random_sheaf(graph, 2, weighted=True)
    paper = paper_diffusion(graph, flat.source, flat.target)
    weight = randn(graph.num_edges)
    return {
        "sheaf": sheaf_laplacian(undirected),
        "augmented": sheaf_laplacian(undirected, "augmented"),
        "out": out_laplacian(flat, "augmented"),
        "out-general": out_laplacian(random_flat(graph, 2, conformal=False)),
        "in": in_laplacian(directed),
        "paper": paper,
        "sum": 2 * paper - Identity(n, 2, dtype=torch.float64),
        "graph": GraphOperator(graph, randn(n), weight, 2),
        "direct sum": DirectSum(
            [sheaf_laplacian(undirected), GraphOperator(graph, randn(n), weight)]
        ),
        "complex": Complex(sheaf_laplacian(undirected), in_laplacian(directed)),
        "blocks": BlockDiagonal(randn(n, 2, 2))
        @ BlockDiagonal(randn(n, 2))
        @ BlockDiagonal(randn(n), 2),
    }


@ALL_GRAPHS
@pytest.mark.parametrize("degree", [0, 1, 4])
def test_polynomials_are_operators(name: str, degree: int) -> None:
    coefficients = randn(degree + 1)
    for operator in operators(name).values():
        check_operator(Polynomial(operator / norm_bound(operator).clamp(min=1), coefficients))
        bound = float(norm_bound(operator)) + 1
        check_operator(Chebyshev(operator, coefficients, (-bound, bound)))


def test_powers_and_chebyshev_polynomials_written_out() -> None:
    operator = operators("random-directed")["out"]
    matrix = operator.to_dense()
    eye = torch.eye(matrix.shape[0]).double()
    powers = Polynomial(operator, torch.tensor([1.0, -2, 0.5]).double()).to_dense()
    assert_close(powers, eye - 2 * matrix + 0.5 * matrix @ matrix, **EXACT)
    hat = matrix - eye  # [0, 2]
    third = Chebyshev(operator, torch.tensor([0.0, 0, 0, 1]).double()).to_dense()
    assert_close(third, 4 * hat @ hat @ hat - 3 * hat, **EXACT)


def test_one_product_is_affine() -> None:
    """PolyNSD with K = 1."""
    operator = operators("bidirected")["augmented"]
    x, c = randn(*operator.domain, 2), torch.tensor([0.3, 0.7], dtype=torch.float64)
    got = Chebyshev(operator, c).mv(x)
    assert_close(got, (0.3 - 0.7) * x + 0.7 * operator.mv(x), **EXACT)


@ALL_GRAPHS
def test_chebyshev_polynomials_are_bounded_on_normalised_laplacians(name: str) -> None:
    laplacian = operators(name)["augmented"]
    for k in range(1, 7):
        weights = torch.eye(8).double()[k]
        norm = torch.linalg.matrix_norm(Chebyshev(laplacian, weights).to_dense(), ord=2)
        assert norm <= 1 + 1e-10


def test_a_polynomial_reaches_as_many_hops_as_its_degree() -> None:
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    laplacian = sheaf_laplacian(random_sheaf(Graph(edges, 5), 1))
    matrix = Chebyshev(laplacian, randn(3), (0.0, 10.0)).to_dense()
    reached = matrix.abs() > 1e-12
    assert reached[0].tolist() == [True, True, True, False, False]


@ALL_GRAPHS
def test_the_bound_is_one(name: str) -> None:
    for operator in operators(name).values():
        norm = torch.linalg.matrix_norm(operator.to_dense(), ord=2)
        assert norm <= norm_bound(operator) * (1 + 1e-12)


def test_the_bound_is_sharp_where_it_can_be() -> None:
    """The Laplacian of a bipartite graph of degree 2 has the eigenvalue 4 = 2 · degree."""
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    constant = type(random_sheaf(Graph(ring, 4), 1)).constant(ring, 2, dtype=torch.float64)
    assert_close(float(norm_bound(sheaf_laplacian(constant))), 4.0)


@ALL_GRAPHS
@pytest.mark.parametrize("time", [0.0, 0.3, 5.0])
def test_heat(name: str, time: float) -> None:
    for key, operator in operators(name).items():
        if key in ("sum", "graph", "direct sum", "blocks"):  # they may grow beyond all bounds
            continue
        (n, d), x = operator.domain, randn(*operator.domain, 2)
        kernel = torch.linalg.matrix_exp(-time * operator.to_dense())
        close(heat(operator, x, time), (kernel @ x.flatten(0, 1)).view(n, d, 2))


def test_heat_has_gradients_and_tends_to_the_sections() -> None:
    sheaf = random_sheaf(Graph(torch.tensor([[0, 1], [1, 2]])), 2)
    laplacian, x = sheaf_laplacian(sheaf, "augmented"), randn(3, 2, 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda features: heat(laplacian, features, 0.7), x)
    late = heat(laplacian, x.detach(), 200.0)
    assert laplacian.mv(late).abs().max() < 1e-8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(operators("path")["out"], torch.empty(0)), r"`coefficients` must have shape \(K \+ 1,\)"),
        (lambda: Polynomial(coboundary(random_sheaf(Graph(torch.tensor([[0], [1]])), 1)), torch.ones(2)), "must end where it begins"),
        (lambda: Chebyshev(operators("path")["out"], torch.ones(2), (1.0, 1.0)), r"\(a, b\) with a < b; got \(1.0, 1.0\)"),
        (lambda: norm_bound(Polynomial(Identity(2, 1), torch.ones(1))), "must be a Laplacian, or a sum, product or multiple of them; got Polynomial"),
        (lambda: heat(operators("path")["out"], randn(5, 2, 1), -1.0), "`time` must be a number that is not negative; got -1.0"),
        (lambda: heat("L", randn(5, 2, 1), 1.0), "`operator` must be an Operator; got str"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
