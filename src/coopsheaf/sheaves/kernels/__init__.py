r"""Kernels: plain tensors in, plain tensors out.

Every Laplacian here is a block diagonal minus one term per edge j→i,

.. math:: y_i = D_i x_i - \sum_{e = (j \to i)} w_e\, L_e^\top R_e\, x_j,

with the maps :math:`L, R` at the nodes (``node_maps``: :math:`L_e = L_i, R_e = R_j`) or at the
edges (``edge_maps``). Three modules compute it from the same ``Terms``: ``reference``
(dense), ``edgewise`` (a message per edge) and ``factored`` (the default). This file is the one
place that decides which is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.sheaves.kernels import edgewise, factored, reference
from coopsheaf.sheaves.kernels.terms import Terms

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


def node_maps(x: Tensor, terms: Terms) -> Tensor:
    """The operator with maps at the nodes, from ``(n, d, h)`` to ``(n, d, h)``."""
    return KERNELS[_active].node_maps(x, terms)


def edge_maps(x: Tensor, terms: Terms) -> Tensor:
    """The operator with maps at the edges, from ``(n, d, h)`` to ``(n, d, h)``."""
    return KERNELS[_active].edge_maps(x, terms)
