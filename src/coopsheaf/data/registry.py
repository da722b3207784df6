"""Load a dataset by its name, measure it, and compare it with what others have counted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from coopsheaf.checks import did_you_mean
from coopsheaf.data.catalogue import DATASETS, DatasetInfo, Published
from coopsheaf.data.dataset import GraphDataset, NodeDataset, Processing
from coopsheaf.data.encodings import encode_graphs
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import RemoteFile, checksum, find, locate
from coopsheaf.data.geom_gcn import read_relations
from coopsheaf.data.graph_store import remember_encodings, remember_graphs
from coopsheaf.data.pack import PREFIX, pack_processing, read_pack
from coopsheaf.data.peptides import bond_features
from coopsheaf.data.stored_graphs import StoredGraphs
from coopsheaf.data.tensors import GraphTensors, NodeTensors

__all__ = [
    "DATASETS",
    "DatasetInfo",
    "Published",
    "Verification",
    "dataset_info",
    "default_processing",
    "fetch",
    "list_datasets",
    "load",
    "load_dataset",
    "missing_files",
    "statistics",
    "verify",
]


def dataset_info(name: str) -> DatasetInfo:
    """The entry of a name; the error for an unknown one lists what there is."""
    if isinstance(name, str) and name in DATASETS:
        return DATASETS[name]
    hint = did_you_mean(name, DATASETS, most=3)
    names = ", ".join(repr(choice) for choice in DATASETS)
    raise ValueError(f"the dataset must be one of {names}; got {name!r}{hint}")


def list_datasets() -> list[str]:
    """The names that :func:`load_dataset` knows; beside them there is ``pack:FOLDER``."""
    return list(DATASETS)


def default_processing(name: str) -> Processing:
    """What is done to a dataset or a pack unless somebody says otherwise."""
    if name.startswith(PREFIX):
        return pack_processing(name.removeprefix(PREFIX))
    return dataset_info(name).processing


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    direction: str | None = None,
    self_loops: str | None = None,
    features: str | None = None,
    relations: str | None = None,
    pe: str | None = None,
    bonds: str | None = None,
) -> NodeDataset | GraphDataset:
    """A dataset by its name, or a pack by ``pack:FOLDER``.

    What is not given is the dataset's default processing; that of a pack cannot be another one.

    Args:
        name: a name of :func:`list_datasets`, or ``pack:`` and a folder.
        data_dir: a folder to look for the files in, before ``$COOPSHEAF_DATA`` and the cache.
        direction: ``"stored"``, ``"reversed"``, ``"undirected"``, or ``"rows"``: reversed, each
            edge once, as a 0/1 matrix of the list has it whose rows hear its columns.
        self_loops: ``"keep"``, ``"remove"``, ``"add"``, or ``"double"``: those that there are have
            twice the weight of other edges, as in a matrix to which the identity was added.
        features: ``"raw"``, ``"row-normalized"`` or ``"standardized"``.
        relations: ``"poincare"``, ``"mds"`` or ``"struc2vec"``: the edges of Geom-GCN's file of
            relations in place of the graph's own, as the file lists them, each with its relation
            as a feature (:func:`~coopsheaf.data.geom_gcn.read_relations`).
        pe: ``"rwse"`` or ``"lappe"``: places of nodes (:mod:`coopsheaf.data.encodings`), of many
            graphs; computed once and kept.
        bonds: ``"codes"`` or ``"one-hot"``: the codes of bonds as features of edges, of molecules.
    """
    if relations and not direction:
        direction = "stored"
    wanted = {
        "direction": direction,
        "self_loops": self_loops,
        "features": features,
        "relations": relations,
        "pe": pe,
        "bonds": bonds,
    }
    processing = replace(
        default_processing(name), **{key: value for key, value in wanted.items() if value}
    )
    if name.startswith(PREFIX):
        return read_pack(name.removeprefix(PREFIX)).process(processing)
    return load(name, data_dir, processing)


def fetch(name: str, data_dir: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """The verified files of a dataset, downloaded where needed."""
    return tuple(find(file, data_dir) for file in dataset_info(name).files)


def missing_files(name: str, data_dir: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Those of a dataset's files that are not on this machine; never touches the network."""
    files = dataset_info(name).files
    return tuple(file.path for file in files if locate(file, data_dir) is None)


def load(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    processing: Processing | None = None,
) -> NodeDataset | GraphDataset:
    """Load a dataset.

    Args:
        name: a key of ``DATASETS``.
        data_dir: a folder to look for the files in, before ``$COOPSHEAF_DATA`` and the cache.
        processing: what to do to the stored graph; the dataset's default if not given.
    """
    info = dataset_info(name)
    processing = info.processing if processing is None else processing
    wanted = processing.relations
    relations = None if wanted is None else _relation_file(info, wanted)
    many = info.published.graphs is not None
    told = processing if info.generate else replace(processing, pe=None, bonds=None)
    if many and told != info.processing:
        why = (
            "it is generated as many graphs"
            if info.generate
            else "its edges have features of their own"
        )
        raise ValueError(
            f"`processing` of {name!r} must be {info.processing}, as {why}; got {processing}"
        )
    if info.generate is not None:
        made = info.generate()
        return made if isinstance(made, GraphDataset) else made.process(processing)
    paths = fetch(name, data_dir)
    parts = _read(info, paths)
    edges: dict[str, Any] = {}
    if relations is not None:
        assert not isinstance(parts, GraphTensors), "no file of relations is about many graphs"
        paths = (*paths, find(relations, data_dir))
        parts, edges["edge_attr"], edges["edge_names"] = read_relations(paths[-1], parts)
    about: dict[str, Any] = {
        "name": name,
        "task": info.task,
        "metric": info.metric,
        "class_names": info.class_names,
        "checksum": _checksum(info, paths),
        "remark": info.remark,
        **edges,
    }
    if isinstance(parts, GraphTensors):
        graphs = _describe_graphs(parts.graphs, processing, name, about["checksum"])
        parts = parts._replace(graphs=graphs)
        return GraphDataset(**parts._asdict(), **about, processing=processing)
    return NodeDataset(**parts._asdict(), **about).process(processing)


def _describe_graphs(
    given: Sequence[Data], processing: Processing, name: str, checksum: str
) -> StoredGraphs:
    """Graphs that were just read, with what else networks shall know of their nodes and edges."""
    graphs = StoredGraphs.of(given)
    codes = graphs.whole("edge_attr")
    assert codes is not None, "nobody has seen them yet"
    if processing.pe is not None:
        kind = processing.pe
        places = remember_encodings(
            f"{name}-{checksum[:16]}-{kind}", graphs.nodes, lambda: encode_graphs(given, kind, name)
        )
        graphs.put("pe", places)
    if processing.bonds is not None:
        graphs.put("edge_attr", bond_features(codes, processing.bonds))
    return graphs


def _read(info: DatasetInfo, paths: Sequence[Path]) -> NodeTensors | GraphTensors:
    """What is in the files; many graphs, which are slow to convert, out of the cache."""
    if info.published.graphs is None:
        return info.reader(paths)

    def convert() -> GraphTensors:
        graphs = info.reader(paths)
        assert isinstance(graphs, GraphTensors)
        return graphs

    return remember_graphs(f"{info.name}-{_checksum(info, paths)[:16]}", convert)


def statistics(dataset: NodeDataset | GraphDataset) -> dict[str, Any]:
    """Count what a dataset has.

    Returns:
        ``nodes``, ``edges``, ``features``, ``classes`` (labels or targets), ``class_counts``,
        ``splits``, ``split_sizes`` (training, validation and test of each split),
        ``edge_homophily`` (share of the edges between labelled nodes whose ends have one class),
        ``self_loops``, ``reciprocated`` (share of the other edges whose reverse is there) and
        ``graphs``; ``None`` where it makes no sense.
    """
    if isinstance(dataset, GraphDataset):
        return _graph_statistics(dataset)
    source, target = dataset.edge_index
    counts, homophily = None, None
    classes = dataset.out_channels
    if dataset.task in ("binary", "multiclass"):
        y = dataset.y.long()
        classes = max(int(y.max()) + 1, len(dataset.class_names))
        counts = tuple(torch.bincount(y[y >= 0], minlength=classes).tolist())
        known = (y[source] >= 0) & (y[target] >= 0)
        if known.any():
            homophily = (y[source] == y[target])[known].double().mean().item()
    masks = (dataset.train, dataset.val, dataset.test)
    sizes = zip(*(mask.sum(1).tolist() for mask in masks), strict=True)
    return {
        "graphs": None,
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "features": dataset.num_features,
        "classes": classes,
        "class_counts": counts,
        "splits": dataset.num_splits,
        "split_sizes": tuple(sizes),
        "edge_homophily": homophily,
        "self_loops": int((source == target).sum()),
        "reciprocated": dataset.reciprocated,
    }


def _graph_statistics(dataset: GraphDataset) -> dict[str, Any]:
    counts = None
    if dataset.task == "multilabel":
        labels = dataset.stack("y")
        counts = tuple(int(count) for count in (labels == 1).sum(0))
    edges = [graph.edge_index for graph in dataset.graphs]
    loops = sum(int((index[0] == index[1]).sum()) for index in edges)
    sizes = tuple(len(part) for part in (dataset.train, dataset.val, dataset.test))
    return {
        "graphs": len(dataset.graphs),
        "nodes": sum(graph.x.shape[0] for graph in dataset.graphs),
        "edges": sum(index.shape[1] for index in edges),
        "features": dataset.num_features,
        "classes": dataset.out_channels,
        "class_counts": counts,
        "splits": 1,
        "split_sizes": (sizes,),
        "edge_homophily": None,
        "self_loops": loops,
        "reciprocated": None,
    }


@dataclass(frozen=True)
class Verification:
    """The outcome for one dataset: ``differences`` is empty if all is as published."""

    name: str
    paths: tuple[Path, ...]
    differences: tuple[str, ...]


def verify(name: str, data_dir: str | os.PathLike[str] | None = None) -> Verification:
    """Check the files of a dataset, read them and compare them with the published counts.

    Never touches the network: a file that is missing or damaged is a ``DataError``.
    """
    missing = missing_files(name, data_dir)
    if missing:
        raise DataError(
            f"{name}: all files must be on this machine to be verified; "
            f"missing {', '.join(missing)}"
        )
    info = dataset_info(name)
    stored = load(name, data_dir, Processing())
    found = statistics(stored)
    if isinstance(stored, NodeDataset):
        seen = statistics(stored.process(info.processing))
        found["edge_homophily"] = seen["edge_homophily"]
    return Verification(name, fetch(name, data_dir), compare(info.published, found))


def compare(published: Published, found: dict[str, Any]) -> tuple[str, ...]:
    """One line for each number that is not as published."""
    differences = []
    for key, value in vars(published).items():
        got = found[key]
        if key == "split_sizes":
            got = got[0]
        if key == "edge_homophily" and value is not None and got is not None:
            got = round(got, len(repr(value).partition(".")[2]))
        if value is not None and got != value:
            differences.append(f"{key} must be {value}; found {got}")
    return tuple(differences)


def _relation_file(info: DatasetInfo, relations: str) -> RemoteFile:
    if relations not in info.relations:
        there = ", ".join(info.relations) or "none"
        raise ValueError(
            f"`relations` of {info.name!r} must be one that was published, {there}; "
            f"got {relations!r}"
        )
    return info.relations[relations]


def _checksum(info: DatasetInfo, paths: Sequence[Path]) -> str:
    """The file's own sha256; of several files, that of the list ``<sha256>  <path>``."""
    digests = [checksum(path) for path in paths]
    if len(digests) == 1:
        return digests[0]
    names = [file.path for file in info.files]
    names += [f"relations/{path.name}" for path in paths[len(names) :]]
    lines = (f"{digest}  {name}\n" for digest, name in zip(digests, names, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
