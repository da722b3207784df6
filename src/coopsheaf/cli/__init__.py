"""The command line: parses, calls, prints. Nothing heavy is imported before it is needed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

DESCRIPTION = (
    "Cooperative Sheaf Neural Networks: train, evaluate and compare graph networks whose nodes "
    "choose how to speak and how to listen. Begin with `coopsheaf data list` or "
    "`coopsheaf train --help`."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """The program ``coopsheaf``."""
    from coopsheaf.cli.stopping import ending_at_once

    with ending_at_once():
        _main(arguments)


def _main(arguments: Sequence[str] | None) -> None:
    from coopsheaf.cli.args import Command

    print_anything()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        from coopsheaf import __version__

        sys.stdout.write(f"coopsheaf {__version__}\n")
        sys.stdout.flush()
        return
    command = parse(Command, "coopsheaf", DESCRIPTION, words)
    from coopsheaf.cli.dispatch import run

    sys.exit(run(command))


def parse(kind: Any, program: str, description: str, words: Sequence[str] | None = None) -> Any:
    """What was typed, as one of the commands in ``kind``."""
    import tyro

    try:
        return tyro.cli(
            kind,
            prog=program,
            description=description,
            args=words,
            config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
        )
    except BrokenPipeError:
        sys.exit(stop_writing())
    except SystemExit as end:
        if end.code:
            from coopsheaf.cli.hints import settings_meant

            sys.stderr.writelines(f"{line}\n" for line in settings_meant(words or ()))
        raise


def print_anything() -> None:
    """Show what the screen has no letters for as ``?``: it is no reason to stop.

    On Windows what goes to a file or a pipe is in the code page of the country, without ``│`` and
    ``∈``.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def stop_writing() -> int:
    """Whoever read our output has had enough, as in ``... | head``; returns the exit code."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nothing to flush at exit)
    return 0
