"""Triton kernels for tensors on a CUDA device. They have never run on a card.

What is here is compared with the plain compositions in Triton's interpreter and compiled to PTX;
how fast it is, nobody has measured.

* ``neighbour_sums``, ``block_sums`` and ``edge_products``: what ``kernels/sparse.py`` needs, each
  in one launch, without sparse tensors and without anything of size edges × columns;
* ``node_maps``: the operator with maps at the nodes, one launch forward and one back;
* ``sage_level``: a layer of several GraphSAGE stacks with its activation and dropout.

This file decides when they are used, and imports Triton only then. Since they have never run on a
card they must be asked for: ``COOPSHEAF_TRITON=1`` in the environment, or :func:`use_triton`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import CSR, Graph
from coopsheaf.sheaves.kernels.eager import is_plain
from coopsheaf.sheaves.kernels.terms import Terms

# Where the kernels run. In Triton's interpreter (TRITON_INTERPRET=1) tests say "cpu".
DEVICE = "cuda"
# Small matrices of up to this size are held in registers.
LARGEST_STALK = 8
ACTIVATIONS: dict[Any, str] = {
    None: "none",
    torch.nn.functional.relu: "relu",
    torch.nn.functional.gelu: "gelu",
}

_wanted = os.environ.get("COOPSHEAF_TRITON") == "1"


@contextmanager
def use_triton(wanted: bool) -> Iterator[None]:
    """Use these kernels, or do not, for the whole process, inside a ``with`` block."""
    global _wanted
    before, _wanted = _wanted, wanted
    try:
        yield
    finally:
        _wanted = before


def is_wanted() -> bool:
    """Whether they were asked for."""
    return _wanted


@cache
def has_triton() -> bool:
    """Whether Triton is installed; nothing is imported."""
    return find_spec("triton") is not None


def takes(*tensors: Tensor) -> bool:
    """Whether a product of these tensors, which has no derivative of its own, is made here."""
    return (
        _wanted
        and all(tensor.device.type == DEVICE for tensor in tensors)
        and all(tensor.is_floating_point() for tensor in tensors)
        and has_triton()
    )


def takes_node_maps(x: Tensor, terms: Terms) -> bool:
    """Whether :func:`node_maps` computes this operator."""
    small = 0 < x.shape[1] <= LARGEST_STALK and terms.diagonal.dim() == 1
    return small and _takes_whole(x, *terms[1:])


def takes_sage(x: Tensor, parameters: Sequence[Tensor], act: Any) -> bool:
    """Whether :func:`sage_level` computes layers with this activation after them."""
    return act in ACTIVATIONS and _takes_whole(x, *parameters)


def _takes_whole(*tensors: Tensor | None) -> bool:
    """Whether nobody needs to look inside."""
    return (
        _wanted
        and not torch.compiler.is_compiling()
        and is_plain(tensors, DEVICE, (torch.float32,))
        and has_triton()
    )


def neighbour_sums(x: Tensor, csr: CSR, weight: Tensor | None = None) -> Tensor:
    """Σ over the edges of each row of w_e x_j, ``(n, c)``; weight ``(m,)``."""
    from coopsheaf.sheaves.kernels.on_cuda import products

    return products.neighbour_sums(x.unsqueeze(0), csr, weight)[0]


def block_sums(x: Tensor, blocks: Tensor, csr: CSR) -> Tensor:
    """Σ over the edges of each row of B_e x_j; x ``(n, b, c)``, blocks ``(m, b, b)``."""
    from coopsheaf.sheaves.kernels.on_cuda import products

    return products.block_sums(x, blocks, csr)


def edge_products(g: Tensor, x: Tensor, csr: CSR) -> Tensor:
    """g_i x_jᵀ for the edges of every row i, ``(m, b, b)`` in the order of the edges."""
    from coopsheaf.sheaves.kernels.on_cuda import products

    return products.edge_products(g, x, csr)


def node_maps(x: Tensor, terms: Terms, compose: Callable[..., Tensor]) -> Tensor:
    """The operator with maps at the nodes; ``compose`` is the same with ordinary operations."""
    from coopsheaf.sheaves.kernels.on_cuda.maps import NodeMaps

    return NodeMaps.apply(compose, x, *terms)


def sage_level(
    x: Tensor,
    graph: Graph,
    inverse_degree: Tensor,
    parameters: Sequence[Tensor],
    act: Any,
    p: float,
    compose: Callable[..., Tensor],
) -> Tensor:
    """Layers of GraphSAGE that do not widen, activation and dropout, ``(layers, n, out)``.

    Args:
        x: ``(n, in)`` or ``(layers, n, in)``.
        graph: of n nodes.
        inverse_degree: ``(n, 1)``.
        parameters: stacks over the layers of W_l, b, W_r and, if they project, of W and b'.
        act: a key of ``ACTIVATIONS``.
        p: probability of dropout.
        compose: the layers with ordinary operations, a function of x and these stacks.
    """
    from coopsheaf.sheaves.kernels.on_cuda.sage import Level, SageLevel

    level = Level(graph, inverse_degree, ACTIVATIONS[act], p, compose)
    return SageLevel.apply(level, x, *parameters)
