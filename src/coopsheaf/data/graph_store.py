"""Many graphs in mapped files: what takes minutes to convert is converted once and kept.

A store is a folder of ``meta.json`` and one ``.npy`` file per array, all graphs behind one another.
Codes are stored as narrow as their values allow. Nothing in it is pickled, every file has its
checksum, and a store that is damaged is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.files import cache_dir, one_line
from coopsheaf.data.pack_files import map_array, write_tensor
from coopsheaf.data.progress import say
from coopsheaf.data.stored_graphs import StoredGraphs
from coopsheaf.data.tensors import GraphTensors
from coopsheaf.files import draft_folder, sweep_drafts, write_json
from coopsheaf.schema import each, find_fault, keys, many, read_json, text, whole

FORMAT, VERSION = "coopsheaf-graphs", 1
LARGEST_META = 1 << 20  # bytes
_COLUMNS = ("x", "edge_index", "edge_attr", "y")
_PARTS = ("train", "val", "test")
_FILES = ("nodes", "edges", *_COLUMNS, *_PARTS)
_OF_ENCODINGS = ("pe",)
_FILE = {"sha256": text, "bytes": whole(), "shape": many(whole(), most=3), "dtype": text}
_META = {"format": text, "version": whole(), "key": text, "files": each(keys(_FILE))}
Kept = TypeVar("Kept")
_NARROW = (torch.uint8, torch.int16, torch.int32)


def remember_graphs(key: str, make: Callable[[], GraphTensors]) -> GraphTensors:
    """The graphs of a key out of the user's cache; made and kept if they are not there.

    Args:
        key: names what they are made of and how: other files or another way, another key.
        make: reads and converts.
    """
    return _remember(key, make, read_graphs, write_graphs)


def remember_encodings(key: str, nodes: Sequence[int], make: Callable[[], Tensor]) -> Tensor:
    """Numbers of the nodes of many graphs out of the user's cache, ``(all nodes, k)``.

    Args:
        key: names what they are made of and how, as above.
        nodes: how many nodes each graph has.
        make: computes them, ``(all nodes, k)``, one graph after the other.
    """

    def read(folder: Path, key: str) -> Tensor:
        pe = _read_arrays(folder, key, _OF_ENCODINGS)["pe"]
        if pe.dim() != 2 or pe.shape[0] != sum(nodes) or not pe.is_floating_point():
            raise DataError(f"{folder}: not converted graphs (encodings of other nodes)")
        return pe

    def write(folder: Path, key: str, pe: Tensor) -> None:
        _write_arrays(folder, key, {"pe": pe})

    return _remember(key, make, read, write)


def _remember(
    key: str,
    make: Callable[[], Kept],
    read: Callable[[Path, str], Kept],
    write: Callable[[Path, str, Kept], None],
) -> Kept:
    try:
        folder = cache_dir() / "converted" / key
    except DataError:  # there is no place to keep anything
        return make()
    if folder.exists():
        try:
            return read(folder, key)
        except DataError as error:
            say(f"{error}; it is made again")
    made = make()
    try:
        write(folder, key, made)
    except OSError as error:
        say(f"{folder}: the converted graphs cannot be kept ({error.strerror or error})")
    return made


def write_graphs(folder: Path, key: str, parts: GraphTensors) -> None:
    """Write a store, in place of one that may be there; whole or not at all."""
    graphs = parts.graphs
    arrays = {
        "nodes": torch.tensor([graph.x.shape[0] for graph in graphs]),
        "edges": torch.tensor([graph.edge_index.shape[1] for graph in graphs]),
        "x": torch.cat([graph.x for graph in graphs]),
        "edge_index": torch.cat([graph.edge_index.T for graph in graphs]),  # (m, 2)
        "edge_attr": torch.cat([graph.edge_attr for graph in graphs]),
        "y": torch.cat([graph.y for graph in graphs]),
        **{name: getattr(parts, name) for name in _PARTS},
    }
    _write_arrays(folder, key, arrays)


def _write_arrays(folder: Path, key: str, arrays: dict[str, Tensor]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    sweep_drafts(folder)
    with draft_folder(folder) as draft:
        files = {
            f"{name}.npy": write_tensor(draft / f"{name}.npy", _narrow(array))
            for name, array in arrays.items()
        }
        meta = {"format": FORMAT, "version": VERSION, "key": key, "files": files}
        write_json(draft / "meta.json", meta)


def read_graphs(folder: Path, key: str) -> GraphTensors:
    """Open a store; whatever is wrong with it is a ``DataError`` of one line."""
    found = _read_arrays(folder, key, _FILES)
    try:
        return _assemble(found)
    except (IndexError, RuntimeError, ValueError) as error:
        raise DataError(f"{folder}: not converted graphs ({one_line(error)})") from None


def _read_arrays(folder: Path, key: str, names: tuple[str, ...]) -> dict[str, Tensor]:
    return {
        name: map_array(folder / f"{name}.npy", entry)
        for name, entry in _entries(folder, key, names)
    }


def _assemble(arrays: dict[str, Tensor]) -> GraphTensors:
    """Codes stay as narrow as they are kept; a graph widens its own when it is made."""
    nodes, edges, *parts = (arrays[name].long() for name in ("nodes", "edges", *_PARTS))
    graphs = StoredGraphs(nodes, edges, {name: arrays[name] for name in _COLUMNS})
    _check(arrays["edge_index"], torch.repeat_interleave(nodes, edges)[:, None])
    for part in parts:
        _check(part, len(graphs))
    return GraphTensors(graphs, *parts)


def _check(indices: Tensor, limit: Tensor | int) -> None:
    if ((indices < 0) | (indices >= limit)).any():
        raise ValueError("it names nodes or graphs that are not there")


def _entries(
    folder: Path, key: str, names: tuple[str, ...]
) -> Sequence[tuple[str, dict[str, Any]]]:
    """What ``meta.json`` says of each file."""
    path = folder / "meta.json"
    try:
        meta = read_json(path, LARGEST_META)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{path}: not readable JSON ({reason})") from None
    fault = find_fault(meta, keys(_META))
    if fault is None and (meta["format"], meta["version"], meta["key"]) != (FORMAT, VERSION, key):
        fault = "of another kind"
    if fault is None and set(meta["files"]) != {f"{name}.npy" for name in names}:
        fault = "of other files"
    if fault is not None:
        raise DataError(f"{path}: not converted graphs ({fault})")
    return [(name, meta["files"][f"{name}.npy"]) for name in names]


def _narrow(array: Tensor) -> Tensor:
    """Whole numbers in the narrowest type that has them all."""
    if array.is_floating_point() or not array.numel():
        return array
    low, high = int(array.min()), int(array.max())
    for dtype in _NARROW:
        info = torch.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return array.to(dtype)
    return array
