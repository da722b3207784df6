"""The edges of a graph in whatever form people have them, read once and checked.

* ``(2, m)`` integers, sources above targets: PyG's ``edge_index``;
* PyG's ``EdgeIndex``, which is that and may know its size; its flags are not relied on;
* a sparse matrix in place of an ``edge_index``, which by PyG's convention is the *transposed*
  adjacency matrix: entry (i, j) is the edge j→i and its value the weight, as in
  ``conv(x, adj.t())``. Its edges are in the order of its entries, row by row (CSC: column by
  column).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex

from coopsheaf.checks import check_int
from coopsheaf.tensor_checks import check_tensor

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


class Edges(NamedTuple):
    """A checked list of edges."""

    ends: Tensor  # (2, m), int64, nobody else's memory
    num_nodes: int
    values: Tensor | None = None  # (m,): the entries of a sparse matrix
    reordered: bool = False  # the matrix had its entries in another order


def read_edges(edge_index: object, num_nodes: int | None = None) -> Edges:
    """The edges, the number of nodes, and the values if ``edge_index`` is a sparse matrix.

    Args:
        edge_index: edges in one of the forms above.
        num_nodes: how many nodes there must be; as many as needed if not given.
    """
    tensor = check_tensor("edge_index", edge_index)
    if tensor.layout in _SPARSE:
        return _read_matrix(tensor, num_nodes)
    if isinstance(tensor, EdgeIndex):
        num_nodes = _check_size(tensor, num_nodes)
        tensor = tensor.as_tensor()
    if tensor.layout != torch.strided or tensor.dim() != 2 or tensor.shape[0] != 2:
        raise ValueError(
            "`edge_index` must be a sparse COO, CSR or CSC matrix of shape (n, n), the transposed "
            "adjacency, or a dense tensor of shape (2, m): sources above targets; "
            f"got shape {tuple(tensor.shape)}, layout {tensor.layout}"
        )
    if tensor.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"`edge_index` must have dtype int64 or int32; got {tensor.dtype}")
    index = tensor.long().clone()  # the caller may go on writing into theirs
    return Edges(index, _check_num_nodes(index, num_nodes))


def join_weight(edges: Edges, edge_weight: Tensor | None) -> Tensor | None:
    """The weights of the edges: those of a matrix, or those given beside it.

    A matrix of ones has no weights, unless somebody wants their gradients.
    """
    values = edges.values
    if values is None:
        return edge_weight
    has_weight = values.requires_grad or not bool((values == 1).all())
    if edge_weight is None:
        return values if has_weight else None
    if has_weight:
        raise ValueError(
            "`edge_weight` must be None where `edge_index` is a sparse matrix with values other "
            "than ones, or with gradients: they are the weights; got both"
        )
    if edges.reordered:
        raise ValueError(
            "`edge_weight` is in the order of the entries of `edge_index`, row by row; got a "
            "sparse matrix in another order: call .coalesce(), or put the weights into it"
        )
    return edge_weight


def check_order(argument: str, edge_index: object) -> None:
    """For rows that belong to edges: those of a sparse matrix are in the order of its entries."""
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.sparse_coo:
        return
    if not edge_index.is_coalesced():
        raise ValueError(
            f"`{argument}` is in the order of the entries of `edge_index`, row by row; got a "
            "sparse matrix whose entries may be in another order: call .coalesce()"
        )


def refuse_weight(edges: Edges) -> None:
    """For those who have no use for weights: all values of a matrix must be ones."""
    if edges.values is not None and not bool((edges.values == 1).all()):
        raise ValueError(
            "`edge_index` must be a sparse matrix of ones here, where edges have no weights; "
            f"got values from {edges.values.min().item():g} to {edges.values.max().item():g}"
        )


def _check_size(edge_index: EdgeIndex, num_nodes: int | None) -> int | None:
    """The number of nodes that an EdgeIndex knows of; it must be the one that is asked for."""
    sizes = {size for size in edge_index.sparse_size() if size is not None}
    if num_nodes is not None:
        sizes.add(num_nodes)
    if len(sizes) > 1:
        wanted = "(n, n)" if num_nodes is None else f"({num_nodes}, {num_nodes})"
        raise ValueError(
            f"`edge_index` must have sparse_size {wanted}, the number of nodes twice; "
            f"got {tuple(edge_index.sparse_size())}"
        )
    return sizes.pop() if sizes else None


def _read_matrix(matrix: Tensor, num_nodes: int | None) -> Edges:
    n = matrix.shape[0] if num_nodes is None else num_nodes
    if matrix.shape != (n, n) or matrix.dense_dim():
        raise ValueError(
            f"`edge_index` must have shape ({n}, {n}) as a sparse matrix, with one number per "
            f"entry; got shape {tuple(matrix.shape)}"
        )
    reordered, given = False, matrix._nnz()
    if matrix.layout == torch.sparse_coo:
        order, matrix = matrix._indices(), matrix.coalesce()  # adds up what is there twice
        target, source = matrix.indices()
        reordered = not torch.equal(order, matrix.indices())
    else:
        target, source = _entries(matrix)
    ends = torch.stack([source, target]).long()
    _check_num_nodes(ends, n)  # PyTorch does not look at what is in a matrix
    if (ends[1] * n + ends[0]).unique().numel() < given:
        raise ValueError(
            "`edge_index` must not hold two values for one entry of a sparse matrix; add them up "
            "with .coalesce(), or give parallel edges as a (2, m) tensor"
        )
    return Edges(ends, n, matrix.values(), reordered)


def _entries(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Row and column of every entry of a compressed matrix."""
    if matrix.layout == torch.sparse_csr:
        return _expand(matrix.crow_indices()), matrix.col_indices()
    return matrix.row_indices(), _expand(matrix.ccol_indices())


def _expand(ptr: Tensor) -> Tensor:
    rows = torch.arange(ptr.numel() - 1, device=ptr.device)
    return torch.repeat_interleave(rows, ptr.diff())


def _check_num_nodes(edge_index: Tensor, num_nodes: int | None) -> int:
    if torch.compiler.is_compiling() and num_nodes is not None:
        # Reading values would break the compiled graph; this check is made when it runs.
        inside = (edge_index >= 0).all() & (edge_index < num_nodes).all()
        torch._assert_async(inside, "`edge_index` must hold node indices in [0, number of nodes)")
        return num_nodes
    low, high = (v.item() for v in edge_index.aminmax()) if edge_index.numel() else (0, -1)
    if low < 0:
        raise ValueError(f"`edge_index` must not hold negative node indices; got {low}")
    if num_nodes is None:
        return int(high) + 1
    num_nodes = check_int("num_nodes", num_nodes, minimum=0)
    if high >= num_nodes:
        raise ValueError(
            f"`edge_index` must hold node indices below the number of nodes, {num_nodes}; "
            f"got {high}"
        )
    return num_nodes
