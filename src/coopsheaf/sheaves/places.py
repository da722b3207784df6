"""Where some nodes of a graph are in a list of them, at the cost of the list and not of the graph.

To look a node up in one step takes an array of all nodes. It is made once per graph, used for one
list after the other, and cleared only where it was written to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from coopsheaf.tensor_checks import check_tensor


class Placing:
    """A list of different nodes that grows, and the place of each in it.

    Args:
        place: ``(n,)``, -1 everywhere; written to.
    """

    def __init__(self, place: Tensor) -> None:
        self._place = place
        self._parts: list[Tensor] = []
        self._count = 0

    def add(self, nodes: Tensor) -> None:
        """Append nodes that are not in the list yet."""
        end = self._count + nodes.numel()
        self._parts.append(nodes)
        self._place[nodes] = torch.arange(self._count, end, device=nodes.device)
        self._count = end

    def find(self, nodes: Tensor) -> Tensor:
        """The places of some nodes, -1 if they are not in the list; of the shape of ``nodes``."""
        return self._place[nodes]

    def add_new(self, nodes: Tensor) -> Tensor:
        """Append those that are not in the list yet, each once, and return them by number."""
        new = nodes[self.find(nodes) < 0].unique()
        self.add(new)
        return new

    @property
    def nodes(self) -> Tensor:
        """The list."""
        return torch.cat(self._parts)

    def clear(self) -> None:
        """Forget the list."""
        for part in self._parts:
            self._place[part] = -1
        self._parts, self._count = [], 0


class Places:
    """Lends arrays of all nodes to those who place nodes: one to each who asks at the same time.

    Args:
        num_nodes: n.
        device: of the graph.
    """

    def __init__(self, num_nodes: int, device: torch.device) -> None:
        self.num_nodes, self.device = num_nodes, device
        self._free: list[Tensor] = []  # threads take from it and give back in one step each

    @contextmanager
    def placing(self, nodes: object) -> Iterator[Placing]:
        """A list that begins with ``nodes``, ``(k,)`` different ones, for the time of the block."""
        chosen = check_nodes(nodes, self.num_nodes)
        place = self._take()
        placing = Placing(place)
        try:
            placing.add(chosen)
            own = torch.arange(chosen.numel(), device=chosen.device)
            if not torch.equal(placing.find(chosen), own):
                raise ValueError("`nodes` must be different from each other; some occur twice")
            yield placing
        finally:
            placing.clear()
            self._free.append(place)

    def _take(self) -> Tensor:
        try:
            return self._free.pop()
        except IndexError:
            with torch.inference_mode(False):  # it outlives whoever is the first to need it
                return torch.full((self.num_nodes,), -1, device=self.device)


def check_nodes(nodes: object, num_nodes: int) -> Tensor:
    """Check a list of nodes."""
    chosen = check_tensor("nodes", nodes)
    if chosen.dtype != torch.int64 or chosen.dim() != 1:
        raise ValueError(
            "`nodes` must be an int64 tensor of shape (k,); "
            f"got {chosen.dtype} of shape {tuple(chosen.shape)}"
        )
    if chosen.numel():
        low, high = (int(value) for value in chosen.aminmax())
        if low < 0 or high >= num_nodes:
            raise ValueError(f"`nodes` must be in [0, {num_nodes}); got {low} to {high}")
    return chosen
