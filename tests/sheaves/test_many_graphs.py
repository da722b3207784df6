"""A batch that is cut out of sorted graphs is the graph that is built anew."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from coopsheaf import Graph
from coopsheaf.sheaves.many_graphs import ManyGraphs

SIZES = (5, 1, 7, 3, 4)


def draw_edges(n: int, seed: int) -> Tensor:
    """Directed edges with loops and parallel ones; none where there is one node."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, n, (2, 0 if n == 1 else 3 * n), generator=rng)


EDGES = [draw_edges(n, seed) for seed, n in enumerate(SIZES)]


@pytest.mark.parametrize("index", [[0, 1, 2, 3, 4], [3], [1], [4, 0, 2], [2, 2, 1], [1, 1]])
def test_a_batch_is_what_building_anew_gives(index: list[int]) -> None:
    found = ManyGraphs(EDGES, SIZES).take(torch.tensor(index))
    parts = [Data(edge_index=EDGES[i], num_nodes=SIZES[i]) for i in index]
    batch = Batch.from_data_list(parts)
    wanted = Graph(batch.edge_index, batch.num_nodes)
    assert torch.equal(found.graph.edge_index, wanted.edge_index)
    for name in ("by_target", "by_source"):
        for got, want in zip(getattr(found.graph, name), getattr(wanted, name), strict=True):
            assert torch.equal(got, want), name
    assert torch.equal(found.batch, batch.batch)


def test_it_says_where_nodes_and_edges_are_among_all() -> None:
    index = [2, 0]
    found = ManyGraphs(EDGES, SIZES).take(torch.tensor(index))
    nodes = torch.arange(sum(SIZES)).split(SIZES)
    counts = [edges.shape[1] for edges in EDGES]
    edges = torch.arange(sum(counts)).split(counts)
    assert torch.equal(found.nodes, torch.cat([nodes[i] for i in index]))
    assert torch.equal(found.edges, torch.cat([edges[i] for i in index]))


def test_an_edge_that_leaves_its_graph_is_refused() -> None:
    wrong = [EDGES[0], torch.tensor([[0], [1]])]
    with pytest.raises(ValueError, match=r"`edge_index` of graph 1 must .* \[0, 1\); got 0 to 1"):
        ManyGraphs(wrong, SIZES[:2])
