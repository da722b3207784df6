"""``python -m lab``: parses, calls, prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from coopsheaf.cli import parse
from coopsheaf.cli.dispatch import guarded
from coopsheaf.cli.stopping import ending_at_once, interruptible
from lab import args

DESCRIPTION = (
    "The paper's experiments and this repository's measuring: tables beside the published "
    "numbers, over-squashing on trees, the noisy path, figures of the ideas, closed channels, "
    "how sheaf networks are related, the benchmark of peptides, and fair searches of settings."
)


def main(arguments: list[str] | None = None) -> None:
    with ending_at_once():
        command = parse(args.Command, "python -m lab", DESCRIPTION, arguments)
        sys.exit(guarded(lambda: _call(command)))


def _call(command: Any) -> int:
    work = _find(command)
    with interruptible():
        return work(command)


def _find(command: Any) -> Callable[[Any], int]:
    """What carries a command out, imported where Ctrl-C ends at once."""
    if isinstance(command, args.Tables):
        from lab.tables import tables

        return tables
    if isinstance(command, args.Figures):
        from lab.concepts.commands import figures

        return figures
    if isinstance(command, args.Channels | args.Units):
        from lab import cooperation

        return cooperation.channels if isinstance(command, args.Channels) else cooperation.units
    if isinstance(command, args.Kinship):
        from lab.kinship import kinship

        return kinship
    if isinstance(command, args.Defaults):
        from lab.choosing import defaults

        return defaults
    if isinstance(command, args.LongRange):
        from lab.long_range.commands import long_range

        return long_range
    if isinstance(command, args.Peptides):
        from lab.peptides.commands import peptides

        return peptides
    if isinstance(command, args.Contest):
        from lab.contest.commands import contest

        return contest
    from lab.squash import commands

    return commands.squash if isinstance(command, args.Squash) else commands.noisy_path


if __name__ == "__main__":
    main()
