"""What edges carry: the sheaf adjacency, a Laplacian without its diagonal."""

from __future__ import annotations

import torch

from coopsheaf.sheaves.laplacian import GraphOperator, NodeMapOperator, sheaf_laplacian
from coopsheaf.sheaves.maps import ConformalMaps, NodeMaps
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.sheaf import Sheaf


def sheaf_adjacency(sheaf: Sheaf, normalization: str | None = None) -> Operator:
    r"""The adjacency of an undirected sheaf, :math:`A(X)_u = \sum_e w_e F_{u \unlhd e}^\top
    F_{v \unlhd e} x_v`, normalised as its Laplacian: L = D - A.

    Symmetric, and not definite. Augmented its spectrum is in (-1, 1], with identity maps it is the
    adjacency matrix of the graph.

    Args:
        sheaf: an undirected sheaf.
        normalization: ``None``, ``"augmented"`` or ``"plain"``.
    """
    operator = sheaf_laplacian(sheaf, normalization)
    assert isinstance(operator, NodeMapOperator)
    return along_edges(operator)


def along_edges(operator: NodeMapOperator | GraphOperator) -> Operator:
    """Σ_{j→i} w L_iᵀ R_j x_j of an operator D_i x_i - Σ_{j→i} w L_iᵀ R_j x_j.

    A node's own loops are edges too, and are in it.

    Args:
        operator: a Laplacian; sums and products of them have no such form.
    """
    if isinstance(operator, GraphOperator):
        ones = operator.diagonal.new_ones(operator.graph.num_edges)
        weight = ones if operator.edge_weight is None else operator.edge_weight
        zero = torch.zeros_like(operator.diagonal)
        return GraphOperator(operator.graph, zero, -weight, operator.stalk_dim)
    if not isinstance(operator, NodeMapOperator):
        raise ValueError(f"`operator` must be a Laplacian; got {type(operator).__name__}")
    zero = torch.zeros_like(operator.diagonal)
    maps = _negated(operator.left_maps), operator.right_maps
    return type(operator)(operator.graph, zero, *maps, operator.edge_weight)


def _negated(maps: NodeMaps) -> NodeMaps:
    if isinstance(maps, ConformalMaps):
        return ConformalMaps(-maps.scale, maps.orthogonal)
    return -maps
