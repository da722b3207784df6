"""``python -m lab``: parses, calls, prints."""

from __future__ import annotations

import sys
from typing import Any

from coopsheaf.cli import parse
from coopsheaf.cli.dispatch import guarded
from lab import args

DESCRIPTION = (
    "The paper's experiments and this repository's measuring: tables beside the published "
    "numbers, over-squashing on trees, the noisy path, figures of the ideas."
)


def main(arguments: list[str] | None = None) -> None:
    command = parse(args.Command, "python -m lab", DESCRIPTION, arguments)
    sys.exit(guarded(lambda: _call(command)))


def _call(command: Any) -> int:
    if isinstance(command, args.Tables):
        from lab.tables import tables

        return tables(command)
    if isinstance(command, args.Figures):
        from lab.concepts.commands import figures

        return figures(command)
    from lab.squash import commands

    if isinstance(command, args.Squash):
        return commands.squash(command)
    return commands.noisy_path(command)


if __name__ == "__main__":
    main()
