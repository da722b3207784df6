"""``Data`` and ``HeteroData`` of PyG as tables of nodes and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.reading.cells import Cells, TextCells, columns_of
from coopsheaf.data.tables.reading.graph_objects import (
    GivenGraph,
    edge_table,
    numbered_nodes,
)
from coopsheaf.data.tables.reading.inputs import MemoryTable
from coopsheaf.data.tables.reading.table import NODE, Table

_STRIDED = torch.strided
_HALF = (torch.bfloat16, torch.float16)  # numpy has not both
USED = ("x", "edge_index", "edge_weight", "edge_attr", "y")
MASKS = ("train_mask", "val_mask", "test_mask")
TYPE = "node type"  # a column of the nodes of a graph with several types


def pyg_tables(data: Any) -> GivenGraph:
    """Features are the columns ``x[0]``, ``x[1]``, ..., targets ``y``; -1 is an unknown class."""
    if isinstance(data, HeteroData):
        return _hetero_tables(data)
    if not isinstance(data, Data):
        raise DataError(f"`nodes` must be a Data or HeteroData of PyG; got {type(data).__name__}")
    for attribute in ("x", "edge_index"):
        if getattr(data, attribute, None) is None:
            raise DataError(f"`data` must have `{attribute}`; got {show(str(data), 80)}")
    n = int(data.x.shape[0])
    if not n:
        raise DataError("`data` must have nodes; it is empty")
    nodes = {"x": columns_of("x", _finite(_numpy(data.x), "data.x"), "data.x")}
    if data.y is not None:
        nodes["y"] = columns_of("y", _squeezed(data.y), "data.y")
    edges: dict[str, dict[str, Cells]] = {}
    for name in ("edge_weight", "edge_attr"):
        if getattr(data, name, None) is not None:
            values = _squeezed(data[name]) if name == "edge_weight" else _flat(data[name])
            edges[name] = columns_of(name, values, f"data.{name}")
    columns: dict[str, Cells] = {NODE: numbered_nodes(n), **_joined(nodes)}
    _check_rows(columns, n, "x")
    index = _numpy(data.edge_index)
    _check_ends(index, (n, n), "data.edge_index")
    unused = [key for key in data.keys() if key not in (*USED, *MASKS)]  # noqa: SIM118
    notes = (f"not used of the Data: {show_list(unused)}",) if unused else ()
    return GivenGraph(
        MemoryTable(Table("`data`", columns, range(n), place="row"), _lists(nodes)),
        MemoryTable(edge_table(index, _joined(edges)), _lists(edges)),
        weight="edge_weight" if "edge_weight" in edges else None,
        target=tuple(nodes.get("y", ())),
        unlabelled=_unlabelled(data.y),
        masks=tuple(getattr(data, mask, None) for mask in MASKS),
        notes=notes,
    )


def _joined(parts: dict[str, dict[str, Cells]]) -> dict[str, Cells]:
    return {name: cells for part in parts.values() for name, cells in part.items()}


def _lists(parts: dict[str, dict[str, Cells]]) -> dict[str, list[str]]:
    return {name: list(part) for name, part in parts.items()}


def _flat(value: Any) -> Any:
    array = _numpy(value)
    return array.reshape(len(array), -1)


def _check_ends(edge_index: Any, sizes: tuple[int, int], argument: str) -> None:
    """Refuse ends that are no nodes: those of one type would be taken for nodes of another."""
    if edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.dtype.kind not in "iu":
        raise DataError(
            f"`{argument}` must be whole numbers of shape (2, m); got {edge_index.dtype} of shape "
            f"{edge_index.shape}"
        )
    bad = np.flatnonzero((edge_index < 0).any(0) | (edge_index >= np.array(sizes)[:, None]).any(0))
    if len(bad):
        pair = tuple(edge_index[:, bad[0]].tolist())
        raise DataError(
            f"`{argument}` must join nodes 0 to {sizes[0] - 1} and 0 to {sizes[1] - 1}; edge "
            f"{bad[0]} is {pair}"
        )


def _hetero_tables(data: HeteroData) -> GivenGraph:
    """One graph: types become a column, and each type has its own columns of features."""
    sizes = {kind: int(data[kind].num_nodes or 0) for kind in data.node_types}
    if not any(sizes.values()):
        raise DataError("`data` must have nodes; it is empty")
    n, start, offsets = sum(sizes.values()), 0, {}
    for kind, size in sizes.items():
        offsets[kind], start = start, start + size
    types = [kind for kind, size in sizes.items() for _ in range(size)]
    numbers = [number for size in sizes.values() for number in range(size)]
    ids = [f"{kind}/{number}" for kind, number in zip(types, numbers, strict=True)]
    columns: dict[str, Cells] = {NODE: TextCells(ids), TYPE: TextCells(types)}
    targets = [kind for kind in data.node_types if "y" in data[kind]]
    lists: dict[str, list[str]] = {}
    for kind, size in sizes.items():
        if "x" in data[kind]:
            argument = f"data[{kind!r}].x"
            block = _finite(_numpy(data[kind].x), argument)
            block = block[:, None] if block.ndim == 1 else block
            spread = columns_of(f"{kind}.x", _spread(block, offsets[kind], size, n, argument), "x")
            lists[f"{kind}.x"] = list(spread)
            columns |= spread
    if len(targets) > 1:
        raise DataError(
            f"`data` must have targets `y` for one type of nodes; got {show_list(targets)}: remove "
            "the others"
        )
    masks: tuple[Any, ...] = (None, None, None)
    if targets:
        kind = targets[0]
        place = (offsets[kind], sizes[kind], n)
        y = _spread(_squeezed(data[kind].y), *place, f"data[{kind!r}].y")
        spread = columns_of("y", y, "y")
        lists["y"] = list(spread)
        columns |= spread
        masks = tuple(
            _spread(_numpy(data[kind][mask]), *place, f"data[{kind!r}].{mask}") == 1
            if mask in data[kind]
            else None
            for mask in MASKS
        )
    ends, kinds = [np.zeros((2, 0), dtype=np.int64)], []
    for source, name, target in data.edge_types:
        edge_index = _numpy(data[source, name, target].edge_index)
        argument = f"data[{source!r}, {name!r}, {target!r}].edge_index"
        _check_ends(edge_index, (sizes[source], sizes[target]), argument)
        ends.append(edge_index + np.array([[offsets[source]], [offsets[target]]]))
        kinds += [f"{source} {name} {target}"] * edge_index.shape[1]
    both = np.concatenate(ends, axis=1)
    names = np.array(ids, dtype=object)
    table = edge_table(both, {"edge type": TextCells(kinds)})
    columns_of_edges: dict[str, Cells] = dict(table.columns)
    for end, numbers_of in zip(list(columns_of_edges)[:2], both, strict=True):
        columns_of_edges[end] = TextCells(names[numbers_of].tolist())
    edges = Table(table.path, columns_of_edges, table.lines, place=table.place)
    note = (
        f"one graph is made of {len(sizes)} types of nodes ({show_list(sizes)}) and "
        f"{len(data.edge_types)} types of edges: the type of a node is a feature, each type has "
        "its own feature columns, and edges of all types are alike"
    )
    unused = [
        f"{kind if isinstance(kind, str) else ' '.join(kind)}.{key}"
        for kind in (*data.node_types, *data.edge_types)
        for key in data[kind].keys()  # noqa: SIM118
        if key not in ("x", "y", "edge_index", "num_nodes", *(MASKS if kind in targets else ()))
    ]
    return GivenGraph(
        MemoryTable(Table("`data`", columns, range(n), place="row"), lists),
        MemoryTable(edges),
        target=tuple(lists.get("y", ())),
        unlabelled=_unlabelled(data[targets[0]].y) if targets else None,
        masks=masks,
        fitted=np.array([kind not in targets for kind in types]),
        notes=(note, *([f"not used of the HeteroData: {show_list(unused)}"] if unused else [])),
    )


def _spread(values: Any, start: int, size: int, n: int, argument: str) -> Any:
    """``(n, ...)`` values of one type of nodes, NaN at all others."""
    if len(values) != size:
        raise DataError(f"`{argument}` must have {size} rows, one per node; got {len(values)}")
    whole = np.full((n, *values.shape[1:]), np.nan)
    whole[start : start + size] = values
    return whole


def _unlabelled(y: object) -> tuple[str, ...] | None:
    """PyG has no word for unknown classes; -1 is the custom."""
    whole = isinstance(y, Tensor) and not y.is_floating_point()
    return ("-1",) if whole else None


def _numpy(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = value.to_dense() if value.layout != _STRIDED else value
        return (value.float() if value.dtype in _HALF else value).numpy()
    return np.asarray(value)


def _finite(values: Any, argument: str) -> Any:
    """A table has gaps; a tensor with NaN in it has a mistake behind it."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        place = ", ".join(f"{w} {i}" for w, i in zip(("row", "column"), bad[0], strict=False))
        raise DataError(f"`{argument}` must be finite; {place} is {values[tuple(bad[0])]}")
    return values


def _squeezed(value: Any) -> Any:
    array = _numpy(value)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _check_rows(columns: dict[str, Cells], n: int, what: str) -> None:
    for name, cells in columns.items():
        if len(cells) != n:
            raise DataError(
                f"`data.{name}` must have {n} rows, as many as `{what}`; got {len(cells)}"
            )
