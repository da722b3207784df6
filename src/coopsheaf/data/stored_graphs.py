"""Many graphs that lie behind one another: each is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

import torch
from torch import Tensor
from torch_geometric.data import Data

_OF_NODES, _OF_EDGES, _OF_GRAPHS = ("x", "pe"), ("edge_index", "edge_attr"), ("y",)


class StoredGraphs(Sequence[Data]):
    """A sequence of graphs over arrays that all of them share.

    A graph that was made once is the same object ever after, so that what is changed in it stays
    changed, as in a list. Who wants all of them at once takes :meth:`whole`, and no graph is made.

    Args:
        nodes, edges: how many each graph has, ``(graphs,)``.
        columns: ``x (all nodes, F)``, ``edge_index (all edges, 2)`` with the nodes of each graph
            counted from 0, ``edge_attr``, ``pe``, ``y (graphs, k)``: one graph after the other,
            whole numbers of any type.
    """

    def __init__(self, nodes: Tensor, edges: Tensor, columns: Mapping[str, Tensor]) -> None:
        if nodes.dim() != 1 or nodes.shape != edges.shape or bool((nodes < 0).any()):
            raise ValueError("`nodes` and `edges` must be counts of the same graphs")
        if bool((edges < 0).any()):
            raise ValueError("`edges` must not be negative")
        self.nodes, self.edges = nodes.tolist(), edges.tolist()
        of_nodes, of_edges = ([0, *sizes.cumsum(0).tolist()] for sizes in (nodes, edges))
        self._starts: dict[str, Sequence[int]] = {
            **dict.fromkeys(_OF_NODES, of_nodes),
            **dict.fromkeys(_OF_EDGES, of_edges),
            **{name: range(len(self.nodes) + 1) for name in _OF_GRAPHS},
        }
        self._columns: dict[str, Tensor] = {}
        self._made: dict[int, Data] = {}
        for name, column in columns.items():
            self.put(name, column)

    @classmethod
    def of(cls, graphs: Sequence[Data]) -> StoredGraphs:
        """Graphs that all have ``x``, ``edge_index``, ``edge_attr`` and ``y (1, k)``."""
        if isinstance(graphs, cls):
            return graphs
        return cls(
            torch.tensor([len(graph.x) for graph in graphs], dtype=torch.int64),
            torch.tensor([graph.edge_index.shape[1] for graph in graphs], dtype=torch.int64),
            {
                "x": torch.cat([graph.x for graph in graphs]),
                "edge_index": torch.cat([graph.edge_index.T for graph in graphs]),
                "edge_attr": torch.cat([graph.edge_attr for graph in graphs]),
                "y": torch.cat([graph.y for graph in graphs]),
            },
        )

    def put(self, name: str, column: Tensor) -> None:
        """Give every graph its part of ``column``, in place of what it may have had."""
        wanted = self._starts[name][-1]
        if len(column) != wanted:
            raise ValueError(f"`{name}` must have {wanted} rows; got {len(column)}")
        self._columns[name] = column
        for number, graph in self._made.items():
            graph[name] = self._part(name, number)

    def whole(self, name: str) -> Tensor | None:
        """What all graphs have, one after the other; ``None`` if they are to be asked one by one.

        That is so where some were made: they may have been changed.
        """
        return _wide(self._columns[name]) if self.untouched and name in self._columns else None

    @property
    def untouched(self) -> bool:
        """Whether nobody has been given a graph yet."""
        return not self._made

    def first(self) -> Data | None:
        """A copy of the first graph, to be looked at; ``None`` if there is none."""
        return self._made.get(0, self._make(0)) if self.nodes else None

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: slice) -> list[Data]: ...
    def __getitem__(self, index: int | slice) -> Data | list[Data]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        if numbers not in self._made:
            self._made[numbers] = self._make(numbers)
        return self._made[numbers]

    def __iter__(self) -> Iterator[Data]:
        return (self[number] for number in range(len(self)))

    def _make(self, number: int) -> Data:
        return Data(**{name: self._part(name, number) for name in self._columns})

    def _part(self, name: str, number: int) -> Tensor:
        starts = self._starts[name]
        part = _wide(self._columns[name][starts[number] : starts[number + 1]])
        return part.T.contiguous() if name == "edge_index" else part


def _wide(array: Tensor) -> Tensor:
    return array if array.is_floating_point() else array.to(torch.int64)
