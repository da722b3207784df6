r"""Restriction maps at the ends of edges, and what learns them.

An undirected graph is given with every edge both ways and without self-loops. Edge e = j→i carries
the map of its *target* i, :math:`F_e = F_{i \unlhd \{i,j\}}`; the map of the other end is that of
the reverse edge. The Laplacian that the maps define is

.. math:: L(X)_i = \sum_{e = j \to i} w_e F_e^\top (F_e x_i - F_{\bar e} x_j).

A kind of maps (:class:`EdgeMaps`) says how many free numbers one map takes, how they become a map
and how the Laplacian is computed best.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt
from coopsheaf.sheaves.kernels.eager import is_transformed
from coopsheaf.sheaves.kernels.stalks import identity_like
from coopsheaf.sheaves.laplacian import EdgeMapOperator, GraphOperator, weighted_degree
from coopsheaf.sheaves.operator import BlockDiagonal, DirectSum, Operator, Product
from coopsheaf.sheaves.orthogonal import Orthogonal, make_orthogonal

NORMALIZATIONS = {
    "augmented": "(D + I)^-1/2 on both sides, D the block diagonal",
    "degree": "a number per node on both sides that depends on its degree alone",
}

# What makes maps of free numbers.
MAP_ACTS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "elu": F.elu,
    "identity": nn.Identity(),
}


def undirected_partners(graph: Graph) -> Tensor:
    """Where the reverse of each edge is, ``(m,)``; refuses self-loops and edges without reverse."""
    return graph.remember("undirected", _undirected_partners)


def _undirected_partners(graph: Graph) -> Tensor:
    refuse_self_loops(graph)
    return graph.partners()


def refuse_self_loops(graph: Graph) -> None:
    """Raise where an edge ends where it begins."""
    loops = graph.source == graph.target
    rule = (
        "`edge_index` must not hold self-loops: remove them (--set data.self_loops=remove, of own "
        "tables --self-loops remove)"
    )
    if torch.compiler.is_compiling():
        torch._assert_async(~loops.any(), rule)
    elif loops.any():
        raise ValueError(f"{rule}; got one at node {int(graph.source[loops][0])}")


@torch.library.custom_op("coopsheaf::at_reverse", mutates_args=())
def _at_reverse(values: Tensor, partner: Tensor) -> Tensor:
    return values.index_select(0, partner)


@_at_reverse.register_fake
def _(values: Tensor, partner: Tensor) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def _save_partner(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _at_reverse_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (partner,) = ctx.saved_tensors
    return grad.index_select(0, partner) if is_transformed() else _at_reverse(grad, partner), None


_at_reverse.register_autograd(_at_reverse_backward, setup_context=_save_partner)


def at_reverse(values: Tensor, graph: Graph) -> Tensor:
    """For each edge the values ``(m, ...)`` of its reverse.

    Its derivative is itself, which PyTorch cannot know: that of its indexing adds up one by one
    and takes several times as long.
    """
    partner = undirected_partners(graph)
    # A custom operator would drop tangents without a word; transforms do not see its derivative.
    if forward_ad._current_level >= 0 or is_transformed():
        return values.index_select(0, partner)
    return _at_reverse(values, partner)


class EdgeMaps(ABC):
    """A kind of restriction maps.

    Args:
        stalk_dim: dimension d of the stalks.
    """

    def __init__(self, stalk_dim: int) -> None:
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """Free numbers per map."""

    @abstractmethod
    def dense(self, maps: Tensor) -> Tensor:
        """The maps as matrices, ``(m, d, d)``."""

    @abstractmethod
    def degree(self, maps: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
        """The block diagonal D of the Laplacian: ``(n,)``, ``(n, d)`` or ``(n, d, d)``."""

    def between(
        self,
        left: Tensor,
        right: Tensor,
        graph: Graph,
        weight: Tensor | None,
        diagonal: Tensor,
    ) -> Operator:
        r""":math:`D_i x_i - \sum_{e = j \to i} w_e L_e^\top R_e x_j` of maps at both ends of edges.

        Args:
            left: maps L at the targets.
            right: maps R at the sources.
            graph: n nodes, m edges.
            weight: w, ``(m,)``, of any sign.
            diagonal: D, in the shape that :meth:`degree` has.
        """
        return EdgeMapOperator(graph, diagonal, self.dense(left), self.dense(right), weight)

    def make(self, parameters: Tensor) -> Tensor:
        """``(m, num_parameters)`` numbers, as the activation leaves them, to maps."""
        return parameters

    def degree_factor(self) -> int:
        """What multiplies the degree in the ``"degree"`` normalisation."""
        raise ValueError(f"`normalization` must be 'augmented' or None for {self}; got 'degree'")

    def check_normalization(self, normalization: str | None) -> str | None:
        if normalization is not None:
            check_choice("normalization", normalization, NORMALIZATIONS)
        if normalization == "degree":
            self.degree_factor()
        return normalization

    def laplacian(
        self, maps: Tensor, graph: Graph, weight: Tensor | None, normalization: str | None
    ) -> Operator:
        r"""The Laplacian of the sheaf with these maps and edge weights.

        Normalised it is :math:`R L R`, and computed in that order: R acts at the nodes, so that no
        root is gathered at the edges.
        """
        degree = self.degree(maps, graph, weight)
        laplacian = self.between(maps, at_reverse(maps, graph), graph, weight, degree)
        return self.normalized(laplacian, degree, graph, weight, normalization)

    def normalized(
        self,
        operator: Operator,
        degree: Tensor,
        graph: Graph,
        weight: Tensor | None,
        normalization: str | None,
    ) -> Operator:
        """R A R of an operator A, with the R of a Laplacian that has this block diagonal."""
        outer = self.root(degree, graph, weight, normalization)
        return operator if outer is None else Product(outer, Product(operator, outer))

    def root(
        self, degree: Tensor, graph: Graph, weight: Tensor | None, normalization: str | None
    ) -> BlockDiagonal | None:
        """R, what a Laplacian with this block diagonal is multiplied with on both sides."""
        if self.check_normalization(normalization) is None:
            return None
        if normalization == "degree":
            count = weighted_degree(graph, weight).to(degree.dtype)
            root = (self.degree_factor() * count + 1).rsqrt()
        elif degree.dim() == 3:
            root = inverse_sqrt(degree + identity_like(degree, self.stalk_dim))
        else:
            root = (degree + 1).rsqrt()
        return BlockDiagonal(root, self.stalk_dim if root.dim() == 1 else None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stalk_dim})"


class DiagonalMaps(EdgeMaps):
    """Diagonal matrices: d numbers per map, d graphs with weights of any sign side by side."""

    @property
    def num_parameters(self) -> int:
        return self.stalk_dim

    def dense(self, maps: Tensor) -> Tensor:
        return torch.diag_embed(maps)

    def degree(self, maps: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
        return _sum_at_targets(_weighted(maps.square(), weight), graph)

    def between(
        self,
        left: Tensor,
        right: Tensor,
        graph: Graph,
        weight: Tensor | None,
        diagonal: Tensor,
    ) -> Operator:
        # No d×d blocks: a scalar product of width h per coordinate costs 1/d of a block product.
        entries = _weighted(left * right, weight)  # (m, d)
        return DirectSum(
            [
                GraphOperator(graph, own, entry)
                for own, entry in zip(diagonal.unbind(1), entries.unbind(1), strict=True)
            ]
        )

    def degree_factor(self) -> int:
        return 1


class GeneralMaps(EdgeMaps):
    """Any matrices: d² numbers per map."""

    @property
    def num_parameters(self) -> int:
        return self.stalk_dim**2

    def make(self, parameters: Tensor) -> Tensor:
        return parameters.unflatten(-1, (self.stalk_dim, self.stalk_dim))

    def dense(self, maps: Tensor) -> Tensor:
        return maps

    def degree(self, maps: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
        return _sum_at_targets(_weighted(maps.mT @ maps, weight), graph)

    def degree_factor(self) -> int:
        return self.stalk_dim


class OrthogonalMaps(EdgeMaps):
    """Orthogonal matrices: a discrete vector bundle, whose D is a number per node.

    Args:
        stalk_dim: dimension d of the stalks, at least 2.
        orthogonal: ``"householder"``, ``"cayley"``, ``"matrix-exponential"``, ``"euler"``, or an
            object of :mod:`coopsheaf.sheaves.orthogonal`.
    """

    def __init__(self, stalk_dim: int, orthogonal: str | Orthogonal = "householder") -> None:
        super().__init__(check_int("stalk_dim", stalk_dim, minimum=2))
        self.orthogonal = make_orthogonal(orthogonal, stalk_dim)
        if self.orthogonal.num_parameters == 0:
            raise ValueError(
                f"`orthogonal` must have something to learn; got {self.orthogonal} "
                "(maps='identity' are fixed)"
            )

    @property
    def num_parameters(self) -> int:
        return self.orthogonal.num_parameters

    def make(self, parameters: Tensor) -> Tensor:
        return self.orthogonal(parameters)

    def dense(self, maps: Tensor) -> Tensor:
        return maps

    def degree(self, maps: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
        return weighted_degree(graph, weight).to(maps.dtype)

    def __repr__(self) -> str:
        return f"OrthogonalMaps({self.orthogonal})"


class IdentityMaps(EdgeMaps):
    """The identity at every end: the constant sheaf, with nothing to learn."""

    @property
    def num_parameters(self) -> int:
        return 0

    def dense(self, maps: Tensor) -> Tensor:
        return identity_like(maps, self.stalk_dim).expand(maps.shape[0], -1, -1)

    def degree(self, maps: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
        return weighted_degree(graph, weight).to(maps.dtype)

    def between(
        self,
        left: Tensor,
        right: Tensor,
        graph: Graph,
        weight: Tensor | None,
        diagonal: Tensor,
    ) -> Operator:
        return GraphOperator(graph, diagonal, weight, self.stalk_dim)

    def degree_factor(self) -> int:
        return self.stalk_dim  # as general maps have it, which may be the identity


MAPS: dict[str, type[EdgeMaps]] = {
    "diagonal": DiagonalMaps,
    "orthogonal": OrthogonalMaps,
    "general": GeneralMaps,
    "identity": IdentityMaps,
}


def make_maps(maps: str | EdgeMaps, stalk_dim: int) -> EdgeMaps:
    """A kind of maps from its name; an object is passed through."""
    if not isinstance(maps, EdgeMaps):
        return check_choice("maps", maps, MAPS)(stalk_dim)
    if maps.stalk_dim != stalk_dim:
        raise ValueError(f"`maps` must be made for stalk dimension {stalk_dim}; got {maps}")
    return maps


def _weighted(values: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return values
    return values * weight.view(-1, *[1] * (values.dim() - 1))


def _sum_at_targets(values: Tensor, graph: Graph) -> Tensor:
    total = values.new_zeros(graph.num_nodes, *values.shape[1:])
    return total.index_add(0, graph.target, values)
