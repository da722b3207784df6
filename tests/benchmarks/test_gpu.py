"""The benchmark for owners of a card: it says that there is none, and measures what it is given."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gpu


class Processor:
    """In place of a card: the CPU."""

    device = "cpu"

    def time(self, step: Callable[[], None]) -> float:
        step()
        return 2.0

    def peak(self, step: Callable[[], None]) -> float:
        return 3.0

    def waits(self, step: Callable[[], None]) -> bool:
        return True

    def describe(self) -> dict[str, str]:
        return {"card": "none"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = replace(gpu.SETTINGS["roman-empire"], num_nodes=60, num_pairs=90, sizes=(5, 4, 2, 3))
    monkeypatch.setattr(gpu, "SETTINGS", {"small": setting})


def test_without_a_card_it_is_one_line(monkeypatch, capsys) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: this needs a CUDA device, and PyTorch finds none; nothing was measured\n"


@pytest.mark.usefixtures("small")
def test_with_one_it_measures(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(gpu, "Card", Processor)
    ways = ["composition", "bf16", "gcn"]
    for _ in range(2):
        file = tmp_path / "results.jsonl"
        assert gpu.main(["--graphs", "small", "--ways", *ways, "--repeats", "1", "--json", str(file)]) == 0  # fmt: skip
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["way"] for record in records] == ways * 2
    first = records[0]
    assert first["step_ms"] == 2.0
    assert first["card"] == "none"
    assert first["torch"] == torch.__version__
    assert records[1]["loss"] == pytest.approx(first["loss"], rel=0.05)
    table = capsys.readouterr().out
    assert "/ composition" in table
    assert "1.00" in table


def test_ways_that_compute_something_else_are_not_timed() -> None:
    gpu.check_agreement({"composition": (1.0, 2.0), "triton": (1.0001, 2.0), "gcn": (7.0, 7.0)})
    for other in ((1.1, 2.0), (1.0, float("nan"))):
        with pytest.raises(SystemExit, match="different functions"):
            gpu.check_agreement({"composition": (1.0, 2.0), "triton": other})
