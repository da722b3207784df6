"""How the tests call the program, and small tables to call it with."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from processes import hear_signals

from coopsheaf.cli import main
from coopsheaf.train.records import Record, find_records

OLD = 59  # the age from which on a person is old and wise
SMALL = (
    "--set",
    "model.hidden_channels=4",
    "--set",
    "model.stalk_dim=2",
    "--set",
    "model.norm=none",
)


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that says what was wrong; progress lines aside."""
        lines = [line for line in self.err.splitlines() if not line.startswith("split ")]
        assert self.code == 2, (self.code, self.out, self.err)
        assert "Traceback" not in self.err
        assert len(lines) == 1, self.err
        assert lines[0].startswith("coopsheaf: error: "), self.err
        return lines[0].removeprefix("coopsheaf: error: ")


class Program:
    """``coopsheaf``, or another program, in this process: no second import of PyTorch."""

    def __init__(
        self, capture: pytest.CaptureFixture[str], main: Callable[[list[str]], None] = main
    ) -> None:
        self.capture, self.main = capture, main

    def __call__(self, *words: object) -> Done:
        self.capture.readouterr()
        try:
            self.main([str(word) for word in words])
            code = 0
        except SystemExit as exit:
            code = exit.code if isinstance(exit.code, int) else 1
        return Done(code, *self.capture.readouterr())

    def ok(self, *words: object) -> str:
        done = self(*words)
        assert done.code == 0, done.err
        return done.out


def subprogram(*words: object, cwd: Path, python: tuple[str, ...] = ("-m", "coopsheaf"), **environment: str) -> Done:  # fmt: skip
    """``coopsheaf`` as a process of its own."""
    done = subprocess.run(
        [sys.executable, *python, *map(str, words)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def call_in(folder: Path, words: tuple[str, ...], environment: Mapping[str, str], threads: int) -> None:  # fmt: skip
    """The body of a process forked from one that has imported everything."""
    hear_signals()
    torch.set_num_threads(threads)
    os.chdir(folder)
    os.environ.update(environment)
    for stream, name in ((1, "out.txt"), (2, f"err-{os.getpid()}.txt")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    main(words)


def start(folder: Path, *words: object) -> BaseProcess:
    """A process that is forked from one with everything imported, so that it starts at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["coopsheaf.train.run", "train.small"])
    environment = {name: os.environ[name] for name in ("XDG_CACHE_HOME", "COOPSHEAF_OFFLINE")}
    arguments = (folder, tuple(map(str, words)), environment, torch.get_num_threads())
    process = context.Process(target=call_in, args=arguments)
    process.start()
    return process


def wait_for(path: Path, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.005)


def write_tables(
    folder: Path,
    n: int = 60,
    *,
    seed: int = 0,
    prefix: str = "p",
    kinds: tuple[str, ...] = ("red", "green", "blue"),
    target: str | None = "label",
    unlabelled: int = 6,
) -> tuple[Path, Path]:
    """People with an age, a colour and a label that follows from them; who knows whom, how well.

    ``target`` may be ``"label"``, ``"height"`` (a real number) or ``None`` (no such column).
    """
    rng = random.Random(seed)
    rows, ids = [], [f"{prefix}{i}" for i in range(n)]
    for i, person in enumerate(ids):
        age, kind = rng.randint(18, 80), rng.choice(kinds)
        value = {
            "label": "old, wise" if age > OLD else "young",
            "height": f"{age / 100 + rng.random():.3f}",
            None: "",
        }[target]
        cells = [person, str(age), kind, rng.choice(["train", "train", "val", "test"])]
        if target is not None:
            cells.append("" if i < unlabelled else f'"{value}"')
        rows.append(",".join(cells))
    header = "person,age,kind,part" + (f",{target}" if target else "")
    folder.mkdir(parents=True, exist_ok=True)
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    nodes.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    pairs = [f"{rng.choice(ids)},{rng.choice(ids)},{rng.random():.2f}" for _ in range(3 * n)]
    edges.write_text("\n".join(["from,to,strength", *pairs]) + "\n", encoding="utf-8")
    return nodes, edges


def records(folder: Path = Path("results")) -> list[Record]:
    return find_records(folder)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with its content; locks are empty and do not count."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }
