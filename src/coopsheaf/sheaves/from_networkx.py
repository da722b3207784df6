"""Sheaves of networkx graphs whose edges have maps as attributes.

networkx itself is not imported: a graph brings its methods along.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.sheaf import DirectedSheaf, Sheaf


class NetworkxSheaf(NamedTuple):
    """A sheaf, and which node of the networkx graph each of its nodes is."""

    sheaf: Sheaf | DirectedSheaf
    nodes: list[Hashable]


def sheaf_from_networkx(
    graph: Any,
    *,
    maps: str = "maps",
    source_map: str = "source_map",
    target_map: str = "target_map",
    weight: str | None = None,
    dtype: torch.dtype | None = None,
) -> NetworkxSheaf:
    r"""The sheaf of a networkx graph with maps as attributes of its edges.

    An edge {u, v} of an undirected graph has an attribute ``maps``, from each of its ends to the
    map of that end, ``{u: F_u, v: F_v}``: networkx does not say which end comes first. A loop has a
    pair ``(F, G)``. An arc u→v of a directed graph has two attributes, the maps of its source and
    of its target; the result is a :class:`~coopsheaf.DirectedSheaf`. Maps are matrices ``(e, d)``
    in whatever form :func:`torch.as_tensor` takes, all of one shape, or numbers for e = d = 1.
    Nodes keep the order in which networkx lists them; parallel edges are kept.

    Args:
        graph: a ``Graph``, ``DiGraph``, ``MultiGraph`` or ``MultiDiGraph`` with at least one edge.
        maps: the attribute of undirected edges.
        source_map, target_map: the attributes of directed edges.
        weight: the attribute with edge weights; no weights if not given.
        dtype: of the maps; PyTorch's default if not given.
    """
    if not all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed", "adjacency")):
        raise ValueError(f"`graph` must be a networkx graph; got {type(graph).__name__}")
    dtype = dtype or torch.get_default_dtype()
    nodes: list[Hashable] = list(graph.nodes)
    number = {node: k for k, node in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    if not edges:
        raise ValueError("`graph` must have an edge: without maps nobody knows the size of stalks")
    ends = [[number[u] for u, _, _ in edges], [number[v] for _, v, _ in edges]]
    directed = graph.is_directed()
    first: list[Tensor] = []
    second: list[Tensor] = []
    for u, v, has in edges:
        if directed:
            pair = (_get(has, source_map, u, v), _get(has, target_map, u, v))
        else:
            pair = _both_ends(_get(has, maps, u, v), maps, u, v)
        for found, matrix in zip((first, second), pair, strict=True):
            found.append(_matrix(matrix, u, v, dtype))
            if found[-1].shape != first[0].shape:
                raise ValueError(
                    f"`graph` must have maps of one shape, {tuple(first[0].shape)} as at its first "
                    f"edge; got {tuple(found[-1].shape)} at ({u!r}, {v!r})"
                )
    values = None
    if weight is not None:
        values = torch.tensor([float(_get(has, weight, u, v)) for u, v, has in edges], dtype=dtype)
    one, other, index = torch.stack(first), torch.stack(second), torch.tensor(ends)
    sheaf: Sheaf | DirectedSheaf
    if directed:
        sheaf = DirectedSheaf(index, one, other, len(nodes), edge_weight=values)
    else:
        both = torch.stack([one, other], dim=1)
        sheaf = Sheaf(index, both, len(nodes), edge_weight=values)
    return NetworkxSheaf(sheaf, nodes)


def _get(has: Mapping[str, Any], name: str, u: Hashable, v: Hashable) -> Any:
    if name not in has:
        known = ", ".join(map(repr, has)) or "no attributes"
        raise ValueError(
            f"`graph` must have the attribute {name!r} at every edge; ({u!r}, {v!r}) has {known}"
        )
    return has[name]


def _both_ends(given: Any, name: str, u: Hashable, v: Hashable) -> tuple[Any, Any]:
    """The maps of u and of v."""
    if u == v:
        if isinstance(given, tuple | list) and len(given) == 2:
            return given[0], given[1]
        raise ValueError(f"{name!r} of the loop at {u!r} must be a pair of maps; got {given!r}")
    if not isinstance(given, Mapping) or set(given) != {u, v}:
        got = f"ends {list(given)}" if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(
            f"{name!r} of the edge ({u!r}, {v!r}) must be a mapping from its two ends to their "
            f"maps; got {got}"
        )
    return given[u], given[v]


def _matrix(given: Any, u: Hashable, v: Hashable, dtype: torch.dtype) -> Tensor:
    try:
        matrix = torch.as_tensor(given, dtype=dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"maps of the edge ({u!r}, {v!r}) must be matrices of numbers; {reason}"
        ) from None
    if matrix.dim() == 0:
        return matrix.view(1, 1)
    if matrix.dim() != 2:
        raise ValueError(
            f"maps of the edge ({u!r}, {v!r}) must be matrices (e, d); got {tuple(matrix.shape)}"
        )
    return matrix
