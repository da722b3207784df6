"""Networks of one shape as one: a row of numbers for each."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from coopsheaf.nn.dropout import dropout
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.runs import Copies, Runs, map_runs


@dataclass(frozen=True)
class Piece:
    """Where a parameter is in a row."""

    name: str
    shape: torch.Size
    start: int
    stop: int
    turned: bool  # a matrix that is kept as its transpose

    def view(self, rows: Tensor) -> Tensor:
        """The parameter in rows ``(..., N)``: ``(..., *shape)``."""
        part = rows[..., self.start : self.stop]
        if not self.turned:
            return part.view((*part.shape[:-1], *self.shape))
        return part.view((*part.shape[:-1], *self.shape[::-1])).mT


class Kept(NamedTuple):
    """A network that was kept: its row, and what is not trained."""

    numbers: Tensor  # (N,)
    others: dict[str, Tensor]


class Stack:
    """The parameters of R networks of one shape as a matrix ``(R, N)``, and what they compute.

    A row is a run: to copy it is to keep a network, to leave it out is to end a run.

    Args:
        networks: of the same class, settings and sizes, each as it was drawn.
        groups: the names of the parameters that are trained, in groups that lie together in a row;
            all others stay as they are.
        wide: matrices with this number of columns are kept as their transposes, for
            :mod:`coopsheaf.nn.sparse_runs`.
    """

    def __init__(
        self, networks: Sequence[nn.Module], groups: Sequence[Sequence[str]], wide: int = -1
    ) -> None:
        self.network = copy.deepcopy(networks[0])
        states = [network.state_dict(keep_vars=True) for network in networks]
        names = [name for group in groups for name in group]
        shapes = [states[0][name].shape for name in names]
        bounds = [0, *accumulate(shape.numel() for shape in shapes)]
        self.pieces = [
            Piece(name, shape, start, stop, len(shape) == 2 and shape[1] == wide)
            for name, shape, (start, stop) in zip(names, shapes, pairwise(bounds), strict=True)
        ]
        ends = [0, *accumulate(map(len, groups))]
        self.segments = [slice(bounds[a], bounds[b]) for a, b in pairwise(ends)]
        with torch.no_grad():
            units = [piece.shape[0] for piece in self.pieces if piece.turned]
            unit = math.lcm(*units) if units else 1
            width = -(-bounds[-1] // unit) * unit  # what is left over at the end of a row stays 0
            self.matrix = states[0][names[0]].new_zeros(len(states), width)
            for piece in self.pieces:
                values = torch.stack([state[piece.name] for state in states])
                piece.view(self.matrix).copy_(values)
            rest = [name for name in states[0] if name not in set(names)]
            self.others = {name: torch.stack([state[name] for state in states]) for name in rest}
        self.gradient = torch.zeros_like(self.matrix)
        self.copies, self._dropout = Copies(), _OwnDropout()
        self._places, self._modules = list(_places(self.network)), list(self.network.modules())

    def __len__(self) -> int:
        return len(self.matrix)

    def leaves(self) -> dict[str, Tensor]:
        """The parameters, ``(R, ...)`` each, to be differentiated by."""
        return {piece.name: piece.view(self.matrix).requires_grad_() for piece in self.pieces}

    def outputs(
        self,
        leaves: Mapping[str, Tensor],
        x: Tensor,
        graph: Graph,
        inputs: Mapping[str, Any],
        generators: Sequence[torch.Generator],
        *,
        training: bool,
    ) -> Tensor:
        """What every network makes of the graph, ``(R, n, out)``."""
        for module in self._modules:
            module.__dict__["training"] = training  # as `train` does, in less time
        given = {**leaves, **self.others}

        def one(tensors: Sequence[Tensor]) -> Tensor:
            own = self._dropout if training and self._dropout.is_used else nullcontext()
            self._dropout.is_used &= not training  # it says so if it is, in every pass
            with self._in_place(dict(zip(given, tensors, strict=True))), own:
                out: Tensor = self.network(x, graph, **inputs)
                return out

        return map_runs(Runs(generators, self.copies), one, list(given.values()))

    @contextmanager
    def _in_place(self, given: Mapping[str, Tensor]) -> Iterator[None]:
        """Let the network compute with other parameters and buffers."""
        before = [(store, key, store[key]) for store, key, _ in self._places]
        for store, key, name in self._places:
            store[key] = given[name]
        try:
            yield
        finally:
            for store, key, own in before:
                store[key] = own

    def backward(self, loss: Tensor, leaves: Mapping[str, Tensor]) -> list[str]:
        """Fill :attr:`gradient`, ``(R, N)``, with that of a sum of what the runs lose.

        Returns the names of parameters that the loss does not depend on.
        """
        found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        for piece, grad in zip(self.pieces, found, strict=True):
            if grad is not None:
                piece.view(self.gradient).copy_(grad)
        return [piece.name for piece, g in zip(self.pieces, found, strict=True) if g is None]

    def keep(self, rows: Sequence[int]) -> None:
        """Leave all runs out but these."""
        self.matrix, self.gradient = self.matrix[rows], self.gradient[rows]
        self.others = {name: tensor[rows] for name, tensor in self.others.items()}

    def copy(self, row: int) -> Kept:
        """All that a network is, as it is now."""
        others = {name: tensor[row].clone() for name, tensor in self.others.items()}
        return Kept(self.matrix[row].clone(), others)

    def state(self, kept: Kept) -> dict[str, Tensor]:
        """The same as ``load_state_dict`` takes it."""
        return {piece.name: piece.view(kept.numbers) for piece in self.pieces} | kept.others


class _OwnDropout(TorchFunctionMode):
    """PyTorch's dropout as ours: from the generators of the runs, and several times as fast.

    To look at every function that is called takes time; a network that never calls this one on a
    plain tensor is not looked at again. What is no plain tensor (`coopsheaf.nn.sparse_runs`) knows
    what to do by itself.
    """

    is_used = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.dropout and type(args[0] if args else kwargs["input"]) is Tensor:
            self.is_used = True
            return _drop(*args, **kwargs)
        return func(*args, **kwargs)


def _drop(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    ours = input.is_floating_point() and p < 1.0
    return dropout(input, p, training) if ours else F.dropout(input, p, training)


def _places(network: nn.Module) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Where modules keep parameters and buffers, and the name that the state has for each.

    A parameter that several modules share has the name of each of them, and equal values.
    """
    known = set(network.state_dict())
    for prefix, module in network.named_modules(remove_duplicate=False):
        stores: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for store in stores:
            for key, value in store.items():
                name = f"{prefix}.{key}" if prefix else key
                if value is not None and name in known:
                    yield store, key, name
