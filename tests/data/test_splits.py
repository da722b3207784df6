"""Seeded, stratified splits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coopsheaf.data.splits import (
    hold_out,
    masks_of_folds,
    stratified_folds,
    stratified_split,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=80),
    st.integers(0, 5),
    st.sampled_from([(0.6, 0.2, 0.2), (0.5, 0.25, 0.25), (0.98, 0.01, 0.01), (0.1, 0.1, 0.8)]),
)
def test_masks_divide_the_labelled_nodes(
    labels: list[int], seed: int, ratios: tuple[float, float, float]
) -> None:
    y = torch.tensor(labels)
    known = y >= 0
    masks = torch.stack(stratified_split(y, known, seed=seed, ratios=ratios))
    assert torch.equal(masks.sum(0), known.long())
    for label in range(5):
        of_class = y == label
        parts = (masks & of_class).sum(1)
        if of_class.sum() >= 3:
            assert (parts > 0).all()
        elif of_class.any():
            assert parts[0] == 1


def test_shares_are_exact_where_they_can_be() -> None:
    y = torch.arange(4).repeat_interleave(100)
    known = torch.ones(400, dtype=torch.bool)
    for mask, share in zip(stratified_split(y, known, seed=1), (60, 20, 20), strict=True):
        assert torch.bincount(y[mask]).tolist() == [share] * 4


def test_seed_decides() -> None:
    y, known = torch.arange(90) % 3, torch.ones(90, dtype=torch.bool)
    first, again, other = (stratified_split(y, known, seed=s)[0] for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    # Observed once and pinned: the same seed must mean the same split in every later version.
    assert first.nonzero().flatten()[:6].tolist() == [2, 3, 4, 5, 10, 12]


def test_real_targets_are_spread_over_the_parts() -> None:
    y = torch.randn(220, generator=torch.Generator().manual_seed(0))
    y[:20] = torch.nan
    train, val, test = stratified_split(y, ~y.isnan(), seed=0)
    assert [int(mask.sum()) for mask in (train, val, test)] == [120, 40, 40]
    tenth = y[~y.isnan()].sort().values[19]
    for mask in (train, val, test):
        assert (y[mask] <= tenth).any()  # the lowest tenth is everywhere
    assert not (train | val | test)[:20].any()


def test_few_real_targets_keep_the_shares() -> None:
    y, known = torch.randn(30, generator=torch.Generator().manual_seed(0)), torch.ones(30).bool()
    assert [int(mask.sum()) for mask in stratified_split(y, known, seed=0)] == [18, 6, 6]
    masks = stratified_split(y[:3], known[:3], seed=0)
    assert [int(mask.sum()) for mask in masks] == [1, 1, 1]


def test_several_targets_are_split_at_random() -> None:
    masks = stratified_split(torch.zeros(50, 3), torch.ones(50, dtype=torch.bool), seed=0)
    assert [int(mask.sum()) for mask in masks] == [30, 10, 10]


def test_nothing_labelled_gives_empty_masks() -> None:
    masks = stratified_split(torch.zeros(4).long(), torch.zeros(4, dtype=torch.bool), seed=0)
    assert not any(mask.any() for mask in masks)


@pytest.mark.parametrize("ratios", [(0.5, 0.5, 0.0), (0.5, 0.5, 0.5), (1.2, -0.1, -0.1)])
def test_bad_ratios(ratios: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="`ratios` must be three positive numbers"):
        stratified_split(torch.zeros(4), torch.ones(4, dtype=torch.bool), seed=0, ratios=ratios)


def test_bad_known() -> None:
    with pytest.raises(ValueError, match=r"`known` must be a boolean tensor of shape \(4,\)"):
        stratified_split(torch.zeros(4), torch.ones(4), seed=0)


def test_a_share_of_every_stratum_is_held_out() -> None:
    y = torch.tensor([0] * 20 + [1] * 10 + [2] * 2 + [3] + [-1] * 5)
    known = y >= 0
    held = hold_out(y, known, 0.2, seed=3)
    assert [int(held[y == k].sum()) for k in (0, 1, 2, 3)] == [4, 2, 1, 0]
    assert not held[~known].any()
    assert torch.equal(held, hold_out(y, known, 0.2, seed=3))
    assert not torch.equal(held, hold_out(y, known, 0.2, seed=4))
    assert int(hold_out(y, known, 0.99, seed=0)[y == 0].sum()) == 19  # one is left to train on
    with pytest.raises(ValueError, match="`share` must be between 0 and 1; got 1"):
        hold_out(y, known, 1, seed=0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-1, 3), min_size=8, max_size=80),
    st.integers(2, 6),
    st.integers(0, 5),
)
def test_folds_share_every_class_out(labels: list[int], count: int, seed: int) -> None:
    y = torch.tensor(labels)
    known = y >= 0
    if known.sum() < count:
        with pytest.raises(ValueError, match=f"at most the number of labelled nodes.*got {count}"):
            stratified_folds(y, known, count, seed=seed)
        return
    folds = stratified_folds(y, known, count, seed=seed)
    assert torch.equal(folds >= 0, known)
    for nodes in (known, *(y == label for label in range(4))):
        sizes = torch.bincount(folds[nodes & known], minlength=count)
        assert sizes.max() - sizes.min() <= 1
    train, val, test = masks_of_folds(folds)
    assert torch.equal(test.sum(0), known.long())  # everybody is tested once
    assert torch.equal((train.long() + val.long() + test.long()), known.long().expand(count, -1))
    if count > 2:
        assert torch.equal(val[0], test[1])
        assert torch.equal(val[-1], test[0])
    else:
        assert not val.any()


def test_the_seed_decides_the_folds() -> None:
    y, known = torch.arange(60) % 3, torch.ones(60, dtype=torch.bool)
    first, again, other = (stratified_folds(y, known, 5, seed=s) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
