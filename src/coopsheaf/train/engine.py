"""What runs a training step: device, precision and processes.

One process on the CPU in full precision, by far the most frequent case, needs nothing but PyTorch.
Everything else is the business of Lightning Fabric, which is imported where it is needed: it takes
a good part of a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from coopsheaf.threads import on_every_thread
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
    """One process on the CPU, in single or double precision, or with products in bfloat16.

    The same numbers as Lightning Fabric gives there, bit for bit.
    """

    device = torch.device("cpu")
    global_rank, world_size = 0, 1

    def __init__(self, precision: str = "32") -> None:
        self.precision = precision

    def setup(self, module: nn.Module, *optimizers: Optimizer) -> tuple[Any, ...]:
        wrapped = module if self.precision == "32" else _Within(self.autocast, module)
        return wrapped, *optimizers

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
        return _CONTEXTS[self.precision]()


class _Within(nn.Module):
    """A network that computes inside of a context."""

    def __init__(self, context: Callable[[], AbstractContextManager], module: nn.Module) -> None:
        super().__init__()
        self.context, self.module = context, module

    def forward(self, *arguments: Any, **options: Any) -> Any:
        with self.context():
            return self.module(*arguments, **options)


@contextmanager
def _double_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _halved_products() -> AbstractContextManager:
    from coopsheaf.nn.products import use_products  # of CSNN; other networks do not need it

    return use_products("bf16")


_CONTEXTS: dict[str, Callable[[], AbstractContextManager]] = {
    "32": nullcontext,
    "64": _double_by_default,
    "bf16": _halved_products,
}


@contextmanager
def without_tiny_numbers() -> Iterator[None]:
    """Numbers too small to be normal, below 1e-38 in single precision, become zero meanwhile.

    Maps that close and gradients that vanish are full of them, and many processors take a hundred
    times as long for each: without this, steps late in a training can take five times as long as
    the first ones. Of PyTorch's threads on the CPU, all of them, so that no result depends on which
    thread computed it; compiled kernels do it by themselves.
    """
    tiny = torch.full((1,), 1e-40, dtype=torch.float32, device="cpu")
    before = not tiny.mul(0.5).item()
    on_every_thread(lambda: torch.set_flush_denormal(True))
    try:
        yield
    finally:
        on_every_thread(lambda: torch.set_flush_denormal(before))


def make_fabric(
    config: TrainConfig, device: str = "auto", *, halves: bool = False, idle: bool = False
) -> Engine:
    """The wanted precision on one device, or on one per process that ``torchrun`` has started.

    Args:
        config: the settings.
        device: as Lightning Fabric names it.
        halves: the network knows how to multiply in bfloat16 by itself
            (:mod:`coopsheaf.nn.products`), and needs no autocast for it on the CPU.
        idle: it has parameters that no gradient reaches, for which no process must wait.
    """
    launch = find_launch()
    halves = halves and _is_cpu(device) and not config.compile
    if launch.size == 1:
        if (config.precision in ("32", "64") or halves) and _is_cpu(device):
            return Plain(config.precision)
        return _fabric(accelerator=device, devices=1, **_precision(config, halves))
    from lightning_fabric.strategies.ddp import DDPStrategy

    fabric = _fabric(
        accelerator=device,
        devices=launch.local_size,
        num_nodes=launch.size // launch.local_size,
        strategy=DDPStrategy(timeout=PATIENCE, find_unused_parameters=idle),
        **_precision(config, halves),
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


def _precision(config: TrainConfig, halves: bool) -> dict[str, Any]:
    if config.precision == "bf16" and halves:
        from lightning_fabric.plugins.precision import Precision

        class Halved(Precision):
            """Single precision, with products in bfloat16."""

            def forward_context(self) -> AbstractContextManager:
                return _halved_products()

        return {"plugins": [Halved()]}
    if config.precision != "64":
        return {"precision": PRECISIONS[config.precision]}
    from lightning_fabric.plugins.precision import DoublePrecision

    class Double(DoublePrecision):
        """Double precision to the end: Fabric's own gives outputs in single precision."""

        def convert_output(self, data: Any) -> Any:
            return data

    return {"plugins": [Double()]}
