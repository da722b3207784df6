"""What the benchmarks share: fresh processes, columns of text, lines of JSON."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

SEED = 0
MB = 2**20

# The laboratory is in no wheel: a program that is started here finds it beside this folder.
sys.path.append(str(Path(__file__).parents[1]))


def in_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new interpreter that has not allocated anything yet."""
    with fresh_process() as pool:
        return call_in(pool, function, *args)


def fresh_process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def call_in(pool: ProcessPoolExecutor, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return pool.submit(function, *args).result()
    except BrokenProcessPool:
        call = f"{function.__name__}{args}"
        raise SystemExit(f"error: the process of {call} died: out of memory?") from None


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def aligned(rows: list[tuple[str, ...]], sides: str) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [zip(row, sides, widths, strict=True) for row in rows]
    lines = ["  ".join(f"{text:{a}{w}}" for text, a, w in row) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """What :func:`write_json_lines` wrote."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_json_lines(path: Path, records: list[dict[str, Any]]) -> None:
    """Write one JSON object per line; the file appears whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.replace(draft, path)


def made_by() -> dict[str, Any]:
    """What computed, for a line of JSON: kernel, versions of packages, commit of the sources."""
    # Not above: some programs measure how long it takes to import these.
    from coopsheaf.sheaves.kernels import describe_kernel
    from coopsheaf.train.provenance import versions
    from coopsheaf.train.runner import current_commit

    return {"kernel": describe_kernel(), "versions": versions(), "commit": current_commit()}


def positive(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a positive integer; got {text!r}")
    return int(text)
