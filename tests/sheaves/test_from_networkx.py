"""Sheaves of networkx graphs."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from graphs import randn
from laws import EXACT
from torch.testing import assert_close

from coopsheaf import DirectedSheaf, Sheaf, out_laplacian, sheaf_laplacian
from coopsheaf.sheaves import sheaf_from_networkx

A, B, C, D = randn(4, 3, 2).unbind()


def test_maps_belong_to_their_ends_however_networkx_lists_the_edge() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["c", "b", "a"])
    graph.add_edge("a", "b", maps={"a": A, "b": B}, strength=2)  # listed as (b, a)
    graph.add_edge("b", "c", maps={"c": D.tolist(), "b": C.numpy()}, strength=0.5)
    sheaf, nodes = sheaf_from_networkx(graph, weight="strength", dtype=torch.float64)
    assert nodes == ["c", "b", "a"]
    want = Sheaf(
        torch.tensor([[2, 1], [1, 0]]),
        torch.stack([torch.stack([A, B]), torch.stack([C, D])]),
        edge_weight=torch.tensor([2.0, 0.5]).double(),
    )
    assert isinstance(sheaf, Sheaf)
    assert_close(sheaf_laplacian(sheaf).to_dense(), sheaf_laplacian(want).to_dense(), **EXACT)


def test_arcs_have_a_source_and_a_target() -> None:
    graph = nx.MultiDiGraph()
    graph.add_edge(1, 0, source_map=A, target_map=B)
    graph.add_edge(1, 0, source_map=C, target_map=D)
    graph.add_edge(0, 0, source_map=A, target_map=D)
    graph.add_node(2)
    sheaf, nodes = sheaf_from_networkx(graph, dtype=torch.float64)
    assert nodes == [1, 0, 2]
    assert isinstance(sheaf, DirectedSheaf)
    edges = torch.tensor([[0, 0, 1], [1, 1, 1]])
    want = DirectedSheaf(edges, torch.stack([A, C, A]), torch.stack([B, D, D]), 3)
    assert_close(out_laplacian(sheaf).to_dense(), out_laplacian(want).to_dense(), **EXACT)


def test_numbers_are_maps_of_one_dimension_and_loops_have_pairs() -> None:
    graph = nx.MultiGraph()
    graph.add_edge(0, 1, maps={0: 1, 1: -1})
    graph.add_edge(0, 1, maps={0: 1, 1: np.float32(2)})
    graph.add_edge(1, 1, maps=(1, 3))
    sheaf, _ = sheaf_from_networkx(graph, dtype=torch.float64)
    want = torch.tensor([[2.0, 1 - 2], [1 - 2, 1 + 4 + 4]]).double()
    assert_close(sheaf_laplacian(sheaf).to_dense(), want, **EXACT)


def edge(*ends: Any, kind: Any = nx.Graph, **attributes: Any) -> Any:
    graph = kind()
    graph.add_edge(*ends, **attributes)
    return graph


BAD: dict[str, tuple[Any, str]] = {
    "no graph": ([[0, 1]], "`graph` must be a networkx graph; got list"),
    "no edges": (nx.empty_graph(3), "`graph` must have an edge"),
    "no maps": (edge("a", "b", w=1), r"attribute 'maps' at every edge; \('a', 'b'\) has 'w'"),
    "no target": (edge(0, 1, kind=nx.DiGraph, source_map=A), r"'target_map' at every edge"),
    "a pair": (edge(0, 1, maps=(A, B)), "from its two ends to their maps; got tuple"),
    "other ends": (edge(0, 1, maps={0: A, 2: B}), r"two ends to their maps; got ends \[0, 2\]"),
    "a loop": (edge(0, 0, maps={0: A}), "of the loop at 0 must be a pair of maps"),
    "words": (edge(0, 1, maps={0: "x", 1: B}), r"of the edge \(0, 1\) must be matrices of numbers"),
    "shapes": (edge(0, 1, maps={0: A, 1: B.T}), r"one shape, \(3, 2\) .* got \(2, 3\)"),
    "vectors": (edge(0, 1, maps={0: A[0], 1: B[0]}), r"must be matrices \(e, d\); got \(2,\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_graphs(case: str) -> None:
    graph, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        sheaf_from_networkx(graph)
