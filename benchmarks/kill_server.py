"""Stop the PostgreSQL server of a sweep at random moments, and compare the end with a quiet one.

A sweep of two processes keeps its trials in a server of our own, which is stopped as a crash would
stop it, and started again after a moment. The sweep goes on by itself, or ends with one line that
says how to go on, and does so when it is called again. In the end every trial must be there once,
and the records must be those of a sweep that nobody disturbed. Used by ``kill.py``.
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from pathlib import Path

from kill_commands import COMMANDS, call, contents, finish, left_over, searched, warm_context

from coopsheaf.sweep.plan import load_plan
from coopsheaf.sweep.search import Sweep
from coopsheaf.sweep.storage import check_storage

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from postgres import PROGRAMS, QUOTED, Postgres

HOW = "the same command goes on"
MOST_CALLS = 5


def kill_server(kills: int, seed: int, work: Path) -> list[str]:
    """Stop the server so many times; returns what was wrong, after printing a verdict."""
    if PROGRAMS is None:
        print("postgres: left out; there is no PostgreSQL server on this machine", flush=True)
        return []
    import psycopg

    context, wrong = warm_context(), list[str]()
    rng, folder = random.Random(f"{seed}/postgres"), work / "postgres"
    outputs = COMMANDS["sweep"].outputs
    with Postgres() as server:

        def begin(database: str) -> tuple[str, ...]:
            """A new folder and a new database; the words of the sweep."""
            shutil.rmtree(folder, ignore_errors=True)
            searched(folder)
            with psycopg.connect(server.address(), autocommit=True) as connection:
                connection.execute(f"create database {database}")
            return (*COMMANDS["sweep"].words, "--storage", server.address(database))

        words = begin("quiet")
        start = time.monotonic()
        finish(folder, *words)
        duration, expected = time.monotonic() - start, contents(folder, outputs)
        done = rounds = lines = 0
        while done < kills:
            database, rounds = f"number_{rounds}", rounds + 1
            words = begin(database)
            process = context.Process(target=call, args=(folder, words))
            process.start()
            process.join(rng.uniform(0.0, duration))
            if process.is_alive():
                done += 1
                server.stop()
                time.sleep(rng.choice((0.0, 0.0, 1.0)))
                server.start()
            process.join(60 + 4 * duration)
            for _ in range(MOST_CALLS):
                if process.exitcode == 0:
                    break
                lines += 1
                wrong += [f"postgres, stop {done}: {fault}" for fault in faults_of_line(folder)]
                if process.is_alive():
                    wrong.append(f"postgres, stop {done}: the sweep hangs")
                    process.kill()
                process = context.Process(target=call, args=(folder, words))
                process.start()
                process.join(60 + 4 * duration)
            else:
                wrong.append(f"postgres, stop {done}: no end after {MOST_CALLS} calls")
            wrong += [
                f"postgres, stop {done}: {fault}"
                for fault in faults_of_trials(folder, server.address(database))
            ]
            if contents(folder, outputs) != expected:
                wrong.append(f"postgres, stop {done}: the records or the best recipe differ")
            wrong += [f"postgres, stop {done}: {path} is left over" for path in left_over(folder)]
    shutil.rmtree(folder, ignore_errors=True)
    print(
        f"postgres: {'WRONG' if wrong else 'the same'}: the server was stopped {done} times in "
        f"sweeps of {duration:.1f} s, which ended {lines} times with a line and then went on",
        flush=True,
    )
    print("".join(f"  {line}\n" for line in wrong), end="", flush=True)
    return wrong


def faults_of_line(folder: Path) -> list[str]:
    """What is wrong with what a sweep said that has ended; what it said is read once."""
    text = ""
    for path in folder.glob("err-*.txt"):
        text += path.read_text("utf-8", "replace")
        path.unlink()
    last = text.strip().rsplit("\n", 1)[-1]
    faults = ["a traceback"] if "Traceback" in text else []
    if not last.startswith("coopsheaf: error: ") or HOW not in last:
        faults.append(f"its last line does not say how to go on: {last[:300]!r}")
    return faults + (["the password is shown"] if QUOTED in text else [])


def faults_of_trials(folder: Path, address: str) -> list[str]:
    """Trials that are lost or there twice."""
    with Sweep(load_plan(folder / "sw"), folder / "sw", check_storage(address)) as sweep:
        finished = sorted(row.slot for row in sweep.queue.rows() if row.finished)
        wanted = list(range(sweep.queue.size))
    return [] if finished == wanted else [f"trials {finished} are finished, of {wanted}"]
