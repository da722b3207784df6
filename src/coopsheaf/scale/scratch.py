"""Arrays of the size of the features: in memory, or in files where they would be too much of it."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from coopsheaf.memory import machine_bytes
from coopsheaf.scale.chunks import chunks

LET_GO = 1 << 20  # rows after which mapped memory is given back


class Scratch:
    """Makes arrays that are whole for a while.

    Args:
        folder: where files are made; ``None`` for memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._maps: list[mmap.mmap] = []

    def make(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A new array; what is in it is not said."""
        count = torch.Size(shape).numel()
        if self.folder is None or count == 0:
            return torch.empty(shape, dtype=dtype, device=device)
        if device.type != "cpu":
            raise ValueError(f"`scratch` goes with a model on the CPU; it is on {device}")
        with (self.folder / str(len(self._maps))).open("wb+") as file:
            file.truncate(count * dtype.itemsize)
            self._maps.append(mmap.mmap(file.fileno(), 0))
        return torch.frombuffer(self._maps[-1], dtype=dtype, count=count).view(shape)

    def chunks(self, num_nodes: int, size: int) -> Iterator[slice]:
        """All nodes, ``size`` at a time; from time to time this process lets go of the files.

        Nothing is lost: what was written stays in the files and, as long as nobody else needs the
        memory, in the system's.
        """
        since = 0
        for rows in chunks(num_nodes, size):
            yield rows
            since += rows.stop - rows.start
            if since >= LET_GO:
                since = 0
                self._let_go()

    def _let_go(self) -> None:
        for mapped in self._maps:
            if hasattr(mapped, "madvise"):  # not on Windows
                mapped.madvise(mmap.MADV_DONTNEED)


@contextmanager
def open_scratch(
    folder: str | Path | None, num_bytes: int, device: torch.device
) -> Iterator[Scratch]:
    """Arrays for the time of the block.

    Args:
        folder: for files, which are gone at the end. If not given, arrays are in memory; of more
            than a quarter of the machine's they are in the folder for temporary files, if that has
            the room.
        num_bytes: of all arrays.
        device: of the arrays.
    """
    if folder is None and device.type == "cpu" and num_bytes > machine_bytes() // 4:
        spare = tempfile.gettempdir()
        folder = spare if shutil.disk_usage(spare).free > num_bytes else None
    if folder is None:
        yield Scratch(None)
        return
    with tempfile.TemporaryDirectory(
        dir=folder, prefix="coopsheaf-", ignore_cleanup_errors=True
    ) as made:
        yield Scratch(Path(made))
