"""What a command could not use and passed over. Imports no PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from coopsheaf.train.launch import find_launch

MOST = 10  # lines


def say_passed_over(reasons: Sequence[str]) -> None:
    """One line for each, the first few of many, and how many there were."""
    if not reasons or find_launch().rank:
        return
    for reason in reasons[:MOST]:
        sys.stderr.write(f"passed over: {reason}\n")
    more = f" ({len(reasons) - MOST} are not shown)" if len(reasons) > MOST else ""
    sys.stderr.write(f"passed over, all in all: {len(reasons)}{more}\n")
    sys.stderr.flush()
