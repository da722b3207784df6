"""Training on NeighborsMatch: protocol, budgets, resuming, records, tables."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from coopsheaf.train.records import RecordError, find_records
from coopsheaf.train.run_info import CheckpointError
from lab.documents import fill_document
from lab.noisy_path import PATH_PLACE, path_table, read_path_results
from lab.squash import runner as squash
from lab.squash.published import PUBLISHED_CURVES, find_published
from lab.squash.records import (
    FILE,
    PLACE,
    Budget,
    SquashPoint,
    SquashRecord,
    append_squash_record,
    depth_table,
    latest,
    read_squash_records,
    table_rows,
)
from lab.squash.runner import SquashRun, run_points
from lab.squash.settings import TREE_MODELS, TreeModel

ROOT = Path(__file__).parents[3]
GCN = SquashPoint(TreeModel("gcn"), 2)
CSNN = SquashPoint(TreeModel("csnn", "to-root", "mlp", "paper"), 2)
SHORT = Budget("short", None, max_blocks=3)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.squash.records.SHORT_STEPS", 12)


def example(**changes: Any) -> SquashRecord:
    record = SquashRecord(
        "gcn", 4, "", "", "", 11, "short", 10.0, None, 0.7, 0.69, 0.1, "minutes", 20.0, 3, 750,
        99.5, 98.4, 1e-3, 7232,
    )  # fmt: skip
    return replace(record, **changes)


def test_blocks_are_as_published() -> None:
    published = Budget("published", None)
    assert [published.passes(r, 999, 64) for r in (2, 3, 8)] == [1000, 100, 100]
    assert [published.blocks(p) for p in (1000, 100)] == [50, 500]
    assert GCN.fitted_at == 1.0
    assert CSNN.fitted_at == 0.999
    assert SquashPoint(TreeModel("gin"), 8).step_size == 2048


def test_a_block_is_every_example_as_often_as_it_has_passes() -> None:
    run = SquashRun(GCN, SHORT)
    assert run.passes == 12 * 64 // 76
    order = torch.cat(run._order())
    assert torch.equal(order.bincount(), run.data.train.bincount() * run.passes)
    assert torch.equal(torch.cat(run._order()), order)
    run.state.block = 1
    assert not torch.equal(torch.cat(run._order()), order)


def test_gcn_fits_trees_of_depth_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.squash.records.SHORT_STEPS", 250)
    run = SquashRun(GCN, Budget("short", 2.0))
    state = run.run()
    assert (state.stopped, state.last) == ("fitted", 1.0)
    assert run.accuracy(run.data.train) == 1.0
    record = run.record()
    assert (record.train_best, record.train_last, record.fitted) == (1.0, 1.0, True)
    assert record.parameters == 3840
    assert record.steps == state.total_steps
    assert record.epochs == run.passes * state.block


@pytest.mark.parametrize("point", [GCN, SquashPoint(TreeModel("gin"), 2), CSNN], ids=str)
def test_a_stopped_run_goes_on_to_the_same_end(point: SquashPoint, tmp_path: Path) -> None:
    whole = SquashRun(point, SHORT)
    whole.run()
    assert whole.state.stopped == "blocks"
    for stop_after in (5, 13, 1000):  # in the first block, in the second, never
        run = SquashRun(point, SHORT, folder=tmp_path)
        assert run.state.total_steps in (0, 5, 18)
        steps = iter(range(1, stop_after))
        state = run.run(should_stop=lambda steps=steps: next(steps, None) is None)
    assert state.stopped == "blocks"
    assert state.history == whole.state.history
    assert state.total_steps == whole.state.total_steps
    for (name, a), b in zip(
        run.model.state_dict().items(), whole.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b), name
    assert run.optimizer.param_groups[0]["lr"] == whole.optimizer.param_groups[0]["lr"]


def test_a_killed_run_goes_on_from_its_last_state(tmp_path: Path) -> None:
    whole = SquashRun(GCN, SHORT)
    whole.run()

    class Killed(BaseException):
        pass

    run, steps = SquashRun(GCN, SHORT, folder=tmp_path), iter(range(14))

    def kill(report: object) -> None:
        if next(steps, None) is None:
            raise Killed

    with pytest.raises(Killed):
        run.run(report=kill, checkpoint_seconds=0.0)
    again = SquashRun(GCN, SHORT, folder=tmp_path)
    assert 0 < again.state.total_steps < 15
    again.run()
    assert again.state.history == whole.state.history
    assert torch.equal(again.model.readout.weight, whole.model.readout.weight)


def test_a_larger_budget_continues_what_a_smaller_one_ended(tmp_path: Path) -> None:
    small = SquashRun(GCN, replace(SHORT, max_blocks=1), folder=tmp_path)
    assert small.run().stopped == "blocks"
    run = SquashRun(GCN, SHORT, folder=tmp_path)
    assert run.run().stopped == "blocks"
    whole = SquashRun(GCN, SHORT)
    assert run.state.history == whole.run().history


def test_the_cap_on_minutes_ends_a_run(tmp_path: Path) -> None:
    run = SquashRun(CSNN, Budget("short", 1e-4), folder=tmp_path)
    assert run.run().stopped == "minutes"
    record = run.record()
    assert record.blocks == 0
    assert record.train_best == record.train_last  # of the block that was not finished
    assert record.cpu_seconds > 0


def test_rules_end_a_run() -> None:
    run = SquashRun(GCN, Budget("published", None))
    state = run.state
    for accuracy in [0.5, *[0.50005] * 19]:
        state.correct, state.seen = round(accuracy * 100_000), 100_000
        run._end_block()
        assert run._ended() == ""
    state.correct, state.seen = 50_005, 100_000
    run._end_block()
    assert run._ended() == "no-improvement"
    assert run.optimizer.param_groups[0]["lr"] < 1e-3  # the scheduler saw the plateau
    state.last = 1.0
    assert run._ended() == "fitted"
    state.last, state.block, state.best_block = 0.5, 50, 49
    assert run._ended() == "passes"


def test_steps_in_parts_are_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SquashRun(CSNN, replace(SHORT, max_blocks=1))
    parts = SquashRun(CSNN, replace(SHORT, max_blocks=1))
    examples = whole._order()[0]
    assert whole.part_size == 64
    whole._step(examples)
    monkeypatch.setattr(squash, "PART_NODES", 7 * 20)
    assert parts.part_size == 20
    parts._step(examples)
    assert parts.state.correct == whole.state.correct
    grads = zip(whole.model.parameters(), parts.model.parameters(), strict=True)
    for a, b in grads:
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-6)
    # Batch norms average over a whole batch.
    assert SquashRun(SquashPoint(TreeModel("gin"), 2), SHORT).part_size == 64


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    SquashRun(GCN, replace(SHORT, max_blocks=1), folder=tmp_path).run()
    with pytest.raises(CheckpointError, match="the state of another run"):
        SquashRun(replace(GCN, seed=3), SHORT, folder=tmp_path)


def test_points_are_run_once_and_recorded(tmp_path: Path) -> None:
    def run(budget: Budget) -> list[bool]:
        outcomes = run_points(
            [GCN, CSNN],
            budget,
            results=tmp_path / "results",
            work=tmp_path / "work",
            progress=lambda point: nullcontext(None),
        )
        return [outcome.skipped for outcome in outcomes]

    one, two = replace(SHORT, max_blocks=1), replace(SHORT, max_blocks=2)
    assert run(one) == [False, False]
    assert run(one) == [True, True]
    assert run(two) == [False, False]
    assert run(one) == [True, True]  # less was asked for than is known
    records = read_squash_records(tmp_path / "results")
    assert [record.point for record in records] == [GCN, CSNN] * 2
    assert [record.blocks for record in records] == [1, 1, 2, 2]
    assert records[0].versions["torch"] == torch.__version__


def test_a_record_goes_round(tmp_path: Path) -> None:
    records = [example(), example(model="csnn", direction="to-root", learner="sage", semantics="paper")]  # fmt: skip
    for record in records:
        append_squash_record(tmp_path, record)
    assert read_squash_records(tmp_path) == records
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes() + b'{"model": "gc')
    assert read_squash_records(tmp_path) == records
    append_squash_record(tmp_path, records[0])
    assert read_squash_records(tmp_path) == [*records, records[0]]
    path.write_text("{}\n" + path.read_text())
    with pytest.raises(RecordError, match="line 1: not a record"):
        read_squash_records(tmp_path)
    assert read_squash_records(tmp_path / "nowhere") == []


def test_records_of_other_runs_do_not_meet_these(tmp_path: Path) -> None:
    """They are a kind of their own in a folder of their own, below the one of the others."""
    append_squash_record(tmp_path / "squash", example())
    assert find_records(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "budget", "answers"),
    [
        ({}, Budget("short", 10.0), True),
        ({}, Budget("short", 5.0), True),
        ({}, Budget("short", 60.0), False),
        ({}, Budget("short", None), False),
        ({}, Budget("published", 10.0), False),
        ({"stopped": "fitted"}, Budget("short", None), True),
        ({"stopped": "no-improvement"}, Budget("short", 60.0), True),
        ({"version": 0}, Budget("short", 10.0), False),
        ({"depth": 5}, Budget("short", 10.0), False),
        ({"seed": 1}, Budget("short", 10.0), False),
    ],
)
def test_what_makes_a_run_needless(changes: Any, budget: Budget, answers: bool) -> None:
    assert example(**changes).answers(SquashPoint(TreeModel("gcn"), 4), budget) == answers


def test_tables() -> None:
    csnn = {"model": "csnn", "direction": "bidirected", "learner": "mlp", "semantics": "released"}
    records = [example(**csnn), example(train_best=0.5), example(train_best=0.99999)]
    assert [record.train_best for record in latest(records)] == [0.99999, 0.7]
    rows = table_rows(records)
    assert rows[0][:5] == ("GCN", "4", "99.9", "70", "10.0")
    assert rows[1][0] == "CSNN bidirected, mlp, released"
    assert rows[1][3] == "100"
    begin, end = "<!-- here: begin -->", "<!-- here: end -->"
    table = depth_table(records)
    text = fill_document(f"a\n{begin}\nold\n{end}\nb", "here", table)
    assert text == f"a\n{begin}\n{table}{end}\nb"
    assert fill_document(text, "here", table) == text
    with pytest.raises(ValueError, match="must hold the markers"):
        fill_document(text, "elsewhere", table)
    assert "No point has been recorded yet" in depth_table([])


def test_the_committed_table_is_that_of_the_committed_records() -> None:
    document = (ROOT / "docs" / "over-squashing.md").read_text(encoding="utf-8")
    folder = ROOT / "results" / "squash"
    table = depth_table(read_squash_records(folder))
    assert fill_document(document, PLACE, table) == document
    paths = path_table(read_path_results(folder))
    assert fill_document(document, PATH_PLACE, paths) == document


def test_published_curves() -> None:
    assert set(PUBLISHED_CURVES) == set(TREE_MODELS)
    assert find_published("bunn", 7) == 0.71
    assert find_published("nsd", 4) == 0.05
    assert find_published("gcn", 8) is None
    assert set(PUBLISHED_CURVES["csnn"].accuracy.values()) == {1.0}


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Budget("long"), "budget"),
        (lambda: Budget("short", 0.0), "minutes"),
        (lambda: Budget("short", max_blocks=0), "max_blocks"),
        (lambda: SquashPoint(TreeModel("gcn"), 1), "depth"),
        (lambda: SquashPoint(TreeModel("gcn"), 9), "depth"),
        (lambda: SquashPoint(TreeModel("gcn"), 2, seed=-1), "seed"),
    ],
)
def test_bad_settings_are_named(make: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        make()


def test_records_are_plain_json(tmp_path: Path) -> None:
    path = append_squash_record(tmp_path, example(test=float("nan")))
    assert json.loads(path.read_text())["test"] is None
