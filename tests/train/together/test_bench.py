"""Splits in one pass: records, folders, and what is left when it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from train.small import node_dataset, recipe

from coopsheaf.train.records import find_records
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.runner import Outcome, bench
from coopsheaf.train.together import run
from coopsheaf.train.together.bench import bench_together
from coopsheaf.train.together.run import RUNS
from coopsheaf.train.together.stack import Stack

SPLITS = [0, 1, 2]


def together(folder: Path, **options: object) -> list[Outcome]:
    places = {"results": folder / "results", "work": folder / "runs"}
    given = {"splits": SPLITS, "recipe": recipe(epochs=4), **options}
    one, splits = given.pop("recipe"), given.pop("splits")
    return list(bench_together(one, node_dataset(splits=3), splits, **places, **given))  # type: ignore[arg-type]


def test_records_and_folders_are_those_of_single_runs(tmp_path: Path) -> None:
    outcomes = together(tmp_path)
    assert [(one.split, one.skipped) for one in outcomes] == [(0, False), (1, False), (2, False)]
    places = {"results": tmp_path / "alone", "work": tmp_path / "alone-runs"}
    alone = list(bench(recipe(epochs=4), node_dataset(splits=3), SPLITS, **places))
    folders = [sorted(path.name for path in (tmp_path / name).glob("csnn-*")) for name in ("runs", "alone-runs")]  # fmt: skip
    assert folders[0] == folders[1]
    for mine, theirs in zip(outcomes, alone, strict=True):
        assert mine.record.key == theirs.record.key
        assert (mine.record.together, theirs.record.together) == (3, 0)
        assert mine.record.val == pytest.approx(theirs.record.val)
        assert mine.record.best_epoch == theirs.record.best_epoch
    for folder in (tmp_path / "runs").glob("csnn-*"):
        if folder.is_dir():
            assert load_run(folder).notes == ()
            assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors", "run.json"]  # fmt: skip


def test_what_is_recorded_is_skipped_either_way(tmp_path: Path) -> None:
    together(tmp_path, splits=[1])
    rest = {one.split: one.skipped for one in together(tmp_path)}
    assert rest == {0: False, 1: True, 2: False}
    places = {"results": tmp_path / "results", "work": tmp_path / "runs"}
    again = bench(recipe(epochs=4), node_dataset(splits=3), SPLITS, **places)
    assert all(one.skipped for one in again)
    assert len(find_records(tmp_path / "results")) == 3


def test_a_pass_that_is_stopped_leaves_nothing_and_begins_again(tmp_path: Path) -> None:
    assert together(tmp_path, should_stop=lambda: True) == []
    assert not find_records(tmp_path / "results")
    assert not list(tmp_path.rglob("*.json")) + list(tmp_path.rglob("*.safetensors"))
    assert len(together(tmp_path)) == 3


def test_a_run_that_ended_without_its_record_is_recorded(tmp_path: Path) -> None:
    first, *_ = together(tmp_path)
    (file,) = (tmp_path / "results").glob("*.jsonl")
    file.unlink()
    shown: list[tuple[int, ...]] = []

    def progress(splits: tuple[int, ...]) -> object:
        shown.append(splits)
        raise AssertionError("nothing is to be run")

    again = together(tmp_path, progress=progress)
    assert [one.skipped for one in again] == [False] * 3
    assert again[0].record.val == first.record.val
    assert again[0].record.together == 3
    assert shown == []


def test_a_half_done_run_alone_is_run_again(tmp_path: Path) -> None:
    folder = together(tmp_path, splits=[0])[0]
    (own,) = (path for path in (tmp_path / "runs").glob("csnn-small-0-*") if path.is_dir())
    for path in own.iterdir():
        path.unlink()
    next((tmp_path / "results").glob("*.jsonl")).unlink()
    stops = iter([False, True])
    _, result = run_split(
        recipe(epochs=4), node_dataset(splits=3), 0, out=own, should_stop=lambda: next(stops)
    )
    assert result.interrupted
    again = together(tmp_path, splits=[0])
    assert again[0].record.val == folder.record.val
    assert not (own / "state.safetensors").exists()


def test_a_split_that_diverges_is_an_error_after_the_others_were_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = run.fit_together

    def broken(members: Any, *rest: Any, stack: Stack, **options: Any) -> Any:
        stack.matrix[1].fill_(float("nan"))
        return original(members, *rest, stack=stack, **options)

    monkeypatch.setattr(run, "fit_together", broken)
    with pytest.raises(ValueError, match=r"^split 1: the loss or its gradient is not finite"):
        together(tmp_path)
    assert [record.split for record in find_records(tmp_path / "results")] == [0, 2]


def test_many_splits_are_several_passes(tmp_path: Path) -> None:
    dataset, shown = node_dataset(splits=RUNS + 2), []

    class Progress:
        def __init__(self, splits: tuple[int, ...]) -> None:
            shown.append(len(splits))

        def __enter__(self) -> None: ...
        def __exit__(self, *error: object) -> None: ...

    outcomes = bench_together(
        recipe(epochs=1),
        dataset,
        list(range(RUNS + 2)),
        results=tmp_path / "results",
        work=tmp_path / "runs",
        progress=Progress,  # type: ignore[arg-type]
    )
    assert {one.record.together for one in outcomes} == {RUNS, 2}
    assert shown == [RUNS, 2]
