"""Which files a run may name: a folder from a stranger must not open any file of this machine.

Tables and packs that ``run.json`` names are used only if they lie near the run, near where the user
is, or in a folder that the user has named; and nothing that they hold is repeated in an error
message, since it may not be the user's wish to have read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coopsheaf.data.messages import show_path
from coopsheaf.schema import brief_text
from coopsheaf.train.run_info import CheckpointError


def check_near(path: Path, run: Path, data_dir: Path | None, what: str) -> None:
    """Refuse a path of ``run.json`` that leads away.

    Near is what lies below the folder of the run, the two folders around it, the current folder,
    ``data_dir`` or ``$COOPSHEAF_DATA``, and in no hidden folder there.

    Args:
        path: what the run names.
        run: the folder of the run.
        data_dir: a folder that the user has named.
        what: the path in the error.
    """
    target = Path(os.path.realpath(path))
    for root in _roots(run, data_dir):
        if target.is_relative_to(root):
            between = target.relative_to(root).parts
            if between and not any(part.startswith(".") for part in between):
                return
    raise CheckpointError(
        f"run.json names {what} {_show(path)}, which lies neither beside the run nor below the "
        f"current folder; if it shall be read, add --data-dir {_show(target.parent)}"
    )


def _show(path: Path) -> str:
    """A path of a stranger's, as much of it as is good to read."""
    return brief_text(show_path(path), 400)


def _roots(run: Path, data_dir: Path | None) -> Iterator[Path]:
    here = Path(os.path.realpath(run))
    named = [folder for folder in (data_dir, os.environ.get("COOPSHEAF_DATA")) if folder]
    yield from (Path(os.path.realpath(folder)) for folder in named)
    for folder in (here, here.parent, here.parent.parent, Path.cwd()):
        if folder != folder.parent:  # everything lies below the root of the file system
            yield folder


@contextmanager
def without_their_content(paths: list[Path]) -> Iterator[None]:
    """Make an error of reading files that a run named say which they are, and nothing of them."""
    for path in paths:
        # Not the methods of a path: they raise for names that are longer than any may be.
        if not os.path.isfile(path):
            kind = "is no file" if os.path.exists(path) else "does not exist"
            raise CheckpointError(
                f"{_show(path)}, which this run was trained on, {kind} (any more); give the "
                "tables with --nodes and --edges"
            )
    try:
        yield
    except CheckpointError:
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError):
        names = " and ".join(_show(path) for path in paths)
        raise CheckpointError(
            f"{names}: cannot be read as they were when this run was trained; give the tables with "
            "--nodes and --edges to see why"
        ) from None
