"""Benches: what is recorded is skipped, what broke off continues, what is written is true."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import torch
from train.small import graph_dataset, node_dataset, recipe

import coopsheaf
from coopsheaf.models.registry import MODELS
from coopsheaf.train import runner
from coopsheaf.train.recipe import recipe_from_mapping
from coopsheaf.train.records import Record, find_records
from coopsheaf.train.run import load_run, run_split

SETTINGS = recipe(epochs=3)


def bench(folder: Path, splits: list[int], settings: Any = SETTINGS, dataset: Any = None, **more: Any) -> list[runner.Outcome]:  # fmt: skip
    dataset = node_dataset() if dataset is None else dataset
    return list(runner.bench(settings, dataset, splits, results=folder / "results", work=folder / "runs", **more))  # fmt: skip


def test_what_is_recorded_is_skipped(tmp_path: Path) -> None:
    first = bench(tmp_path, [0])
    assert [(o.split, o.skipped) for o in first] == [(0, False)]
    second = bench(tmp_path, [0, 1])
    assert [(o.split, o.skipped) for o in second] == [(0, True), (1, False)]
    assert second[0].record == find_records(tmp_path / "results")[0]
    assert len(find_records(tmp_path / "results")) == 2
    # The runs themselves are not needed for it.
    for path in (tmp_path / "runs").rglob("*"):
        if path.is_file():
            path.unlink()
    assert all(outcome.skipped for outcome in bench(tmp_path, [0, 1]))


def test_records_in_any_file_of_the_folder_count(tmp_path: Path) -> None:
    bench(tmp_path, [0])
    (file,) = (tmp_path / "results").glob("*.jsonl")
    file.rename(file.with_name("of-a-colleague.jsonl"))
    assert bench(tmp_path, [0])[0].skipped


@pytest.mark.parametrize("what", ["setting", "seed", "data", "name", "version"])
def test_what_differs_is_run_again(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench(tmp_path, [0])
    settings, dataset = SETTINGS, node_dataset()
    if what == "setting":
        settings = recipe(epochs=3, lr=0.03)
    elif what == "seed":
        settings = recipe(epochs=3, seed=1)
    elif what == "data":
        dataset = replace(dataset, checksum="other")
    elif what == "name":
        dataset = replace(dataset, name="other")
    else:
        monkeypatch.setitem(MODELS.known, "csnn", replace(MODELS["csnn"], version=99))
    (outcome,) = bench(tmp_path, [0], settings, dataset)
    assert not outcome.skipped
    assert len(find_records(tmp_path / "results")) == 2
    assert bench(tmp_path, [0], settings, dataset)[0].skipped
    if what == "version":
        assert outcome.record.model_version == 99


def test_a_recipe_of_another_name_is_the_same_run(tmp_path: Path) -> None:
    bench(tmp_path, [0])
    assert bench(tmp_path, [0], replace(SETTINGS, name="new", source="me"))[0].skipped


def test_the_record_has_the_key_that_was_expected(tmp_path: Path) -> None:
    (outcome,) = bench(tmp_path, [1])
    assert outcome.record.key == runner.expected_key(SETTINGS, node_dataset(), 1)


def stop_after(epochs: int) -> Any:
    count: Iterator[int] = iter(range(1, 1000))
    return lambda: next(count) >= epochs


def test_an_interrupted_bench_continues(tmp_path: Path) -> None:
    settings = recipe(epochs=6)
    whole = bench(tmp_path / "whole", [0, 1], settings)
    # It stops in the second split, at its second epoch.
    pieces = bench(tmp_path / "pieces", [0, 1], settings, should_stop=stop_after(8))
    assert [outcome.split for outcome in pieces] == [0]
    assert [r.split for r in find_records(tmp_path / "pieces/results")] == [0]
    (state,) = (tmp_path / "pieces/runs").glob("*/state.safetensors")
    assert "small-1-" in state.parent.name
    epochs: list[int] = []
    pieces = bench(tmp_path / "pieces", [0, 1], settings, progress=lambda split: nullcontext(lambda state: epochs.append(state.epoch)))  # fmt: skip
    assert [(o.split, o.skipped) for o in pieces] == [(0, True), (1, False)]
    assert epochs == [3, 4, 5, 6]  # not from the beginning
    for ours, theirs in zip(whole, pieces, strict=True):
        assert (ours.record.val, ours.record.test, ours.record.best_epoch) == (theirs.record.val, theirs.record.test, theirs.record.best_epoch)  # fmt: skip
    assert not list((tmp_path / "pieces/runs").glob("*/state.safetensors"))


def test_a_run_that_ended_without_its_record_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full, or the process killed, between the run's end and the record."""
    with monkeypatch.context() as patch:

        def full(*args: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(runner, "append_record", full)
        with pytest.raises(OSError, match="No space"):
            bench(tmp_path, [0])
    assert find_records(tmp_path / "results") == []
    epochs: list[int] = []
    (outcome,) = bench(
        tmp_path, [0], progress=lambda split: nullcontext(lambda state: epochs.append(state.epoch))
    )
    assert epochs == []  # nothing had to be trained again
    assert not outcome.skipped
    assert find_records(tmp_path / "results") == [outcome.record]


def test_a_record_is_complete_and_true(tmp_path: Path) -> None:
    before = datetime.now(timezone.utc).replace(microsecond=0)
    dataset = replace(node_dataset(task="binary"), remark="made up")
    settings = replace(SETTINGS, name="mine", source="me")
    run, result = run_split(settings, dataset, 1, out=tmp_path / "run")
    record = runner.make_record(run, result)
    empty = [item.name for item in fields(Record) if getattr(record, item.name) in ("", None, {}, 0)]  # fmt: skip
    assert set(empty) <= {"commit", "together"}  # a run alone
    assert (record.model, record.dataset, record.split, record.splits) == ("csnn", "small", 1, 2)
    assert (record.seed, record.semantics, record.metric) == (43, "paper", "auroc")
    assert {"train": record.train, "val": record.val, "test": record.test} == result.scores
    assert (record.best_epoch, record.epochs) == (result.best_epoch, 3)
    assert record.config_hash == settings.hash()
    assert record.model_version == MODELS["csnn"].version
    assert record.recipe == "mine"
    assert recipe_from_mapping(record.config, "record") == settings
    assert record.seconds == pytest.approx(result.seconds, abs=1e-3)
    assert record.seconds_per_epoch == pytest.approx(result.seconds / 3, abs=1e-5)
    assert record.peak_mb is not None
    assert 50 < record.peak_mb < 100_000
    assert record.parameters == sum(p.numel() for p in run.model.parameters())
    assert record.versions["coopsheaf"] == coopsheaf.__version__
    assert record.versions["torch"] == str(torch.__version__)
    assert record.threads == torch.get_num_threads()
    assert (record.dataset_checksum, record.dataset_remark) == ("abc", "made up")
    done = {key: value for key, value in asdict(dataset.processing).items() if value is not None}
    assert record.processing == done
    assert before <= datetime.fromisoformat(record.time) <= datetime.now(timezone.utc)
    # A run that is read back makes the same record, its time aside.
    again = runner.make_record(load_run(tmp_path / "run"), result)
    assert replace(again, time="") == replace(record, time="")


def test_graph_level_runs_are_benched(tmp_path: Path) -> None:
    (outcome,) = bench(tmp_path, [0], recipe(epochs=1), graph_dataset())
    assert outcome.record.metric == "ap"
    assert outcome.record.splits == 1
    assert bench(tmp_path, [0], recipe(epochs=1), graph_dataset())[0].skipped


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file or directory", "git"),
        PermissionError(13, "Permission denied"),
        subprocess.CalledProcessError(128, "git"),
        subprocess.TimeoutExpired("git", 10),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_commit_is_empty_where_git_does_not_answer(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert runner.current_commit() == ""


def test_the_commit_says_whether_there_are_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"ls-files": "runner.py\n", "rev-parse": "0123456789ab\n", "status": ""}

    def git(words: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 0, answers[words[1]], "")

    monkeypatch.setattr(subprocess, "run", git)
    assert runner.current_commit() == "0123456789ab"
    answers["status"] = " M src/coopsheaf/graph.py\n"
    assert runner.current_commit() == "0123456789ab+"


def test_the_commit_of_this_checkout() -> None:
    commit = runner.current_commit()
    assert commit == "" or (len(commit.rstrip("+")) == 12 and int(commit.rstrip("+"), 16) >= 0)
