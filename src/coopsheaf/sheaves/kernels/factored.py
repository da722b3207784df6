"""The fast path: maps at the nodes, one sparse product between them.

The receiver's map is the same for all its edges, so it moves out of the sum,

    Σ_{j→i} w_ij Lᵢᵀ Rⱼ xⱼ = Lᵢᵀ Σ_{j→i} w_ij (Rⱼ xⱼ),

which leaves two node-wise products and one product with the bare adjacency: O(n·c·d + m·c) time
instead of O(m·c·d) for c = d·h, and nothing of size edges × stalk × channels. Maps that belong to
edges do not factor; their d×d blocks are formed once and multiplied as a block-sparse matrix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels import on_cuda
from coopsheaf.sheaves.kernels.diagonal import apply_diagonal
from coopsheaf.sheaves.kernels.eager import differentiable_backward, is_plain_eager
from coopsheaf.sheaves.kernels.sparse import edge_products, neighbour_sums, sparse_product
from coopsheaf.sheaves.kernels.stalks import compose_product, stalk_product, subtract_stalk_product
from coopsheaf.sheaves.kernels.terms import Terms

# What needs no more than one node is done for so many at a time: temporaries stay small.
NODES = 1 << 14


def node_maps(x: Tensor, terms: Terms) -> Tensor:
    if is_plain_eager(x, *terms[1:]):
        return _NodeMaps.apply(x, *terms)
    if on_cuda.takes_node_maps(x, terms):
        return on_cuda.node_maps(x, terms, compose)
    return compose(x, *terms)


def compose(x: Tensor, *parts: Any) -> Tensor:
    """The operator with ordinary operations."""
    graph, diagonal, left, right, edge_weight = Terms(*parts)
    heard = _sum_sent(compose_product(right, x), graph, edge_weight)
    return apply_diagonal(diagonal, x) - compose_product(left.mT, heard)


def _sum_sent(sent: Tensor, graph: Graph, edge_weight: Tensor | None) -> Tensor:
    """Σ_{j→i} w_ij sentⱼ, ``(n, d, h)``."""
    if edge_weight is None:
        return sparse_product(sent, graph)
    flat = sent.flatten(1).unsqueeze(1)  # (n, 1, d·h)
    return sparse_product(flat, graph, edge_weight[:, None, None]).view_as(sent)


class _NodeMaps(torch.autograd.Function):
    """``compose`` with few passes over ``(n, d, h)``, forward and backward.

    It keeps x and what each node heard; what was sent is computed again where an edge weight asks.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parts: Any) -> Tensor:
        graph, diagonal, left, right, edge_weight = Terms(*parts)
        sent = stalk_product(right, x)
        heard = neighbour_sums(sent.flatten(1), graph.by_target, edge_weight).view_as(sent)
        ctx.graph = graph
        ctx.save_for_backward(x, diagonal, left, right, edge_weight, heard)
        return subtract_stalk_product(_times_diagonal(diagonal, x), left.mT, heard)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, diagonal, left, right, edge_weight, heard = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, ctx.graph, diagonal, left, right, edge_weight)
            return differentiable_backward(compose, inputs, ctx.needs_input_grad, grad)
        for_x, _, for_diagonal, for_left, for_right, for_weight = ctx.needs_input_grad
        grad = grad.contiguous()
        grad_x = grad_diagonal = grad_left = grad_right = grad_weight = None
        if for_x or for_right or for_weight:
            asked = stalk_product(left, grad)
            if for_x or for_right:
                # The gradient of what was sent, up to its sign.
                sent_grad = neighbour_sums(
                    asked.flatten(1), ctx.graph.by_source, edge_weight
                ).view_as(x)
            if for_weight:
                sent = stalk_product(right, x)
                asked, sent = asked.flatten(1).unsqueeze(1), sent.flatten(1).unsqueeze(1)
                grad_weight = edge_products(asked, sent, ctx.graph).view(-1).neg_()
                del sent
            del asked  # what is large goes as soon as it can
            if for_x:
                own = _times_diagonal(diagonal, grad, transpose=True)
                grad_x = subtract_stalk_product(own, right.mT, sent_grad)
            if for_right:
                grad_right = torch.bmm(sent_grad, x.mT).neg_()
                del sent_grad
        if for_left:
            grad_left = torch.bmm(heard, grad.mT).neg_()
        if for_diagonal and diagonal.dim() == 1:
            grad_diagonal = _dot(grad, x)
        elif for_diagonal:
            grad_diagonal = torch.bmm(grad, x.mT)
        return grad_x, None, grad_diagonal, grad_left, grad_right, grad_weight


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of the products of the entries of each node, ``(n,)``, some nodes at a time."""
    pairs = zip(a.split(NODES), b.split(NODES), strict=True)
    return torch.cat([(left * right).flatten(1).sum(1) for left, right in pairs])


def _times_diagonal(diagonal: Tensor, x: Tensor, *, transpose: bool = False) -> Tensor:
    """D x or Dᵀ x in new memory, row by row."""
    if diagonal.dim() == 1:
        return torch.mul(diagonal[:, None, None], x)
    return stalk_product(diagonal.mT if transpose else diagonal, x)


def edge_maps(x: Tensor, terms: Terms) -> Tensor:
    blocks = terms.left.mT @ terms.right  # (m, d, d)
    if terms.edge_weight is not None:
        blocks = terms.edge_weight[:, None, None] * blocks
    return apply_diagonal(terms.diagonal, x) - sparse_product(x, terms.graph, blocks)
