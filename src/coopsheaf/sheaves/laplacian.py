r"""Sheaf Laplacians as operators on node features ``(n, d, h)``.

For a directed sheaf with an edge e = i→j, source map :math:`S_e` at i and target map :math:`T_e`
at j, and weights :math:`w_e` (1 if not given),

.. math::
    L^{out}(X)_i &= \sum_{e = i \to j} w_e S_e^\top S_e x_i
                    - \sum_{e = j \to i} w_e T_e^\top S_e x_j, \\
    L^{in}(X)_i  &= \sum_{e = j \to i} w_e T_e^\top T_e x_i
                    - \sum_{e = i \to j} w_e S_e^\top T_e x_j.

The paper writes one neighbourhood N(i) under both sums. That is the above on graphs whose edges all
go both ways; on truly directed graphs the above is the reading for which the trivial sheaf gives
the transposed out- and the in-degree Laplacian. A self-loop adds to all sums.

``normalization`` is one of

* ``None``: L itself;
* ``"augmented"``: :math:`(D + I)^{-1/2} L (D + I)^{-1/2}`, what the models use. D is the block
  diagonal: the sum of the :math:`S^\top S` (out) or :math:`T^\top T` (in) above;
* ``"plain"``: :math:`D^{-1/2} L D^{-1/2}` with the pseudo-inverse, as printed in the paper. It
  erases the messages of nodes whose map is zero; see ``docs/paper-notes.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.sheaves import kernels
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels import reference
from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.sheaves.kernels.terms import NodeTerms, Terms
from coopsheaf.sheaves.maps import ConformalMaps, NodeMaps, cast_maps, dense_maps
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.sheaf import DirectedSheaf, FlatSheaf, Sheaf, check_kind


class NodeMapOperator(Operator):
    """D_i x_i - Σ_{j→i} w_e L_iᵀ R_j x_j: maps at the nodes.

    Args:
        graph: n nodes, m edges.
        diagonal: ``(n,)`` or ``(n, d, d)``.
        left: L, ``(n, d, d)`` or conformal.
        right: R, ``(n, d, d)`` or conformal.
        edge_weight: w, ``(m,)``.
    """

    _kernel = staticmethod(kernels.node_maps)
    _matrix = staticmethod(reference.node_matrix)

    def __init__(
        self,
        graph: Graph,
        diagonal: Tensor,
        left: NodeMaps,
        right: NodeMaps,
        edge_weight: Tensor | None = None,
    ) -> None:
        self.graph, self.diagonal, self.edge_weight = graph, diagonal, edge_weight
        self.left_maps, self.right_maps = left, right

    @property
    def left(self) -> Tensor:
        """L as matrices, ``(n, d, d)``."""
        return dense_maps(self.left_maps)

    @property
    def right(self) -> Tensor:
        """R as matrices, ``(n, d, d)``."""
        return dense_maps(self.right_maps)

    @property
    def domain(self) -> tuple[int, int]:
        maps = self.left_maps
        matrices = maps.orthogonal if isinstance(maps, ConformalMaps) else maps
        return self.graph.num_nodes, matrices.shape[-1]

    codomain = domain

    def _mv(self, x: Tensor) -> Tensor:
        # Maps of a model in half precision are kept in single: they are rounded here, at the end.
        left, right = cast_maps(self.left_maps, x.dtype), cast_maps(self.right_maps, x.dtype)
        terms = NodeTerms(self.graph, self.diagonal, left, right, self.edge_weight)
        return self._kernel(x, terms).to(x.dtype)

    def to_dense(self) -> Tensor:
        terms = Terms(self.graph, self.diagonal, self.left, self.right, self.edge_weight)
        return self._matrix(terms)

    @property
    def T(self) -> NodeMapOperator:
        diagonal = self.diagonal if self.diagonal.dim() == 1 else self.diagonal.mT
        turned = self.right_maps, self.left_maps
        return type(self)(self.graph.reverse(), diagonal, *turned, self.edge_weight)


class EdgeMapOperator(NodeMapOperator):
    """D_i x_i - Σ_{e = j→i} w_e L_eᵀ R_e x_j: maps at the edges, left and right ``(m, d, d)``.

    Into stalks of edges of another dimension they are ``(m, e, d)``.
    """

    _kernel = staticmethod(kernels.edge_maps)
    _matrix = staticmethod(reference.edge_matrix)


class GraphOperator(Operator):
    """D_i x_i - Σ_{e = j→i} w_e x_j: what a graph alone does, to every stalk coordinate alike.

    The Laplacian of a constant sheaf, and of any sheaf on stalks of dimension 1: there the product
    of the two maps of an edge goes into its weight, sign included.

    Args:
        graph: n nodes, m edges.
        diagonal: ``(n,)``.
        edge_weight: w, ``(m,)``, of any sign; 1 if not given.
        stalk_dim: d.
    """

    def __init__(
        self,
        graph: Graph,
        diagonal: Tensor,
        edge_weight: Tensor | None = None,
        stalk_dim: int = 1,
    ) -> None:
        self.graph, self.diagonal, self.edge_weight = graph, diagonal, edge_weight
        self.stalk_dim = stalk_dim

    @property
    def domain(self) -> tuple[int, int]:
        return self.graph.num_nodes, self.stalk_dim

    codomain = domain

    def _mv(self, x: Tensor) -> Tensor:
        flat = x.flatten(1).unsqueeze(1)  # (n, 1, d·h)
        weight = None if self.edge_weight is None else self.edge_weight[:, None, None]
        heard = sparse_product(flat, self.graph, weight).view_as(x)
        return (self.diagonal[:, None, None] * x - heard).to(x.dtype)

    def to_dense(self) -> Tensor:
        graph, matrix = self.graph, self.diagonal.diag()
        weight = self.diagonal.new_ones(1) if self.edge_weight is None else self.edge_weight
        weight = -weight.to(matrix.dtype).expand(graph.num_edges)
        matrix = matrix.index_put((graph.target, graph.source), weight, accumulate=True)
        return torch.kron(matrix, torch.eye(self.stalk_dim).to(matrix))

    @property
    def T(self) -> GraphOperator:
        return GraphOperator(self.graph.reverse(), self.diagonal, self.edge_weight, self.stalk_dim)


def sheaf_laplacian(sheaf: Sheaf, normalization: str | None = None) -> Operator:
    r"""The Laplacian :math:`L = \delta^\top \delta` of an undirected sheaf.

    :math:`L(X)_u = \sum_{e = \{u, v\}} w_e F_{u \unlhd e}^\top (F_{u \unlhd e} x_u -
    F_{v \unlhd e} x_v)`, symmetric and positive semi-definite. Normalised its spectrum lies in
    [0, 2]. D counts both ends of a self-loop.

    Args:
        sheaf: an undirected sheaf.
        normalization: ``None``, ``"augmented"`` or ``"plain"``.
    """
    check_kind(sheaf, Sheaf)
    both_ways = sheaf.both_ways
    at_source = sheaf.maps.transpose(0, 1).flatten(0, 1)  # (2m, d, d): ends 0, then ends 1
    at_target = sheaf.maps.flip(1).transpose(0, 1).flatten(0, 1)
    weight = None if sheaf.edge_weight is None else sheaf.edge_weight.repeat(2)
    degree = sum_at(both_ways.target, _gram(at_target, weight), sheaf.num_nodes)
    return _edge_operator(both_ways, degree, at_target, at_source, weight, normalization)


def out_laplacian(sheaf: DirectedSheaf | FlatSheaf, normalization: str | None = None) -> Operator:
    """The out-degree sheaf Laplacian; see the module for the equation.

    In general neither symmetric nor positive semi-definite.

    Args:
        sheaf: a sheaf on a directed graph.
        normalization: ``None``, ``"augmented"`` or ``"plain"``.
    """
    check_kind(sheaf, DirectedSheaf, FlatSheaf)
    graph, weight = sheaf.graph, sheaf.edge_weight
    if isinstance(sheaf, FlatSheaf):
        return flat_out_laplacian(graph, sheaf.source, sheaf.target, weight, normalization)
    degree = sum_at(graph.source, _gram(sheaf.source_maps, weight), graph.num_nodes)
    return _edge_operator(
        graph, degree, sheaf.target_maps, sheaf.source_maps, weight, normalization
    )


def in_laplacian(sheaf: DirectedSheaf | FlatSheaf, normalization: str | None = None) -> Operator:
    """The in-degree sheaf Laplacian; see the module for the equation.

    In general neither symmetric nor positive semi-definite. CSNN uses its transpose, which moves
    information along the edges as the out-degree Laplacian does.

    Args:
        sheaf: a sheaf on a directed graph.
        normalization: ``None``, ``"augmented"`` or ``"plain"``.
    """
    check_kind(sheaf, DirectedSheaf, FlatSheaf)
    graph, weight = sheaf.graph, sheaf.edge_weight
    if isinstance(sheaf, FlatSheaf):
        return flat_in_laplacian(graph, sheaf.source, sheaf.target, weight, normalization)
    degree = sum_at(graph.target, _gram(sheaf.target_maps, weight), graph.num_nodes)
    return _edge_operator(
        graph.reverse(), degree, sheaf.source_maps, sheaf.target_maps, weight, normalization
    )


def flat_out_laplacian(
    graph: Graph,
    source: NodeMaps,
    target: NodeMaps,
    edge_weight: Tensor | None,
    normalization: str | None,
) -> NodeMapOperator:
    """:func:`out_laplacian` of maps at nodes, without a validated sheaf around them."""
    count = whole_degree(graph.reverse(), edge_weight)
    diagonal, right, left = _normalize_maps(source, target, count, normalization)
    return NodeMapOperator(graph, diagonal, left, right, edge_weight)


def flat_in_laplacian(
    graph: Graph,
    source: NodeMaps,
    target: NodeMaps,
    edge_weight: Tensor | None,
    normalization: str | None,
) -> NodeMapOperator:
    """:func:`in_laplacian` of maps at nodes, without a validated sheaf around them."""
    count = whole_degree(graph, edge_weight)
    diagonal, right, left = _normalize_maps(target, source, count, normalization)
    return NodeMapOperator(graph.reverse(), diagonal, left, right, edge_weight)


def weighted_degree(graph: Graph, edge_weight: Tensor | None) -> Tensor:
    """Number of edges into each node, or the sum of their weights, ``(n,)``."""
    if edge_weight is None:
        return graph.in_degree
    return sum_at(graph.target, edge_weight, graph.num_nodes)


def whole_degree(graph: Graph, edge_weight: Tensor | None) -> Tensor:
    """:func:`weighted_degree`; in a part of a graph, that of the whole graph, ``(n,)``.

    With it the Laplacian of maps at the nodes of a part is a block of that of the whole graph.
    """
    return weighted_degree(graph, edge_weight) if graph.whole is None else graph.whole.into


def _augmented(degree: Tensor) -> Tensor:
    if degree.dim() == 1:
        return degree + 1
    return degree + torch.eye(degree.shape[-1], dtype=degree.dtype, device=degree.device)


def _plain(degree: Tensor) -> Tensor:
    return degree


# What the inverse square root is taken of.
_NORMALIZATIONS: dict[str, Callable[[Tensor], Tensor]] = {"augmented": _augmented, "plain": _plain}


def _normalize(degree: Tensor, normalization: str | None) -> tuple[Tensor, Tensor | None]:
    """The normalised diagonal and what multiplies the maps, from the block diagonal D."""
    if normalization is None:
        return degree, None
    root = inverse_sqrt(check_choice("normalization", normalization, _NORMALIZATIONS)(degree))
    if degree.dim() == 1:
        return degree * root * root, root
    return root @ degree @ root, root


def _normalize_maps(
    own: NodeMaps, other: NodeMaps, count: Tensor, normalization: str | None
) -> tuple[Tensor, NodeMaps, NodeMaps]:
    """The normalised diagonal, and both maps times D^{-1/2}.

    ``own`` are the maps whose squares make D, ``count`` how many edges each of them counts for.
    """
    if (
        normalization == "augmented"
        and isinstance(own, ConformalMaps)
        and isinstance(other, ConformalMaps)
    ):
        diagonal, *factors = kernels.augmented_factors(own.scale, other.scale, count)
        pairs = zip(factors, (own.orthogonal, other.orthogonal), strict=True)
        first, second = (ConformalMaps(*pair) for pair in pairs)
        return diagonal, first, second
    diagonal, root = _normalize(_times_degree(own, count), normalization)
    return diagonal, _scaled(own, root), _scaled(other, root)


def _scaled(maps: NodeMaps, root: Tensor | None) -> NodeMaps:
    """F D^{-1/2}, one map per node."""
    if root is None:
        return maps
    if isinstance(maps, ConformalMaps) and root.dim() == 1:
        return ConformalMaps(maps.scale * root, maps.orthogonal)
    return _times_root(dense_maps(maps), root)


def _times_root(matrices: Tensor, root: Tensor) -> Tensor:
    return matrices * root[:, None, None] if root.dim() == 1 else matrices @ root


def _times_degree(maps: NodeMaps, degree: Tensor) -> Tensor:
    """deg(i) Fᵢᵀ Fᵢ: ``(n,)`` for conformal maps, else ``(n, d, d)``."""
    if isinstance(maps, ConformalMaps):
        return degree * maps.scale.square()
    return degree[:, None, None] * (maps.mT @ maps)


def _gram(maps: Tensor, edge_weight: Tensor | None) -> Tensor:
    gram = maps.mT @ maps
    return gram if edge_weight is None else edge_weight[:, None, None] * gram


def sum_at(ends: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """The sum of what edges have at one of their ends: ``(m, ...)`` to ``(n, ...)``."""
    half = values.dtype in (torch.bfloat16, torch.float16)
    wide = values.float() if half else values  # a sum of many halves stops growing
    total = wide.new_zeros(num_nodes, *values.shape[1:]).index_add(0, ends, wide)
    return total.to(values.dtype)


def _edge_operator(
    graph: Graph,
    degree: Tensor,
    left: Tensor,
    right: Tensor,
    edge_weight: Tensor | None,
    normalization: str | None,
) -> Operator:
    diagonal, root = _normalize(degree, normalization)
    if root is not None:
        left = _times_root(left, root[graph.target])
        right = _times_root(right, root[graph.source])
    return EdgeMapOperator(graph, diagonal, left, right, edge_weight)
