"""``Data`` and ``HeteroData`` of PyG as tables of nodes and edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.reading.cells import Cells, NumberCells, TextCells
from coopsheaf.data.tables.reading.graph_objects import (
    GivenGraph,
    array_columns,
    edge_table,
    numbered_nodes,
)
from coopsheaf.data.tables.reading.inputs import MemoryTable
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.roles import NODE

_STRIDED = torch.strided
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
    columns: dict[str, Cells] = {NODE: numbered_nodes(n)}
    features = array_columns("x", _finite(_numpy(data.x), "data.x"), "data.x")
    columns |= features
    target: tuple[str, ...] = ()
    if data.y is not None:
        y = array_columns("y", _squeezed(data.y), "data.y")
        columns |= y
        target = tuple(y)
    edges: dict[str, Cells] = {}
    edge_features: dict[str, Cells] = {}
    if getattr(data, "edge_weight", None) is not None:
        edges |= array_columns("edge_weight", _squeezed(data.edge_weight), "data.edge_weight")
    if getattr(data, "edge_attr", None) is not None:
        attributes = _numpy(data.edge_attr)
        attributes = attributes.reshape(len(attributes), -1)
        edge_features = array_columns("edge_attr", attributes, "data.edge_attr")
        edges |= edge_features
    _check_rows(columns, n, "x")
    unused = [key for key in data.keys() if key not in (*USED, *MASKS)]  # noqa: SIM118
    notes = (f"not used of the Data: {show_list(unused)}",) if unused else ()
    return GivenGraph(
        MemoryTable(Table("`data`", columns, range(n), place="row")),
        MemoryTable(edge_table(_numpy(data.edge_index), edges)),
        attributes={"x": list(features)},
        edge_attributes={"edge_attr": list(edge_features)} if edge_features else {},
        weight="edge_weight" if "edge_weight" in edges else None,
        target=target,
        unlabelled=_unlabelled(data.y),
        masks=tuple(getattr(data, mask, None) for mask in MASKS),
        notes=notes,
    )


def _hetero_tables(data: HeteroData) -> GivenGraph:
    """One graph: types become a column, and each type has its own columns of features."""
    sizes = {kind: int(data[kind].num_nodes) for kind in data.node_types}
    n, start, offsets = sum(sizes.values()), 0, {}
    for kind, size in sizes.items():
        offsets[kind], start = start, start + size
    types = [kind for kind, size in sizes.items() for _ in range(size)]
    numbers = [number for size in sizes.values() for number in range(size)]
    ids = [f"{kind}/{number}" for kind, number in zip(types, numbers, strict=True)]
    columns: dict[str, Cells] = {NODE: TextCells(ids), TYPE: TextCells(types)}
    targets = [kind for kind in data.node_types if "y" in data[kind]]
    for kind, size in sizes.items():
        rows = slice(offsets[kind], offsets[kind] + size)
        if "x" in data[kind]:
            block = _finite(_numpy(data[kind].x), f"data[{kind!r}].x").reshape(size, -1)
            spread = np.full((n, block.shape[1]), np.nan)
            spread[rows] = block
            columns |= array_columns(f"{kind}.x", spread, f"data[{kind!r}].x")
    if len(targets) > 1:
        raise DataError(
            f"`data` must have targets `y` for one type of nodes; got {show_list(targets)}: remove "
            "the others"
        )
    masks: tuple[Any, ...] = (None, None, None)
    if targets:
        kind = targets[0]
        rows = slice(offsets[kind], offsets[kind] + sizes[kind])
        columns["y"] = _spread(_squeezed(data[kind].y), rows, n)
        masks = tuple(_spread_mask(data[kind], mask, rows, n) for mask in MASKS)
    ends, kinds = [np.zeros((2, 0), dtype=np.int64)], []
    for source, name, target in data.edge_types:
        edge_index = _numpy(data[source, name, target].edge_index)
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
    return GivenGraph(
        MemoryTable(Table("`data`", columns, range(n), place="row")),
        MemoryTable(edges),
        target=("y",) if targets else (),
        unlabelled=_unlabelled(data[targets[0]].y) if targets else None,
        masks=masks,
        notes=(note,),
    )


def _spread(values: Any, rows: slice, n: int) -> Cells:
    whole = np.full(n, np.nan)
    whole[rows] = values
    return NumberCells(whole)


def _spread_mask(store: Any, name: str, rows: slice, n: int) -> Any:
    if name not in store:
        return None
    whole = np.zeros(n, dtype=bool)
    whole[rows] = _numpy(store[name])
    return whole


def _unlabelled(y: object) -> tuple[str, ...] | None:
    """PyG has no word for unknown classes; -1 is the custom."""
    whole = isinstance(y, Tensor) and not y.is_floating_point()
    return ("-1",) if whole else None


def _numpy(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = value.to_dense() if value.layout != _STRIDED else value
        return value.float().numpy() if value.is_floating_point() else value.numpy()
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
