r"""Kernels: plain tensors in, plain tensors out.

Every Laplacian here is a block diagonal minus one term per edge j→i,

.. math:: y_i = D_i x_i - \sum_{e = (j \to i)} w_e\, L_e^\top R_e\, x_j,

with the maps :math:`L, R` at the nodes (``node_maps``: :math:`L_e = L_i, R_e = R_j`) or at the
edges (``edge_maps``). Four modules compute it from the same parts: ``reference`` (dense),
``edgewise`` (a message per edge), ``factored`` (the default) and ``native`` (compiled, the default
where the package ``coopsheaf-kernels`` is installed). This file is the one place that decides which
is used, here and by the layers that have compiled kernels of their own.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.sheaves.kernels import edgewise, factored, native, reference
from coopsheaf.sheaves.kernels.runs import active_runs
from coopsheaf.sheaves.kernels.terms import NodeTerms, Terms, dense_terms

KERNELS: dict[str, Any] = {"reference": reference, "edgewise": edgewise, "factored": factored}
if importlib.util.find_spec("coopsheaf_kernels") is not None:
    KERNELS["native"] = native

VARIABLE = "COOPSHEAF_KERNEL"  # of the environment: a kernel for a whole process

_active: str | None = None  # not decided yet


def active_kernel() -> str:
    """The kernel that computes now."""
    global _active
    if _active is None and torch.compiler.is_compiling():
        # Nothing is loaded while a program is traced, and no compiled kernel is called in it.
        return os.environ.get(VARIABLE) or "factored"
    if _active is None:
        best = "native" if native.is_available() else "factored"
        _active = os.environ.get(VARIABLE) or best
        check_choice(VARIABLE, _active, KERNELS)
    return _active


@contextmanager
def use_kernel(name: str) -> Iterator[None]:
    """Compute every operator with another kernel, for the whole process, inside a ``with`` block.

    For measuring and testing; there is no reason to change the default otherwise. The environment
    variable ``COOPSHEAF_KERNEL`` does it for a whole process.
    """
    global _active
    check_choice("name", name, KERNELS)
    before, _active = active_kernel(), name
    try:
        yield
    finally:
        _active = before


def describe_kernel() -> str:
    """The kernel that computes now; if it is compiled, its version and instructions, too."""
    return native.describe() if active_kernel() == "native" else active_kernel()


def is_fused(*tensors: Tensor | None) -> bool:
    """Whether compiled kernels stand in for compositions of PyTorch's operations on these tensors.

    They must be in single precision on the CPU, and nobody may need to look inside.
    """
    return native.is_plain_single(*tensors) and active_kernel() == "native"


def is_fused_together(*tensors: Tensor | None) -> bool:
    """The same inside of a pass of many runs, for kernels that are called run after run."""
    if active_runs() is None or active_kernel() != "native":
        return False
    given = [tensor for tensor in tensors if tensor is not None]
    single = all(t.dtype == torch.float32 and t.device.type == "cpu" for t in given)
    return single and not torch.is_autocast_enabled("cpu")


def node_maps(x: Tensor, terms: NodeTerms) -> Tensor:
    """The operator with maps at the nodes, from ``(n, d, h)`` to ``(n, d, h)``."""
    kernel = KERNELS[active_kernel()]
    return kernel.node_maps(x, terms if kernel is native else dense_terms(terms))


def edge_maps(x: Tensor, terms: Terms | NodeTerms) -> Tensor:
    """The operator with maps at the edges, from ``(n, d, h)`` to ``(n, d, h)``."""
    return KERNELS[active_kernel()].edge_maps(x, dense_terms(terms))


def augmented_factors(own: Tensor, other: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`~coopsheaf.sheaves.kernels.native.compose_factors`, compiled where it can be."""
    function = native.augmented_factors if is_fused(own, other) else native.compose_factors
    return function(own, other, degree)
