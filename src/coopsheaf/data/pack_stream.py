"""Packs of graphs that do not fit into memory: edges come in pieces and are sorted on disk.

What has a size of nodes is held, what has a size of edges is not: directed edges j→i are first
thrown into files by ranges of targets, each of which is then sorted by itself and written in turn;
the same again by ranges of sources. Every edge is read and written three times.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.data.dataset import PARTS, Processing
from coopsheaf.data.pack import describe, new_pack
from coopsheaf.data.pack_files import index_dtype, write_array, write_tensor
from coopsheaf.files import write_json
from coopsheaf.tensor_checks import check_tensor

_Array = npt.NDArray[np.int64]
BUCKET = 1 << 22  # directed edges of a file that is sorted in memory, about
MOST_BUCKETS = 1 << 10


def stream_pack(
    folder: str | Path,
    edges: Iterable[Tensor],
    *,
    num_nodes: int,
    num_edges: int,
    x: Iterable[Tensor],
    num_features: int,
    y: Tensor,
    masks: tuple[Tensor, Tensor, Tensor],
    task: str,
    metric: str,
    name: str,
    class_names: tuple[str, ...] = (),
    processing: Processing | None = None,
    force: bool = False,
) -> Path:
    """Write a pack of a graph whose edges are made piece by piece.

    The edges of the pack are sorted by target and then by source; one that comes twice is there
    once. The folder is there whole or not at all, and needs twice the room of the edges meanwhile.

    Args:
        folder: the new folder.
        edges: pieces ``(2, k)`` of directed edges, sources above targets.
        num_nodes: n.
        num_edges: how many there will be, about: decides how finely they are divided.
        x: pieces ``(k, F)`` of the features, node by node.
        num_features: F.
        y: ``(n,)`` targets.
        masks: ``(splits, n)`` each: train, val, test.
        task, metric, name, class_names, processing: of :class:`~coopsheaf.data.NodeDataset`.
        force: replace a pack that is there already.
    """
    check_int("num_nodes", num_nodes, minimum=1)
    with new_pack(folder, force=force) as draft:
        files = _write_edges(draft, edges, num_nodes, max(1, num_edges))
        pieces = (np.asarray(piece, dtype=np.float32) for piece in x)
        shape = (num_nodes, num_features)
        files["x.npy"] = write_array(draft / "x.npy", np.float32, shape, pieces)
        for part, mask in zip(PARTS, masks, strict=True):
            files[f"{part}.npy"] = write_tensor(draft / f"{part}.npy", mask)
        files["y.npy"] = write_tensor(draft / "y.npy", y)
        words = {"name": name, "task": task, "metric": metric, "remark": ""}
        names = {"class_names": list(class_names), "node_ids": [], "edge_names": []}
        done = (processing or Processing()).to_json()
        write_json(draft / "meta.json", describe(files, {**words, **names, "processing": done}))
    return Path(folder)


def _write_edges(
    folder: Path, edges: Iterable[Tensor], n: int, num_edges: int
) -> dict[str, dict[str, Any]]:
    """Sort edges by target and by source into the files of a pack."""
    count = min(n, -(-num_edges // BUCKET), MOST_BUCKETS)
    spill = folder / "spill"
    spill.mkdir()
    try:
        by_target = _Buckets(spill, "target", n, n, count)
        for piece in edges:
            source, target = _check_edges(piece, n).numpy()
            by_target.add(target, source)
        degree = by_target.sort()
        m = int(degree.sum())
        narrow = np.dtype(str(index_dtype(n, m)).removeprefix("torch."))
        by_source = _Buckets(spill, "source", n, m, count)
        first = 0
        for target, source in by_target.read():
            by_source.add(source, np.arange(first, first + len(source)), target)
            first += len(source)
        out_degree = by_source.sort()

        def both() -> Iterator[_Array]:
            yield from (source for _, source in by_target.read())
            yield from (target for target, _ in by_target.read())

        files: dict[str, tuple[npt.DTypeLike, tuple[int, ...], Iterable[_Array]]] = {
            "edge_index": (np.int64, (2, m), both()),
            "by_target_ptr": (np.int64, (n + 1,), [_starts(degree)]),
            "by_target_other": (narrow, (m,), (source for _, source in by_target.read())),
            "by_target_edge": (narrow, (m,), _numbers(m)),
            "by_source_ptr": (np.int64, (n + 1,), [_starts(out_degree)]),
            "by_source_other": (narrow, (m,), by_source.read_beside()),
            "by_source_edge": (narrow, (m,), (edge for _, edge in by_source.read())),
        }
        return {
            f"{name}.npy": write_array(folder / f"{name}.npy", *what)
            for name, what in files.items()
        }
    finally:
        shutil.rmtree(spill)


class _Buckets:
    """Pairs (row, item) in files by ranges of rows, to be sorted one file at a time.

    A pair is one number, row · limit + item.

    Args:
        folder: of the files.
        name: of the files.
        n: number of rows.
        limit: items are below.
        count: number of files.
    """

    def __init__(self, folder: Path, name: str, n: int, limit: int, count: int) -> None:
        if n * limit >= 2**63:
            raise ValueError(f"{n} nodes with {limit} edges or neighbours are too many to sort")
        self.n, self.limit, self.count = n, max(1, limit), count
        self.width = -(-n // count)
        self.keys = [folder / f"{name}-{k}" for k in range(count)]
        self.beside = [folder / f"{name}-{k}-beside" for k in range(count)]
        for path in (*self.keys, *self.beside):
            path.touch()

    def add(self, row: _Array, item: _Array, beside: _Array | None = None) -> None:
        """Throw pairs, and what each of them carries, into the files of their rows."""
        bucket = row // self.width
        order = np.argsort(bucket.astype(np.uint16), kind="stable")  # a radix sort
        bounds = np.searchsorted(bucket[order], np.arange(self.count + 1))
        keys = (row * self.limit + item)[order]
        for k in range(self.count):
            part = slice(bounds[k], bounds[k + 1])
            with self.keys[k].open("ab") as stream:
                stream.write(keys[part].tobytes())
            if beside is not None:
                with self.beside[k].open("ab") as stream:
                    stream.write(beside[order[part]].tobytes())

    def sort(self) -> _Array:
        """Sort every file by row and item, each pair once, and count the pairs of every row."""
        degree = np.zeros(self.n, dtype=np.int64)
        for path, beside in zip(self.keys, self.beside, strict=True):
            # PyTorch sorts whole numbers several times as fast as NumPy.
            keys, order = torch.from_numpy(np.fromfile(path, np.int64)).sort()
            new = torch.ones(len(keys), dtype=torch.bool)
            new[1:] = keys[1:] != keys[:-1]
            keys[new].numpy().tofile(path)
            if beside.stat().st_size:
                np.fromfile(beside, np.int64)[order[new].numpy()].tofile(beside)
            rows, counts = torch.unique_consecutive(keys[new] // self.limit, return_counts=True)
            degree[rows.numpy()] = counts.numpy()
        return degree

    def read(self) -> Iterator[tuple[_Array, _Array]]:
        """Rows and items, file by file."""
        for path in self.keys:
            keys = np.fromfile(path, np.int64)
            yield np.divmod(keys, self.limit)

    def read_beside(self) -> Iterator[_Array]:
        """What the pairs carry, in their order."""
        return (np.fromfile(path, np.int64) for path in self.beside)


def _starts(degree: _Array) -> _Array:
    return np.concatenate([[0], np.cumsum(degree)])


def _numbers(m: int) -> Iterator[_Array]:
    return (np.arange(start, min(start + BUCKET, m)) for start in range(0, m, BUCKET))


def _check_edges(piece: Tensor, n: int) -> Tensor:
    edges = check_tensor("edges", piece)
    if edges.dtype != torch.int64 or edges.dim() != 2 or len(edges) != 2:
        raise ValueError(
            "`edges` must be int64 tensors of shape (2, k), sources above targets; "
            f"got {edges.dtype} of shape {tuple(edges.shape)}"
        )
    if edges.numel():
        low, high = (int(value) for value in edges.aminmax())
        if low < 0 or high >= n:
            raise ValueError(f"`edges` must be in [0, {n}); got {low} to {high}")
    return edges.cpu()
