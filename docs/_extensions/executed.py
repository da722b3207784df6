"""Tutorials are run when the documentation is built, and show what their code printed.

A page in ``tutorials/`` is plain Markdown. Behind each of its snippets that printed something
comes what it printed. Pages and pictures that a tutorial wrote are published in ``written/NAME/``.
An error in a tutorial is a warning of Sphinx, which ends the build.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from snippets import find_snippets
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)
PUBLISHED = {".html", ".svg", ".png"}
PROGRAM = Path(__file__).parent / "snippets.py"
ROOT = Path(__file__).parents[2]


def run_tutorial(app: Sphinx, name: str, source: list[str]) -> None:
    if not name.startswith("tutorials/"):
        return
    page = Path(app.env.doc2path(name))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, PROGRAM, page, folder],
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},  # this checkout
            capture_output=True,
            text=True,
        )
        if done.returncode:
            log.warning("%s does not run:\n%s", page, done.stderr, location=name)
            return
        _publish(Path(folder), Path(app.srcdir) / "_written" / "written" / page.stem)
    source[0] = _with_outputs(source[0], json.loads(done.stdout))


def _with_outputs(text: str, printed: list[str]) -> str:
    pieces, position = [], 0
    for snippet, output in zip(find_snippets(text), printed, strict=True):
        pieces.append(text[position : snippet.end])
        position = snippet.end
        if output.strip():
            pieces.append(f"\n\n```{{code-block}} text\n:class: printed\n\n{output.rstrip()}\n```")
    return "".join([*pieces, text[position:]])


def _publish(folder: Path, there: Path) -> None:
    shutil.rmtree(there, ignore_errors=True)
    for file in sorted(folder.rglob("*")):
        if file.suffix in PUBLISHED:
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, there / file.name)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", run_tutorial)
    return {"parallel_read_safe": True}
