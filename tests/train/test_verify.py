"""A record that is run again: exact, within the spread of seeds, or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from train.small import node_dataset, recipe

from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.records import Record, append_record, find_records
from coopsheaf.train.runner import bench
from coopsheaf.train.verify import Verdict, find_record, record_recipe, verify_record


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    folder = tmp_path_factory.mktemp("results")
    made = replace(recipe(epochs=6), data=DataConfig("texas"))
    list(bench(made, node_dataset(), [0], results=folder, work=folder / "work"))
    return find_records(folder)[0]


def test_the_same_again_is_exact(record: Record) -> None:
    verdict = verify_record(record, node_dataset())
    assert verdict is not None
    assert verdict.exact
    assert verdict.within
    assert verdict.others == ()
    assert verdict.changes == ()


def test_what_differs_is_compared_with_seeds(record: Record) -> None:
    """An epoch may differ where the score does not: that is not exact, and within."""
    other = replace(record, best_epoch=99, versions=record.versions | {"torch": "1.0"})
    verdict = verify_record(other, node_dataset())
    assert verdict is not None
    assert (verdict.exact, verdict.within, len(verdict.others)) == (False, True, 3)
    assert [change[:2] for change in verdict.changes] == [("torch", "1.0")]
    far = verify_record(replace(record, test=-1.0), node_dataset())
    assert far is not None
    assert not far.within


def test_the_spread_is_an_interval_for_one_more_seed(record: Record) -> None:
    """Mean 0.5, deviation 0.1 of four: t(3) = 3.182, so 0.5 ± 3.182 · 0.1 · √1.25."""
    d = 0.1 * (3 / 4) ** 0.5
    made = Verdict(replace(record, test=0.5 + 0.355), False, 0.5 - d, (0.5 - d, 0.5 + d, 0.5 + d))
    assert made.spread == pytest.approx((0.5 - 0.35576, 0.5 + 0.35576), abs=1e-4)
    assert made.within
    assert not replace(made, record=replace(record, test=0.86)).within


def test_what_cannot_be_compared_is_refused(record: Record) -> None:
    with pytest.raises(ValueError, match="the data is not that of the record"):
        verify_record(replace(record, dataset_checksum="other"), node_dataset())
    with pytest.raises(ValueError, match="version 99 of csnn, which computes something else"):
        record_recipe(replace(record, model_version=99))
    own = record.config | {"data": {}}
    with pytest.raises(ValueError, match="own tables"):
        record_recipe(replace(record, config=own))
    assert verify_record(record, node_dataset(), should_stop=lambda: True) is None


def test_a_record_by_its_line(record: Record, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    append_record(file, record)
    assert find_record(str(file)) == find_record(f"{file}:1") == record
    append_record(file, replace(record, split=1))
    assert find_record(f"{file}:2").split == 1
    with pytest.raises(ValueError, match="must hold one record; it holds 2: name one as"):
        find_record(str(file))
    with pytest.raises(ValueError, match="has records 1 to 2; got 3"):
        find_record(f"{file}:3")
