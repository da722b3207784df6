"""A record says what its numbers depend on beside the settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from train.small import node_dataset, recipe

from coopsheaf.train.provenance import instructions, onednn_instructions, versions
from coopsheaf.train.records import find_records
from coopsheaf.train.runner import bench


def test_a_record_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    list(bench(recipe(epochs=1), node_dataset(), [0], results=tmp_path, work=tmp_path / "work"))
    (record,) = find_records(tmp_path)
    assert record.instructions["capability"] == torch.backends.cpu.get_cpu_capability()
    assert record.instructions["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert record.versions["torch"] == torch.__version__
    assert {"numpy", "torch_geometric", "onednn", "mkl"} <= record.versions.keys() or not torch.backends.mkl.is_available()  # fmt: skip
    assert record.threads == torch.get_num_threads()
    json.dumps(asdict(record))


def test_older_records_stay_valid(tmp_path: Path) -> None:
    line = {"model": "csnn", "dataset": "texas", "split": 0, "seed": 1, "semantics": "paper", "metric": "accuracy", "val": 0.5, "test": 0.5, "best_epoch": 1, "config_hash": "abc"}  # fmt: skip
    (tmp_path / "old.jsonl").write_text(json.dumps(line) + "\n")
    (record,) = find_records(tmp_path)
    assert record.instructions == {}


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("sse4_1 avx avx2", "avx2"),
        ("avx avx2 avx512f avx512bw avx512vl avx512dq", "avx512_core"),
        ("avx2 avx512f avx512bw avx512vl avx512dq avx512_vnni avx512_bf16", "avx512_core_bf16"),
        ("fp asimd", ""),
    ],
)
def test_names_of_onednn(flags: str, name: str) -> None:
    assert onednn_instructions(frozenset(flags.split())) == name


def test_all_are_text() -> None:
    for found in (versions(), instructions()):
        assert all(isinstance(value, str) and value for value in found.values())
