"""What every home of trials promises; each home goes through these tests."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from coopsheaf.sweep.queue import MOST_DEATHS, Queue
from coopsheaf.sweep.storage import Home

MakeHome = Callable[[], Home]
OpenQueue = Callable[..., Queue]


def queue(home: Home, name: str = "study", **options: object) -> Queue:
    settings = {"maximise": True, "sampler": "random", "seed": 0, "prune": False, **options}
    return Queue(home, name, **settings)  # type: ignore[arg-type]


def suggest(trial: object) -> float:
    return trial.suggest_float("x", 0.0, 1.0)  # type: ignore[attr-defined]


# The body of a process that holds a promise until it is killed; it imports no PyTorch.
HOLD = """
import json, sys, time
from pathlib import Path
from coopsheaf.sweep import storage as sweep_storage
kind, number, *arguments = json.loads(sys.argv[1])
if kind == "JournalHome":
    arguments = [Path(arguments[0])]
home = getattr(sweep_storage, kind)(*arguments)
with home.exclusive() if number is None else home.lease(number):
    print("ready", flush=True)
    time.sleep(600)
"""


def killed_while_holding(kind: type, arguments: tuple, number: int | None, during: Callable[[], None]) -> None:  # fmt: skip
    words = json.dumps([kind.__name__, number, *map(str, arguments)])
    with subprocess.Popen([sys.executable, "-c", HOLD, words], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            during()
        finally:
            process.kill()


class HomeLaws:
    """Subclasses say how a home is made, and with what a process makes the same one."""

    kind: type

    @pytest.fixture
    def arguments(self) -> tuple:
        raise NotImplementedError

    @pytest.fixture
    def make_home(self, arguments: tuple) -> Iterator[MakeHome]:
        made: list[Home] = []

        def make() -> Home:
            made.append(self.kind(*arguments))
            return made[-1]

        yield make
        for home in made:
            home.close()

    @pytest.fixture
    def open_queue(self, make_home: MakeHome, request: pytest.FixtureRequest) -> OpenQueue:
        """Each test has a study of its own in what may be one database."""
        return lambda name="study": queue(make_home(), f"{request.node.nodeid}/{name}")

    def test_one_at_a_time_is_alone(self, make_home: MakeHome) -> None:
        homes, inside, most = [make_home() for _ in range(3)], [], []

        def enter(home: Home) -> None:
            with home.exclusive():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.02)
                inside.pop()

        threads = [threading.Thread(target=enter, args=(home,)) for home in homes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == [1, 1, 1]

    def test_a_lease_is_of_one_trial_and_ends(self, make_home: MakeHome) -> None:
        ours, other = make_home(), make_home()
        assert not other.is_leased(3)
        with ours.lease(3):
            assert other.is_leased(3)
            assert not other.is_leased(4)
        assert not other.is_leased(3)
        with pytest.raises(KeyError), ours.lease(3):
            raise KeyError
        assert not other.is_leased(3)

    def test_promises_end_with_their_process(self, make_home: MakeHome, arguments: tuple) -> None:
        home = make_home()

        def check() -> None:
            assert home.is_leased(7)

        killed_while_holding(self.kind, arguments, 7, check)
        end = time.monotonic() + 30
        while home.is_leased(7):
            assert time.monotonic() < end
            time.sleep(0.01)
        killed_while_holding(self.kind, arguments, None, lambda: None)
        with home.exclusive():  # or this waits for ever
            pass

    def test_trials_are_seen_by_others(self, open_queue: OpenQueue) -> None:
        ours, theirs = open_queue(), open_queue()
        ours.grow(2)
        claim = ours.claim("me", suggest)
        assert claim is not None
        claim.note(scores={"vals": [0.25, float("nan")], "parameters": 12})
        assert ours.end(claim, "complete", 0.25)
        first, second = theirs.rows()
        assert (first.state, first.value, first.worker) == ("complete", 0.25, "me")
        assert (first.vals, first.parameters) == ((0.25, None), 12)
        assert first.params == {"x": claim.point}
        assert (second.state, second.slot) == ("waiting", 1)
        assert theirs.size == 2
        assert not theirs.is_finished()

    def test_studies_do_not_mix(self, open_queue: OpenQueue) -> None:
        one, two = open_queue("one"), open_queue("two")
        one.grow(2)
        assert (two.size, two.rows()) == (0, [])

    def test_a_dead_trial_comes_back_with_its_settings(self, open_queue: OpenQueue) -> None:
        trials = open_queue()
        trials.grow(1)
        claim = trials.claim("victim", suggest)
        assert claim is not None
        assert trials.claim("other", suggest) is None  # it runs
        claim.close()  # as the system does for a process that is killed
        again = open_queue().claim("other", suggest)
        assert again is not None
        assert again.point == claim.point
        assert [(row.state, row.slot) for row in trials.rows()] == [("fail", 0), ("running", 0)]
        # Whoever was taken for dead does not count twice.
        assert not trials.end(claim, "complete", 1.0)
        assert trials.end(again, "complete", 0.5)
        assert [row.value for row in trials.rows()] == [None, 0.5]
        assert trials.is_finished()

    def test_what_kills_its_processes_is_given_up(self, open_queue: OpenQueue) -> None:
        trials = open_queue()
        trials.grow(1)
        for _ in range(MOST_DEATHS):
            claim = trials.claim("", suggest)
            assert claim is not None
            claim.close()
        assert trials.claim("", suggest) is None
        assert trials.is_finished()
        *failed, last = trials.rows()
        assert [row.state for row in failed] == ["fail"] * (MOST_DEATHS - 1)
        assert (last.state, last.value) == ("pruned", None)
        assert "processes have died of it" in last.error

    def test_a_stop_is_no_death(self, open_queue: OpenQueue) -> None:
        trials = open_queue()
        trials.grow(1)
        points = set()
        for _ in range(2 * MOST_DEATHS):
            claim = trials.claim("", suggest)
            assert claim is not None
            points.add(claim.point)
            claim.note(error="stopped")
            trials.end(claim, "fail")
        assert len(points) == 1
        assert not trials.is_finished()
