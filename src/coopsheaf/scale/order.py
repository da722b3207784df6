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

    All items are shuffled and cut into batches whose sizes differ by at most one. Every process
    makes the same list and takes every ``world_size``-th batch of it; where the list does not go
    round, it starts again from the front, so that all have equally many steps.

    Args:
        num_items: how many items there are.
        size: at most so many in a batch.
        seed, epoch: decide the order.
        useful: ``(num_items,)`` mask; a batch without any such item is left out.
        rank: which process.
        world_size: of how many.

    Returns:
        Positions of items, batch by batch.
    """
    check_int("num_items", num_items, minimum=1)
    check_int("size", size, minimum=1)
    check_int("world_size", world_size, minimum=1)
    if not 0 <= rank < world_size:
        raise ValueError(f"`rank` must be in [0, {world_size}); got {rank}")
    rng = torch.Generator().manual_seed(derive_seed(seed, epoch))
    order = torch.randperm(num_items, generator=rng)
    batches = list(order.tensor_split(-(-num_items // size)))
    if useful is not None:
        batches = [batch for batch in batches if bool(useful[batch].any())]
    steps = -(-len(batches) // world_size)
    return [batches[(rank + k * world_size) % len(batches)] for k in range(steps)]
