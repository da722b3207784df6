"""The table of how sheaf networks are related, from the registry. Imports no PyTorch."""

from __future__ import annotations

import sys

from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import sheaf_systems
from coopsheaf.report.text import markdown_table
from lab.args import Kinship
from lab.documents import fill_files

PLACE = "kinship"
HEAD = (
    "system | maps live at | maps | operator A | layer | normal | PSD | directed | hops | per edge"
)


def kinship(command: Kinship) -> int:
    table = kinship_table()
    if command.document is None:
        sys.stdout.write(table)
        return 0
    fill_files([command.document], {PLACE: table})
    sys.stdout.write(f"wrote {command.document}\n")
    return 0


def kinship_table() -> str:
    """One row per sheaf network, in Markdown."""
    rows = [_row(info) for info in sheaf_systems().values()]
    return markdown_table(HEAD, rows, "llllllllll")


def _row(info: ModelInfo) -> list[str]:
    kin = info.kinship
    assert kin is not None
    hops = f"`{kin.hops}`" if isinstance(kin.hops, str) else str(kin.hops)
    claims = (kin.normal or "not linear", kin.psd or "not linear", "yes" if info.directed else "no")
    return [f"`{info.name}`", kin.place, kin.maps, kin.operator, kin.step, *claims, hops, kin.cost]
