"""The processes of a run: what they agree on, and what the first of them does for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.plugins.precision import DoublePrecision
from lightning.fabric.strategies.ddp import DDPStrategy
from torch import Tensor, nn

from coopsheaf.train.config import PRECISIONS, TrainConfig
from coopsheaf.train.launch import FirstFailed, find_launch

T = TypeVar("T")

# While the first process computes the outputs of a large graph, the others wait.
PATIENCE = timedelta(hours=2)


class Double(DoublePrecision):
    """Double precision to the end: Fabric's own gives outputs in single precision."""

    def convert_output(self, data: Any) -> Any:
        return data


class ProcessLost(ValueError):
    """Another process of the run has ended before its time."""


def is_lost(error: BaseException) -> bool:
    """Whether this is what a process meets when another one of its run is gone."""
    return isinstance(error, RuntimeError) and any(
        word in str(error) for word in ("gloo", "NCCL", "Connection closed", "reset by peer")
    )


def make_fabric(config: TrainConfig, device: str = "auto") -> Fabric:
    """The wanted precision on one device, or on one per process that ``torchrun`` has started."""
    precision: Any = {"precision": PRECISIONS[config.precision]}
    if config.precision == "64":
        precision = {"plugins": [Double()]}
    launch = find_launch()
    if launch.size == 1:
        return Fabric(accelerator=device, devices=1, **precision)
    fabric = Fabric(
        accelerator=device,
        devices=launch.local_size,
        num_nodes=launch.size // launch.local_size,
        strategy=DDPStrategy(timeout=PATIENCE),
        **precision,
    )
    fabric.launch()
    return fabric


class World:
    """What the processes of a run have to tell each other; alone, nothing is sent anywhere."""

    def __init__(self, fabric: Fabric) -> None:
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
        reduced = self.fabric.all_reduce(tensor, reduce_op="sum")
        assert isinstance(reduced, Tensor)
        return reduced.tolist()

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
        results: list[T] = []
        error = None
        if self.is_first:
            try:
                results = [work()]
            except Exception as caught:
                error = caught
        results = self.fabric.broadcast(results)
        if error is not None:
            raise error
        if not results:
            raise FirstFailed
        return results[0]

    def align(self, model: nn.Module) -> None:
        """Give all processes the buffers of the first one, such as running means."""
        if self.size > 1:
            for buffer in model.buffers():
                dist.broadcast(buffer, 0)

    def balance(self, loss: Tensor, mass: float) -> Tensor:
        """Scale a mean so that the mean over processes is that over all their samples.

        Args:
            loss: the mean over this process's samples.
            mass: how many they are, or the sum of their weights.
        """
        if self.size == 1:
            return loss
        (total,) = self.sum(mass)
        return loss * (mass * self.size / total)

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
