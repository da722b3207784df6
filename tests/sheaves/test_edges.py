"""Edges in all forms are one list of edges; what could be misread is refused."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from coopsheaf.sheaves.edges import join_weight, read_edges, refuse_weight
from coopsheaf.sheaves.graph import as_weighted_graph

# Row by row: 1→0, 2→0, 0→1, 1→2.
ROWS, COLS = torch.tensor([0, 0, 1, 2]), torch.tensor([1, 2, 0, 1])
VALUES = torch.tensor([0.5, 2.0, 3.0, 0.25])


def csr(ptr: list[int], cols: list[int], values: Tensor) -> Tensor:
    with warnings.catch_warnings():  # in beta, PyTorch says once
        warnings.simplefilter("ignore")
        pointers, columns = torch.tensor(ptr), torch.tensor(cols)
        return torch.sparse_csr_tensor(pointers, columns, values, (3, 3), check_invariants=False)


def coo(order: list[int], values: Tensor = VALUES) -> Tensor:
    index = torch.stack([ROWS, COLS])[:, order]
    return torch.sparse_coo_tensor(index, values[order], (3, 3), check_invariants=True)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_rows_are_targets_and_columns_sources(order: list[int]) -> None:
    for matrix in (coo(order), coo(order).coalesce(), csr([0, 2, 3, 4], COLS.tolist(), VALUES)):
        edges = read_edges(matrix, 3)
        assert torch.equal(edges.ends, torch.stack([COLS, ROWS]))
        assert torch.equal(edges.values, VALUES)
        assert edges.num_nodes == 3


def test_columns_first_come_column_by_column() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edges = read_edges(coo([0, 1, 2, 3]).to_sparse_csc())
    assert torch.equal(edges.ends, torch.tensor([[0, 1, 1, 2], [1, 0, 2, 0]]))
    assert torch.equal(edges.values, torch.tensor([3.0, 0.5, 0.25, 2.0]))


@pytest.mark.parametrize(
    ("edge_index", "message"),
    [
        (lambda: coo([0, 1, 2, 3, 3]), "two values for one entry"),
        (lambda: csr([0, 3, 3, 4], [1, 1, 2, 0], VALUES), "two values for one entry"),
        (lambda: csr([0, 2, 3, 4], [1, 7, 0, 1], VALUES), "below the number of nodes, 3; got 7"),
        (lambda: coo([0, 1, 2, 3]).unsqueeze(0), r"shape \(3, 3\) as a sparse matrix"),
        (lambda: EdgeIndex([[0, 1], [1, 2]], sparse_size=(4, 3)), r"sparse_size \(3, 3\)"),
        (lambda: EdgeIndex([[0, 1], [1, 2]], sparse_size=(None, 5)), r"got \(None, 5\)"),
    ],
)
def test_what_could_be_misread_is_refused(edge_index, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_edges(edge_index(), 3)


def test_an_edge_index_knows_its_nodes() -> None:
    assert read_edges(EdgeIndex([[0, 1], [1, 2]], sparse_size=(5, 5))).num_nodes == 5
    assert read_edges(EdgeIndex([[0, 1], [1, 2]])).num_nodes == 3
    with pytest.raises(ValueError, match=r"sparse_size \(n, n\)"):
        read_edges(EdgeIndex([[0, 1], [1, 2]], sparse_size=(5, 6)))


def test_ones_are_no_weights_unless_they_learn() -> None:
    ones, weight = torch.ones(4), torch.rand(4)
    plain = read_edges(coo([0, 1, 2, 3], ones).coalesce())
    assert join_weight(plain, None) is None
    assert join_weight(plain, weight) is weight
    refuse_weight(plain)
    learned = read_edges(coo([0, 1, 2, 3], ones.requires_grad_()))
    assert join_weight(learned, None) is learned.values
    with pytest.raises(ValueError, match="they are the weights; got both"):
        join_weight(learned, weight)
    with pytest.raises(ValueError, match=r"values from 0\.25 to 3"):
        refuse_weight(read_edges(coo([0, 1, 2, 3])))


def test_weights_beside_a_matrix_in_another_order_are_refused() -> None:
    """Nobody can tell whether they go with its entries as given or as sorted."""
    ones = torch.ones(4)
    with pytest.raises(ValueError, match="in another order"):
        as_weighted_graph(coo([3, 1, 0, 2], ones), 3, VALUES)
    graph, weight = as_weighted_graph(coo([0, 1, 2, 3], ones), 3, VALUES)
    assert torch.equal(graph.target, ROWS)
    assert weight is VALUES
