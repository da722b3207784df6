"""Packs: a processed graph as a folder of arrays that are mapped into memory, not read.

A pack holds ``meta.json`` and one ``.npy`` file per array: features, targets, masks, the edges and
their two sorted lists, so that opening it neither reads nor sorts anything. Nothing in it is
pickled. ``pack:FOLDER`` is its name wherever a dataset has one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import checksum, one_line
from coopsheaf.data.links import LinkDataset
from coopsheaf.files import write_json
from coopsheaf.sheaves.graph import CSR, Graph

FORMAT, VERSION = "coopsheaf-pack", 1
PREFIX = "pack:"
_LISTS = ("by_target", "by_source")
_TENSORS = ("x", "edge_index", "y", "train", "val", "test", "edge_weight", "edge_attr")
_WORDS = ("name", "task", "metric", "checksum", "remark")


@dataclass(frozen=True)
class PackedDataset(NodeDataset):
    """A dataset in mapped files, with its edges sorted already.

    Args:
        graph: the prepared graph of ``edge_index``.
        kept: what a run must hold to read other tables as those of this pack were.
    """

    graph: Graph | None = None
    kept: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.graph is not None
        if self.graph.source.data_ptr() != self.edge_index.data_ptr():
            raise ValueError("`graph` must be that of `edge_index`; a pack is not to be changed")

    def process(self, processing: Processing) -> NodeDataset:
        """A pack holds a graph as a model sees it: there is nothing left to do."""
        if processing != self.processing:
            raise ValueError(
                f"`processing` of a pack must be what it was packed with, {self.processing}; "
                f"got {processing}"
            )
        return self


def prepared_graph(dataset: NodeDataset | LinkDataset) -> Graph:
    """The graph of a dataset, with its edges sorted both ways."""
    if isinstance(dataset, PackedDataset) and dataset.graph is not None:
        return dataset.graph
    return Graph(dataset.edge_index, dataset.num_nodes)


def kept_tables(dataset: object) -> dict[str, Any]:
    """How the tables of a pack were read, for the run that is trained on it."""
    return dataset.kept if isinstance(dataset, PackedDataset) else {}


def write_pack(
    dataset: NodeDataset,
    folder: str | Path,
    *,
    force: bool = False,
    kept: Mapping[str, Any] | None = None,
) -> Path:
    """Write a dataset as a pack; the folder is there whole or not at all.

    Args:
        dataset: as a model shall see it.
        folder: the new folder.
        force: replace a pack that is there already.
        kept: how the tables of the dataset were read.
    """
    target = Path(folder)
    if target.exists() and not (force and (target / "meta.json").is_file()):
        hint = "use --force to replace it" if (target / "meta.json").is_file() else "choose another"
        raise DataError(f"{target}: exists already; {hint}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
    try:
        graph = prepared_graph(dataset)
        files = {}
        for name, tensor in _arrays(dataset, graph).items():
            path = draft / f"{name}.npy"
            array = tensor.detach().cpu().contiguous().numpy()
            with path.open("wb") as stream:
                np.save(stream, array, allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
            size = path.stat().st_size
            files[path.name] = {
                "sha256": checksum(path),
                "bytes": size,
                "shape": list(array.shape),
                "dtype": str(array.dtype),
            }
        meta = {
            "format": FORMAT,
            "version": VERSION,
            **{word: getattr(dataset, word) for word in _WORDS},
            "checksum": dataset.checksum or _digest(files),
            "class_names": list(dataset.class_names),
            "node_ids": list(dataset.node_ids),
            "edge_names": list(dataset.edge_names),
            "processing": asdict(dataset.processing),
            "files": files,
            **({"kept": dict(kept)} if kept else {}),
        }
        write_json(draft / "meta.json", meta)
        draft.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old-"))
            target.replace(old / target.name)
            draft.replace(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            draft.replace(target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target


def read_pack(folder: str | Path) -> PackedDataset:
    """Open a pack: its files are compared with their checksums, then mapped.

    The arrays may be written to in memory; nothing reaches the files.
    """
    folder = Path(folder)
    meta = read_meta(folder)
    try:
        for name in (*meta["files"], meta["name"]):
            if Path(name).name != name:  # nothing outside the folder is read, now or later
                raise ValueError(f"a name must not hold a path; got {name!r}")
        arrays = {
            name.removesuffix(".npy"): _map(folder / name, entry)
            for name, entry in meta["files"].items()
        }
        lists = {
            side: CSR(*(arrays.pop(f"{side}_{part}") for part in CSR._fields)) for side in _LISTS
        }
        edge_index = arrays["edge_index"]
        _check_graph(folder, edge_index, lists, arrays["x"].shape[0])
        graph = Graph._build(edge_index[0], edge_index[1], lists["by_target"], lists["by_source"])
        return PackedDataset(
            **{name: arrays.get(name) for name in _TENSORS},  # type: ignore[arg-type]
            **{word: meta[word] for word in _WORDS},
            class_names=tuple(map(str, meta["class_names"])),
            node_ids=tuple(map(str, meta["node_ids"])),
            edge_names=tuple(map(str, meta.get("edge_names", ()))),  # older packs have none
            processing=Processing(**meta["processing"]),
            graph=graph,
            kept=_kept(meta),
        )
    except DataError:
        raise
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else one_line(error)
        raise DataError(f"{folder}: not a pack of coopsheaf ({reason})") from None


def read_meta(folder: str | Path) -> dict[str, Any]:
    """What ``meta.json`` says."""
    path = Path(folder) / "meta.json"
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder}: not a pack (there is no meta.json in it)") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{path}: not readable JSON ({reason})") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise DataError(f"{path}: not a pack of coopsheaf")
    if meta.get("version") != VERSION:
        raise DataError(f"{path}: must be of version {VERSION}; got {meta.get('version')!r}")
    if not isinstance(meta.get("files"), dict):
        raise DataError(f"{path}: must list the files of the pack; it does not")
    return meta


def pack_processing(folder: str | Path) -> Processing:
    """How the graph of a pack was processed."""
    with suppress(KeyError, TypeError):
        return Processing(**read_meta(folder)["processing"])
    raise DataError(f"{folder}: not a pack of coopsheaf (it does not say how it was processed)")


def _kept(meta: dict[str, Any]) -> dict[str, Any]:
    kept = meta.get("kept", {})
    if not isinstance(kept, dict) or kept.keys() - {"encoder", "tables"}:
        raise ValueError("what it keeps of its tables must be an encoder and how they were read")
    return kept


def _digest(files: dict[str, dict[str, Any]]) -> str:
    """What names data that were generated in memory."""
    lines = (f"{entry['sha256']}  {name}\n" for name, entry in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _arrays(dataset: NodeDataset, graph: Graph) -> dict[str, Tensor]:
    arrays = {name: getattr(dataset, name) for name in _TENSORS}
    for side in _LISTS:
        lists = getattr(graph, side)
        arrays |= {f"{side}_{part}": getattr(lists, part) for part in CSR._fields}
    return {name: tensor for name, tensor in arrays.items() if tensor is not None}


def _map(path: Path, entry: dict[str, Any]) -> Tensor:
    try:
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise DataError(f"{path}: damaged (must have {entry['bytes']} bytes; found {size})")
        if checksum(path) != entry["sha256"]:
            raise DataError(f"{path}: damaged, or of another pack (its checksum differs)")
        # Copy on write: PyTorch wants memory that it could write to.
        mode: Any = "c" if np.prod(entry["shape"]) else None  # an empty file cannot be mapped
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a readable array ({one_line(error)})") from None
    if list(array.shape) != entry["shape"] or str(array.dtype) != entry["dtype"]:
        raise DataError(
            f"{path}: must hold {entry['dtype']} of shape {entry['shape']}; "
            f"found {array.dtype} of shape {list(array.shape)}"
        )
    return torch.from_numpy(array)


def _check_graph(folder: Path, edge_index: Tensor, lists: dict[str, CSR], n: int) -> None:
    """Indices that point outside would crash far from here, if at all."""
    m = edge_index.shape[1]
    fits = edge_index.shape == (2, m) and _inside(edge_index, n)
    for side in lists.values():
        fits = fits and side.ptr.shape == (n + 1,) and side.other.shape == side.edge.shape == (m,)
        fits = fits and int(side.ptr[0]) == 0 and int(side.ptr[-1]) == m
        fits = fits and bool((side.ptr.diff() >= 0).all())
        fits = fits and _inside(side.other, n) and _inside(side.edge, m)
    if not fits:
        raise DataError(f"{folder}: its lists of edges do not fit {n} nodes and each other")


def _inside(indices: Tensor, limit: int) -> bool:
    if indices.dtype != torch.int64:
        return False
    if indices.numel() == 0:
        return True
    low, high = indices.aminmax()
    return bool(low >= 0) and bool(high < limit)
