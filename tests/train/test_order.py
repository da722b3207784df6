"""Which batch comes when, on one process and on several."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coopsheaf.train.order import derive_seed, epoch_batches


@given(
    items=st.integers(1, 60), size=st.integers(1, 70), epoch=st.integers(0, 5),
    world_size=st.integers(1, 7),
)  # fmt: skip
def test_ranks_share_every_step(items: int, size: int, epoch: int, world_size: int) -> None:
    if items < world_size:
        with pytest.raises(ValueError, match=f"{world_size} processes need at least {world_size}"):
            epoch_batches(items, size, seed=3, epoch=epoch, world_size=world_size)
        return
    ranks = [
        epoch_batches(items, size, seed=3, epoch=epoch, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    every = [batch for batches in ranks for batch in batches]
    assert sorted(torch.cat(every).tolist()) == list(range(items))
    sizes = [batch.numel() for batch in every]
    assert 1 <= min(sizes) <= max(sizes) <= max(size, 1 if items % world_size == 0 else 2)
    # Together they do what one process does with a larger batch.
    whole = epoch_batches(items, size * world_size, seed=3, epoch=epoch)
    if size > 1 or items % world_size == 0:
        for step, shares in zip(whole, zip(*ranks, strict=True), strict=True):
            assert torch.equal(step, torch.cat(shares))


def test_the_order_follows_from_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return torch.cat(epoch_batches(50, 7, seed=seed, epoch=epoch)).tolist()

    assert order(1, 2) == order(1, 2)
    assert len({tuple(order(*key)) for key in ((1, 2), (1, 3), (2, 2), (2, 1))}) == 4
    torch.manual_seed(0)
    before = torch.get_rng_state()
    order(1, 2)
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_without_use_are_left_out() -> None:
    useful = torch.zeros(20, dtype=torch.bool)
    useful[4] = True
    (batch,) = epoch_batches(20, 3, seed=0, epoch=0, useful=useful)
    assert 4 in batch.tolist()


def test_seeds_are_far_from_each_other() -> None:
    seeds = {derive_seed(a, b) for a in range(20) for b in range(20)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derive_seed(1, 23) != derive_seed(12, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "`size` must be an integer of at least 1; got 0"),
        ({"num_items": 0}, "`num_items` must be an integer of at least 1; got 0"),
        ({"world_size": 0}, "`world_size` must be an integer of at least 1; got 0"),
        ({"rank": 2, "world_size": 2}, r"`rank` must be in \[0, 2\); got 2"),
    ],
    ids=str,
)
def test_bad_input(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        epoch_batches(**{"num_items": 5, "size": 2, "seed": 0, "epoch": 0, **options})
