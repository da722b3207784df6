"""The sparse product: the one operation in which nodes meet their neighbours.

Two custom operators that are each other's derivatives, so that they differentiate any number of
times, compile with ``fullgraph=True`` and export:

* ``sparse_product``: y_i = Σ_{e = (j→i)} B_e x_j, a block-sparse matrix times a tall one;
* ``edge_products``: G_e = g_i x_jᵀ for e = (j→i), an outer product sampled at the edges.

Neither allocates anything of size edges × block × columns; the plain compositions do, which the
transforms of ``torch.func`` see in their place.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

from coopsheaf.sheaves.edge_list import EdgeList
from coopsheaf.sheaves.graph import CSR, Graph
from coopsheaf.sheaves.kernels import on_cuda
from coopsheaf.sheaves.kernels.eager import is_transformed
from coopsheaf.sheaves.kernels.runs import active_runs, along_edges

# Edge-wise work that no library product covers is done in slices of about this many numbers.
SLICE_NUMEL = 1 << 20
# On other devices a slice costs launches, and memory is there: one slice for most graphs.
DEVICE_SLICE_NUMEL = 1 << 26


def sparse_product(x: Tensor, graph: Graph, blocks: Tensor | None = None) -> Tensor:
    r"""Sum over incoming edges: :math:`y_i = \sum_{e = (j \to i)} B_e\, x_j`.

    Args:
        x: ``(n, b, c)``.
        graph: the graph of n nodes and m edges.
        blocks: ``(m, b, b)``, in the order of the edges; identities if not given.

    Returns:
        ``(n, b, c)``.
    """
    if isinstance(graph, EdgeList):  # in an exported program: no operators of ours
        sent = x[graph.source]
        sent = sent if blocks is None else blocks.to(x.dtype) @ sent
        return torch.zeros_like(x).index_add(0, graph.target, sent)
    if active_runs() is not None and isinstance(graph, Graph):
        rest = () if blocks is None else (blocks,)
        out: Tensor = along_edges(
            lambda graph, x, *b: sparse_product(x, graph, *b), graph, x, *rest
        )
        return out
    arrays = (*graph.by_target, *graph.by_source)
    if blocks is None:
        # Identity blocks treat all b·c columns alike: one scalar product of that width.
        flat = x.flatten(1).unsqueeze(1)  # (n, 1, b·c)
        return _multiply_dual(flat, None, arrays).reshape(x.shape)
    return _multiply_dual(x, blocks.to(x.dtype), arrays)


def edge_products(g: Tensor, x: Tensor, graph: Graph) -> Tensor:
    r"""What the two ends of every edge give together: :math:`G_e = g_i x_j^\top`, e = (j→i).

    For b = 1 the dot products of the columns, as attention scores them.

    Args:
        g: ``(n, b, c)``, taken at the targets.
        x: ``(n, b, c)`` of the same dtype, taken at the sources.
        graph: the graph of n nodes and m edges.

    Returns:
        ``(m, b, b)``, in the order of the edges.
    """
    if isinstance(graph, EdgeList):
        return g[graph.target] @ x[graph.source].mT
    if active_runs() is not None and isinstance(graph, Graph):
        found: Tensor = along_edges(lambda graph, g, x: edge_products(g, x, graph), graph, g, x)
        return found
    arrays = (*graph.by_target, *graph.by_source)
    if forward_ad._current_level < 0 or is_transformed():
        return _outer(g, x, *arrays)
    g, g_tangent = forward_ad.unpack_dual(g)
    x, x_tangent = forward_ad.unpack_dual(x)
    out = _edge_products(g, x, *arrays)
    if g_tangent is None and x_tangent is None:
        return out
    tangent = torch.zeros_like(out)
    if g_tangent is not None:
        tangent = tangent + _edge_products(g_tangent, x, *arrays)
    if x_tangent is not None:
        tangent = tangent + _edge_products(g, x_tangent, *arrays)
    return forward_ad.make_dual(out, tangent)


def neighbour_sums(x: Tensor, csr: CSR, weight: Tensor | None = None) -> Tensor:
    """Sum over the edges of each row, ``(rows, c)``, without a derivative: for those who write
    their own. ``weight`` is ``(m,)``, in the order of the edges. On the CPU there may be another
    number of rows than of x."""
    blocks = None if weight is None else weight[:, None, None]
    return _multiply(x.unsqueeze(1), blocks, *csr).squeeze(1)


def _multiply_dual(x: Tensor, blocks: Tensor | None, arrays: tuple[Tensor, ...]) -> Tensor:
    """The product, with forward-mode derivatives by the product rule.

    A custom operator would drop tangents without a word.
    """
    if forward_ad._current_level < 0 or is_transformed():
        return _product(x, blocks, *arrays)
    x, x_tangent = forward_ad.unpack_dual(x)
    blocks_tangent = None
    if blocks is not None:
        blocks, blocks_tangent = forward_ad.unpack_dual(blocks)
    out = _sparse_product(x, blocks, *arrays)
    if x_tangent is None and blocks_tangent is None:
        return out
    tangent = torch.zeros_like(out)
    if x_tangent is not None:
        tangent = tangent + _sparse_product(x_tangent, blocks, *arrays)
    if blocks_tangent is not None:
        tangent = tangent + _sparse_product(x, blocks_tangent, *arrays)
    return forward_ad.make_dual(out, tangent)


def _product(x: Tensor, blocks: Tensor | None, *arrays: Tensor) -> Tensor:
    """The operator, or the same with ordinary operations for transforms: a message per edge."""
    if not is_transformed():
        return _sparse_product(x, blocks, *arrays)
    ptr, other, edge = arrays[:3]
    sent = x.index_select(0, other)
    sent = sent if blocks is None else blocks.index_select(0, edge) @ sent
    return x.new_zeros(x.shape).index_add(0, _rows(ptr, other), sent)


def _outer(g: Tensor, x: Tensor, *arrays: Tensor) -> Tensor:
    """The operator, or the same with ordinary operations for transforms."""
    if not is_transformed():
        return _edge_products(g, x, *arrays)
    ptr, other, edge = arrays[:3]
    order = edge.argsort()
    target, source = _rows(ptr, other)[order], other[order]
    return g.index_select(0, target) @ x.index_select(0, source).mT


@torch.library.custom_op("coopsheaf::sparse_product", mutates_args=())
def _sparse_product(
    x: Tensor,
    blocks: Tensor | None,
    ptr: Tensor,
    other: Tensor,
    edge: Tensor,
    ptr_t: Tensor,
    other_t: Tensor,
    edge_t: Tensor,
) -> Tensor:
    # Autocast reaches into custom operators; here it would ask for a product that does not exist.
    with torch.autocast(x.device.type, enabled=False):
        return _multiply(x, blocks, ptr, other, edge)


@torch.library.custom_op("coopsheaf::edge_products", mutates_args=())
def _edge_products(
    g: Tensor,
    x: Tensor,
    ptr: Tensor,
    other: Tensor,
    edge: Tensor,
    ptr_t: Tensor,
    other_t: Tensor,
    edge_t: Tensor,
) -> Tensor:
    with torch.autocast(x.device.type, enabled=False):
        return _sample(g, x, ptr, other, edge)


@_sparse_product.register_fake
def _(x: Tensor, blocks: Tensor | None, *arrays: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@_edge_products.register_fake
def _(g: Tensor, x: Tensor, ptr: Tensor, other: Tensor, *arrays: Tensor) -> Tensor:
    return x.new_empty(other.shape[0], x.shape[1], x.shape[1])


def _save_product(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, blocks, *arrays = inputs
    # Without blocks nothing but the graph is needed to go back.
    ctx.save_for_backward(None if blocks is None else x, blocks, *arrays)


def _product_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, blocks, *arrays = ctx.saved_tensors
    grad_x = grad_blocks = None
    if ctx.needs_input_grad[0]:
        turned = None if blocks is None else blocks.mT
        grad_x = _product(grad, turned, *arrays[3:], *arrays[:3])
    if ctx.needs_input_grad[1]:
        grad_blocks = _outer(grad, x, *arrays)
    return grad_x, grad_blocks, *([None] * 6)


def _save_edge_products(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _edge_products_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    g, x, *arrays = ctx.saved_tensors
    grad_g = grad_x = None
    if ctx.needs_input_grad[0]:
        grad_g = _product(x, grad, *arrays)
    if ctx.needs_input_grad[1]:
        grad_x = _product(g, grad.mT, *arrays[3:], *arrays[:3])
    return grad_g, grad_x, *([None] * 6)


_sparse_product.register_autograd(_product_backward, setup_context=_save_product)
_edge_products.register_autograd(_edge_products_backward, setup_context=_save_edge_products)


def _multiply(x: Tensor, blocks: Tensor | None, ptr: Tensor, other: Tensor, edge: Tensor) -> Tensor:
    n, b, c = x.shape
    if other.numel() == 0 or x.numel() == 0:
        return x.new_zeros(ptr.numel() - 1, b, c)
    if on_cuda.takes(x):
        return _launch(x, blocks, CSR(ptr, other, edge))
    # The CPU's sparse products know no half precision.
    halved = x.dtype in (torch.bfloat16, torch.float16) and not x.is_cuda
    work = x.to(torch.float32 if halved else x.dtype).contiguous()
    values = None if blocks is None else blocks.to(work.dtype)[edge]  # in the order of the rows
    if b == 1:
        weights = None if values is None else values.view(-1)
        out = sum_bags(work.view(n, c), ptr, other, weights)
    elif _has_block_product(work):
        assert values is not None, "identity blocks are given as columns of one"
        _silence_beta_warning()
        ends, shape = other.to(ptr.dtype), (n * b, n * b)
        matrix = torch.sparse_bsr_tensor(ptr, ends, values, shape, check_invariants=False)
        out = matrix @ work.view(n * b, c)
    else:
        assert values is not None, "identity blocks are given as columns of one"
        out = _sum_block_rows(work, ptr, other, values)
    return out.view(-1, b, c).to(x.dtype)


def _launch(x: Tensor, blocks: Tensor | None, csr: CSR) -> Tensor:
    """The product by one Triton kernel."""
    if x.shape[1] > 1:
        assert blocks is not None, "identity blocks are given as columns of one"
        return on_cuda.block_sums(x, blocks, csr)
    weight = None if blocks is None else blocks.reshape(-1)
    return on_cuda.neighbour_sums(x.squeeze(1), csr, weight).unsqueeze(1)


def sum_bags(table: Tensor, ptr: Tensor, other: Tensor, weights: Tensor | None) -> Tensor:
    """Σ w_k table[other_k] over the entries k of each row, as sums of an embedding bag.

    On the CPU the same numbers as the CSR product, several times faster in single precision and
    slower in double; on other devices, too, no sparse tensor has to be built and nothing of the
    size of all messages.
    """
    if table.dtype == torch.float64 and _has_block_product(table):
        _silence_beta_warning()
        values = table.new_ones(other.numel()) if weights is None else weights
        shape = (ptr.numel() - 1, table.shape[0])
        ends = other.to(ptr.dtype)
        return torch.sparse_csr_tensor(ptr, ends, values, shape, check_invariants=False) @ table
    offsets = ptr.to(other.dtype)  # lists may be int32, their bounds int64: it wants both alike
    return F.embedding_bag(
        other, table, offsets, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def _sum_block_rows(work: Tensor, ptr: Tensor, other: Tensor, values: Tensor) -> Tensor:
    """The block product where no library has one: a bag of b entries per edge, for each of b rows.

    Row p of y_i sums B_e[p, q] times row q of x_j over the edges and q.
    """
    n, b, c = work.shape
    entries = (other.long().unsqueeze(1) * b + torch.arange(b, device=other.device)).view(
        -1
    )  # (m·b,)
    table, bags, turned = work.view(n * b, c), ptr * b, values.transpose(0, 1)  # (b, m, b)
    rows = [sum_bags(table, bags, entries, turned[p].reshape(-1)) for p in range(b)]
    return torch.stack(rows, dim=1)


def _sample(g: Tensor, x: Tensor, ptr: Tensor, other: Tensor, edge: Tensor) -> Tensor:
    n, b, c = x.shape
    out = x.new_empty(other.numel(), b, b)
    if other.numel() == 0:
        return out
    if on_cuda.takes(g, x):
        return on_cuda.edge_products(g, x, CSR(ptr, other, edge))
    known = x.dtype in (torch.float32, torch.float64) and other.numel() <= n * n
    if _has_block_product(x) and known:
        # Entry by entry of the blocks: a product sampled at a sparse pattern, in one library call
        # (which bears parallel edges, but no more of them than the matrix has entries).
        _silence_beta_warning()
        zeros, ends = x.new_zeros(other.numel()), other.to(ptr.dtype)
        pattern = torch.sparse_csr_tensor(ptr, ends, zeros, (n, n), check_invariants=False)
        columns = [x[:, q].contiguous().T for q in range(b)]  # (c, n)
        for p in range(b):
            rows = g[:, p].to(x.dtype).contiguous()  # (n, c)
            for q in range(b):
                sampled = torch.sparse.sampled_addmm(pattern, rows, columns[q], beta=0.0)
                out[edge, p, q] = sampled.values()
        return out
    ends = _rows(ptr, other)
    for part in _slices(other.numel(), b * c, x.device):
        out[edge[part]] = g[ends[part]] @ x[other[part]].mT
    return out


def _rows(ptr: Tensor, other: Tensor) -> Tensor:
    """The row of every entry of a compressed list, ``(m,)``."""
    nodes = torch.arange(ptr.numel() - 1, device=ptr.device)
    return torch.repeat_interleave(nodes, ptr.diff(), output_size=other.numel())


def _slices(num_edges: int, width: int, device: torch.device) -> list[slice]:
    numel = SLICE_NUMEL if device.type == "cpu" else DEVICE_SLICE_NUMEL
    step = max(1, numel // max(1, width))
    return [slice(start, start + step) for start in range(0, num_edges, step)]


def _has_block_product(work: Tensor) -> bool:
    return work.device.type == "cpu" and torch.backends.mkl.is_available()


@cache
def _silence_beta_warning() -> None:
    """PyTorch says once per process that compressed sparse tensors are in beta: heard."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = torch.ones(1, dtype=torch.int64)
        torch.sparse_csr_tensor(torch.tensor([0, 1]), one - 1, one, (1, 1), check_invariants=False)
