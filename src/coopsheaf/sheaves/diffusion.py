r"""The diffusion operator of a CSNN layer, from its source and target maps.

``paper`` and ``released`` are the two readings of the same idea, ``messages`` is a part of it:

* paper: :math:`(\Delta^{in})^\top \Delta^{out}`, information flowing along the edges from source to
  target, augmented normalisation;
* released: what the authors' code computes. It applies the two factors in the other order,
  gathers at ``edge_index[0]`` what comes from ``edge_index[1]``, and divides the diagonal of the
  second step by another degree than the one it sums over;
* messages: what :math:`\Delta^{out}` carries over the edges, without its diagonal. One hop, and
  nothing of a node's own features but over a loop.

On a graph whose edges all go both ways the first two differ in the order alone. On one-directional
lists they also move information in opposite directions; compare them on bidirected graphs only.

On a part of a graph (:meth:`coopsheaf.Graph.subgraph`) degrees are those of the whole graph, and
what a node hears is multiplied by D_i / k_i if k_i of the D_i edges that it hears from are here. If
those are a random choice, the sum is unbiased; if none is missing, it is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import (
    NodeMapOperator,
    flat_in_laplacian,
    flat_out_laplacian,
    weighted_degree,
    whole_degree,
)
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.operator import Operator, Product

Semantics = Callable[[Graph, ConformalMaps, ConformalMaps, Tensor | None], Operator]
"""From graph, source maps, target maps and edge weights to an operator on ``(n, d, h)``."""


def paper_diffusion(
    graph: Graph, source: ConformalMaps, target: ConformalMaps, edge_weight: Tensor | None = None
) -> Operator:
    r""":math:`(\Delta^{in})^\top \Delta^{out}` with augmented normalisation."""
    outward = flat_out_laplacian(graph, source, target, edge_weight, "augmented")
    inward = flat_in_laplacian(graph, source, target, edge_weight, "augmented")
    # Spelled out: compilers do not trace `@`.
    return Product(rescale_missing(inward.T), rescale_missing(outward))


def released_diffusion(
    graph: Graph, source: ConformalMaps, target: ConformalMaps, edge_weight: Tensor | None = None
) -> Operator:
    r"""The operator of the authors' code.

    With row and column degrees :math:`r_i, c_i` of the list (i, j) ∈ ``edge_index``,
    :math:`a_i = r_i t_i^2` and :math:`b_i = c_i s_i^2`,

    .. math::
        y_i &= \frac{a_i}{a_i + 1} x_i
               - \sum_{(i, j)} \frac{T_i^\top S_j x_j}{\sqrt{(a_i + 1)(a_j + 1)}}, \\
        z_i &= \frac{r_i s_i^2}{b_i + 1} y_i
               - \sum_{(i, j)} \frac{T_i^\top S_j y_j}{\sqrt{(b_i + 1)(b_j + 1)}}.
    """
    graph = graph.reverse()  # gather at edge_index[0]
    first = flat_in_laplacian(graph, source, target, edge_weight, "augmented").T
    second = flat_out_laplacian(graph, source, target, edge_weight, "augmented")
    row_degree = whole_degree(graph, edge_weight)
    column_degree = whole_degree(graph.reverse(), edge_weight)
    squared = source.scale.square()
    diagonal = row_degree * squared / (column_degree * squared + 1)
    second = NodeMapOperator(graph, diagonal, second.left_maps, second.right_maps, edge_weight)
    return Product(rescale_missing(second), rescale_missing(first))


def message_diffusion(
    graph: Graph, source: ConformalMaps, target: ConformalMaps, edge_weight: Tensor | None = None
) -> Operator:
    r"""The edges of :math:`\Delta^{out}` alone: one hop, no diagonal.

    .. math:: y_i = - \sum_{j \to i} \frac{w_e\, T_i^\top S_j x_j}
              {\sqrt{(d^{out}_i + 1)(d^{out}_j + 1)}}, \qquad d^{out}_i = \deg^{out}(i)\, s_i^2.

    A loop is an edge, and hands a node its own features; degrees count it.
    """
    outward = flat_out_laplacian(graph, source, target, edge_weight, "augmented")
    nothing = torch.zeros_like(outward.diagonal)
    return rescale_missing(
        NodeMapOperator(graph, nothing, outward.left_maps, outward.right_maps, edge_weight)
    )


def split_passes(operator: Operator) -> tuple[NodeMapOperator, NodeMapOperator | None]:
    """The pass of a layer that is applied first, and the one after it if there are two."""
    first, second = (operator.b, operator.a) if isinstance(operator, Product) else (operator, None)
    assert isinstance(first, NodeMapOperator)
    assert second is None or isinstance(second, NodeMapOperator)
    return first, second


def rescale_missing(operator: NodeMapOperator) -> NodeMapOperator:
    """Let what is heard in a part of a graph make up for the edges that are missing."""
    graph = operator.graph
    if graph.whole is None:
        return operator
    here = weighted_degree(graph, operator.edge_weight)
    factor = torch.where(here > 0, graph.whole.into / torch.where(here > 0, here, 1), 1.0)
    right, left = operator.right_maps, operator.left_maps
    if isinstance(left, ConformalMaps):
        left = ConformalMaps(factor.to(left.scale.dtype) * left.scale, left.orthogonal)
    else:
        left = factor.to(left.dtype)[:, None, None] * left
    return NodeMapOperator(graph, operator.diagonal, left, right, operator.edge_weight)


SEMANTICS: dict[str, Semantics] = {
    "paper": paper_diffusion,
    "released": released_diffusion,
    "messages": message_diffusion,
}
