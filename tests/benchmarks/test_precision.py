"""The table of precisions pairs what may be paired."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from coopsheaf.train.records import Record, find_records

ROOT = Path(__file__).parents[2]


@pytest.fixture
def precision(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import precision

    yield precision
    sys.modules.pop("precision", None)


def test_records_of_the_same_settings_are_paired(precision) -> None:
    records = find_records(precision.RECORDS)
    found = precision.pairs(records)
    assert {"texas", "chameleon"} <= set(found)
    for pair in found["texas"]:
        single, half = pair
        assert single.split == half.split
        assert (single.config["train"]["precision"], half.config["train"]["precision"]) == ("32", "bf16")  # fmt: skip
    assert len(found["texas"]) == 10
    changed = [
        replace(record, config=record.config | {"model": {}})
        for record in records
        if record.config["train"]["precision"] == "bf16"
    ]
    plain = [r for r in records if r.config["train"]["precision"] == "32"]
    assert not precision.pairs([*plain, *changed])


def test_a_clear_loss_is_called_one(precision) -> None:
    single, half = precision.pairs(find_records(precision.RECORDS))["texas"][0]

    def pair(split: int, loss: float) -> tuple[Record, Record]:
        return replace(single, split=split, test=0.8), replace(half, split=split, test=0.8 - loss)

    worse = precision.row("texas", [pair(k, 0.05 + 0.001 * k) for k in range(10)])
    assert worse[6] == "worse"
    assert worse[4] == "-5.45"
    even = precision.row("texas", [pair(k, 0.05 * (-1) ** k) for k in range(10)])
    assert even[6] == "not clearly worse"
    assert precision.row("texas", [pair(0, 0.1)])[5:7] == ("-", "-")


def test_the_table_that_is_printed_is_that_of_the_records(precision) -> None:
    found = precision.pairs(find_records(precision.RECORDS))
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    for name in found:
        assert "  ".join(precision.row(name, found[name])[:1]) in page
        assert precision.row(name, found[name])[4] in page
