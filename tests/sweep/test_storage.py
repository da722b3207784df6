"""Homes of trials: promises that end with their process; addresses of databases."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep.homes import HomeLaws, queue, suggest

from coopsheaf.sweep import storage as sweep_storage
from coopsheaf.sweep.journal import JournalError
from coopsheaf.sweep.storage import JournalHome, StorageError, check_storage, masked


class TestJournal(HomeLaws):
    kind = JournalHome

    @pytest.fixture
    def arguments(self, tmp_path: Path) -> tuple:
        return (tmp_path / "sweep",)


@pytest.mark.parametrize("half", ['{"op_code": 4, "wor', '{"op_code"', "\x00\x00"])
def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path: Path, half: str) -> None:
    trials = queue(JournalHome(tmp_path))
    trials.grow(2)
    with (tmp_path / "journal.log").open("a") as file:
        file.write(half)
    other = queue(JournalHome(tmp_path))
    claim = other.claim("", suggest)
    assert claim is not None
    other.end(claim, "complete", 0.5)
    assert [row.value for row in trials.rows()] == [0.5, None]
    for line in (tmp_path / "journal.log").read_text().splitlines():
        json.loads(line)


BROKEN = {
    "no JSON": "{",
    "not UTF-8": "\udcff\udcfe",
    "deep": "[" * 100_000,
    "a list": "[]",
    "no operation": "{}",
    "unknown operation": '{"op_code": 77, "worker_id": "w"}',
    "operation as text": '{"op_code": "4", "worker_id": "w"}',
    "no worker": '{"op_code": 4, "study_id": 0}',
    "no study": '{"op_code": 4, "worker_id": "w"}',
    "study as text": '{"op_code": 4, "worker_id": "w", "study_id": "0"}',
    "direction": '{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [7]}',
    "distribution": '{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "a", "param_value_internal": 1, "distribution": "{}"}',
    "state": '{"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 9, "values": null}',
    "value": '{"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "values": ["x"]}',
    "no value": '{"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "values": []}',
    "trials without end": '{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"trials": 1000000000000}}',
    "scores": '{"op_code": 8, "worker_id": "w", "trial_id": 0, "user_attr": {"scores": 3}}',
    "slot": '{"op_code": 8, "worker_id": "w", "trial_id": 0, "user_attr": {"slot": "x"}}',
    "endless": '{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "a", "param_value_internal": Infinity, "distribution": "{\\"name\\": \\"CategoricalDistribution\\", \\"attributes\\": {\\"choices\\": [0]}}"}',
    "start": '{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "yesterday"}',
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_line_that_is_none_names_file_line_and_reason(tmp_path: Path, case: str) -> None:
    path = tmp_path / "journal.log"
    queue(JournalHome(tmp_path)).grow(1)
    whole = path.read_bytes()
    number = whole.count(b"\n") + 1
    text = BROKEN[case].encode("utf-8", "surrogateescape")
    path.write_bytes(whole + text + b"\n" + whole)
    with pytest.raises(
        JournalError, match=rf"journal\.log, line {number}: not a line of"
    ) as caught:
        queue(JournalHome(tmp_path)).rows()
    assert "\n" not in str(caught.value)


def test_a_line_that_others_add_meanwhile_is_named_too(tmp_path: Path) -> None:
    trials = queue(JournalHome(tmp_path))
    trials.grow(1)
    with (tmp_path / "journal.log").open("a") as file:
        file.write('{"op_code": 77, "worker_id": "w"}\n')
    with pytest.raises(JournalError, match=r"op_code must be a whole number"):
        trials.rows()


def test_optuna_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'coopsheaf\[sweep\]'"):
        sweep_storage.load_optuna()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///trials.db",
        "mysql://user:secret@host/database",
        "redis://host",
        "postgresql",
        "",
        "host/database",
        "postgresql+asyncpg://user:secret@host/database",
        "postgresql://",
        "postgresql://user:secret@host",
        "postgresql://user:secret@host:port/database",
        "postgresql://host/?password=secret",
    ],
)
def test_other_addresses_are_refused_without_their_passwords(url: str) -> None:
    with pytest.raises(StorageError, match=r"must .*postgresql://user@host/database") as caught:
        check_storage(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_driver_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"psycopg2"}
    monkeypatch.setattr(sweep_storage.importlib.util, "find_spec", lambda name: name if name in there else None)  # type: ignore[attr-defined]  # fmt: skip
    assert check_storage("postgres://a@b/c") == "postgresql+psycopg2://a@b/c"
    with pytest.raises(StorageError, match="needs psycopg, which is not installed"):
        check_storage("postgresql+psycopg://a@b/c")
    there.add("psycopg")
    assert check_storage("postgresql://a@b/c") == "postgresql+psycopg://a@b/c"
    assert check_storage("postgresql+psycopg2://a@b/c") == "postgresql+psycopg2://a@b/c"
    there.clear()
    with pytest.raises(StorageError, match=r"pip install 'psycopg\[binary\]'"):
        check_storage("postgresql://a@b/c")


words = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@given(user=words, host=words, password=st.text(st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1))  # fmt: skip
def test_no_password_is_shown(user: str, host: str, password: str) -> None:
    shown = masked(f"postgresql://{user}:{password}@{host}/trials")
    assert shown == f"postgresql://{user}:***@{host}/trials"
    assert masked(shown) == shown


def test_a_database_that_does_not_answer_is_one_line(unused_port: int) -> None:
    url = check_storage(f"postgresql://user:secret@127.0.0.1:{unused_port}/trials")
    with warnings.catch_warnings(), pytest.raises(StorageError, match="cannot be used") as caught:
        sweep_storage.PostgresHome(url, "study")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
