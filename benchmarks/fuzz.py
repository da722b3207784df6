"""Damage files by the thousand and read them: an error of one line, or none; never anything else.

Every case has a number, which with the seed decides it: a good file of some kind is damaged and
read, by the library in a process that is watched (``watched.py``) or by the command line as a
process of its own. A failure is whatever is not a ``ValueError`` or ``OSError`` of one line:
another exception, a process with a traceback or one that crashes, over 2 GB or over 20 seconds, a
mark that only executed code can have made. For each the damaged file is kept, made as small as it
can be while the failure stays the same::

    python benchmarks/fuzz.py --seconds 60
    python benchmarks/fuzz.py --cases 100000 --every 200 --seconds 36000
    python benchmarks/fuzz.py --only 4711            # one case again

One case in ``--every`` is a command. ``README.md`` beside this file has the protocol.
"""

from __future__ import annotations

import argparse
import json
import math
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
from collections.abc import Iterable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from fuzz_targets import TARGETS, Target, damage, move, prepare
from watched import Death, Watched

BATCH = 200  # cases per process
MOST_SECONDS = 20
MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class Ending:
    """How a case ended.

    Args:
        case: its number.
        kind: of file.
        file: the damaged one, inside of the example's folder.
        process: whether the command line was called.
        signature: what makes two failures the same; empty if there was none.
        text: what there was to see.
        seconds: of processor time.
        peak: the most memory of its process so far, in bytes.
    """

    case: int
    kind: str
    file: str
    process: bool
    signature: str = ""
    text: str = ""
    seconds: float = 0.0
    peak: int = 0


class TooSlow(BaseException):
    """Not an ``Exception``: nothing that is being tested may catch it."""


@contextmanager
def time_limit(seconds: int):  # type: ignore[no-untyped-def]
    """Of processor time: others may keep the machine busy."""

    def stop(*_: object) -> None:
        raise TooSlow(f"over {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


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


def call_fault(target: Target, folder: Path) -> tuple[str, str]:
    """Read an example in this process; signature and text of what must not be, or nothing."""
    try:
        with time_limit(MOST_SECONDS), silence():
            target.read(folder)
    except (ValueError, OSError) as error:
        text = str(error)
        if "\n" in text or len(text) > 2000 or isinstance(error, UnicodeError):
            return f"message of {type(error).__name__}", text[:2000]
    except (Exception, TooSlow) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.name}"
        return f"{type(error).__name__} in {where}", "".join(traceback.format_exception(error))
    return "", ""


def run_call(target: Target, folder: Path) -> tuple[str, str, float, int]:
    """Read an example in this process; the fault, seconds and memory."""
    start = time.process_time()
    signature, text = call_fault(target, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if not signature and peak > MOST_BYTES:
        signature = "over 2 GB"
    return signature, text, time.process_time() - start, peak


def run_command(target: Target, folder: Path) -> tuple[str, str, float, int]:
    """Let the command line read an example; likewise."""
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
        start, status, usage = time.monotonic(), "", None
        while usage is None or not usage[0]:
            usage = os.wait4(process.pid, os.WNOHANG)
            if not usage[0] and time.monotonic() - start > 6 * MOST_SECONDS:
                process.kill()
                usage, status = os.wait4(process.pid, 0), "hangs"
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(usage[1])
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace")
    seconds, peak = usage[2].ru_utime + usage[2].ru_stime, usage[2].ru_maxrss * 1024
    faults = {
        "over 2 GB": peak > MOST_BYTES,
        "over 20 s of processor time": seconds > MOST_SECONDS,  # others may keep it busy
        "traceback: " + text.strip().rsplit("\n", 1)[-1].split(":")[0]: "Traceback" in text,
        f"exit code {process.returncode}": process.returncode not in (0, 2),
    }
    status = status or next((fault for fault, found in faults.items() if found), "")
    return status, text[-4000:] if status else "", seconds, peak


class Fuzzer:
    """Runs cases in a folder.

    Args:
        work: an empty folder.
        seed: with the number of a case, decides it.
        every: one case in so many is a command; 0 for none.
        keep: where the files of failures go.
    """

    def __init__(self, work: Path, seed: int, every: int, keep: Path) -> None:
        self.work, self.seed, self.every, self.keep = work, seed, every, keep
        self.mark = work / "executed"
        os.environ["EVIL_MARK"] = str(self.mark)
        # In a process of its own: this one shall have no threads when it forks others.
        made = Watched(lambda _: self.alone() or prepare(work), batch=1, seconds=600)(0)
        if isinstance(made, Death):
            raise SystemExit(f"error: a good example cannot be made or read: {made.how}")
        self.good: dict[str, Path] = made
        self.endings: list[Ending] = []
        self.failures: dict[str, Ending] = {}

    def run(self, cases: Iterable[int], seconds: float = math.inf) -> None:
        """Run cases in watched processes until all are done or time is up."""
        end, watched = time.monotonic() + seconds, Watched(self.try_case, BATCH, 8 * MOST_SECONDS)
        for number, case in enumerate(cases, 1):
            if time.monotonic() > end:
                break
            ending = watched(case)
            if isinstance(ending, Death):
                drawn, _ = self.draw(case)
                ending = replace(drawn, signature=ending.how)
            self.note(ending)
            if ending.peak > MOST_BYTES and not ending.process:
                watched.close()  # the memory of the next ones is measured anew
            if number % 1000 == 0:
                report(f"{number} cases, {len(self.failures)} failures")
        watched.close()

    def try_case(self, case: int) -> Ending:
        """One case, in this process."""
        self.alone()
        ending, target = self.draw(case)
        torch.manual_seed(0)
        find = run_command if ending.process else run_call
        signature, text, seconds, peak = find(target, self.folder)
        if self.mark.exists():
            self.mark.unlink()
            signature = "executed"
        return replace(ending, signature=signature, text=text, seconds=seconds, peak=peak)

    @staticmethod
    def alone() -> None:
        """One thread: those of whoever forked this process are not here."""
        torch.set_num_threads(1)

    def draw(self, case: int) -> tuple[Ending, Target]:
        """Damage the example of a case; what is to be read is in ``folder`` then."""
        rng, name, process = self.choose(case)
        self.folder = self.fresh(name)
        path = damage(rng, TARGETS[name], self.folder)
        return Ending(case, name, str(path.relative_to(self.folder)), process), TARGETS[name]

    def choose(self, case: int) -> tuple[random.Random, str, bool]:
        """What decides a case, its kind of file, and whether it is a command."""
        rng = random.Random(f"{self.seed}/{case}")
        process = self.every > 0 and case % self.every == self.every - 1
        names = [name for name in TARGETS if TARGETS[name].command or not process]
        return rng, rng.choice(names), process

    def note(self, ending: Ending) -> None:
        """Count a case, and keep the file of a failure that is a new one."""
        self.endings.append(replace(ending, text=""))
        key = f"{ending.kind}: {ending.signature}"
        if ending.signature and key not in self.failures:
            self.failures[key] = ending
            report(f"FAILURE, case {ending.case}: {key}")
            self.draw(ending.case)
            self.preserve(ending, (self.folder / ending.file).read_bytes())

    def fresh(self, name: str) -> Path:
        """A good example in a new folder."""
        folder = self.work / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.good[name], folder)
        move(self.good[name], folder)
        return folder

    def preserve(self, failure: Ending, content: bytes) -> None:
        """Keep the file of a failure, as small as it can be."""
        if not failure.process:
            # What fails here may crash: in a process again.
            small = Watched(lambda _: self.shrink(failure, content), 1, 6 * MOST_SECONDS)(0)
            content = content if isinstance(small, Death) else small
        folder = self.keep / f"case-{failure.case}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / Path(failure.file).name).write_bytes(content)
        (folder / "case.json").write_text(
            json.dumps(asdict(failure) | {"seed": self.seed}, indent=1)
        )

    def shrink(self, failure: Ending, content: bytes, seconds: float = 5.0) -> bytes:
        """Leave out pieces while the failure stays the same."""
        target, end = TARGETS[failure.kind], time.monotonic() + seconds

        def fails(piece: bytes) -> bool:
            folder = self.fresh(failure.kind)
            (folder / failure.file).write_bytes(piece)
            target.seal(folder)
            return call_fault(target, folder)[0] == failure.signature

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


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def verdict(fuzzer: Fuzzer, seconds: float) -> str:
    """What the long form of a run comes to, in a few lines."""
    lines = [f"{len(fuzzer.failures)} different failures, seed {fuzzer.seed}, {seconds:.0f} s"]
    for process, what in ((False, "cases in process"), (True, "processes of the command line")):
        those = [ending for ending in fuzzer.endings if ending.process == process]
        if those:
            failed = sum(bool(ending.signature) for ending in those)
            slowest = max(those, key=lambda ending: ending.seconds)
            peak = max(ending.peak for ending in those) / 2**30
            lines.append(
                f"{len(those)} {what}: {failed} failed, slowest {slowest.seconds:.1f} s (case "
                f"{slowest.case}, {slowest.kind}), {peak:.2f} GB at most"
            )
    count = Counter(ending.kind for ending in fuzzer.endings)
    lines.append(", ".join(f"{name} {count[name]}" for name in sorted(count)))
    return "\n".join(lines)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="default: 60")
    parser.add_argument("--cases", type=int, default=10**9, help="at most; default: no limit")
    parser.add_argument(
        "--every", type=int, default=200, help="one command in so many cases; 0: none"
    )
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="one case alone, by its number")
    parser.add_argument("--kind", choices=TARGETS, help="only cases of one kind of file")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="for their files")
    return parser.parse_args()


def main() -> None:
    args, start = parse_args(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="coopsheaf-fuzz-") as name:
        fuzzer = Fuzzer(Path(name), args.seed, args.every, args.keep)
        if args.only is None:
            cases: Iterable[int] = range(args.first, args.first + args.cases)
            if args.kind is not None:
                cases = (case for case in cases if fuzzer.choose(case)[1] == args.kind)
            fuzzer.run(cases, args.seconds)
        else:
            fuzzer.run([args.only])
        print(verdict(fuzzer, time.monotonic() - start))
        for key, failure in fuzzer.failures.items():
            print(f"  case {failure.case}, {failure.file}: {key}")
        if args.only is not None:
            print(*(failure.text for failure in fuzzer.failures.values()), sep="\n")
        sys.exit(1 if fuzzer.failures else 0)


if __name__ == "__main__":
    main()
