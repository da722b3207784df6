"""``coopsheaf sweep`` with real processes: killed, interrupted, orphaned; and bad input."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cli.program import Program, call_in, records, write_tables
from published import REAL_DATA, needs_real_data
from rich.console import Console
from sweep.sweeps import Trainer, closeness, kill_one, open_sweep, plan, wait_until
from train.small import node_dataset

from coopsheaf.cli import sweep_show
from coopsheaf.cli.shared_args import Tables
from coopsheaf.cli.sweep_worker import Job, Team
from coopsheaf.sweep import search as sweep_module
from coopsheaf.sweep.queue import MOST_DEATHS, TrialRow
from coopsheaf.sweep.search import Sweep
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.records import find_records

SPACE = """
[model]
stalk_dim = [1, 2]
hidden_channels = [2, 4]
learner = ["mlp", "sage-graph-norm"]
learner_layers = [1, 2]
[train]
lr = { low = 1e-3, high = 1e-1, log = true }
"""
TEXAS = ("sweep", "texas", "--space", "space.toml", "--data-dir", REAL_DATA, "--threads", 1)
FOLDER = Path("sweeps/csnn-texas")


@pytest.fixture(autouse=True)
def _server() -> None:
    """Processes are forked from one that has everything imported, if none is there yet."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(["coopsheaf.cli.sweep_worker"])


@pytest.fixture
def space(program: Program) -> Path:
    Path("space.toml").write_text(SPACE)
    return Path("space.toml")


# --- processes ---------------------------------------------------------------------------------


@needs_real_data
def test_no_trial_is_lost_when_a_process_is_killed(program: Program, space: Path) -> None:
    killed: list[TrialRow] = []
    killer = threading.Thread(target=kill_one, args=(FOLDER.resolve(), 5, killed), daemon=True)
    killer.start()
    done = program(*TEXAS, "--trials", 20, "--workers", 2, "--splits", "0", "--epochs", 3)
    killer.join(10)
    assert done.code == 0, done.err
    sweep = open_sweep(FOLDER)
    rows = sweep.queue.rows()
    finished = [row for row in rows if row.finished]
    assert sorted(row.slot for row in finished) == list(range(20))
    assert {row.state for row in rows} == {"complete", "fail"}
    # The trial of the killed process was run again, with the same settings, by another one.
    (victim,) = killed
    (failed,) = (row for row in rows if row.state == "fail")
    assert (failed.number, failed.error) == (victim.number, "")
    (again,) = (row for row in finished if row.slot == victim.slot)
    assert dict(failed.params).items() <= dict(again.params).items()  # it may have drawn but some
    assert again.worker != victim.worker
    assert len({row.worker for row in finished}) >= 2
    # Every trained split is recorded once.
    found = find_records(FOLDER / "records")
    assert len({record.key for record in found}) == len(found)
    assert {row.config for row in finished} == {record.config_hash for record in found}
    assert all((record.epochs, record.threads) == (3, 1) for record in found)
    assert "20 of 20 trials (0 pruned), 0 running; best " in done.out
    assert f"trial {victim.number}: its process has died; it is tried again" in done.out
    assert "has died (signal 9, see " in done.err
    assert (FOLDER / "history.svg").exists()
    assert (FOLDER / "importance.svg").exists()

    # The best recipe is one to train and to bench; reports do not see the trials.
    best = sweep.best()
    assert best is not None
    recipe = load_recipe(str(FOLDER / "best.toml"))
    assert recipe.hash() == best.config
    assert recipe.source.startswith("sweep of 20 trials (0 pruned; tpe, seed 0) over space.toml")
    assert not Path("results").exists()
    words = ("--splits", "0", "--data-dir", REAL_DATA, "--threads", 1)
    program.ok("bench", FOLDER / "best.toml", *words)
    (record,) = records()
    assert (record.recipe, record.val) == ("sweep/csnn/texas", best.value)
    out = program.ok(*TEXAS, "--trials", 20, "--splits", "0", "--epochs", 3)
    assert "best recipe" in out  # nothing to do
    assert len(open_sweep(FOLDER).queue.rows()) == len(rows)


@needs_real_data
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_everything_and_the_same_command_goes_on(number: int, code: int, program: Program, space: Path) -> None:  # fmt: skip
    words = (*TEXAS, "--trials", 4, "--workers", 2, "--splits", "0-1", "--epochs", 20, "--no-prune")

    def interrupt() -> None:
        sweep = open_sweep(FOLDER.resolve())

        def workers() -> set[str]:
            return {row.worker for row in sweep.queue.rows() if row.state == "running"}

        # A trial may be under way before its worker is written down.
        wait_until(lambda: any(row.finished for row in sweep.queue.rows()) and all(workers()))
        # A terminal, or a scheduler, sends it to all.
        for process in (os.getpid(), *(int(w.rpartition(":")[2]) for w in workers() if w)):
            os.kill(process, number)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    done = program(*words)
    thread.join(10)
    assert done.code == code
    assert "stopping after this epoch" in done.err
    assert "of 4 trials are finished. The same command goes on" in done.err
    assert "Traceback" not in done.err
    rows = open_sweep(FOLDER).queue.rows()
    assert not [row for row in rows if row.state == "running"]
    stopped = [row for row in rows if row.state == "fail"]
    assert stopped
    assert all(row.error == "stopped" for row in stopped)
    assert load_recipe(str(FOLDER / "best.toml")).source.startswith("sweep of ")
    assert " of 4 trials" in load_recipe(str(FOLDER / "best.toml")).source
    program.ok(*words)
    rows = open_sweep(FOLDER).queue.rows()
    assert sorted(row.slot for row in rows if row.state == "complete") == [0, 1, 2, 3]
    for row in stopped:
        (final,) = (r for r in rows if r.slot == row.slot and r.finished)
        assert dict(row.params).items() <= dict(final.params).items()
    assert "best trials" in program.ok(*words)


@needs_real_data
def test_processes_do_not_outlive_their_parent(tmp_path: Path, program: Program, space: Path) -> None:  # fmt: skip
    folder = Path.cwd()
    environment = {name: os.environ[name] for name in ("XDG_CACHE_HOME", "COOPSHEAF_OFFLINE")}
    words = (*TEXAS, "--trials", 3, "--workers", 1, "--epochs", 100000, "--set", "train.patience=0")
    context = multiprocessing.get_context("forkserver")
    arguments = (folder, tuple(map(str, words)), environment, torch.get_num_threads())
    parent = context.Process(target=call_in, args=arguments)
    parent.start()
    sweep = open_sweep(folder / FOLDER)
    wait_until(lambda: any(row.state == "running" and row.config for row in sweep.queue.rows()))
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    parent.join()
    wait_until(lambda: sweep.queue.rows()[0].state == "fail", 60)
    assert sweep.queue.rows()[0].error == "stopped"


def test_own_tables(program: Program, space: Path, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    own = ("--nodes", nodes, "--edges", edges, "--target", "label")
    out = program.ok("sweep", *own, "--space", space, "--trials", 2, "--epochs", 2, "--threads", 1)
    file = Path("sweeps/csnn-own-nodes/best.toml")
    assert f"test it with: coopsheaf train --nodes ... --edges ... --recipe {file}" in out
    assert "mean of split" not in out
    program.ok("train", *own, "--recipe", file, "--out", "run")
    (record,) = records()
    assert record.config_hash == load_recipe(str(file)).hash()


def test_when_nothing_works_the_reason_is_given(program: Program, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    Path("space.toml").write_text("[train]\nlr = [1e30, 1e31]\n")
    done = program("sweep", "--nodes", nodes, "--edges", edges, "--target", "label", "--space", "space.toml", "--trials", 2, "--epochs", 5, "--threads", 1)  # fmt: skip
    assert "no trial was completed; the first one failed because the loss became" in done.error
    assert "trial 0: came to nothing: the loss became" in done.out


def job(folder: Path, **changes: object) -> Job:
    values = Job(folder, None, Tables(), None, 1, folder, dict(os.environ))
    return replace(values, **changes)  # type: ignore[arg-type]


def check_until_it_fails(team: Team) -> str:
    end = time.monotonic() + 120
    try:
        while time.monotonic() < end:
            team.check(0)
            time.sleep(0.01)
    except ValueError as error:
        return str(error)
    finally:
        team.close()
    pytest.fail("nothing went wrong")


def test_processes_that_fail_say_why(tmp_path: Path) -> None:
    said: list[str] = []
    team = Team(job(tmp_path), 1, said.append)
    assert check_until_it_fails(team) == f"{tmp_path}: not a sweep (there is no sweep.json in it)"
    assert said == []


def test_processes_that_always_die_are_given_up(tmp_path: Path) -> None:
    said: list[str] = []
    team = Team(job(tmp_path, cwd=tmp_path / "nowhere"), 1, said.append)
    message = check_until_it_fails(team)
    log = tmp_path / "workers" / "0.log"
    assert f"{MOST_DEATHS + 1} processes have died in a row, the last one of exit code 1; see {log}" in message  # fmt: skip
    assert len(said) == MOST_DEATHS
    assert "nowhere" in log.read_text()


# --- bad input ---------------------------------------------------------------------------------


@needs_real_data
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--trials", 0), "--trials must be at least 1; got 0"),
        (("--trials", -3), "--trials must be at least 1; got -3"),
        (("--workers", 0), "--workers must be at least 1; got 0"),
        (("--threads", 0), "--threads must be at least 1; got 0"),
        (("--storage", "sqlite:///a.db"), "`storage` must be the URL of a PostgreSQL database, such as postgresql://user@host/database"),
        (("--storage", "mysql://me:passw0rd@there/db"), "got 'mysql://me:***@there/db'"),
        (("--splits", "0-10"), "--splits must be below 10; got '0-10'"),
        (("--splits", "some"), "--splits must look like 0, 0-9 or 0,2,5; got 'some'"),
        (("--sampler", "best"), "`sampler` must be one of 'tpe', 'random', 'grid'; got 'best'"),
        (("--sampler", "grid"), "`sampler` grid needs lists, or ranges with a step; train.lr has neither"),
        (("--seed", -1), "`seed` must be an integer of at least 0; got -1"),
        (("--epochs", 0), "`epochs` must be at least 1; got 0"),
        (("--model", "perceptron"), "`model` must be one of"),
        (("--model", "gcn"), "space.toml: [model]: unknown setting 'stalk_dim'"),
        (("--set", "model.wings=2"), "unknown setting 'wings'"),
        (("--set", "train.lr=0.1", "--set", "data.name=film"), "the dataset is 'texas' already"),
        (("--recipe", "none.toml"), "none.toml: cannot be read"),
        (("--space", "none.toml"), "none.toml: cannot be read"),
        (("--space", "."), ".: cannot be read"),
        (("--target", "label"), "--target and the other options of tables go with --nodes and --edges"),
        (("--nodes", "nodes.csv"), "give either the name of a dataset"),
        (("--out", "space.toml"), "space.toml"),
        (("--out", "full"), "full: holds files and no sweep; choose another folder with --out"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_bad_input_is_one_line(program: Program, space: Path, words: Sequence[object], message: str) -> None:  # fmt: skip
    Path("full").mkdir()
    Path("full/file").write_text("")
    done = program(*TEXAS, *words)
    assert message in done.error
    assert "passw0rd" not in done.err + done.out
    assert not Path("sweeps").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nname = 'gcn'\nnum_layers = [1, 2]", "is a space of 'gcn'; the model is 'csnn'"),
        ("[model]\nstalk_dim = []", "stalk_dim must have at least one value; got []"),
        ("[model]\nstalk_dim = ['2', 3]", "stalk_dim must be a whole number; got '2'"),
        ("[model]\nact = ['gelu', 'gulp']", "model.act = 'gulp' fits no network"),
        ("[train]\nlr = [0.1]", "there is nothing to search"),
    ],
)
@needs_real_data
def test_a_bad_space_is_one_line(program: Program, space: Path, text: str, message: str) -> None:
    space.write_text(text)
    assert message in program(*TEXAS).error
    assert not Path("sweeps").exists()


@needs_real_data
def test_the_folder_of_another_sweep_is_refused(program: Program, space: Path) -> None:
    first = plan(Path())
    Sweep(first, FOLDER)
    before = (FOLDER / "sweep.json").read_bytes()
    message = program(*TEXAS).error
    assert "csnn-texas: holds another sweep (other settings, space, data, splits, sampler or seed)" in message  # fmt: skip
    assert (FOLDER / "sweep.json").read_bytes() == before


def test_names_that_are_missing(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "give either the name of a dataset" in program("sweep").error
    assert "no published search grid of 'mlp'; give a space with --space" in program("sweep", "texas", "--model", "mlp").error  # fmt: skip
    assert "a does not exist" in program("sweep", "--nodes", "a", "--edges", "b").error
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert program("sweep", "texas").error == "sweeps need optuna, which is not installed: pip install 'coopsheaf[sweep]'"  # fmt: skip


def test_help(program: Program) -> None:
    out = " ".join(program.ok("sweep", "--help").replace("│", " ").split())
    for word in ("--space", "--trials", "--workers", "--storage", "--prune", "--sampler", "--out"):
        assert word in out
    assert "coopsheaf sweep texas --trials 40 --workers 2" in out


@needs_real_data
def test_splits_of_a_trial_in_one_pass(program: Program, space: Path) -> None:
    words = (*TEXAS, "--trials", 2, "--workers", 1, "--epochs", 2, "--together")
    out = program.ok(*words, "--splits", "0-2")
    assert "2 of 2 trials (0 pruned)" in out
    found = find_records(FOLDER / "records")
    assert [record.together for record in found] == [3] * 6
    assert sorted(record.split for record in found) == [0, 0, 1, 1, 2, 2]
    rows = open_sweep(FOLDER).queue.rows()
    assert [len(row.vals) for row in rows] == [3, 3]
    other = ("--set", "train.precision=bf16", "--out", "elsewhere")
    assert "leave --together out" in program(*words, *other).error
    assert not Path("elsewhere").exists()


# --- what is shown -----------------------------------------------------------------------------


def test_a_terminal_shows_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "bench", Trainer(closeness))
    sweep = Sweep(plan(tmp_path), tmp_path / "sweep")
    sweep.grow(3)
    claim = sweep.queue.claim("me", sweep._suggest)
    assert claim is not None
    rows = sweep.queue.rows()
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(sweep_show._live_table(sweep.plan, 3, rows))
    claim.close()
    assert sweep.work(node_dataset())
    console.print(sweep_show._live_table(sweep.plan, 3, sweep.queue.rows()))
    text = console.export_text()
    assert "0 of 3 trials (0 pruned), 1 running" in text
    assert "split 1 of 2, 0 s" in text
    assert "3 of 3 trials (0 pruned), 0 running; best 0." in text
    assert "hidden_channels" in text
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with sweep_show.progress(sweep.plan, 3, []) as update:
        update(sweep.queue.rows())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (TrialRow(0, 0, "complete", 0.5, vals=(0.4, 0.6), seconds=2.0), "val accuracy 0.5000 over 2 splits (2.0 s)"),
        (TrialRow(1, 1, "complete", 0.5, vals=(0.5,), same_as=0), "val accuracy 0.5000 over 1 split (as trial 0)"),
        (TrialRow(2, 2, "pruned", 0.25, vals=(0.25,)), "pruned after 1 split, val accuracy 0.2500"),
        (TrialRow(3, 3, "pruned", error="[b]boom"), "came to nothing: [b]boom"),
        (TrialRow(4, 4, "fail"), "its process has died; it is tried again"),
        (TrialRow(5, 5, "fail", error="stopped"), "stopped; it goes on later"),
    ],
)  # fmt: skip
def test_outcomes_in_words(tmp_path: Path, row: TrialRow, words: str) -> None:
    assert sweep_show.outcome(plan(tmp_path), row) == words
