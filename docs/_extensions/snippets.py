"""The code in a Markdown page, run in the order in which it stands.

``python snippets.py PAGE.md [FOLDER]`` runs a page in a folder (a temporary one by default) and
prints, as JSON, what each of its snippets printed. The snippets of a page build on one another:
Python ones share their names, and all share the folder. A snippet that begins with ```` ```python
NAME.py ```` is also written to that file. Tests and tutorials use this program.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# An opening fence with a language, what is between, and the closing one.
_FENCE = re.compile(r"^```([^\s`]+) *([^\n`]*)\n(.*?)^``` *$", re.DOTALL | re.MULTILINE)

# Programs of this repository, and the modules that they are.
PROGRAMS = {"coopsheaf": "coopsheaf", "python -m lab": "lab"}


@dataclass(frozen=True)
class Snippet:
    """A fenced piece of a page.

    Args:
        language: what stands behind the opening fence.
        file: what stands behind the language: where the code is also written to.
        code: what is between the fences.
        line: of the page, where the code begins.
        end: position in the page's text behind the closing fence.
    """

    language: str
    file: str
    code: str
    line: int
    end: int


def find_snippets(text: str) -> list[Snippet]:
    """All fenced pieces of a page that name a language."""
    return [
        Snippet(*found.groups(), text.count("\n", 0, found.start(3)) + 1, found.end())
        for found in _FENCE.finditer(text)
    ]


def find_commands(code: str) -> list[str]:
    """The command lines of a shell snippet, continued lines joined, comments left out."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def split_command(line: str) -> tuple[str, list[str]] | None:
    """The module and the words of a command of ours; ``None`` for any other program."""
    words = shlex.split(line, comments=True)
    for program, module in PROGRAMS.items():
        begin = program.split()
        if words[: len(begin)] == begin:
            return module, words[len(begin) :]
    return None


def run_page(path: Path) -> list[str]:
    """What each snippet of a page prints; run in the present folder. Errors name their line."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [_run(snippet, path, names) for snippet in find_snippets(path.read_text("utf-8"))]


def _run(snippet: Snippet, path: Path, names: dict[str, Any]) -> str:
    if snippet.file:
        Path(snippet.file).write_text(snippet.code, encoding="utf-8")
    if snippet.language == "python":
        # Blank lines in front, so that errors tell the line of the page.
        text = "\n" * (snippet.line - 1) + snippet.code
        code = compile(text, str(path), "exec", dont_inherit=True)  # as if it stood alone
        with contextlib.redirect_stdout(io.StringIO()) as written:
            exec(code, names)
        return written.getvalue()
    if snippet.language != "bash" or not is_tutorial(path):
        return ""
    return "".join(_run_command(line) for line in find_commands(snippet.code))


def is_tutorial(path: Path) -> bool:
    """Tutorials are run wholly; the commands of other pages may take hours or need data."""
    return path.parent.name == "tutorials"


def _run_command(line: str) -> str:
    ours = split_command(line)
    if ours is None:
        raise ValueError(f"a tutorial runs the programs of this repository alone; got {line!r}")
    module, words = ours
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise RuntimeError(f"{line}: {done.stderr}")
    return done.stdout.replace(os.getcwd(), "/home/you")  # where it ran is of no interest


def main() -> None:
    page = Path(sys.argv[1]).resolve()
    with contextlib.ExitStack() as stack:
        folder = sys.argv[2:] or [stack.enter_context(tempfile.TemporaryDirectory())]
        os.chdir(folder[0])
        sys.path[0] = ""  # as where Python is started by hand
        stack.callback(os.chdir, page.parent)  # a folder that is in use cannot go away everywhere
        try:
            printed = run_page(page)
        except Exception:
            traceback.print_exc()
            sys.exit(1)
    json.dump(printed, sys.stdout)


if __name__ == "__main__":
    main()
