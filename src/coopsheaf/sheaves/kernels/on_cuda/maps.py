"""The operator with maps at the nodes: one launch forward, one back."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from coopsheaf.sheaves.kernels.eager import differentiable_backward
from coopsheaf.sheaves.kernels.on_cuda import products, programs
from coopsheaf.sheaves.kernels.on_cuda.launch import blocks, columns, options
from coopsheaf.sheaves.kernels.terms import Terms


def _tile(d: int, h: int) -> dict[str, Any]:
    rows = triton.next_power_of_2(d)
    # Products of d×d matrices with a tile are held whole: rows × rows × columns.
    block = columns(h, rows * rows)
    return {"d": d, "ROWS": rows, "COLUMNS": block, **options(rows * block)}


class NodeMaps(torch.autograd.Function):
    """y_i = D_i x_i - L_iᵀ Σ_{j→i} w_e R_j x_j, with one number D_i per node.

    What was sent is never written down: R_j x_j is formed where it is heard. Kept for the way back
    are the inputs and what each node heard.
    """

    @staticmethod
    def forward(ctx: Any, compose: Any, x: Tensor, *parts: Any) -> Tensor:
        graph, diagonal, left, right, edge_weight = Terms(*parts)
        x, diagonal, left, right = (t.contiguous() for t in (x, diagonal, left, right))
        weight = None if edge_weight is None else edge_weight.contiguous()
        (n, d, h), y, heard = x.shape, torch.empty_like(x), torch.empty_like(x)
        if x.numel():
            tile = _tile(d, h)
            programs.apply_node_maps[(n, blocks(h, tile["COLUMNS"]))](
                x,
                diagonal,
                left,
                right,
                x if weight is None else weight,
                y,
                heard,
                *graph.by_target,
                h,
                WEIGHTED=weight is not None,
                **tile,
            )
        ctx.compose, ctx.graph = compose, graph
        ctx.save_for_backward(x, diagonal, left, right, weight, heard)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, diagonal, left, right, weight, heard = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, ctx.graph, diagonal, left, right, weight)
            needed = ctx.needs_input_grad[1:]
            return None, *differentiable_backward(ctx.compose, inputs, needed, grad)
        _, for_x, _, for_diagonal, for_left, for_right, for_weight = ctx.needs_input_grad
        grad = grad.contiguous()
        wanted = {"FOR_X": for_x, "FOR_DIAGONAL": for_diagonal}
        wanted |= {"FOR_LEFT": for_left, "FOR_RIGHT": for_right}
        found = [
            torch.empty_like(like) if want else None
            for like, want in zip((x, diagonal, left, right), wanted.values(), strict=True)
        ]
        n, d, h = x.shape
        if n and any(wanted.values()):
            programs.differentiate_node_maps[(n,)](
                grad,
                x,
                heard,
                diagonal,
                left,
                right,
                x if weight is None else weight,
                *(x if out is None else out for out in found),
                *ctx.graph.by_source,
                h,
                WEIGHTED=weight is not None,
                **wanted,
                **_tile(d, h),
            )
        grad_weight = None
        if for_weight:
            sent, asked = (
                torch.bmm(*pair).view(n, 1, d * h) for pair in ((right, x), (left, grad))
            )
            by_edge = products.edge_products(asked, sent, ctx.graph.by_target)
            grad_weight = by_edge.view(-1).neg_()
        grad_x, *others = found
        return None, grad_x, None, *others, grad_weight
