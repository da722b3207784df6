"""What follows from a graph and from which of its nodes belong together, kept with the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph

Derived = TypeVar("Derived")


def remember_with_batch(
    graph: Graph, name: str, batch: Tensor | None, make: Callable[[], Derived]
) -> Derived:
    """What ``make`` derives from a graph and a batch, kept under ``name`` for the last batch.

    As :meth:`~coopsheaf.Graph.remember`: compilers and the transforms of ``torch.func`` see
    ``make`` itself.

    Args:
        graph: the graph that keeps it.
        name: of what is kept.
        batch: ``(n,)``, the graph of each node, or ``None``.
        make: derives it; it must depend on nothing else.
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return make()
    kept: list[Any] = graph.remember(name, lambda graph: [])
    if not (kept and _same(kept[0], batch)):
        with torch.inference_mode(False), torch.no_grad():
            kept[:] = [batch, make()]
    found: Derived = kept[1]
    return found


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or torch.equal(one, other)
