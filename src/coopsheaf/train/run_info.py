"""What ``run.json`` says of a run. Imports no PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FORMAT = 1


class CheckpointError(ValueError):
    """A run or checkpoint that cannot be read or belongs to something else; one line."""


def read_run_info(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says."""
    path = folder / "run.json"
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: not a run (there is no run.json in it)") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{path}: not readable JSON ({reason})") from None
    if not isinstance(info, dict) or info.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not a run of coopsheaf, format {FORMAT}")
    return info
