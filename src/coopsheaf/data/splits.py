"""Seeded splits of the labelled nodes into train, validation and test."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from coopsheaf.checks import check_int

MAX_BINS = 10
MIN_BIN_SIZE = 10  # below it, rounding would move the shares


def stratified_split(
    y: Tensor,
    known: Tensor,
    *,
    seed: int,
    ratios: tuple[float, float, float] = (0.6, 0.2, 0.2),
) -> tuple[Tensor, Tensor, Tensor]:
    """Train, validation and test masks over the labelled nodes.

    Each stratum is shuffled and divided by itself, so each part has its share of each:

    - whole numbers in ``y``: a stratum is a class;
    - real numbers of shape ``(n,)``: a stratum is one of up to ten bins of equally many
      consecutive values, each of at least ten nodes;
    - several targets per node: one stratum, so a plain random split.

    A stratum of three nodes or more is in all three parts; of two nodes one is for training
    and one for validation, and a single one is for training.

    Args:
        y: ``(n,)`` class numbers, or ``(n,)`` / ``(n, k)`` real targets.
        known: ``(n,)`` mask of the nodes to divide; the values of ``y`` elsewhere do not matter.
        seed: the same seed gives the same masks on every platform.
        ratios: shares of train, validation and test; they sum to one.

    Returns:
        Three ``(n,)`` boolean masks, disjoint, together equal to ``known``.
    """
    check_ratios(ratios)
    nodes, sizes = _shuffled(y, known, seed)
    masks = torch.zeros(3, y.shape[0], dtype=torch.bool)
    start = 0
    for size in sizes:
        for part, count in enumerate(part_sizes(size, ratios)):
            masks[part, nodes[start : start + count]] = True
            start += count
    train, val, test = masks.to(known.device)
    return train, val, test


def stratified_folds(y: Tensor, known: Tensor, count: int, *, seed: int) -> Tensor:
    """``(n,)`` numbers of folds, -1 for nodes in none.

    The labelled nodes are dealt out stratum by stratum (those of :func:`stratified_split`), each
    shuffled: the folds differ by one node at most, and so does their share of each stratum.

    Args:
        y, known, seed: as in :func:`stratified_split`.
        count: of folds, from 2 to the number of labelled nodes.
    """
    check_int("count", count, minimum=2)
    nodes, _ = _shuffled(y, known, seed)
    if count > len(nodes):
        raise ValueError(
            f"`count` must be at most the number of labelled nodes, {len(nodes)}; got {count}"
        )
    folds = torch.full((y.shape[0],), -1, dtype=torch.int64)
    folds[nodes] = torch.arange(len(nodes)) % count
    return folds.to(known.device)


def masks_of_folds(folds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Train, validation and test masks, ``(k, n)`` each, of ``(n,)`` numbers of k folds.

    Split i is tested on fold i and validated on the next one; the others are for training. Two
    folds leave nothing for validation.
    """
    count = int(folds.max()) + 1
    test = folds == torch.arange(count, device=folds.device)[:, None]  # (k, n)
    val = test.roll(-1, 0) if count > 2 else torch.zeros_like(test)
    return test.any(0) & ~test & ~val, val, test


def _shuffled(y: Tensor, known: Tensor, seed: int) -> tuple[Tensor, list[int]]:
    """The labelled nodes, stratum after stratum, each in random order; and the strata's sizes."""
    n = y.shape[0]
    if known.dtype != torch.bool or known.shape != (n,):
        raise ValueError(
            f"`known` must be a boolean tensor of shape ({n},); "
            f"got {known.dtype} of shape {tuple(known.shape)}"
        )
    check_int("seed", seed, minimum=0)
    generator = torch.Generator().manual_seed(seed)
    nodes = known.nonzero().flatten().cpu()
    strata = _strata(y.cpu()[nodes])
    # Shuffled first and sorted stably by stratum after: each stratum is then in random order.
    shuffle = torch.randperm(len(nodes), generator=generator)
    order = shuffle[torch.argsort(strata[shuffle], stable=True)]
    return nodes[order], torch.bincount(strata).tolist()


def hold_out(y: Tensor, known: Tensor, share: float, *, seed: int) -> Tensor:
    """``(n,)`` mask of a share of each stratum of the labelled nodes; the others are for training.

    The strata are those of :func:`stratified_split`. One of two nodes or more gives at least one
    and keeps at least one; a single node is kept.

    Args:
        y, known, seed: as in :func:`stratified_split`.
        share: between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"`share` must be between 0 and 1; got {share!r}")
    generator = torch.Generator().manual_seed(seed)
    nodes = known.nonzero().flatten().cpu()
    strata = _strata(y.cpu()[nodes])
    held = torch.zeros(len(known), dtype=torch.bool)
    for stratum in range(int(strata.max()) + 1 if len(strata) else 0):
        members = nodes[strata == stratum]
        most = len(members) - 1
        count = min(most, max(1, math.floor(share * len(members) + 0.5)))
        held[members[torch.randperm(len(members), generator=generator)[:count]]] = True
    return held.to(known.device)


def part_sizes(size: int, ratios: tuple[float, float, float]) -> tuple[int, int, int]:
    """How many of ``size`` nodes each part gets: validation and test are rounded to the nearest
    whole number, training takes the rest, and no part is empty from three nodes on."""
    if size < 3:
        return (min(size, 1), max(size - 1, 0), 0)
    val = max(1, math.floor(size * ratios[1] + 0.5))
    test = max(1, math.floor(size * ratios[2] + 0.5))
    while val + test >= size:
        val, test = (val - 1, test) if val > test else (val, test - 1)
    return (size - val - test, val, test)


def check_ratios(ratios: tuple[float, float, float]) -> None:
    """Three positive shares that sum to one."""
    if len(ratios) != 3 or min(ratios) <= 0 or abs(sum(ratios) - 1) > 1e-6:
        raise ValueError(f"`ratios` must be three positive numbers that sum to 1; got {ratios!r}")


def _strata(y: Tensor) -> Tensor:
    """``(m,)`` stratum numbers from zero on, of ``(m,)`` or ``(m, k)`` targets."""
    if y.dim() != 1:
        return torch.zeros(y.shape[0], dtype=torch.int64)
    if not y.is_floating_point():
        return torch.unique(y, return_inverse=True)[1]
    m = y.shape[0]
    bins = max(1, min(MAX_BINS, m // MIN_BIN_SIZE))
    strata = torch.empty(m, dtype=torch.int64)
    strata[torch.argsort(y, stable=True)] = torch.arange(m) * bins // max(m, 1)
    return strata
