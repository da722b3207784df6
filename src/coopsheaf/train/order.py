"""Which items go into which batch: a function of seed and epoch, the same on every rank."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from coopsheaf.checks import check_int


def derive_seed(*parts: int) -> int:
    """A seed for a generator from several numbers, such as seed, epoch and step."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:7], "big")  # generators take 64 bits with a sign


def epoch_batches(
    num_items: int,
    size: int,
    *,
    seed: int,
    epoch: int,
    useful: Tensor | None = None,
    rank: int = 0,
    world_size: int = 1,
) -> list[Tensor]:
    """The batches that one of several processes computes in an epoch.

    All items are shuffled and cut into steps whose sizes differ by at most one; of every step each
    process has an equal share, again give or take one. So all have equally many steps, and together
    they do what one process would do with a batch ``world_size`` times as large.

    Args:
        num_items: how many items there are; no fewer than processes.
        size: at most so many in a batch. With size 1, several processes and a number of items that
            does not go round, it may be 2.
        seed, epoch: decide the order.
        useful: ``(num_items,)`` mask; a step without any such item is left out.
        rank: which process.
        world_size: of how many.

    Returns:
        Positions of items, batch by batch. Some may be without use, if another process has the
        useful items of the step.
    """
    check_int("num_items", num_items, minimum=1)
    check_int("size", size, minimum=1)
    check_int("world_size", world_size, minimum=1)
    if not 0 <= rank < world_size:
        raise ValueError(f"`rank` must be in [0, {world_size}); got {rank}")
    if num_items < world_size:
        raise ValueError(
            f"{world_size} processes need at least {world_size} clusters, nodes or graphs to share;"
            f" got {num_items}"
        )
    rng = torch.Generator().manual_seed(derive_seed(seed, epoch))
    order = torch.randperm(num_items, generator=rng)
    # Every step must have something for every process.
    count = min(-(-num_items // (size * world_size)), num_items // world_size)
    steps = order.tensor_split(count)
    if useful is not None:
        steps = tuple(step for step in steps if bool(useful[step].any()))
    return [step.tensor_split(world_size)[rank] for step in steps]
