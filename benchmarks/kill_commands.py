"""Kill commands at random moments, call them again, and compare their end with a quiet one.

For each command there is a folder of inputs. In a copy of it the command is called, as a process
forked from one that has imported everything, and killed at a random moment of the time that it
takes when nobody disturbs it. What it writes must then be absent, as it was, or whole. Called
again it must end as the quiet one did, byte for byte but for times, and leave nothing behind.
Used by ``kill.py``.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.data.synthetic import contextual_sbm, minesweeper
from coopsheaf.files import append_line
from coopsheaf.train.run import load_run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

import endings
from cli.program import call_in, write_tables
from endings import SIGNALS

SMALL = (
    "--set",
    "model.hidden_channels=4",
    "--set",
    "model.stalk_dim=2",
    "--set",
    "model.norm=none",
)
OWN = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--target", "label", *SMALL)
VARYING = {"seconds", "seconds_per_epoch", "peak_mb", "time", "commit"}
PRELOAD = [
    "coopsheaf.cli.dispatch",
    "coopsheaf.cli.training",
    "coopsheaf.cli.using",
    "coopsheaf.cli.explain",
    "coopsheaf.cli.reports",
    "coopsheaf.cli.datasets",
    "coopsheaf.cli.sweep",
    "coopsheaf.scale.feeds",
    "optuna",
]


@dataclass(frozen=True)
class Command:
    """A command that is killed.

    Args:
        prepare: writes the inputs into an empty folder.
        words: the command.
        outputs: patterns of what it writes.
        check: raises if what is there after a kill is neither the old nor whole.
        again: what to add to the words after a kill.
    """

    prepare: Callable[[Path], None]
    words: tuple[str, ...]
    outputs: tuple[str, ...]
    check: Callable[[Path], object] = lambda folder: None
    again: tuple[str, ...] = ()


def call(folder: Path, words: tuple[str, ...]) -> None:
    """The body of a process; its children go with it."""
    os.setpgid(0, 0)
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "COOPSHEAF_DATA": ""}
    call_in(folder, words, environment, threads=1)


def warm_context() -> ForkServerContext:
    """Where processes start at once, because everything is imported: times are of the work."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    process = context.Process(target=int)
    process.start()
    process.join()
    return context


def finish(folder: Path, *words: str) -> None:
    """Call a command in a process that nobody disturbs."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=call, args=(folder, words))
    process.start()
    process.join()
    if process.exitcode != 0:
        errors = "".join(path.read_text() for path in folder.glob("err-*.txt"))
        raise SystemExit(f"error: {' '.join(words)} failed, exit code {process.exitcode}: {errors}")


def tables(folder: Path) -> None:
    write_tables(folder, 60)


def trained(folder: Path) -> None:
    """Tables, a run on them, and old outputs of what reads it."""
    tables(folder)
    finish(folder, "train", *OWN, "--epochs", "2", "--out", "run")
    (folder / "out.csv").write_text("old\n")
    (folder / "page.html").write_text("old\n")


def packed(folder: Path) -> None:
    """A pack that is to be replaced."""
    write_pack(minesweeper(height=20, width=20), folder / "pack")


def recipe(folder: Path) -> None:
    """A recipe for a pack of three splits."""
    data = contextual_sbm(200, 4.0, homophily=0.2, num_features=8, signal=1.0)
    write_pack(data, folder / "graph")
    (folder / "mine.toml").write_text(
        '[model]\nname = "csnn"\nhidden_channels = 4\nstalk_dim = 2\n'
        '[data]\nname = "pack:graph"\n[train]\nepochs = 40\n'
    )


def searched(folder: Path) -> None:
    tables(folder)
    (folder / "space.toml").write_text('[grid]\nsource = "here"\n[train]\nlr = [0.01, 0.1]\n')


def published(folder: Path) -> None:
    """Files that are known by their checksums, from ``$COOPSHEAF_DATA``."""
    source = Path(os.environ["COOPSHEAF_DATA"])
    for name in ("platonov/tolokers.npz", "platonov/squirrel_filtered.npz", "fb100/Reed98.mat"):
        (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / "in" / name)


def whole_lines(folder: Path) -> None:
    for path in folder.rglob("*.jsonl"):
        for line in path.read_bytes().split(b"\n")[:-1]:  # the last one may be half, and is cut
            json.loads(line)


def old_or_new(name: str, start: str) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert text == "old\n" or (text.startswith(start) and text.endswith("\n")), name

    return check


def readable_pack(folder: Path) -> None:
    read_pack(folder / "pack")


def readable_run(folder: Path) -> None:
    whole_lines(folder)
    if (folder / "run/model.safetensors").exists():
        info = json.loads((folder / "run/run.json").read_text("utf-8"))
        if info["status"] == "finished":
            load_run(folder / "run")


COMMANDS: dict[str, Command] = {
    "train": Command(
        tables,
        ("train", *OWN, "--epochs", "60", "--out", "run"),
        ("run/*", "results/*"),
        readable_run,
        ("--resume",),
    ),
    "predict": Command(
        trained,
        ("predict", "run", "-o", "out.csv", "--force"),
        ("out.csv",),
        old_or_new("out.csv", "person,"),
    ),
    "explain": Command(
        trained,
        ("explain", "run", "-o", "page.html", "--force"),
        ("page.html",),
        old_or_new("page.html", "<!"),
    ),
    "report": Command(
        trained,
        ("report", "--html", "--output", "page.html"),
        ("page.html",),
        old_or_new("page.html", "<!"),
    ),
    "pack": Command(
        packed,
        ("data", "pack", "minesweeper-generated", "-o", "pack", "--force"),
        ("pack/*",),
        readable_pack,
    ),
    "import": Command(published, ("data", "import", "in"), ("cache/coopsheaf/**/*",)),
    "bench": Command(recipe, ("bench", "mine.toml"), ("results/*", "runs/*/*"), whole_lines),
    "sweep": Command(
        searched,
        (
            "sweep",
            *OWN,
            "--space",
            "space.toml",
            "--trials",
            "4",
            "--epochs",
            "6",
            "--workers",
            "2",
            "--out",
            "sw",
        ),
        ("sw/records/*", "sw/best.toml", "sw/sweep.json"),
        whole_lines,
    ),
}


def contents(folder: Path, patterns: tuple[str, ...]) -> dict[str, Any]:
    """What a command has written, times left out; locks are empty and stay."""
    found: dict[str, Any] = {}
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            if not path.is_file() or path.name.endswith(".lock"):
                continue
            data, name = path.read_bytes(), str(path.relative_to(folder))
            if path.suffix == ".jsonl":
                lines = (json.loads(line) for line in data.splitlines())
                found[name] = sorted(json.dumps(timeless(line), sort_keys=True) for line in lines)
            elif path.suffix == ".json":
                found[name] = timeless(json.loads(data))
            else:
                # A trial that is run again has another number than the one that was lost.
                data = re.sub(rb"trial \d+", b"trial", data)
                found[name] = data.replace(os.fsencode(folder), b".")
    return found


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in VARYING}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def left_over(folder: Path) -> list[str]:
    """Drafts that nobody has removed."""
    paths = [*folder.rglob(".*.part"), *folder.rglob(".*.old")]
    return [str(path.relative_to(folder)) for path in paths]


def kill_command(
    name: str, kills: int, seed: int, work: Path, signals: Sequence[str] = ("KILL",)
) -> list[str]:
    """End one command so many times; returns what was wrong, after printing a verdict."""
    command, rng, context = COMMANDS[name], random.Random(f"{seed}/{name}"), warm_context()
    origin = work / f"{name}-inputs"
    origin.mkdir(parents=True)
    command.prepare(origin)
    wrong: list[str] = []
    folder = work / name  # one place for all: paths are part of what is written
    shutil.copytree(origin, folder)
    start = time.monotonic()
    finish(folder, *command.words)
    duration = time.monotonic() - start
    expected = contents(folder, command.outputs)
    shutil.rmtree(folder)
    done = drafts = ended = saved = 0
    while done < kills:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(origin, folder)
        words = command.words
        for _ in range(rng.choice((1, 1, 2, 4))):
            started = time.time()
            process = context.Process(target=call, args=(folder, words))
            process.start()
            process.join(rng.uniform(0.0, 1.1 * duration))
            if not process.is_alive():
                break
            faults = endings.end(process, SIGNALS[rng.choice(signals)], folder, started)
            wrong += [f"{name}, kill {done + 1}: {fault}" for fault in faults]
            saved += process.exitcode is not None and process.exitcode > 128
            done += 1
            drafts += bool(left_over(folder))
            words = once_more(command, folder)
            try:
                command.check(folder)
            except Exception as error:
                wrong.append(f"{name}, kill {done}: {type(error).__name__}: {error}")
        finish(folder, *once_more(command, folder))
        ended += 1
        if (found := contents(folder, command.outputs)) != expected:
            different = [
                key for key in {**found, **expected} if found.get(key) != expected.get(key)
            ]
            wrong.append(f"{name}, after kill {done}: {', '.join(sorted(different)[:5])} differ")
        wrong += [f"{name}, after kill {done}: {path} is left over" for path in left_over(folder)]
    shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{name}: {'WRONG' if wrong else 'the same'}: {done} kills by {', '.join(signals)} "
        f"({drafts} left a draft, which the next call removed; {saved} saved their state) over "
        f"{ended} endings of {duration:.1f} s",
        flush=True,
    )
    print("".join(f"  {line}\n" for line in wrong), end="", flush=True)
    return wrong


def once_more(command: Command, folder: Path) -> tuple[str, ...]:
    """The words that go on where the command was, if it had come to announce itself."""
    return (*command.words, *(command.again if (folder / "run/run.json").exists() else ()))


def write_lines(path: Path, writer: int, count: int) -> None:
    for number in range(count):
        append_line(path, json.dumps({"writer": writer, "number": number}))


def four_writers(work: Path, count: int = 2500) -> list[str]:
    """Four processes append to one file; no line may be lost, doubled or mixed."""
    path, context = work / "lines.jsonl", multiprocessing.get_context("forkserver")
    writers = [context.Process(target=write_lines, args=(path, k, count)) for k in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    pairs = {(line["writer"], line["number"]) for line in found}
    whole = len(found) == len(pairs) == 4 * count
    print(
        f"writers: {'all there' if whole else 'WRONG'}: {len(found)} lines of 4 x {count}",
        flush=True,
    )
    return [] if whole else [f"writers: {len(found)} lines, {len(pairs)} different, of {4 * count}"]


def kill_rank(kills: int, seed: int, work: Path, signals: Sequence[str] = ("KILL",)) -> list[str]:
    """End one of two processes under torchrun, resume, and compare with a quiet job.

    What asks for the end is sent to torchrun as often, which passes it on.
    """
    batches = ("batch.kind=clusters", "batch.parts=4", "batch.size=2", "train.patience=0")
    words = ("train", *OWN, "--epochs", "30", "--out", "run")
    words += tuple(word for text in batches for word in ("--set", text))
    rng, folder, wrong = random.Random(f"{seed}/torchrun"), work / "torchrun", []
    tables(folder)
    start = time.monotonic()
    if torchrun(folder, *words).wait():
        raise SystemExit("error: the quiet job failed")
    duration, saved = time.monotonic() - start, 0
    expected = contents(folder, ("run/*", "results/*"))
    for done in range(1, kills + 1):
        shutil.rmtree(folder)
        tables(folder)
        number, job = SIGNALS[rng.choice(signals)], torchrun(folder, *words)
        time.sleep(rng.uniform(0.3, 1.0) * duration)
        found = subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True)
        ranks = [int(pid) for pid in found.stdout.split()]
        alone = number == SIGNALS["KILL"] or rng.random() < 0.5
        with suppress(ProcessLookupError):
            os.kill(rng.choice(ranks or [job.pid]) if alone else job.pid, number)
        job.wait()
        epochs = endings.saved_epochs(folder)
        saved += bool(epochs)
        if number != SIGNALS["KILL"]:
            faults = endings.lost_epochs(folder, epochs, math.inf)
            wrong += [f"torchrun, kill {done}: {fault}" for fault in faults]
        resume = ("--resume",) if (folder / "run/run.json").exists() else ()
        code = torchrun(folder, *words, *resume).wait()
        if code or contents(folder, ("run/*", "results/*")) != expected or left_over(folder):
            wrong.append(f"torchrun, kill {done}: exit code {code}, or another end")
    print(
        f"torchrun: {'WRONG' if wrong else 'the same'}: {kills} jobs ended by "
        f"{', '.join(signals)} ({saved} saved their state)",
        flush=True,
    )
    print("".join(f"  {line}\n" for line in wrong), end="", flush=True)
    return wrong


def torchrun(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return subprocess.Popen(
        [sys.executable, *launch, "-m", "coopsheaf", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
