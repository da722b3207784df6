"""The processes of a run: what they agree on, and what the first of them does for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from coopsheaf.train.engine import Engine
from coopsheaf.train.engine import make_fabric as make_fabric
from coopsheaf.train.launch import FirstFailed

T = TypeVar("T")


class ProcessLost(ValueError):
    """Another process of the run has ended before its time."""


def is_lost(error: BaseException) -> bool:
    """Whether this is what a process meets when another one of its run is gone."""
    return isinstance(error, RuntimeError) and any(
        word in str(error) for word in ("gloo", "NCCL", "Connection closed", "reset by peer")
    )


class World:
    """What the processes of a run have to tell each other; alone, nothing is sent anywhere."""

    def __init__(self, fabric: Engine) -> None:
        self.fabric = fabric
        self.rank, self.size = fabric.global_rank, fabric.world_size

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """Each value, summed over the processes."""
        if self.size == 1:
            return [float(value) for value in values]
        tensor = torch.tensor(values, dtype=torch.float64, device=self.fabric.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def any(self, *flags: bool) -> list[bool]:
        """Whether any process has the flag, for each."""
        return [count > 0 for count in self.sum(*flags)]

    def gather(self, value: T) -> list[T]:
        """What every process has, in their order."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def by_first(self, work: Callable[[], T]) -> T:
        """What ``work`` returns in the first process; an error there ends all."""
        if self.size == 1:
            return work()
        results: list[list[T]] = [[]]
        error = None
        if self.is_first:
            try:
                results = [[work()]]
            except Exception as caught:
                error = caught
        dist.broadcast_object_list(results, 0)
        if error is not None:
            raise error
        if not results[0]:
            raise FirstFailed
        return results[0][0]

    def align(self, model: nn.Module) -> None:
        """Give all processes the buffers of the first one, such as running means."""
        if self.size > 1:
            for buffer in model.buffers():
                dist.broadcast(buffer, 0)

    def balance(self, loss: Tensor, mass: Tensor | float) -> Tensor:
        """Scale a mean so that the mean over processes is that over all their samples.

        Args:
            loss: the mean over this process's samples.
            mass: how many they are, or the sum of their weights.
        """
        if self.size == 1:
            return loss
        # On the device: nobody reads how many samples the others have.
        total = torch.full((), 0.0, dtype=torch.float64, device=self.fabric.device) + mass
        share = total * self.size
        dist.all_reduce(total)
        return loss * (share / total).to(loss.dtype)

    def join(
        self, shares: dict[str, tuple[Tensor, Tensor]], parts: Iterable[str]
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Outputs and targets of each part, from every process's share of them."""
        if self.size == 1:
            return shares
        mine = {part: tuple(tensor.cpu() for tensor in pair) for part, pair in shares.items()}
        everyone = self.gather(mine)
        joined = {}
        for part in parts:
            pairs = [share[part] for share in everyone if part in share]
            logits, y = (torch.cat(column) for column in zip(*pairs, strict=True))
            joined[part] = (logits, y)
        return joined
