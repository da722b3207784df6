r"""Kernels: plain tensors in, plain tensors out.

Every Laplacian here is a block diagonal minus one term per edge j→i,

.. math:: y_i = D_i x_i - \sum_{e = (j \to i)} w_e\, L_e^\top R_e\, x_j,

with the maps :math:`L, R` at the nodes (``node_maps``: :math:`L_e = L_i, R_e = R_j`) or at the
edges (``edge_maps``). Three modules compute it with the same arguments: ``reference`` (dense),
``edgewise`` (a message per edge) and ``factored`` (the default). This file is the one place that
decides which is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels import edgewise, factored, reference

KERNELS = {"reference": reference, "edgewise": edgewise, "factored": factored}

_active = "factored"


@contextmanager
def use_kernel(name: str) -> Iterator[None]:
    """Compute every operator with another kernel, for the whole process, inside a ``with`` block.

    For measuring and testing; there is no reason to change the default otherwise.
    """
    global _active
    check_choice("name", name, KERNELS)
    before, _active = _active, name
    try:
        yield
    finally:
        _active = before


def node_maps(
    x: Tensor,
    graph: Graph,
    diagonal: Tensor,
    left: Tensor,
    right: Tensor,
    edge_weight: Tensor | None = None,
) -> Tensor:
    """The operator with maps at the nodes.

    Shapes: x ``(n, d, h)``; diagonal ``(n,)`` or ``(n, d, d)``; left, right ``(n, d, d)``;
    edge_weight ``(m,)``. Returns ``(n, d, h)``.
    """
    return KERNELS[_active].node_maps(x, graph, diagonal, left, right, edge_weight)


def edge_maps(
    x: Tensor,
    graph: Graph,
    diagonal: Tensor,
    left: Tensor,
    right: Tensor,
    edge_weight: Tensor | None = None,
) -> Tensor:
    """The operator with maps at the edges.

    Shapes: x ``(n, d, h)``; diagonal ``(n,)`` or ``(n, d, d)``; left, right ``(m, d, d)``;
    edge_weight ``(m,)``. Returns ``(n, d, h)``.
    """
    return KERNELS[_active].edge_maps(x, graph, diagonal, left, right, edge_weight)
