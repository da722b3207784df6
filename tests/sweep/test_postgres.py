"""Sweeps in a real PostgreSQL server, which is started here and stopped again."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from cli.program import Program
from postgres import PROGRAMS, QUOTED, Postgres
from published import REAL_DATA, needs_real_data
from sweep.homes import HomeLaws, queue
from sweep.sweeps import Trainer, closeness, kill_one, plan
from train.small import node_dataset

from coopsheaf.sweep import search as sweep_module
from coopsheaf.sweep.plan import load_plan
from coopsheaf.sweep.search import Sweep
from coopsheaf.sweep.storage import PostgresHome, StorageError, check_storage
from coopsheaf.train.recipes import load_recipe

psycopg = pytest.importorskip("psycopg", reason="no driver: pip install 'psycopg[binary]'")

pytestmark = pytest.mark.skipif(
    PROGRAMS is None, reason="no PostgreSQL server on this machine: apt-get install postgresql"
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server of our own."""
    with Postgres() as running:
        yield running.address()


@pytest.fixture
def using() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class TestPostgres(HomeLaws):
    kind = PostgresHome

    @pytest.fixture
    def arguments(self, server: str, request: pytest.FixtureRequest) -> tuple:
        return (check_storage(server), request.node.nodeid)


def test_processes_that_begin_at_once_make_one_study(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("create database empty")  # tables are made at once, too
    address, errors = check_storage(server.removesuffix("postgres") + "empty"), []

    def begin() -> None:
        try:
            with closing(PostgresHome(address, "at once")) as home:
                queue(home, "at once").grow(3)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with closing(PostgresHome(address, "at once")) as home:
        assert [row.slot for row in queue(home, "at once").rows()] == [0, 1, 2]


def test_two_machines_share_a_sweep(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, using: ExitStack) -> None:  # fmt: skip
    monkeypatch.setattr(sweep_module, "bench", Trainer(closeness))
    both = plan(tmp_path, sampler="random")
    machines = [Sweep(both, tmp_path / name, check_storage(server)) for name in ("one", "two")]
    for machine in machines:
        machine.grow(12)
        using.enter_context(machine)
    threads = [threading.Thread(target=machine.work, args=(node_dataset(),), kwargs={"worker": str(k)}) for k, machine in enumerate(machines)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, two = (machine.queue.rows() for machine in machines)
    assert one == two
    assert sorted(row.slot for row in one if row.finished) == list(range(12))
    assert {row.worker for row in one} <= {"0", "1"}
    first, second = (machine.write_best() for machine in machines)
    assert first is not None
    assert second is not None
    assert first.read_text() == second.read_text()
    assert not (tmp_path / "one" / "journal.log").exists()


def test_the_password_is_not_shown(server: str, tmp_path: Path) -> None:
    wrong = server.replace(QUOTED, "guessed")
    with pytest.raises(StorageError, match="password authentication failed") as caught:
        Sweep(plan(tmp_path), tmp_path / "sweep", check_storage(wrong))
    assert "guessed" not in str(caught.value)
    with Sweep(plan(tmp_path), tmp_path / "other", check_storage(server)):
        pass
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"secret" not in path.read_bytes()


@pytest.mark.thorough
@needs_real_data
def test_no_trial_is_lost_when_a_process_is_killed(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    multiprocessing.get_context("forkserver").set_forkserver_preload(["coopsheaf.cli.sweep_worker"])
    Path("space.toml").write_text("[model]\nhidden_channels = [2, 4]\n[train]\nlr = { low = 1e-3, high = 0.1 }\n")  # fmt: skip
    folder, killed = tmp_path / "sweep", []
    killer = threading.Thread(target=kill_one, args=(folder, 2, killed, check_storage(server)), daemon=True)  # fmt: skip
    killer.start()
    done = Program(capfd)("sweep", "texas", "--space", "space.toml", "--data-dir", REAL_DATA, "--threads", 1, "--trials", 6, "--workers", 2, "--splits", "0", "--epochs", 3, "--set", "model.stalk_dim=2", "--storage", server, "--out", "sweep")  # fmt: skip
    killer.join(10)
    assert done.code == 0, done.err
    (victim,) = killed
    with Sweep(load_plan(folder), folder, check_storage(server)) as sweep:
        rows = sweep.queue.rows()
    assert sorted(row.slot for row in rows if row.finished) == list(range(6))
    (failed,) = (row for row in rows if row.state == "fail")
    assert (failed.number, failed.error) == (victim.number, "")
    (again,) = (row for row in rows if row.finished and row.slot == victim.slot)
    assert failed.params.items() <= again.params.items()  # it may have died before it drew them all
    assert "sweeper:***@127.0.0.1" in done.out
    assert "secret" not in done.out + done.err
    assert not (folder / "journal.log").exists()
    assert load_recipe("sweep/best.toml").source.startswith("sweep of 6 trials")
