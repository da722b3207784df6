"""What the steps of an epoch add up to.

Numbers stay on the device until the epoch is over: reading one in every step would make the host
wait for the device each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from coopsheaf.train.config import TrainConfig
from coopsheaf.train.trouble import divergence, endless_gradient
from coopsheaf.train.world import World


class Tally:
    """The losses of an epoch's steps, and whether they were sound; :meth:`mean` reads them.

    Args:
        epoch: which one, from 0. In the first step of all, gradients are looked at.
        config: the settings, for advice.
    """

    def __init__(self, epoch: int, config: TrainConfig) -> None:
        self.epoch, self.config = epoch, config
        self.losses: list[Tensor | float] = []
        self.masses: list[Tensor | float] = []
        self.norms: list[Tensor | float] = []
        self.sound: Tensor | None = None

    def look_at(self, model: nn.Module) -> None:
        """Remember whether the gradients of a run's first step are finite."""
        if self.epoch == 0 and not self.losses:
            self.sound = finite_gradients(model)

    def clipped(self, norm: Tensor | None) -> None:
        """A gradient of this norm was clipped."""
        if norm is not None:
            self.norms.append(norm.detach())

    def add(self, loss: Tensor, mass: Tensor | float) -> None:
        """A step with this mean loss over so many samples, or over this sum of weights."""
        self.losses.append(loss.detach())
        self.masses.append(mass)

    def mean(self, world: World) -> float:
        """The mean loss over the samples of all processes, or an error that says what to do."""
        sound = self.sound is None or bool(self.sound)
        if not all(map(math.isfinite, _read(self.norms))):
            raise ValueError(endless_gradient(self.epoch, sound, self.config))
        total, count = 0.0, 0.0
        for loss, mass in zip(_read(self.losses), _read(self.masses), strict=True):
            total, count = total + loss * mass, count + mass
        total, count = world.sum(total, count)
        mean = total / count if count else math.nan
        if not (sound and math.isfinite(mean)):
            raise ValueError(divergence(mean, self.epoch, sound, self.config))
        return mean


def finite_gradients(model: nn.Module) -> Tensor | None:
    """Whether a first step leaves finite parameters behind; ``None`` if nothing has a gradient."""
    gradients = (parameter.grad for parameter in model.parameters())
    finite = [grad.isfinite().all() for grad in gradients if grad is not None]
    return torch.stack(finite).all() if finite else None


def _read(values: Sequence[Tensor | float]) -> list[float]:
    """All of them as numbers, in one copy from the device."""
    there = [value for value in values if isinstance(value, Tensor)]
    read = iter(torch.stack(there).cpu().tolist() if there else [])
    return [float(next(read) if isinstance(value, Tensor) else value) for value in values]
