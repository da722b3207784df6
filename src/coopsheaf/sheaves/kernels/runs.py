r"""Many runs of one network on one graph, in one pass: what kernels make of the runs.

:func:`torch.func.vmap` maps a network over R stacked sets of parameters. Dense operations it turns
into batched ones by itself. A kernel of ours is opaque to it; but whatever works node by node, or
along edges, does for R copies of a graph side by side, R·n nodes, what it does for one:

.. math:: (R, n, \dots) \to (R n, \dots) \to \text{kernel} \to (R n, \dots) \to (R, n, \dots)

So a kernel is called once for all runs, compiled or not, with its own derivative: autograd sees
tensors of R·n nodes and nothing of vmap. All of this happens only inside :func:`map_runs`; whoever
else transforms a network sees plain compositions, as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import _add_batch_dim, _remove_batch_dim, _unwrap_batched, current_level
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
from torch._functorch.vmap import vmap_increment_nesting

from coopsheaf.sheaves.graph import CSR, Degrees, Graph
from coopsheaf.sheaves.kernels.eager import is_transformed


class Copies:
    """Graphs as often as there are runs, side by side: node i of run r is r·n + i.

    Fewer copies are the first ones of more: only the largest number that was asked for is kept. A
    graph is known by its arrays, since turning it round makes another object of the same ones.
    """

    MOST = 8  # graphs that a network derives anew in every pass must not pile up

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Graph, Graph]] = {}

    def of(self, graph: Graph, count: int) -> Graph:
        key = graph.by_target.ptr.data_ptr(), graph.by_source.ptr.data_ptr()
        if key[::-1] in self._known and key not in self._known:
            return self.of(graph.reverse(), count).reverse()
        _, largest = self._known.get(key, (graph, None))
        if largest is None or largest.num_nodes < count * graph.num_nodes:
            if len(self._known) >= self.MOST:
                self._known.clear()
            largest = _repeat(graph, count)
            self._known[key] = graph, largest  # the graph, too: else its addresses are given away
        return _first(largest, count * graph.num_nodes, count * graph.num_edges)


@dataclass(frozen=True)
class Runs:
    """The runs of a pass.

    Args:
        generators: one for each run: what is random in a run depends on no other.
        copies: the graphs of all runs, kept from pass to pass.
    """

    generators: Sequence[torch.Generator]
    copies: Copies

    def __len__(self) -> int:
        return len(self.generators)

    def draw_seeds(self) -> list[int]:
        """A seed for each run, as a run alone draws one."""
        empty = torch.empty((), dtype=torch.int64)
        return [int(empty.random_(generator=generator)) for generator in self.generators]


_active: Runs | None = None


def map_runs(
    runs: Runs, function: Callable[[Sequence[Tensor]], Tensor], tensors: Sequence[Tensor]
) -> Tensor:
    """``vmap(function)(tensors)`` over runs, in which kernels see all of them at once.

    PyTorch's own function takes trees of arguments apart, which costs as much as a small network.

    Args:
        runs: R of them.
        function: of a list of tensors of one run; returns one tensor.
        tensors: ``(R, ...)`` each.
    """
    global _active
    with vmap_increment_nesting(len(runs), "different") as level:
        before, _active = _active, runs
        try:
            out = function([_add_batch_dim(tensor, 0, level) for tensor in tensors])
        finally:
            _active = before
        return _remove_batch_dim(out, level, len(runs), 0)


def active_runs() -> Runs | None:
    """The runs of this pass, for a kernel that vmap has reached; ``None`` everywhere else."""
    return _active if _active is not None and is_transformed() else None


def over_runs(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """Call a function with the runs as a first dimension of its tensors.

    Args:
        function: of R, of a list that says which tensors all runs share, and of the tensors: those
            as they are, the others ``(R, ...)``. Returns one tensor ``(R, ...)`` or several.
        tensors: of one run.
    """
    assert _active is not None
    level = current_level()
    pairs = [_unwrap_batched(tensor, level) for tensor in tensors]
    stacked = [t if dim is None or dim == 0 else t.movedim(dim, 0) for t, dim in pairs]
    with temporarily_pop_interpreter_stack():
        out = function(len(_active), [dim is None for _, dim in pairs], *stacked)
    if isinstance(out, tuple):
        return tuple(_add_batch_dim(part, 0, level) for part in out)
    return _add_batch_dim(out, 0, level)


def by_node(function: Callable[..., Any], *tensors: Tensor) -> Any:
    """A function of nodes, any number of them, ``(n, ...)``: of those of all runs at once."""

    def fold(count: int, shared: list[bool], *tensors: Tensor) -> Any:
        return _unfold(count, function(*_fold(count, shared, tensors)))

    return over_runs(fold, *tensors)


def along_edges(function: Callable[..., Any], graph: Graph, *tensors: Tensor) -> Any:
    """A function of a graph and of tensors of its nodes or edges: of R copies side by side."""
    assert _active is not None
    copies = _active.copies

    def fold(count: int, shared: list[bool], *tensors: Tensor) -> Any:
        return _unfold(count, function(copies.of(graph, count), *_fold(count, shared, tensors)))

    return over_runs(fold, *tensors)


def stack_shared(
    count: int, shared: Sequence[bool], tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """All tensors as ``(R, ...)``: what all runs share is expanded, without a copy."""
    pairs = zip(tensors, shared, strict=True)
    return tuple(t.expand(count, *t.shape) if alone else t for t, alone in pairs)


def _fold(count: int, shared: list[bool], tensors: Sequence[Tensor]) -> list[Tensor]:
    """``(R, n, ...)`` to ``(R·n, ...)``."""
    whole = stack_shared(count, shared, tensors)
    return [t.reshape(count * t.shape[1], *t.shape[2:]) for t in whole]


def _unfold(count: int, out: Any) -> Any:
    if isinstance(out, tuple):
        return tuple(_unfold(count, part) for part in out)
    return out.unflatten(0, (count, -1))


def _repeat(graph: Graph, count: int) -> Graph:
    n, m = graph.num_nodes, graph.num_edges
    runs = torch.arange(count, device=graph.device).unsqueeze(1)

    def shift(part: Tensor, by: int) -> Tensor:
        return (part + runs * by).flatten()

    def repeat(csr: CSR) -> CSR:
        ptr = torch.cat([shift(csr.ptr[:-1], m), csr.ptr.new_tensor([count * m])])
        return CSR(ptr, shift(csr.other, n), shift(csr.edge, m))

    whole = None if graph.whole is None else Degrees(*(d.repeat(count) for d in graph.whole))
    ends = shift(graph.source, n), shift(graph.target, n)
    return Graph._build(*ends, repeat(graph.by_target), repeat(graph.by_source), whole)


def _first(graph: Graph, nodes: int, edges: int) -> Graph:
    """The first copies of several."""

    def take(csr: CSR) -> CSR:
        return CSR(csr.ptr[: nodes + 1], csr.other[:edges], csr.edge[:edges])

    whole = None if graph.whole is None else Degrees(*(degree[:nodes] for degree in graph.whole))
    ends = graph.source[:edges], graph.target[:edges]
    return Graph._build(*ends, take(graph.by_target), take(graph.by_source), whole)
