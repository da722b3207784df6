"""What one program of a launch does: the kernels themselves, in Triton's language.

Every program writes rows that no other one writes, so that nothing is added atomically and the
same inputs give the same bits. Sums are taken in ``SUM``. A row of a compressed list of edges is
``ptr[i]:ptr[i + 1]`` of ``other`` (the node at the other end) and ``edge`` (which edge it is).
Capital names are known when a program is compiled; those of sizes are powers of two.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def sum_neighbours(
    x,  # (layers, n, width)
    weight,  # (m,) in the order of the edges
    scale,  # (n,)
    y,  # (layers, n, width)
    ptr,
    other,
    edge,
    n,
    width,
    WEIGHTED: tl.constexpr,
    SCALED: tl.constexpr,
    COLUMNS: tl.constexpr,
    SUM: tl.constexpr,
):
    """y_i = Σ w_e s_j x_j over the edges of row i; grid (n, blocks of columns, layers)."""
    node = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first = tl.program_id(2).to(tl.int64) * n
    inside = column < width
    total = tl.zeros((COLUMNS,), SUM)
    for at in range(tl.load(ptr + node), tl.load(ptr + node + 1)):
        j = tl.load(other + at).to(tl.int64)
        row = tl.load(x + (first + j) * width + column, mask=inside, other=0.0).to(SUM)
        if WEIGHTED:
            row *= tl.load(weight + tl.load(edge + at)).to(SUM)
        if SCALED:
            row *= tl.load(scale + j).to(SUM)
        total += row
    tl.store(y + (first + node) * width + column, total, mask=inside)


@triton.jit
def sum_blocks(
    x,  # (n, b, c)
    blocks,  # (m, b, b) with these strides
    y,  # (n, b, c)
    ptr,
    other,
    edge,
    c,
    stride_e,
    stride_p,
    stride_q,
    b: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SUM: tl.constexpr,
):
    """y_i = Σ B_e x_j over the edges of row i; grid (n, blocks of columns)."""
    node = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    inside = column < c
    total = tl.zeros((ROWS, COLUMNS), SUM)
    for at in range(tl.load(ptr + node), tl.load(ptr + node + 1)):
        j = tl.load(other + at).to(tl.int64)
        block = blocks + tl.load(edge + at).to(tl.int64) * stride_e
        for q in tl.static_range(b):
            factor = tl.load(block + row * stride_p + q * stride_q, mask=row < b, other=0.0)
            part = tl.load(x + (j * b + q) * c + column, mask=inside, other=0.0)
            total += factor.to(SUM)[:, None] * part.to(SUM)[None, :]
    tile = node * b * c + row[:, None] * c + column[None, :]
    tl.store(y + tile, total, mask=(row < b)[:, None] & inside[None, :])


@triton.jit
def multiply_ends(
    g,  # (n, b, c)
    x,  # (n, b, c)
    out,  # (m, b, b)
    ptr,
    other,
    edge,
    c,
    b: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SUM: tl.constexpr,
):
    """G_e = g_i x_jᵀ for the edges of row i; grid (n,)."""
    node = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    for at in range(tl.load(ptr + node), tl.load(ptr + node + 1)):
        j = tl.load(other + at).to(tl.int64)
        e = tl.load(edge + at).to(tl.int64)
        for q in tl.static_range(b):
            total = tl.zeros((ROWS,), SUM)
            for start in range(0, c, COLUMNS):
                column = start + tl.arange(0, COLUMNS)
                fits = (row < b)[:, None] & (column < c)[None, :]
                tile = node * b * c + row[:, None] * c + column[None, :]
                ours = tl.load(g + tile, mask=fits, other=0.0).to(SUM)
                theirs = tl.load(x + (j * b + q) * c + column, mask=column < c, other=0.0)
                total += tl.sum(ours * theirs.to(SUM)[None, :], axis=1)
            tl.store(out + (e * b + row) * b + q, total, mask=row < b)


@triton.jit
def sum_mapped(
    x,  # (n, d, h)
    maps,  # (n, d, d)
    weight,
    start,
    end,
    other,
    edge,
    row,
    column,
    h,
    WEIGHTED: tl.constexpr,
    d: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Σ w_e M_j x_j over the edges from ``start`` to ``end``, ``(ROWS, COLUMNS)``."""
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for at in range(start, end):
        j = tl.load(other + at).to(tl.int64)
        sent = tl.zeros((ROWS, COLUMNS), tl.float32)
        for k in tl.static_range(d):
            factor = tl.load(maps + (j * d + row) * d + k, mask=row < d, other=0.0)
            part = tl.load(x + (j * d + k) * h + column, mask=column < h, other=0.0)
            sent += factor[:, None] * part[None, :]
        if WEIGHTED:
            sent *= tl.load(weight + tl.load(edge + at))
        total += sent
    return total


@triton.jit
def apply_node_maps(
    x,  # (n, d, h)
    diagonal,  # (n,)
    left,  # (n, d, d)
    right,  # (n, d, d)
    weight,  # (m,)
    y,  # (n, d, h)
    heard,  # (n, d, h)
    ptr,  # the edges by target
    other,
    edge,
    h,
    WEIGHTED: tl.constexpr,
    d: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """heard_i = Σ w_e R_j x_j, y_i = D_i x_i - L_iᵀ heard_i; grid (n, blocks of columns)."""
    node = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.arange(0, ROWS)
    start, end = tl.load(ptr + node), tl.load(ptr + node + 1)
    total = sum_mapped(
        x, right, weight, start, end, other, edge, row, column, h, WEIGHTED, d, ROWS, COLUMNS
    )
    tile = node * d * h + row[:, None] * h + column[None, :]
    fits = (row < d)[:, None] & (column < h)[None, :]
    tl.store(heard + tile, total, mask=fits)
    square = (row < d)[:, None] & (row < d)[None, :]
    maps = tl.load(left + (node * d + row[:, None]) * d + row[None, :], mask=square, other=0.0)
    # L[k, p] heard[k, c], summed over k.
    turned = tl.sum(maps[:, :, None] * total[:, None, :], axis=0)
    own = tl.load(x + tile, mask=fits, other=0.0)
    tl.store(y + tile, tl.load(diagonal + node) * own - turned, mask=fits)


@triton.jit
def differentiate_node_maps(
    grad,  # (n, d, h)
    x,  # (n, d, h)
    heard,  # (n, d, h)
    diagonal,  # (n,)
    left,  # (n, d, d)
    right,  # (n, d, d)
    weight,  # (m,)
    grad_x,  # (n, d, h)
    grad_diagonal,  # (n,)
    grad_left,  # (n, d, d)
    grad_right,  # (n, d, d)
    ptr,  # the edges by source
    other,
    edge,
    h,
    WEIGHTED: tl.constexpr,
    FOR_X: tl.constexpr,
    FOR_DIAGONAL: tl.constexpr,
    FOR_LEFT: tl.constexpr,
    FOR_RIGHT: tl.constexpr,
    d: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """All gradients of node j but that of the weights; grid (n,).

    With g the gradient of y and a_j = Σ_{j→i} w_e L_i g_i: D_j g_j - R_jᵀ a_j for x, ⟨g_j, x_j⟩ for
    the diagonal, -heard_j g_jᵀ for L_j and -a_j x_jᵀ for R_j.
    """
    node = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    start, end = tl.load(ptr + node), tl.load(ptr + node + 1)
    square = (row < d)[:, None] & (row < d)[None, :]
    place = (node * d + row[:, None]) * d + row[None, :]  # of an entry of a d×d matrix
    for_diagonal = tl.zeros((ROWS,), tl.float32)
    for_left = tl.zeros((ROWS, ROWS), tl.float32)
    for_right = tl.zeros((ROWS, ROWS), tl.float32)
    for first in range(0, h, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        tile = node * d * h + row[:, None] * h + column[None, :]
        fits = (row < d)[:, None] & (column < h)[None, :]
        own_grad = tl.load(grad + tile, mask=fits, other=0.0)
        if FOR_X or FOR_RIGHT:
            asked = sum_mapped(
                grad, left, weight, start, end, other, edge, row, column, h,
                WEIGHTED, d, ROWS, COLUMNS,
            )  # fmt: skip
        if FOR_X:
            maps = tl.load(right + place, mask=square, other=0.0)
            turned = tl.sum(maps[:, :, None] * asked[:, None, :], axis=0)
            tl.store(grad_x + tile, tl.load(diagonal + node) * own_grad - turned, mask=fits)
        if FOR_DIAGONAL or FOR_RIGHT:
            own = tl.load(x + tile, mask=fits, other=0.0)
            if FOR_DIAGONAL:
                for_diagonal += tl.sum(own_grad * own, axis=1)
            if FOR_RIGHT:
                for_right -= tl.sum(asked[:, None, :] * own[None, :, :], axis=2)
        if FOR_LEFT:
            told = tl.load(heard + tile, mask=fits, other=0.0)
            for_left -= tl.sum(told[:, None, :] * own_grad[None, :, :], axis=2)
    if FOR_DIAGONAL:
        tl.store(grad_diagonal + node, tl.sum(for_diagonal, axis=0))
    if FOR_LEFT:
        tl.store(grad_left + place, for_left, mask=square)
    if FOR_RIGHT:
        tl.store(grad_right + place, for_right, mask=square)


@triton.jit
def keep_entries(place, seed, threshold):
    """Which entries dropout keeps: 32 random bits of a counter, the place of the entry.

    Whoever asks again with the same seed is told the same, so that no mask is stored.
    """
    low, high = place.to(tl.uint32), (place >> 32).to(tl.uint32)
    bits, _, _, _ = tl.philox(seed, low, high, low * 0, low * 0)
    return bits.to(tl.int64) >= threshold


@triton.jit(do_not_specialize=["seed"])
def hear_neighbours(
    told,  # (layers, n, width)
    own,  # (layers, n, width)
    bias,  # (layers, width)
    inverse_degree,  # (n,)
    z,  # (layers, n, width), before the activation
    y,  # (layers, n, width)
    ptr,  # the edges by target
    other,
    n,
    width,
    seed,
    threshold,
    factor,
    ACT: tl.constexpr,
    DROP: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """z_i = mean of told_j + b + own_i, y_i = dropout(act(z_i)).

    Grid (n, blocks of columns, layers).
    """
    node = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    layer = tl.program_id(2).to(tl.int64)
    inside = column < width
    total = tl.zeros((COLUMNS,), tl.float32)
    for at in range(tl.load(ptr + node), tl.load(ptr + node + 1)):
        j = tl.load(other + at).to(tl.int64)
        total += tl.load(told + (layer * n + j) * width + column, mask=inside, other=0.0)
    place = (layer * n + node) * width + column
    value = total * tl.load(inverse_degree + node)
    value += tl.load(bias + layer * width + column, mask=inside, other=0.0)
    value += tl.load(own + place, mask=inside, other=0.0)
    if ACT != "none":
        tl.store(z + place, value, mask=inside)
    if ACT == "relu":
        value = tl.where(value < 0.0, 0.0, value)  # NaN stays NaN
    if ACT == "gelu":
        value = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
    if DROP:
        value = tl.where(keep_entries(place, seed, threshold), value * factor, 0.0)
    tl.store(y + place, value, mask=inside)


# What follows goes entry by entry through one long list of them; grid (blocks of entries,).


@triton.jit(do_not_specialize=["seed"])
def differentiate_ending(
    grad,
    z,
    out,
    size,
    seed,
    threshold,
    factor,
    ACT: tl.constexpr,
    DROP: tl.constexpr,
    ENTRIES: tl.constexpr,
):
    """The gradient of z from that of dropout(act(z))."""
    place = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    inside = place < size
    value = tl.load(grad + place, mask=inside, other=0.0)
    if DROP:
        value = tl.where(keep_entries(place, seed, threshold), value * factor, 0.0)
    if ACT != "none":
        before = tl.load(z + place, mask=inside, other=0.0)
        if ACT == "relu":
            value = tl.where(before > 0.0, value, 0.0)
        if ACT == "gelu":
            below = 0.5 * (1.0 + tl.erf(before * 0.7071067811865476))
            density = tl.exp(-0.5 * before * before) * 0.3989422804014327
            value *= below + before * density
    tl.store(out + place, value, mask=inside)


@triton.jit(do_not_specialize=["seed"])
def draw_factors(out, size, seed, threshold, factor, ENTRIES: tl.constexpr):
    """What dropout multiplies each entry by."""
    place = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    kept = keep_entries(place, seed, threshold)
    tl.store(out + place, tl.where(kept, factor, 0.0), mask=place < size)


@triton.jit
def add_bias_relu(x, bias, size, rows, width, ENTRIES: tl.constexpr):
    """relu(x + b) in place; x ``(layers, rows, width)``, bias ``(layers, width)``."""
    place = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    inside = place < size
    row = place // width
    offset = (row // rows) * width + place - row * width
    value = tl.load(x + place, mask=inside, other=0.0)
    value += tl.load(bias + offset, mask=inside, other=0.0)
    tl.store(x + place, tl.where(value < 0.0, 0.0, value), mask=inside)


@triton.jit
def differentiate_relu(grad, y, size, ENTRIES: tl.constexpr):
    """Zero in place where relu was."""
    place = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    inside = place < size
    value = tl.load(grad + place, mask=inside, other=0.0)
    passed = tl.load(y + place, mask=inside, other=0.0) > 0.0
    tl.store(grad + place, tl.where(passed, value, 0.0), mask=inside)
