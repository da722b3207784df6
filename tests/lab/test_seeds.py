"""What seeds do, from records alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coopsheaf.train.records import Record
from lab.seeds import first_seeds, seed_spreads, seed_table

BASE = Record("csnn", "texas", 0, 43, "paper", "accuracy", 0.5, 0.5, 1, "abc")


def records() -> list[Record]:
    scores = {43: (0.8, 0.6), 44: (0.9, 0.6), 45: (0.7, 0.6)}
    return [
        replace(BASE, seed=seed, split=split, test=test)
        for seed, tests in scores.items()
        for split, test in enumerate(tests)
    ]


def test_spread_of_seeds() -> None:
    (spread,) = seed_spreads(records())
    assert spread.splits == [0, 1]
    assert spread.means == pytest.approx([0.7, 0.75, 0.65])
    assert spread.largest == pytest.approx(0.2)
    assert spread.within_split == pytest.approx((0.2 / 6**0.5 + 0) / 2)
    assert "| texas | csnn | 43, 44, 45 | 2 | 70.00 ± 10.00 | 70.00, 75.00, 65.00 | 4.08 | 4.08 | 20.00 |" in seed_table(records())  # fmt: skip


def test_only_common_splits_count() -> None:
    (spread,) = seed_spreads(records()[:-1])
    assert spread.splits == [0]
    assert seed_spreads(records()[:1]) == []
    assert seed_table(records()[:1]) == "None.\n"


def test_the_first_seed_stands_in_tables() -> None:
    other = replace(BASE, seed=7, config_hash="other")
    kept = first_seeds([*records(), other])
    assert [(record.seed, record.split) for record in kept] == [(43, 0), (43, 1), (7, 0)]
    peptides = [replace(BASE, dataset="peptides-func", seed=seed) for seed in (1, 2)]
    assert first_seeds(peptides) == peptides
