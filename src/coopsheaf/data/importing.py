"""Take known files out of any folder into the user's cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import CHUNK, RemoteFile, cache_dir, checksum, one_line, verify_file
from coopsheaf.files import locked, replacing


@dataclass(frozen=True)
class Imported:
    """What became of the files of a folder.

    Args:
        imported: paths inside the cache that are new.
        present: paths inside the cache that were there already.
        skipped: reasons, one line each, why a file with a known name was not taken.
        unknown: files of the folder that belong to no dataset.
    """

    imported: tuple[str, ...]
    present: tuple[str, ...]
    skipped: tuple[str, ...]
    unknown: tuple[Path, ...]


def known_files() -> dict[str, RemoteFile]:
    """Every file of every dataset, by its path inside a data folder."""
    files = (file for info in DATASETS.values() for file in (*info.files, *info.relations.values()))
    return {file.path: file for file in files}


def import_folder(folder: str | os.PathLike[str], cache: Path | None = None) -> Imported:
    """Copy every known file of ``folder`` and its subfolders into the cache.

    A file is known by its checksum, whatever its name, so one that two datasets share is copied to
    both places. A file whose checksum nobody has published is known by its name.

    Args:
        folder: where to look; it is not changed.
        cache: where to copy to; the user's cache if not given.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DataError(f"`folder` must be an existing folder; got {str(folder)!r}")
    cache = cache_dir() if cache is None else cache
    files = known_files()
    imported: list[str] = []
    present: list[str] = []
    skipped: list[str] = []
    unknown: list[Path] = []
    for path in _walk(root):
        try:
            matches = _matches(path, files)
            for file in matches:
                target = cache / file.path
                (imported if _copy(path, target, file) else present).append(file.path)
        except (DataError, OSError) as error:
            skipped.append(str(error) if isinstance(error, DataError) else _unreadable(path, error))
            continue
        if not matches:
            if any(path.name == file.name for file in files.values()):
                skipped.append(f"{path}: must have a published checksum; found {checksum(path)}")
            else:
                unknown.append(path)
    return Imported(
        tuple(dict.fromkeys(imported)),
        tuple(path for path in dict.fromkeys(present) if path not in imported),
        tuple(skipped),
        tuple(unknown),
    )


def _walk(root: Path) -> Iterator[Path]:
    """The files below ``root`` in a fixed order; links to folders are not followed."""
    for folder, subfolders, names in os.walk(root):
        subfolders.sort()
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_file():
                yield path


def _matches(path: Path, files: dict[str, RemoteFile]) -> list[RemoteFile]:
    """The known files that this one is."""
    size = path.stat().st_size
    found = []
    for file in files.values():
        if file.sha256 is not None:
            is_it = file.size in (None, size) and checksum(path) == file.sha256
        elif file.md5 is not None:
            is_it = path.name == file.name and checksum(path, "md5") == file.md5
        else:
            is_it = path.name == file.name
        if is_it:
            found.append(file)
    return found


def _copy(source: Path, target: Path, file: RemoteFile) -> bool:
    """Copy and verify; whether it was not there before."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target):
            if target.exists():
                verify_file(target, file)
                return False
            with source.open("rb") as stream, replacing(target) as copy:
                while chunk := stream.read(CHUNK):
                    copy.write(chunk)
    except OSError as error:
        raise DataError(f"{target}: must be writable; {one_line(error)}") from error
    try:
        verify_file(target, file)
    except DataError:
        target.unlink(missing_ok=True)  # the source changed while it was read
        raise
    return True


def _unreadable(path: Path, error: OSError) -> str:
    return f"{path}: must be readable; {one_line(error)}"
