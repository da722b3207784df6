"""The program that compares training steps: same functions, fair sides, right ratios."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import step_tables
import steps
import train_step
from settings import SETTINGS


def record(kernel: str, ms: float, **more: object) -> dict:
    base = {"graph": "tolokers", "threads": 1, "floor_ms": 10.0, "loss": 0.7, "clock": "cpu"}
    return {**base, "kernel": kernel, "step_ms": ms, "allocator": "kept", **more}


def ratios(records: list[dict]) -> dict[tuple[str, str], list[str]]:
    table = step_tables.format_tables(records).split("\n\n")[1].splitlines()[1:]
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table]
    return {(row[2], row[3]): row[4:] for row in rows}


def test_ratios_are_of_one_allocator() -> None:
    found = ratios(
        [
            record("baseline", 900.0),
            record("factored", 20.0),
            record("native", 16.0),
            record("gcn", 30.0),
            record("baseline", 5000.0, allocator="plain"),
            record("factored", 50.0, allocator="plain"),
        ]
    )
    assert found[("kept", "baseline / factored, time")] == ["45.00", "at least 15", "met"]
    assert found[("plain", "baseline / factored, time")] == ["100.00", "at least 15", "met"]
    assert found[("kept", "native / factored, time")] == ["0.80", "at most 0.75", "missed"]
    assert found[("kept", "factored / gcn, time")] == ["0.67", "at most 1", "met"]
    assert ("plain", "factored / gcn, time") not in found


def test_two_threads_are_compared_with_one_and_texas_in_milliseconds() -> None:
    two = [record("native", 30.0), record("native", 16.0, threads=2)]
    assert ratios(two) == {
        ("kept", "1 thread / native, time"): ["1.88", "at least 1.7", "met"],
    }
    texas = [record("native", 7.5, graph="texas"), record("gcn", 3.0, graph="texas")]
    assert ratios(texas)[("kept", "native, ms")] == ["7.5", "at most 7", "missed"]
    assert ratios(texas)[("kept", "native / gcn, time")] == ["2.50", "-"], "no goal, no verdict"


def test_what_the_allocator_alone_gives() -> None:
    both = [record("gcn", 30.0), record("gcn", 60.0, allocator="plain"), record("factored", 20.0)]
    last = step_tables.format_tables(both).split("\n\n")[2].splitlines()
    assert len(last) == 2
    assert last[1].split() == ["tolokers", "1", "gcn", "60.0", "30.0", "2.00"]


def test_older_records_say_that_only_ours_kept_memory() -> None:
    old = [{k: v for k, v in record(kernel, 5.0).items() if k != "allocator"} for kernel in ("baseline", "factored")]  # fmt: skip
    assert [step_tables.allocator(r) for r in old] == ["plain", "kept"]
    assert ("mixed", "baseline / factored, time") in ratios(old)


@pytest.mark.filterwarnings("ignore:Sparse")  # of PyG, on CSR matrices
def test_all_kernels_that_can_run_compute_one_function() -> None:
    kernels = tuple(k for k in steps.KERNELS if k != "compiled" and steps.why_not(k) is None)
    assert {"baseline", "edgewise", "factored", "gcn", "gcn-cached"} <= set(kernels)
    before = torch.get_num_threads()
    try:
        training = steps.Training("texas", kernels, 1)
        found = training.check()
        train_step.check_agreement(found)
        assert found["gcn-cached"] == pytest.approx(found["gcn"], rel=1e-4)
        for kernel in kernels:
            training.step(kernel)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("kernel", "off", "fine"),
    [("factored", 1e-4, True), ("factored", 1e-2, False), ("bf16", 1e-2, True), ("bf16", 0.1, False), ("gcn", 0.5, True)],
)  # fmt: skip
def test_kernels_that_differ_are_refused(kernel: str, off: float, fine: bool) -> None:
    found = dict.fromkeys(("baseline", "edgewise", "native"), (0.7, 2.0)) | {
        kernel: (0.7, 2.0 * (1 + off))
    }
    if fine:
        train_step.check_agreement(found)
    else:
        with pytest.raises(SystemExit, match="different functions: gradient norms"):
            train_step.check_agreement(found)


def test_what_cannot_run_is_left_out_with_a_line(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(steps, "_find", lambda module: None)
    monkeypatch.setattr(sys, "argv", ["train_step.py", "--kernels", "native", "bf16", "factored", "--threads", "1"])  # fmt: skip
    args: Namespace = train_step.parse_args()
    assert args.kernels == ("factored",)
    assert args.allocator == "kept"
    said = capsys.readouterr().err
    assert "native is left out: the package coopsheaf-kernels is not installed" in said
    assert "bf16 is left out" in said


def test_processor_time_is_of_one_thread(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["train_step.py", "--cpu-time", "--threads", "2"])
    with pytest.raises(SystemExit):
        train_step.parse_args()
    assert "--cpu-time: adds up all threads" in capsys.readouterr().err


def test_graphs_have_the_sizes_that_are_said() -> None:
    graph = SETTINGS["texas"].make_graph()
    assert (graph.num_nodes, graph.num_edges, SETTINGS["texas"].sizes[0]) == (183, 558, 1703)
    for name, edges in (("random-1e5", 100_000), ("random-1e6", 1_000_000)):
        assert SETTINGS[name].num_pairs == edges == 10 * SETTINGS[name].num_nodes
