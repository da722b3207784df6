"""Clusters of nodes with few edges between them, by METIS; kept in a cache."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import cache_dir
from coopsheaf.extras import load_extra
from coopsheaf.files import write_atomically
from coopsheaf.sheaves.graph import Graph

_KIND = "coopsheaf clusters 1"


def graph_digest(graph: Graph) -> str:
    """sha256 of the number of nodes and the list of edges."""
    digest = hashlib.sha256(f"{graph.num_nodes} {graph.num_edges}\n".encode())
    for ends in (graph.source, graph.target):
        digest.update(ends.cpu().contiguous().numpy().astype("<i8", copy=False).data)
    return digest.hexdigest()


def cluster_nodes(graph: Graph, parts: int, *, seed: int = 0) -> Tensor:
    """The cluster of every node, ``(n,)`` numbers below ``parts``: about equally many nodes each.

    METIS cuts as few edges as it can, whatever their direction; loops and parallel edges do not
    count. A cluster may be empty if there are nearly as many clusters as nodes.

    Args:
        graph: the whole graph.
        parts: number of clusters, at most the number of nodes.
        seed: of METIS; below 2**31.
    """
    _check_parts(graph, parts)
    pymetis = load_extra("pymetis", "clusters need", ", or choose another `batch.kind`")
    starts, others = _undirected(graph, pymetis.zero_copy_dtype())
    adjacency = pymetis.CSRAdjacency(adj_starts=starts, adjacent=others)
    options = pymetis.Options(seed=check_int("seed", seed, minimum=0) % 2**31)
    found = pymetis.part_graph(parts, adjacency, options=options).vertex_part
    return torch.from_numpy(np.array(found, dtype=np.int64))


def partition(
    graph: Graph, parts: int, *, seed: int = 0, folder: str | Path | None = None
) -> Tensor:
    """:func:`cluster_nodes`, computed once and kept in a file.

    Args:
        graph, parts, seed: see :func:`cluster_nodes`.
        folder: of the file; ``partitions`` in the user's cache if not given.
    """
    _check_parts(graph, parts)
    place = cache_dir() / "partitions" if folder is None else Path(folder)
    meta = {"kind": _KIND, "graph": graph_digest(graph), "parts": parts, "seed": seed}
    name = hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()[:16]
    path = place / f"clusters-{parts}-{name}.safetensors"
    if path.exists():
        return _read(path, meta, graph.num_nodes)
    clusters = cluster_nodes(graph, parts, seed=seed)
    tensors = {"clusters": clusters.to(torch.int32)}
    content = safetensors.torch.save(tensors, metadata={"json": json.dumps(meta)})
    write_atomically(path, content)
    return clusters


def _read(path: Path, meta: dict[str, Any], num_nodes: int) -> Tensor:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            found = json.loads((file.metadata() or {}).get("json", "null"))
            clusters = file.get_tensor("clusters").long()
    except (SafetensorError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: damaged ({reason}); delete it to compute it again") from None
    if found != meta:
        raise DataError(
            f"{path}: the clusters of another graph, number or seed; delete it to compute it again"
        )
    fits = clusters.shape == (num_nodes,)
    if not fits or int(clusters.min()) < 0 or int(clusters.max()) >= meta["parts"]:
        raise DataError(
            f"{path}: must hold a cluster below {meta['parts']} for each of {num_nodes} nodes; "
            "delete it to compute it again"
        )
    return clusters


def _check_parts(graph: Graph, parts: int) -> None:
    check_int("parts", parts, minimum=1)
    if parts > graph.num_nodes:
        raise ValueError(
            f"`parts` must be at most the number of nodes, {graph.num_nodes}; got {parts}"
        )


def _undirected(graph: Graph, dtype: Any) -> tuple[Any, Any]:
    """Each edge between different nodes in both directions, once, compressed by row."""
    n = graph.num_nodes
    between = graph.source != graph.target
    keys = (graph.target * n + graph.source)[between].unique()  # sorted, so by row
    back = (keys % n * n + keys // n).sort().values
    if not torch.equal(keys, back):
        keys = torch.cat([keys, back]).unique()
    starts = torch.searchsorted(keys, torch.arange(n + 1) * n)
    return starts.numpy().astype(dtype), (keys % n).numpy().astype(dtype)
