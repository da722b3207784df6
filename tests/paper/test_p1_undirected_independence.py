"""P1: on an undirected sheaf, not listening and not being heard are one and the same."""

from __future__ import annotations

import pytest
import torch
from graphs import generator, randn, random_orthogonal, random_sheaf
from hypothesis import given
from hypothesis import strategies as st
from paper.operators import EXACT, FEW, blocks, depends, simple_graphs
from torch import Tensor

from coopsheaf import Graph, Sheaf, coboundary, sheaf_laplacian


def once(graph: Graph) -> Graph:
    """Each edge of a bidirected graph listed once, as undirected sheaves want it."""
    keep = graph.source < graph.target
    return Graph(graph.edge_index[:, keep], graph.num_nodes)


@FEW
@given(graph=simple_graphs(), d=st.integers(2, 3), seed=st.integers(0, 99))
def test_independence_is_mutual(graph: Graph, d: int, seed: int) -> None:
    """L(X)_i is independent of x_j iff L(X)_j is independent of x_i, since L_ji = L_ijᵀ."""
    graph = once(graph)
    # On about half of the edges the two maps have orthogonal images, though neither is zero.
    apart = torch.rand(graph.num_edges, generator=generator(seed)) < 0.5
    maps = randn(graph.num_edges, 2, d, d, seed=seed)
    maps[apart, 0, 1:] = 0
    maps[apart, 1, :1] = 0
    laplacian = sheaf_laplacian(Sheaf(graph, maps))
    linked = depends(laplacian).fill_diagonal_(False)
    expected = torch.zeros_like(linked)
    for i, j in graph.edge_index[:, ~apart].T.tolist():
        expected[i, j] = expected[j, i] = True
    assert torch.equal(linked, expected)
    parts = blocks(laplacian)
    torch.testing.assert_close(parts, parts.transpose(0, 1).mT, **EXACT)


@pytest.mark.parametrize("normalization", [None, "augmented", "plain"])
def test_block_of_an_edge(normalization: str | None) -> None:
    """The block of e = {i, j} is -F_iᵀ F_j; normalised, its transpose is still L_ji."""
    graph = Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]]), 4)
    sheaf = random_sheaf(graph, 3, seed=5)
    parts = blocks(sheaf_laplacian(sheaf, normalization))
    torch.testing.assert_close(parts, parts.transpose(0, 1).mT, **EXACT)
    if normalization is None:
        for e, (i, j) in enumerate(graph.edge_index.T.tolist()):
            product = -sheaf.maps[e, 0].mT @ sheaf.maps[e, 1]
            torch.testing.assert_close(parts[i, j], product, **EXACT)


def test_orthogonal_images_refute_the_printed_step() -> None:
    """F_iᵀ F_j = 0 does not give F_i x_i = 0 or F_j x_j = 0: diag(1, 0) and diag(0, 1)."""
    first, second = torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([0.0, 1.0]))
    maps = torch.stack([first, second])[None].double()
    sheaf = Sheaf(torch.tensor([[0], [1]]), maps)
    assert depends(sheaf_laplacian(sheaf)).tolist() == [[True, False], [False, True]]
    x = torch.ones(2, 2, 1, dtype=torch.float64)
    seen = maps[0] @ x  # F_i x_i and F_j x_j
    assert (seen != 0).any(1).all()
    # Each node keeps the part that it alone sees; neither update vanishes.
    torch.testing.assert_close(sheaf_laplacian(sheaf) @ x, seen, **EXACT)


def test_other_neighbours_refute_the_printed_conclusion() -> None:
    """L(X)_j is neither 0 nor F_jᵀ F_j x_j of the edge {i, j} once j has another neighbour."""
    maps = randn(2, 2, 2, 2, seed=1)
    maps[0, 0] = 0  # on the path i - j - k, node i does not listen to j
    sheaf = Sheaf(torch.tensor([[0, 1], [1, 2]]), maps)
    laplacian = sheaf_laplacian(sheaf)
    assert not depends(laplacian)[0, 1]
    x = randn(3, 2, 1, seed=2)
    update = (laplacian @ x)[1]
    shared = maps[0, 1].mT @ maps[0, 1] @ x[1]
    assert update.abs().max() > 1e-3
    assert (update - shared).abs().max() > 1e-3
    rest = maps[1, 0].mT @ (maps[1, 0] @ x[1] - maps[1, 1] @ x[2])
    torch.testing.assert_close(update, shared + rest, **EXACT)


@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99), data=st.data())
def test_flat_conformal_nodes_only_stand_or_isolate(
    graph: Graph, seed: int, data: st.DataObject
) -> None:
    """With one map c_i Q_i per node, L_ij = -c_i c_j Q_iᵀ Q_j: STANDARD or ISOLATE, no more."""
    graph, d = once(graph), 2
    n = graph.num_nodes
    awake = torch.tensor(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    scale = awake * (0.3 + torch.rand(n, generator=generator(seed), dtype=torch.float64))
    maps = scale[:, None, None] * random_orthogonal(n, d, seed)
    laplacian = sheaf_laplacian(
        Sheaf(graph, torch.stack([maps[graph.source], maps[graph.target]], dim=1))
    )
    parts, linked = blocks(laplacian), depends(laplacian)
    for i, j in graph.edge_index.T.tolist():
        torch.testing.assert_close(parts[i, j], -maps[i].mT @ maps[j], **EXACT)
        assert bool(linked[i, j]) == bool(linked[j, i]) == bool(awake[i] and awake[j])
    others = linked.fill_diagonal_(False)
    listens, is_heard = others.any(1), others.any(0)
    assert torch.equal(listens, is_heard)


def jacobian_blocks(sheaf: Sheaf, phi: object, x: Tensor) -> Tensor:
    """∂ L(X)_i / ∂ x_j of the nonlinear Laplacian δᵀ φ(δ X), as ``(n, n, d, d)``."""
    delta = coboundary(sheaf)

    def laplacian(flat: Tensor) -> Tensor:
        return (delta.T @ phi(delta @ flat.reshape(x.shape))).flatten()

    n, d, _ = x.shape
    jacobian = torch.autograd.functional.jacobian(laplacian, x.flatten())
    return jacobian.reshape(n, d, n, d).transpose(1, 2)


def radial(y: Tensor) -> Tensor:
    """y |y|², the gradient of |y|⁴/4: its Jacobian is symmetric without being diagonal."""
    return y * y.square().sum(1, keepdim=True)


def crossed(y: Tensor) -> Tensor:
    """(y₂³, 0): odd and continuous, with a Jacobian that is not symmetric."""
    return torch.stack([y[:, 1] ** 3, torch.zeros_like(y[:, 1])], dim=1)


@pytest.mark.parametrize("phi", [torch.tanh, torch.arctan, radial])
def test_nonlinear_laplacian_with_symmetric_jacobian(phi: object) -> None:
    """For elementwise odd φ, and any odd φ with symmetric Jacobian, ∂L_i/∂x_j = (∂L_j/∂x_i)ᵀ."""
    graph = Graph(torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]]), 4)
    parts = jacobian_blocks(random_sheaf(graph, 2, seed=3), phi, randn(4, 2, 1, seed=4))
    torch.testing.assert_close(parts, parts.transpose(0, 1).mT, **EXACT)
    for i, j in graph.edge_index.T.tolist():
        assert parts[i, j].abs().max() > 1e-3


def test_nonlinear_laplacian_in_general() -> None:
    """For a general odd φ a node can listen without being heard: the analogue of P1 fails."""
    maps = torch.stack([torch.diag(torch.tensor([1.0, 0.0])), torch.diag(torch.tensor([0.0, 1.0]))])
    sheaf = Sheaf(torch.tensor([[0], [1]]), maps[None].double())
    x = randn(2, 2, 1, seed=6)
    parts = jacobian_blocks(sheaf, crossed, x)
    expected = torch.tensor([[0.0, -3 * x[1, 1, 0].item() ** 2], [0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(parts[0, 1], expected, **EXACT)
    assert parts[0, 1].abs().max() > 1e-3  # node 0 listens to node 1,
    assert (parts[1, 0] == 0).all()  # node 1 does not hear node 0
