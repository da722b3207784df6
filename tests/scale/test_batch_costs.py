"""A batch costs what it holds, not what the graph holds; and it is the batch that it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from allocations import LargestTensor
from train.small import node_dataset

from coopsheaf import CSNN, Graph
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.scale.feeds import make_batch_feed
from coopsheaf.scale.halo import forward_at, halo_steps, surround
from coopsheaf.scale.sampling import choose_edges, sample_neighbours
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.order import derive_seed

N = 60_000
PAIRS = torch.arange(N)  # a ring: two neighbours each
RING = torch.stack([torch.cat([PAIRS, PAIRS.roll(-1)]), torch.cat([PAIRS.roll(-1), PAIRS])])
NODES = torch.arange(0, N, N // 50)[:50]
LIMIT = N  # entries; the largest of a step on some hundred nodes has half of that


def ring() -> NodeDataset:
    small = node_dataset(n=60)
    masks = {part: torch.zeros(1, N, dtype=torch.bool) for part in ("train", "val", "test")}
    masks["train"][:, ::7] = True
    x = torch.randn(N, small.num_features)
    return replace(small, x=x, edge_index=RING, y=torch.zeros(N, dtype=torch.int64), **masks)


def model() -> CSNN:
    torch.manual_seed(0)
    return CSNN(5, 4, 2, 3, stalk_dim=2)


@pytest.mark.parametrize(
    "config",
    [
        BatchConfig("neighbours", size=20, fanouts="1"),
        BatchConfig("nodes", size=50, halo=True),
        BatchConfig("ranges", size=2, parts=3000),
        BatchConfig("ranges", size=1, parts=3000, halo=True),
    ],
    ids=lambda config: f"{config.kind}{', halo' if config.halo else ''}",
)
def test_nothing_of_the_size_of_the_graph_is_made_for_a_batch(config: BatchConfig) -> None:
    net, options = model(), {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float32}
    feed = make_batch_feed(ring(), 0, replace(config, prefetch=0), **options)
    steps = feed.steps(net, 0)
    next(steps)  # the first makes the array that the others use
    with LargestTensor() as seen:
        for _ in range(3):
            next(steps)
    assert 0 < seen.numel < LIMIT, seen.where


def test_nor_for_parts_of_a_graph_halos_and_samples() -> None:
    graph = Graph(RING, N)
    net, x, weight = model().eval(), torch.randn(N, 5), torch.rand(2 * N)
    graph.subgraph(NODES)
    with LargestTensor() as seen:
        graph.subgraph(NODES)
        surround(graph, NODES, halo_steps(model()))
        sample_neighbours(graph, NODES, [1, 2], seed=0, backend="torch")
        forward_at(net, x, graph, NODES)
        forward_at(net, x, graph, NODES, edge_weight=weight)
    assert 0 < seen.numel < LIMIT, seen.where


def test_samples_are_what_they_were_with_an_array_per_batch() -> None:
    """As it was written before, in plain terms: the same nodes in the same order."""
    graph = Graph(torch.randint(500, (2, 4000), generator=torch.Generator().manual_seed(1)), 500)
    nodes = torch.tensor([3, 1, 77, 400])
    rng = torch.Generator().manual_seed(derive_seed(5))
    place = torch.full((500,), -1)
    place[nodes] = torch.arange(4)
    found, frontier, edges = [nodes], nodes, []
    for fanout in (4, 3, 2):
        position, row = choose_edges(graph.by_target, frontier, fanout, rng)
        other = graph.by_target.other[position]
        new = other[place[other] < 0].unique()
        total = sum(map(len, found))
        place[new] = torch.arange(total, total + len(new))
        edges.append(torch.stack([place[other], place[frontier][row]]))
        found.append(new)
        frontier = new
    sample = sample_neighbours(graph, nodes, [4, 3, 2], seed=5, backend="torch")
    assert torch.equal(sample.nodes, torch.cat(found))
    assert torch.equal(torch.stack([sample.source, sample.target]), torch.cat(edges, dim=1))


@pytest.mark.parametrize("kind", ["neighbours", "nodes", "ranges"])
def test_narrow_lists_give_the_same_batches(kind: str, tmp_path) -> None:
    data = node_dataset(n=60)
    data = replace(data, edge_weight=torch.rand(data.num_edges))
    packed = read_pack(write_pack(data, tmp_path / "pack"))
    assert packed.graph is not None
    assert packed.graph.by_target.other.dtype == torch.int32
    net, options = model(), {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float32}
    feeds = [make_batch_feed(d, 0, BatchConfig(kind, size=9), **options) for d in (data, packed)]
    for one, two in zip(*(feed.batches(net, 0) for feed in feeds), strict=True):
        for a, b in zip(one.subgraph, two.subgraph, strict=True):
            pairs = [(a, b)] if isinstance(a, torch.Tensor) else zip(
                (*a.by_target, *a.by_source), (*b.by_target, *b.by_source), strict=True
            )  # fmt: skip
            assert all(torch.equal(u, v) and u.dtype == v.dtype for u, v in pairs)
    net.eval()
    for (a, _), (b, _) in zip(*(feed.outputs(net).values() for feed in feeds), strict=True):
        assert torch.equal(a, b)
