"""From a table of edges to arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.dates import read_times
from coopsheaf.data.tables.columns.formats import read_numbers
from coopsheaf.data.tables.reading.cells import Cells, Ids, TextCells, compact
from coopsheaf.data.tables.reading.inputs import OpenTable
from coopsheaf.data.tables.reading.table import Table, join_tables

_WHOLE = re.compile(r"([+-]?\d+)\.0+")
SEPARATOR = "\x1f"  # between a graph and a node of it


@dataclass(frozen=True)
class EdgeColumns:
    """Which columns of the edge table are read.

    Args:
        source, target: the ends.
        graph: the graph of an edge, where there are many.
        numbers: weight and time.
        features: columns that may hold anything.
    """

    source: str
    target: str
    graph: str | None = None
    numbers: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        ends = [self.source, self.target, *([self.graph] if self.graph else [])]
        return list(dict.fromkeys([*ends, *self.numbers, *self.features]))


class Edges(NamedTuple):
    """Edges by the numbers of their nodes, and the cells of what else was asked for."""

    edge_index: Tensor  # (2, m) int64
    table: Table  # of the columns that are no ends
    notes: list[str]


def node_ids(table: Table, column: str, graph: str | None = None) -> Ids:
    """The names of the nodes, in the order of the table; of many graphs, with their graph."""
    cells = table.column(column, "the id")
    texts = cells.distinct.texts
    if "" in texts:
        row = int(np.argmax(cells.distinct.codes == texts.index("")))
        raise DataError(f"{table.at(row, column)}: every node must have an id; got none")
    if graph is not None:
        texts = _joined(table.columns[graph], cells)
    elif len(texts) < len(cells):
        _refuse_repeated(table, column, _row_texts(cells))
    ids = Ids(_plain_whole(texts))
    if len(ids.number) < len(cells):
        _refuse_repeated(table, column, list(ids.texts))
    return ids


def _row_texts(cells: Cells) -> list[str]:
    codes, texts = cells.distinct
    return [texts[code] for code in codes.tolist()]


def _joined(graphs: Cells, nodes: Cells) -> list[str]:
    pairs = zip(_row_texts(graphs), _row_texts(nodes), strict=True)
    return [f"{graph}{SEPARATOR}{node}" for graph, node in pairs]


def _plain_whole(texts: list[str]) -> list[str]:
    """Whole numbers that a gap somewhere made floats of, ``7.0``, as what they were."""
    if not texts or _WHOLE.fullmatch(texts[0]) is None:
        return texts
    matches = [_WHOLE.fullmatch(text) for text in texts]
    return [match[1] for match in matches if match] if all(matches) else texts


def _without_fraction(text: str) -> str:
    graph, mark, node = text.rpartition(SEPARATOR)
    match = _WHOLE.fullmatch(node)
    return text if match is None else f"{graph}{mark}{match[1]}"


def _refuse_repeated(table: Table, column: str, texts: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for row, node in enumerate(texts):
        if node in first:
            shown = node.rpartition(SEPARATOR)[2]
            raise DataError(
                f"{table.at(row, column)}: ids must differ; {show(shown)} is also on "
                f"{table.place} {table.lines[first[node]]}: name the column of ids with --id"
            )
        first[node] = row


def read_edges(opened: OpenTable, columns: EdgeColumns, ids: Ids, nodes: str) -> Edges:
    """Read the edges in one pass.

    Args:
        opened: the table.
        ids: the names of the nodes.
        nodes: what messages call the node table.
    """
    if columns.source == columns.target:
        raise DataError(
            f"{opened.name}: source and target must be different columns; both are "
            f"{show(columns.source)}"
        )
    opened.check([columns.source], "the source of the edges")
    opened.check([columns.target], "the target of the edges")
    opened.check(columns.names)
    return opened.fold(columns.names, lambda parts: _collect(parts, columns, ids, nodes))


def _collect(parts: Iterator[Table], columns: EdgeColumns, ids: Ids, nodes: str) -> Edges:
    ends: list[NDArray[np.int64]] = []
    kept: list[Table] = []
    fractions = 0
    for part in parts:
        pair = []
        for end in (columns.source, columns.target):
            numbers, rewritten = _look_up(part, end, columns.graph, ids, nodes)
            pair.append(numbers)
            fractions += rewritten
        ends.append(np.stack(pair))
        others = {n: compact(part.column(n, "a number of each edge")) for n in columns.numbers}
        others |= {n: part.column(n, "a feature of the edges") for n in columns.features}
        kept.append(Table(part.path, others, part.lines, place=part.place))
    notes = []
    if fractions:
        notes.append(f"{fractions} ends of edges are written like 7.0; they were taken for 7")
    edge_index = torch.from_numpy(np.concatenate(ends, axis=1))
    return Edges(edge_index, join_tables(kept), notes)


def _look_up(
    part: Table, end: str, graph: str | None, ids: Ids, nodes: str
) -> tuple[NDArray[np.int64], int]:
    """``(rows,)`` node numbers, and how many had to be written another way to be found."""
    cells = part.column(end, "an end of the edges")
    if graph is not None:
        cells = TextCells(_joined(part.column(graph, "the graph"), cells))
    numbers = cells.look_up(ids)
    unknown = np.flatnonzero(numbers < 0)
    if not len(unknown):
        return numbers, 0
    texts = _row_texts(cells.take(unknown))
    numbers[unknown] = TextCells([_without_fraction(text) for text in texts]).look_up(ids)
    left = np.flatnonzero(numbers < 0)
    if len(left):
        row = int(left[0])
        more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
        raise DataError(
            f"{part.at(row, end)}: an edge must join nodes of {nodes}; it has no node "
            f"{show(part.columns[end].text(row))}{more}"
        )
    return numbers, len(unknown)


def refuse_data_as_header(opened: OpenTable, ends: tuple[str, str], ids: Ids, nodes: str) -> None:
    """Names of columns that are nodes: the first line is an edge already."""
    if all(end in ids.number for end in ends):
        raise DataError(
            f"{opened.name}, line 1: the first line must name the columns; got {show(ends[0])} and "
            f"{show(ends[1])}, which are nodes of {nodes}: add a header, or name the columns"
        )


def edge_weights(table: Table, column: str) -> Tensor:
    """``(m,)`` float32 weights, finite and not negative."""
    weights = read_numbers(table.columns[column]).values
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~((weights >= 0) & (weights <= np.finfo(np.float32).max)))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{table.at(row, column)}: a weight must be a finite number, not negative; got "
            f"{show(table.columns[column].text(row))}"
        )
    return torch.from_numpy(weights.astype(np.float32))


def edge_times(table: Table, column: str) -> Tensor:
    """``(m,)`` float64: numbers as they are, dates and times in seconds."""
    cells = table.columns[column]
    numbers = cells.numbers
    if numbers is None:
        times = read_times(cells)
        values = read_numbers(cells).values if times is None else _seconds(times.values)
    else:
        values = numbers
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{table.at(row, column)}: every edge must have a time, a number or a date; got "
            f"{show(cells.text(row))}"
        )
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))


def _seconds(times: NDArray[np.datetime64]) -> NDArray[np.float64]:
    values = times.astype("datetime64[us]").astype(np.int64) / 1e6
    return np.where(np.isnat(times), np.nan, values)


class EdgeFacts(NamedTuple):
    """What the edges of a graph are like."""

    repeated: int  # edges that repeat earlier ones
    loops: int  # edges from a node to itself
    lonely: NDArray[np.bool_]  # (n,) nodes without any edge
    reciprocated: float  # share of the edges between different nodes that have their reverse


def edge_facts(edge_index: Tensor, num_nodes: int) -> EdgeFacts:
    """Count what people ask about; by sorting in place, as there may be many millions."""
    source, target = edge_index.numpy()
    lonely = np.ones(num_nodes, dtype=bool)
    lonely[source] = lonely[target] = False
    loops = int((source == target).sum())
    forward = source * num_nodes + target
    forward.sort()
    repeated = int((forward[1:] == forward[:-1]).sum())
    backward = target * num_nodes + source
    backward.sort()
    place = np.searchsorted(forward, backward)
    place[place == len(forward)] = 0
    both = int((forward[place] == backward).sum()) - loops if len(forward) else 0
    others = len(source) - loops
    return EdgeFacts(repeated, loops, lonely, both / others if others else 1.0)


def merge_edges(
    edge_index: Tensor, weight: Tensor | None, attributes: Tensor | None, num_nodes: int
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Each edge once, sorted: weights are added, attributes ``(m, k)`` averaged."""
    key = edge_index[0] * num_nodes + edge_index[1]
    unique, place = torch.unique(key, return_inverse=True)
    merged = torch.stack([unique // num_nodes, unique % num_nodes])
    if weight is not None:
        weight = weight.new_zeros(len(unique)).index_add_(0, place, weight)
    if attributes is not None:
        count = torch.bincount(place, minlength=len(unique))[:, None]
        zeros = attributes.new_zeros(len(unique), attributes.shape[1])
        attributes = zeros.index_add_(0, place, attributes) / count
    return merged, weight, attributes
