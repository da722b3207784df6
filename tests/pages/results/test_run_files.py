"""Folders of runs, read for reports."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from report.example import make

from coopsheaf.pages.results.run_files import find_runs


def write_run(folder: Path, **changes: Any) -> Path:
    """What of ``run.json`` a report reads; ``None`` takes a field away."""
    record = make(dataset_checksum="c")
    info: dict[str, Any] = {
        "format": 1,
        "status": "finished",
        "model": record.model,
        "dataset": record.dataset,
        "split": record.split,
        "seed": record.seed,
        "config_hash": record.config_hash,
        "model_version": record.model_version,
        "dataset_checksum": record.dataset_checksum,
        "result": {
            "history": [[1, 2.0, 0.5, 0.4, 0.3], [2, None, 0.6, 0.5, None]],
            "best_epoch": 2,
        },
    } | changes
    folder.mkdir(parents=True, exist_ok=True)
    info = {key: value for key, value in info.items() if value is not None}
    (folder / "run.json").write_text(json.dumps(info), encoding="utf-8")
    return folder


def test_runs_are_found_at_any_depth_and_belong_to_their_records(tmp_path: Path) -> None:
    write_run(tmp_path / "b" / "deep", split=3)
    write_run(tmp_path / "a")
    (tmp_path / "a" / "explorer.html").write_text("<!doctype html>")
    write_run(tmp_path / "c", status="running", result=None)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "explorer.html").mkdir()
    first, second = find_runs(tmp_path)
    assert first.key == make(dataset_checksum="c").key
    assert second.key == make(dataset_checksum="c", split=3).key
    assert first.folder == tmp_path / "a"
    assert first.explorer == tmp_path / "a" / "explorer.html"
    assert second.explorer is None
    assert first.best_epoch == 2
    assert first.history[0] == (1.0, 2.0, 0.5, 0.4, 0.3)
    assert math.isnan(first.history[1][1])


def test_a_folder_that_is_not_there_holds_no_runs(tmp_path: Path) -> None:
    assert find_runs(tmp_path / "nothing") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable JSON"),
        ("[]", "not a run of coopsheaf"),
        ("{}", "format 1"),
        ('{"format": 1}', "it lacks 'status'"),
        ('{"format": 1, "status": "finished"}', "it lacks 'result'"),
        ('{"status": "finished", "result": 3}', "not a run of coopsheaf"),
        ("[" * 100_000, "not readable JSON"),
    ],
)
def test_what_is_not_a_run_is_named(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        find_runs(tmp_path)
    assert str(tmp_path / "run.json") in str(caught.value)


def test_wrong_values_are_named(tmp_path: Path) -> None:
    for field, value in (("split", "x"), ("result", {"history": [["x"]], "best_epoch": 1})):
        write_run(tmp_path, **{field: value})
        with pytest.raises(ValueError, match="not a run of coopsheaf"):
            find_runs(tmp_path)


def test_reports_need_no_pytorch() -> None:
    code = (
        "import sys, coopsheaf.pages.results.page, coopsheaf.pages.results.run_files\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
