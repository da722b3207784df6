"""What runs a training step: device, precision and processes.

One process on the CPU in full precision, by far the most frequent case, needs nothing but PyTorch.
Everything else is the business of Lightning Fabric, which is imported where it is needed: it takes
a good part of a second.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from coopsheaf.train.config import PRECISIONS, TrainConfig
from coopsheaf.train.launch import find_launch

# While the first process computes the outputs of a large graph, the others wait.
PATIENCE = timedelta(hours=2)


class Engine(Protocol):
    """The part of Lightning Fabric that training uses."""

    @property
    def device(self) -> torch.device: ...
    @property
    def global_rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    def setup(self, module: nn.Module, *optimizers: Optimizer) -> Any:
        """The network and its optimisers, ready for steps."""
        ...

    def backward(self, tensor: Tensor) -> None: ...
    def clip_gradients(
        self,
        module: nn.Module,
        optimizer: Optimizer,
        *,
        max_norm: float,
        error_if_nonfinite: bool = True,
    ) -> Tensor | None:
        """The norm of the gradient before it was clipped. To raise an error, it has to be read."""
        ...

    def autocast(self) -> AbstractContextManager:
        """The precision in which a network computes."""
        ...


class Plain:
    """One process on the CPU, in single or double precision.

    The same numbers as Lightning Fabric gives there, bit for bit.
    """

    device = torch.device("cpu")
    global_rank, world_size = 0, 1

    def __init__(self, *, double: bool) -> None:
        self.double = double

    def setup(self, module: nn.Module, *optimizers: Optimizer) -> tuple[Any, ...]:
        return _Doubled(module) if self.double else module, *optimizers

    def backward(self, tensor: Tensor) -> None:
        tensor.backward()

    def clip_gradients(
        self,
        module: nn.Module,
        optimizer: Optimizer,
        *,
        max_norm: float,
        error_if_nonfinite: bool = True,
    ) -> Tensor | None:
        # In the order of the optimiser's groups, which decides the last bit of the norm.
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        return nn.utils.clip_grad_norm_(parameters, max_norm, error_if_nonfinite=error_if_nonfinite)

    def autocast(self) -> AbstractContextManager:
        return _double_by_default() if self.double else nullcontext()


class _Doubled(nn.Module):
    """A network inside which new tensors are in double precision."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *arguments: Any, **options: Any) -> Any:
        with _double_by_default():
            return self.module(*arguments, **options)


@contextmanager
def _double_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def make_fabric(config: TrainConfig, device: str = "auto") -> Engine:
    """The wanted precision on one device, or on one per process that ``torchrun`` has started."""
    launch = find_launch()
    if launch.size == 1:
        if config.precision in ("32", "64") and _is_cpu(device):
            return Plain(double=config.precision == "64")
        return _fabric(accelerator=device, devices=1, **_precision(config))
    from lightning_fabric.strategies.ddp import DDPStrategy

    fabric = _fabric(
        accelerator=device,
        devices=launch.local_size,
        num_nodes=launch.size // launch.local_size,
        strategy=DDPStrategy(timeout=PATIENCE),
        **_precision(config),
    )
    fabric.launch()
    return fabric


def _is_cpu(device: str) -> bool:
    """Whether Fabric would choose the CPU too."""
    other = torch.accelerator.is_available() or find_spec("torch_xla") is not None
    return device == "cpu" or (device == "auto" and not other)


def _fabric(**options: Any) -> Any:
    from lightning_fabric import Fabric

    # Here, since it sets a level of its own when it is imported.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    return Fabric(**options)


def _precision(config: TrainConfig) -> dict[str, Any]:
    if config.precision != "64":
        return {"precision": PRECISIONS[config.precision]}
    from lightning_fabric.plugins.precision import DoublePrecision

    class Double(DoublePrecision):
        """Double precision to the end: Fabric's own gives outputs in single precision."""

        def convert_output(self, data: Any) -> Any:
            return data

    return {"plugins": [Double()]}
