"""Progress and tables: live on a terminal, plain elsewhere."""

from __future__ import annotations

import io
import sys
import time

import pytest

from coopsheaf.cli import show
from coopsheaf.train.loop import EpochReport


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report(epoch: int, epochs: int = 100) -> EpochReport:
    return EpochReport(epoch, epochs, loss=0.5, val=0.75, best_val=0.8, best_epoch=7, seconds_left=3)  # fmt: skip


def test_a_live_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with show.progress("split 3") as tell:
        tell(report(40))
    text = screen.getvalue()
    for part in ("split 3", "40/100", "0.5000", "0.7500", "best 0.8000 @ 7"):
        assert part in text


def test_plain_lines_elsewhere(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    now = [1000.0]
    monkeypatch.setattr(show.time, "monotonic", lambda: now[0])
    with show.progress("split 3") as tell:
        for epoch in range(1, 41):
            now[0] += 1
            tell(report(epoch, 40))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[3] for line in lines] == ["2/40", "12/40", "22/40", "32/40", "40/40"]
    assert lines[0] == "split 3: epoch 2/40  loss 0.5000  val 0.7500  best 0.8000 @ 7  3 s left"


def test_what_is_counted_has_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with show.counting("columns") as tell:
        tell(40, 1703)
    assert "columns" in screen.getvalue()
    assert "40/1703" in screen.getvalue()


def test_what_is_counted_has_plain_lines_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(show.time, "monotonic", lambda: now[0])
    with show.counting("columns") as tell:
        for done in range(1, 1704):
            now[0] += 1 / 64
            tell(done, 1703)
    lines = capsys.readouterr().err.splitlines()  # the first after two seconds, then every ten
    assert lines == [f"columns: {done} of 1,703" for done in ("128", "768", "1,408")]


def test_tables_show_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(["name", "nodes"], [["[red]x[/red]", "1,234"], ["b", "7"]], "title")
    out = capsys.readouterr().out
    assert "[red]x[/red]" in out
    assert "│     7 │" in out  # numbers to the right


def test_a_notice_comes_only_if_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    with show.notice("waiting", after=60):
        pass
    assert capsys.readouterr().err == ""
    with show.notice("waiting", after=0.01):
        time.sleep(0.3)
    assert capsys.readouterr().err == "waiting\n"
