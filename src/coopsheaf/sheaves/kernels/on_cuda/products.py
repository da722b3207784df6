"""Launches of the sparse products, which have no derivatives of their own."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from coopsheaf.sheaves.graph import CSR
from coopsheaf.sheaves.kernels.on_cuda import programs
from coopsheaf.sheaves.kernels.on_cuda.launch import blocks as count_blocks
from coopsheaf.sheaves.kernels.on_cuda.launch import columns, options, sum_type


def neighbour_sums(
    x: Tensor, csr: CSR, weight: Tensor | None = None, scale: Tensor | None = None
) -> Tensor:
    """Σ w_e s_j x_j over the edges of each row.

    Args:
        x: ``(layers, n, width)``.
        csr: the edges of n rows.
        weight: ``(m,)``, in the order of the edges.
        scale: ``(n,)``.
    """
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    layers, n, width = x.shape
    block = columns(width)
    programs.sum_neighbours[(n, count_blocks(width, block), layers)](
        x,
        x if weight is None else weight.contiguous(),
        x if scale is None else scale.contiguous(),
        y,
        *csr,
        n,
        width,
        WEIGHTED=weight is not None,
        SCALED=scale is not None,
        COLUMNS=block,
        SUM=sum_type(x),
        **options(block),
    )
    return y


def block_sums(x: Tensor, blocks: Tensor, csr: CSR) -> Tensor:
    """Σ B_e x_j over the edges of each row; x ``(n, b, c)``, blocks ``(m, b, b)``."""
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    n, b, c = x.shape
    rows = triton.next_power_of_2(b)
    block = columns(c, rows)
    programs.sum_blocks[(n, count_blocks(c, block))](
        x,
        blocks,
        y,
        *csr,
        c,
        *blocks.stride(),
        b=b,
        ROWS=rows,
        COLUMNS=block,
        SUM=sum_type(x),
        **options(rows * block),
    )
    return y


def edge_products(g: Tensor, x: Tensor, csr: CSR) -> Tensor:
    """G_e = g_i x_jᵀ for every edge e of row i; g and x ``(n, b, c)``, returns ``(m, b, b)``."""
    g, x = g.contiguous(), x.contiguous()
    n, b, c = x.shape
    out = x.new_empty(csr.other.numel(), b, b)
    if out.numel() == 0:
        return out
    rows = triton.next_power_of_2(b)
    block = columns(c, rows)
    programs.multiply_ends[(n,)](
        g,
        x,
        out,
        *csr,
        c,
        b=b,
        ROWS=rows,
        COLUMNS=block,
        SUM=sum_type(x),
        **options(rows * block),
    )
    return out
