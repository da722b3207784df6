"""When a fit has been waited for long enough. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from coopsheaf.train.config import TrainConfig


def out_of_patience(
    config: TrainConfig, last: float, best: float, losses: Sequence[float] = ()
) -> bool:
    """Whether to stop, after an evaluation: what was not looked at cannot have failed.

    Args:
        config: the settings.
        last: epoch of the last evaluation, 0 before the first.
        best: epoch of the best one.
        losses: validation losses of the last evaluations, as :func:`remember_loss` keeps them.
    """
    if config.stop == "mean":
        *before, now = losses or (0.0,)
        return len(before) == config.patience > 0 and now > sum(before) / len(before)
    return 0 < config.patience <= last - best


def remember_loss(config: TrainConfig, losses: list[float], loss: float) -> list[float]:
    """The validation losses that the rule of means compares: the last one, and those before."""
    return [*losses, loss][-config.patience - 1 :] if config.stop == "mean" else []
