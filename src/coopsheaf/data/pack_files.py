"""The array files of a pack: written piece by piece, mapped, and looked at in bounded memory."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.files import checksum
from coopsheaf.data.tensors import reading

PIECE = 1 << 21  # entries read at once: the files may be larger than memory
LARGEST_NARROW = 2**31 - 1  # of int32


def index_dtype(num_nodes: int, num_edges: int) -> torch.dtype:
    """Of the compressed lists of a pack: int32 where nodes and edges can be counted with it."""
    return torch.int32 if max(num_nodes, num_edges) <= LARGEST_NARROW else torch.int64


def write_array(
    path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...], pieces: Iterable[npt.NDArray[Any]]
) -> dict[str, Any]:
    """Write a ``.npy`` file from the pieces of its rows.

    Args:
        path: of the new file.
        dtype, shape: of the whole array.
        pieces: arrays whose entries, one after the other, are those of the whole one.

    Returns:
        What the description of a pack says of the file.
    """
    kind = np.dtype(dtype)
    digest = hashlib.sha256(usedforsecurity=False)
    count = 0
    with path.open("wb") as stream:
        header: dict[str, Any] = {
            "descr": np.lib.format.dtype_to_descr(kind),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(stream, header)
        stream.flush()
        digest.update(path.read_bytes())
        for piece in pieces:
            data = np.ascontiguousarray(piece, kind).reshape(-1)
            count += data.size
            stream.write(data.data)
            digest.update(data.data)
        assert count == math.prod(shape), f"{path.name}: {count} entries for {shape}"
        stream.flush()
        os.fsync(stream.fileno())
    return {
        "sha256": digest.hexdigest(),
        "bytes": path.stat().st_size,
        "shape": list(shape),
        "dtype": str(kind),
    }


def write_tensor(path: Path, tensor: Tensor) -> dict[str, Any]:
    """:func:`write_array` of a tensor that is there whole."""
    array = tensor.detach().cpu().contiguous().numpy()
    flat = array.reshape(-1)
    pieces = (flat[start : start + PIECE] for start in range(0, flat.size, PIECE))
    return write_array(path, array.dtype, array.shape, pieces)


def map_array(path: Path, entry: dict[str, Any]) -> Tensor:
    """A file of a pack, compared with its description and mapped into memory."""
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise DataError(f"{path}: damaged (must have {entry['bytes']} bytes; found {size})")
        if checksum(path) != entry["sha256"]:
            raise DataError(f"{path}: damaged, or of another pack (its checksum differs)")
        # Copy on write: PyTorch wants memory that it could write to.
        mode: Any = "c" if math.prod(entry["shape"]) else None  # an empty file cannot be mapped
        with reading(path, "a readable array"):  # a header that does not parse may raise anything
            array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    if list(array.shape) != entry["shape"] or str(array.dtype) != entry["dtype"]:
        raise DataError(
            f"{path}: must hold {entry['dtype']} of shape {entry['shape']}; "
            f"found {array.dtype} of shape {list(array.shape)}"
        )
    # What is checked is read from the end of the file, what is used from where NumPy begins.
    if isinstance(array, np.memmap) and array.offset + array.nbytes != size:
        raise DataError(f"{path}: damaged (there is something behind its numbers)")
    return torch.from_numpy(array)


def read_pieces(path: Path, mapped: Tensor) -> Iterator[npt.NDArray[Any]]:
    """The entries of a mapped file, read: what is only looked at once need not stay in memory."""
    dtype = mapped.numpy().dtype
    with path.open("rb") as stream:
        stream.seek(path.stat().st_size - mapped.numel() * dtype.itemsize)
        left = mapped.numel()
        while left:
            piece = np.fromfile(stream, dtype, min(PIECE, left))
            if not piece.size:
                raise DataError(f"{path}: damaged (it ended while it was read)")
            left -= piece.size
            yield piece
