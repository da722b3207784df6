"""What learners of maps see of the places of nodes."""

from __future__ import annotations

from torch import nn

from coopsheaf.nn.inputs import check_pe, make_places


def make_seen_places(pe_kind: str, pe_channels: int, pe_width: int) -> tuple[nn.Module | None, int]:
    """An encoder of places for who sees them beside features, and how many columns are seen.

    With ``"none"`` the numbers are seen as they are.
    """
    if pe_kind == "none":
        return None, pe_channels
    check_pe(pe_kind, pe_channels)
    # Features have a width of their own here: there is none to share.
    return make_places(pe_kind, pe_channels, pe_width, pe_width + 1), pe_width
