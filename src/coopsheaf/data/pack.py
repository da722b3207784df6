"""Packs: a processed graph as a folder of arrays that are mapped into memory, not read.

A pack holds ``meta.json`` and one ``.npy`` file per array: features, targets, masks, the edges and
their two sorted lists, so that opening it neither reads nor sorts anything. Nothing in it is
pickled. ``pack:FOLDER`` is its name wherever a dataset has one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import one_line
from coopsheaf.data.links import LinkDataset
from coopsheaf.data.node_order import NodeNumbers, community_order, reorder
from coopsheaf.data.pack_checks import check_arrays
from coopsheaf.data.pack_files import index_dtype, map_array, read_pieces, write_tensor
from coopsheaf.files import draft_folder, sweep_drafts, write_json
from coopsheaf.schema import (
    Kind,
    an_object,
    brief,
    each,
    find_fault,
    keys,
    many,
    read_json,
    text,
    whole,
)
from coopsheaf.sheaves.graph import CSR, Graph

FORMAT, VERSION = "coopsheaf-pack", 2
VERSIONS = (1, 2)  # those that are read; the lists of the first are int64 at any size
PREFIX = "pack:"
ORDERS = {
    "stored": "as the dataset has them",
    "community": "neighbours near each other: sums over them are faster on large graphs",
}
"""Orders of the nodes of a pack."""
_LISTS = ("by_target", "by_source")
_TENSORS = ("x", "edge_index", "y", "train", "val", "test", "edge_weight", "edge_attr")
_NAMES = ("class_names", "node_ids", "edge_names")
_WORDS = ("name", "task", "metric", "checksum", "remark")

LARGEST_META = 1 << 30  # bytes: it holds the names of all nodes
_FILE = {"sha256": text, "bytes": whole(), "shape": many(whole(), most=8), "dtype": text}
META: dict[str, Kind] = {
    **dict.fromkeys(_WORDS, text),
    "class_names": many(text),
    "node_ids": many(text),
    "processing": each(text),
    "files": each(keys(_FILE)),
}
"""What ``meta.json`` must hold, beside format and version."""
MORE_META: dict[str, Kind] = {
    "edge_names": many(text),
    "kept": keys({"encoder": an_object, "tables": an_object}),
}
"""What it may hold."""


@dataclass(frozen=True)
class PackedDataset(NodeDataset):
    """A dataset in mapped files, with its edges sorted already.

    Args:
        graph: the prepared graph of ``edge_index``.
        kept: what a run must hold to read other tables as those of this pack were.
        order: ``(n,)``, the numbers that the nodes had before they were packed in another order;
            ``None`` if they are in their own.
    """

    graph: Graph | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    order: Tensor | None = None

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


def own_order(dataset: object) -> Tensor | None:
    """Where the nodes are in a pack, in the order that they had before, ``(n,)``; or ``None``."""
    if isinstance(dataset, PackedDataset) and dataset.order is not None:
        return torch.argsort(dataset.order)
    return None


def write_pack(
    dataset: NodeDataset,
    folder: str | Path,
    *,
    force: bool = False,
    kept: Mapping[str, Any] | None = None,
    order: str = "stored",
) -> Path:
    """Write a dataset as a pack; the folder is there whole or not at all.

    Args:
        dataset: as a model shall see it.
        folder: the new folder.
        force: replace a pack that is there already.
        kept: how the tables of the dataset were read.
        order: a key of ``ORDERS``. Names, splits and predictions are those of the nodes whatever
            their order, and a table of predictions has its rows in the stored one.
    """
    check_choice("order", order, ORDERS)
    with new_pack(folder, force=force) as draft:
        before = dataset.order if isinstance(dataset, PackedDataset) else None
        if order == "community":
            found = community_order(prepared_graph(dataset))
            before = found if before is None else before.long()[found]
            dataset = reorder(dataset, found)
        arrays = _arrays(dataset, prepared_graph(dataset))
        if before is not None:
            arrays["order"] = before.to(index_dtype(dataset.num_nodes, 0))
        files = {
            f"{name}.npy": write_tensor(draft / f"{name}.npy", tensor)
            for name, tensor in arrays.items()
        }
        meta = {
            **{word: getattr(dataset, word) for word in _WORDS},
            **{names: list(getattr(dataset, names)) for names in _NAMES},
            **({"node_ids": []} if isinstance(dataset.node_ids, NodeNumbers) else {}),
            "processing": dataset.processing.to_json(),
            **({"kept": dict(kept)} if kept else {}),
        }
        write_json(draft / "meta.json", describe(files, meta))
    return Path(folder)


@contextmanager
def new_pack(folder: str | Path, *, force: bool) -> Iterator[Path]:
    """A folder to fill that becomes a pack at the end of the block, if there is no error."""
    target = Path(folder)
    sweep_drafts(target)
    is_pack = (target / "meta.json").is_file()
    if target.exists() and not (force and is_pack):
        hint = "use --force to replace it" if is_pack else "choose another"
        raise DataError(f"{target}: exists already; {hint}")
    with draft_folder(target) as draft:
        yield draft


def describe(files: dict[str, dict[str, Any]], meta: Mapping[str, Any]) -> dict[str, Any]:
    """What ``meta.json`` says of a pack of these files."""
    found = {"format": FORMAT, "version": VERSION, **meta, "files": files}
    # Data that was generated in memory is named by the files.
    return found | {"checksum": meta.get("checksum") or _digest(files)}


def read_pack(folder: str | Path) -> PackedDataset:
    """Open a pack: its files are compared with their checksums, then mapped.

    The arrays may be written to in memory; nothing reaches the files.
    """
    folder = Path(folder)
    while True:
        meta = read_meta(folder)
        try:
            return _open(folder, meta)
        except DataError:
            if read_meta(folder) == meta:  # else it was replaced while it was read
                raise


def _open(folder: Path, meta: dict[str, Any]) -> PackedDataset:
    """Map the files that a description lists."""
    try:
        for name in (*meta["files"], meta["name"]):
            if Path(name).name != name:  # nothing outside the folder is read, now or later
                raise ValueError(f"a name must not hold a path; got {brief(name)}")
        arrays = {
            name.removesuffix(".npy"): map_array(folder / name, entry)
            for name, entry in meta["files"].items()
        }
        lists = {
            side: CSR(*(arrays.pop(f"{side}_{part}") for part in CSR._fields)) for side in _LISTS
        }
        edge_index = arrays["edge_index"]
        _check_graph(folder, edge_index, lists, arrays["x"].shape[0])
        order = arrays.pop("order", None)
        _check_order(folder, order, arrays["x"].shape[0])
        ids: Sequence[str] = tuple(map(str, meta["node_ids"]))
        check_arrays(folder, arrays, meta["task"], meta["class_names"], meta["node_ids"])
        graph = Graph._build(edge_index[0], edge_index[1], lists["by_target"], lists["by_source"])
        return PackedDataset(
            **{name: arrays.get(name) for name in _TENSORS},  # type: ignore[arg-type]
            **{word: meta[word] for word in _WORDS},
            class_names=tuple(map(str, meta["class_names"])),
            node_ids=ids or (() if order is None else NodeNumbers(order)),
            edge_names=tuple(meta.get("edge_names", ())),  # older packs have none
            processing=Processing(**meta["processing"]),
            graph=graph,
            kept=meta.get("kept", {}),
            order=order,
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
        meta = read_json(path, LARGEST_META)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{folder}: not a pack (there is no meta.json in it)") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{path}: not readable JSON ({reason})") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise DataError(f"{path}: not a pack of coopsheaf")
    if meta.get("version") not in VERSIONS:
        known = " or ".join(map(str, VERSIONS))
        raise DataError(f"{path}: must be of version {known}; got {brief(meta.get('version'))}")
    fault = find_fault(meta, keys(META, MORE_META))
    if fault is not None:
        raise DataError(f"{path}: not a pack of coopsheaf ({fault})")
    return meta


def pack_processing(folder: str | Path) -> Processing:
    """How the graph of a pack was processed."""
    try:
        return Processing(**read_meta(folder)["processing"])
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{folder}: not a pack of coopsheaf ({one_line(error)})") from None


def _digest(files: dict[str, dict[str, Any]]) -> str:
    """What names data that were generated in memory."""
    lines = (f"{entry['sha256']}  {name}\n" for name, entry in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _arrays(dataset: NodeDataset, graph: Graph) -> dict[str, Tensor]:
    arrays = {name: getattr(dataset, name) for name in _TENSORS}
    narrow = index_dtype(graph.num_nodes, graph.num_edges)
    for side in _LISTS:
        lists: CSR = getattr(graph, side)
        lists = CSR(lists.ptr, lists.other.to(narrow), lists.edge.to(narrow))
        arrays |= {f"{side}_{part}": tensor for part, tensor in lists._asdict().items()}
    return {name: tensor for name, tensor in arrays.items() if tensor is not None}


def _check_graph(folder: Path, edge_index: Tensor, lists: dict[str, CSR], n: int) -> None:
    """Indices that point outside would crash far from here, if at all."""
    m = edge_index.shape[1]
    fits = edge_index.shape == (2, m) and edge_index.dtype == torch.int64
    fits = fits and _inside(folder / "edge_index.npy", edge_index, n)
    for side, (ptr, other, edge) in lists.items():
        fits = fits and ptr.shape == (n + 1,) and other.shape == edge.shape == (m,)
        fits = fits and ptr.dtype == torch.int64 and other.dtype == edge.dtype
        fits = fits and int(ptr[0]) == 0 and int(ptr[-1]) == m and bool((ptr.diff() >= 0).all())
        fits = fits and _inside(folder / f"{side}_other.npy", other, n)
        fits = fits and _inside(folder / f"{side}_edge.npy", edge, m)
    if not fits:
        raise DataError(f"{folder}: its lists of edges do not fit {n} nodes and each other")


def _check_order(folder: Path, order: Tensor | None, n: int) -> None:
    if order is None:
        return
    fits = order.shape == (n,) and order.dtype in (torch.int32, torch.int64)
    fits = fits and _inside(folder / "order.npy", order, n)
    if not fits or not torch.equal(order.bincount(minlength=n), order.new_ones(n).long()):
        raise DataError(f"{folder}: its order must hold each of {n} nodes once")


def _inside(path: Path, indices: Tensor, limit: int) -> bool:
    if indices.dtype not in (torch.int32, torch.int64):
        return False
    return all(piece.min() >= 0 and piece.max() < limit for piece in read_pieces(path, indices))
