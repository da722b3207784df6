"""What ``run.json`` says of a run. Imports no PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coopsheaf.schema import read_json

FORMAT = 1
LARGEST_FILE = 1 << 28  # bytes: curves of a million epochs, encoders of a million categories


CONFIG = "config.json"


class CheckpointError(ValueError):
    """A run or checkpoint that cannot be read or belongs to something else; one line."""


def read_run_info(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says."""
    path = folder / "run.json"
    if not path.exists() and (folder / CONFIG).exists():
        path = folder / CONFIG  # as it is called where models are shared
    try:
        info = read_json(path, LARGEST_FILE)
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: not a run (there is no run.json in it)") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"{path}: not readable JSON ({reason})") from None
    if not isinstance(info, dict) or info.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not a run of coopsheaf, format {FORMAT}")
    return info
