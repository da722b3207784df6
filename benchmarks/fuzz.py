"""Damage files by the thousand and read them: an error of one line, or none; never anything else.

Every case has a number, which with the seed decides it: a good file of some kind is damaged and
read, in this process or by the command line as a process of its own. A failure is whatever is not
a ``ValueError`` or ``OSError`` of one line: another exception, a process with a traceback, over
2 GB or over 20 seconds, a mark that only executed code can have made. For each the damaged file is
kept, made as small as it can be while the failure stays the same::

    python benchmarks/fuzz.py --seconds 60
    python benchmarks/fuzz.py --cases 100000 --every 200 --seconds 36000
    python benchmarks/fuzz.py --only 4711            # one case again

One case in ``--every`` is a process. ``README.md`` beside this file has the protocol.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from fuzz_targets import TARGETS, Target, damage, move, prepare

MOST_SECONDS = 20
MOST_BYTES = 2 << 30
PROCESSES = [name for name, target in TARGETS.items() if target.command is not None]


@dataclass(frozen=True)
class Failure:
    """What went wrong in a case.

    Args:
        case: its number.
        kind: of file.
        file: the damaged one, inside of the example's folder.
        process: whether the command line was called.
        signature: what makes two failures the same.
        text: what there was to see.
    """

    case: int
    kind: str
    file: str
    process: bool
    signature: str
    text: str


class TooSlow(BaseException):
    """Not an ``Exception``: nothing that is being tested may catch it."""


@contextmanager
def time_limit(seconds: int):  # type: ignore[no-untyped-def]
    def stop(*_: object) -> None:
        raise TooSlow(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def silence():  # type: ignore[no-untyped-def]
    with (
        open(os.devnull, "w") as null,
        redirect_stdout(null),
        redirect_stderr(null),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def fault_of(target: Target, folder: Path) -> tuple[str, str] | None:
    """Read an example in this process; signature and text of what must not be."""
    try:
        with time_limit(MOST_SECONDS), silence():
            target.read(folder)
    except (ValueError, OSError) as error:
        text = str(error)
        if "\n" in text or len(text) > 2000 or isinstance(error, UnicodeError):
            return f"message of {type(error).__name__}", text[:2000]
        return None
    except (Exception, TooSlow) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.name}"
        return f"{type(error).__name__} in {where}", "".join(traceback.format_exception(error))
    return None


def process_fault(target: Target, folder: Path) -> tuple[str, str] | None:
    """Let the command line read an example."""
    assert target.command is not None
    # Address space is not memory: PyTorch maps far more than it touches. What was touched is asked
    # of the system afterwards; the limit here only keeps the machine alive.
    limits = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({8 << 30},) * 2); "
    code = limits + "from coopsheaf.cli import main; main()"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COOPSHEAF_OFFLINE": "1"}
    words = [sys.executable, "-c", code, *target.command]
    with (folder / "stderr.txt").open("w+b") as errors:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        start, status, usage = time.monotonic(), None, None
        while usage is None or not usage[0]:
            usage = os.wait4(process.pid, os.WNOHANG)
            if not usage[0] and time.monotonic() - start > 6 * MOST_SECONDS:
                process.kill()
                usage, status = os.wait4(process.pid, 0), "hangs"
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(usage[1])
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace")
    if status is None and usage[2].ru_maxrss * 1024 > MOST_BYTES:
        status = "over 2 GB"
    if status is None and usage[2].ru_utime + usage[2].ru_stime > MOST_SECONDS:
        status = "over 20 s of processor time"  # others may keep the processor busy
    if status is None and "Traceback" in text:
        status = "traceback: " + text.strip().rsplit("\n", 1)[-1].split(":")[0]
    if status is None and process.returncode not in (0, 2):
        status = f"exit code {process.returncode}"
    return None if status is None else (status, text[-4000:])


class Fuzzer:
    """Runs cases in a folder.

    Args:
        work: an empty folder.
        seed: with the number of a case, decides it.
        every: one case in so many is a process; 0 for none.
        keep: where the files of failures go.
    """

    def __init__(self, work: Path, seed: int, every: int, keep: Path) -> None:
        self.work, self.seed, self.every, self.keep = work, seed, every, keep
        self.mark = work / "executed"
        os.environ["EVIL_MARK"] = str(self.mark)
        self.good = prepare(work)
        self.count: Counter[str] = Counter()
        self.failures: dict[str, Failure] = {}

    def run(self, case: int) -> None:
        """One case."""
        rng = random.Random(f"{self.seed}/{case}")
        process = self.every > 0 and case % self.every == self.every - 1
        name = rng.choice(PROCESSES if process else list(TARGETS))
        target, folder = TARGETS[name], self.fresh(name)
        path = damage(rng, target, folder)
        file, content = str(path.relative_to(folder)), path.read_bytes()
        torch.manual_seed(0)
        find = process_fault if process else fault_of
        fault = find(target, folder)
        if self.mark.exists():
            self.mark.unlink()
            fault = ("executed", "")
        self.count["process" if process else name] += 1
        if fault is not None:
            key = f"{name}: {fault[0]}"
            if key not in self.failures:
                failure = Failure(case, name, file, process, *fault)
                self.failures[key] = failure
                self.preserve(failure, content, process)
                print(f"FAILURE, case {case}: {key}", file=sys.stderr, flush=True)

    def fresh(self, name: str) -> Path:
        """A good example in a new folder."""
        folder = self.work / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.good[name], folder)
        move(self.good[name], folder)
        return folder

    def preserve(self, failure: Failure, content: bytes, process: bool) -> None:
        """Keep the file of a failure, as small as it can be."""
        small = content if process else self.shrink(failure, content)
        folder = self.keep / f"case-{failure.case}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / Path(failure.file).name).write_bytes(small)
        (folder / "case.json").write_text(
            json.dumps(asdict(failure) | {"seed": self.seed}, indent=1)
        )

    def shrink(self, failure: Failure, content: bytes, seconds: float = 5.0) -> bytes:
        """Leave out pieces while the failure stays the same."""
        target, end = TARGETS[failure.kind], time.monotonic() + seconds

        def fails(piece: bytes) -> bool:
            folder = self.fresh(failure.kind)
            (folder / failure.file).write_bytes(piece)
            target.seal(folder)
            fault = fault_of(target, folder)
            return fault is not None and fault[0] == failure.signature

        if "TooSlow" in failure.signature or not fails(content):
            return content
        size = len(content) // 2
        while size and time.monotonic() < end:
            at = 0
            while at < len(content) and time.monotonic() < end:
                shorter = content[:at] + content[at + size :]
                if fails(shorter):
                    content = shorter
                else:
                    at += size
            size //= 2
        return content


def fuzz(work: Path, *, seconds: float, cases: int, seed: int, every: int, keep: Path) -> Fuzzer:
    """Run cases until time or number is up."""
    torch.set_num_threads(1)
    fuzzer = Fuzzer(work, seed, every, keep)
    end = time.monotonic() + seconds
    for case in range(cases):
        if time.monotonic() > end:
            break
        fuzzer.run(case)
        if case % 1000 == 999:
            print(f"{case + 1} cases, {len(fuzzer.failures)} failures", file=sys.stderr, flush=True)
    return fuzzer


def verdict(fuzzer: Fuzzer, seconds: float) -> str:
    processes = fuzzer.count.pop("process", 0)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(fuzzer.count.items()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{len(fuzzer.failures)} failures in {sum(fuzzer.count.values())} cases in process and "
        f"{processes} processes, seed {fuzzer.seed} ({seconds:.0f} s, {peak:.1f} GB at most): "
        f"{kinds}"
    )


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="default: 60")
    parser.add_argument("--cases", type=int, default=10**9, help="at most; default: no limit")
    parser.add_argument("--every", type=int, default=200, help="one process in so many cases")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--only", type=int, help="one case alone, by its number")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="for their files")
    return parser.parse_args()


def main() -> None:
    args, start = parse_args(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="coopsheaf-fuzz-") as name:
        options = {"seed": args.seed, "every": args.every, "keep": args.keep}
        if args.only is not None:
            fuzzer = Fuzzer(Path(name), **options)
            fuzzer.run(args.only)
        else:
            fuzzer = fuzz(Path(name), seconds=args.seconds, cases=args.cases, **options)
        print(verdict(fuzzer, time.monotonic() - start))
        for key, failure in fuzzer.failures.items():
            print(f"  case {failure.case}, {failure.file}: {key}")
        sys.exit(1 if fuzzer.failures else 0)


if __name__ == "__main__":
    main()
