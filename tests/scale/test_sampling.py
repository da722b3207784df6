"""Sampled neighbours: what is sampled exists, is not too much, and is chosen fairly."""

from __future__ import annotations

import pytest
import torch
import torch_geometric.typing
from graphs import bidirected, generator, graphs, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader

from coopsheaf import CSNN, Graph
from coopsheaf.scale import NeighbourSampler, forward_at, halo_hops, sample_neighbours
from coopsheaf.scale.halo import degrees_of
from coopsheaf.sheaves.graph import Degrees, Subgraph

N = 80
GRAPH = Graph(torch.randint(0, N, (2, 900), generator=generator(0)), N)
HUB = Graph(torch.stack([torch.arange(1, 9), torch.zeros(8, dtype=torch.int64)]), 9)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, torch.Tensor, list[int], str, int]:
    graph = draw(graphs(max_nodes=12, max_edges=60))
    order = draw(st.permutations(range(graph.num_nodes)))
    nodes = torch.tensor(order[: draw(st.integers(1, len(order)))])
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3, 7]), min_size=1, max_size=3))
    return graph, nodes, fanouts, draw(st.sampled_from(["in", "out"])), draw(st.integers(0, 99))


@settings(deadline=None, max_examples=100)
@given(cases())
def test_every_sample_is_a_fair_part_of_the_graph(case) -> None:
    graph, nodes, fanouts, direction, seed = case
    sample = sample_neighbours(graph, nodes, fanouts, seed=seed, direction=direction)
    count = nodes.numel()
    assert torch.equal(sample.nodes[:count], nodes)
    assert sample.nodes.unique().numel() == sample.nodes.numel()
    assert sample.edge.unique().numel() == sample.edge.numel()
    assert torch.equal(graph.source[sample.edge], sample.nodes[sample.source])
    assert torch.equal(graph.target[sample.edge], sample.nodes[sample.target])
    assert sum(sample.nodes_per_hop) == sample.nodes.numel()
    assert sum(sample.edges_per_hop) == sample.edge.numel()
    lists = graph.by_target if direction == "in" else graph.by_source
    degree, asking = lists.ptr.diff(), sample.target if direction == "in" else sample.source
    first = edge = 0
    for hop, fanout in enumerate(fanouts):
        last, until = first + sample.nodes_per_hop[hop], edge + sample.edges_per_hop[hop]
        found = torch.bincount(asking[edge:until], minlength=sample.nodes.numel())
        there = degree[sample.nodes[first:last]]
        wanted = there if fanout == -1 else there.clamp(max=fanout)
        assert torch.equal(found[first:last], wanted)  # each node of the hop asks, nobody else
        assert found.sum() == wanted.sum()
        first, edge = last, until
    again = sample_neighbours(graph, nodes, fanouts, seed=seed, direction=direction)
    assert all(torch.equal(a, b) for a, b in zip(sample[:4], again[:4], strict=True))


def test_all_subsets_are_equally_likely() -> None:
    counts: dict[tuple[int, ...], int] = {}
    draws = 5600
    for seed in range(draws):
        sample = sample_neighbours(HUB, torch.tensor([0]), [3], seed=seed)
        key = tuple(sorted(sample.nodes[1:].tolist()))
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 56  # 8 choose 3
    expected = draws / 56
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 100  # 55 degrees of freedom: less likely than one in 3,000


def test_another_seed_is_another_sample() -> None:
    nodes = torch.arange(20)
    samples = [sample_neighbours(GRAPH, nodes, [4, 4], seed=seed).edge for seed in (0, 1)]
    assert not torch.equal(*samples)


def test_the_sums_of_a_sample_are_unbiased() -> None:
    """One Laplacian pass, averaged over many samples."""
    torch.manual_seed(0)
    from coopsheaf.sheaves.diffusion import rescale_missing
    from coopsheaf.sheaves.laplacian import flat_out_laplacian
    from coopsheaf.sheaves.sheaf import ConformalMaps

    scale = torch.rand(N, generator=generator(3), dtype=torch.float64) + 0.5
    eye = torch.eye(2, dtype=torch.float64).expand(N, 2, 2)
    x, nodes, whole = randn(N, 2, 3), torch.arange(10), degrees_of(GRAPH, None)

    def diffuse(part: Subgraph) -> torch.Tensor:
        maps = ConformalMaps(scale[part.nodes], eye[part.nodes])
        operator = flat_out_laplacian(part.graph, maps, maps, None, "augmented")
        return rescale_missing(operator).mv(x[part.nodes])[:10]

    exact = diffuse(sample_neighbours(GRAPH, nodes, [-1], seed=0).to_subgraph(whole))
    draws = torch.stack(
        [
            diffuse(sample_neighbours(GRAPH, nodes, [3], seed=s).to_subgraph(whole))
            for s in range(800)
        ]
    )
    error = (draws.mean(0) - exact).abs()
    noise = draws.std(0) / 800**0.5
    assert (error < 4.5 * noise).all()
    assert (draws[0] - exact).abs().max() > 10 * error.max()


def test_all_neighbours_give_exact_outputs() -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, learner="sage-node-norm").double().eval()
    x, nodes = randn(N, 5), torch.tensor([4, 70, 2])
    sample = sample_neighbours(GRAPH, nodes, [-1] * halo_hops(model), seed=0)
    part = sample.to_subgraph(degrees_of(GRAPH, None))
    with torch.no_grad():
        got = model(x[part.nodes], part.graph)[:3]
        torch.testing.assert_close(got, model(x, GRAPH)[nodes], rtol=0, atol=1e-10)
        torch.testing.assert_close(got, forward_at(model, x, GRAPH, nodes), rtol=0, atol=1e-10)


def test_it_feeds_the_loader_of_pyg() -> None:
    edge_index = bidirected(torch.randint(0, 50, (2, 200), generator=generator(2)))
    weight = torch.arange(400.0)
    data = Data(
        x=torch.arange(50.0)[:, None], edge_index=edge_index, edge_weight=weight, num_nodes=50
    )
    sampler = NeighbourSampler(Graph(edge_index, 50), [3, 2], seed=5)
    mask = torch.arange(50) < 20

    def batches(**options) -> list[Data]:
        return list(NodeLoader(data, sampler, input_nodes=mask, batch_size=8, **options))

    found = batches()
    assert [batch.batch_size for batch in found] == [8, 8, 4]
    for batch in found:
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
        assert torch.equal(batch.n_id[batch.edge_index], edge_index[:, batch.e_id])
        assert torch.equal(batch.edge_weight, weight[batch.e_id])
        CSNN(1, 4, 1, 2)(batch.x, batch.edge_index)
    same = [torch.equal(a.e_id, b.e_id) for a, b in zip(found, batches(), strict=True)]
    assert all(same)
    sampler.set_epoch(1)
    assert not all(torch.equal(a.e_id, b.e_id) for a, b in zip(found, batches(), strict=True))
    with pytest.raises(NotImplementedError, match="not from edges"):
        sampler.sample_from_edges(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fanouts": []}, r"`fanouts` must be numbers of at least 1, .* got \[\]"),
        ({"fanouts": [3, 0]}, r"`fanouts` must be numbers of at least 1, .* got \[3, 0\]"),
        ({"direction": "up"}, r"`direction` must be one of in, out; got 'up'"),
        ({"backend": "dgl"}, r"`backend` must be one of auto, torch, pyg-lib; got 'dgl'"),
        ({"nodes": torch.tensor([1, 1])}, r"`nodes` must be different"),
        ({"nodes": torch.tensor([N])}, r"`nodes` must be in \[0, 80\)"),
    ],
    ids=str,
)
def test_bad_input(options, message: str) -> None:
    arguments = {"nodes": torch.tensor([1]), "fanouts": [2], **options}
    with pytest.raises(ValueError, match=message):
        sample_neighbours(GRAPH, seed=0, **arguments)


def test_pyg_lib_is_asked_for_by_name_only_where_it_is() -> None:
    if torch_geometric.typing.WITH_PYG_LIB:
        pytest.skip("pyg-lib is installed")
    with pytest.raises(ValueError, match="needs pyg-lib, which is not installed"):
        sample_neighbours(GRAPH, torch.tensor([1]), [2], seed=0, backend="pyg-lib")


def test_pyg_lib_is_called_as_pyg_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the signature and the answers of the compiled operator."""
    nodes, calls = torch.tensor([5, 6]), []

    class Operators:
        @staticmethod
        def neighbor_sample(*arguments):
            calls.append(arguments)
            ptr, other, seeds = arguments[:3]
            assert torch.equal(seeds, nodes)
            position = torch.tensor([int(ptr[5]), int(ptr[6])])
            torch.rand(1)  # it draws from the global generator
            found = torch.cat([seeds, other[position]])
            return torch.tensor([2, 3]), torch.tensor([0, 1]), found, position, [2, 2], [2]

    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", True)
    monkeypatch.setattr(torch_geometric.typing, "WITH_EDGE_TIME_NEIGHBOR_SAMPLE", True)
    monkeypatch.setattr(torch_geometric.typing, "WITH_WEIGHTED_NEIGHBOR_SAMPLE", True)
    monkeypatch.setattr(torch.ops, "pyg", Operators, raising=False)
    before = torch.get_rng_state()
    sample = sample_neighbours(GRAPH, nodes, [1], seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    assert calls[0][4:] == (None, None, None, None, True, False, True, False, "uniform", True)
    assert torch.equal(GRAPH.source[sample.edge], sample.nodes[sample.source])
    assert torch.equal(GRAPH.target[sample.edge], sample.nodes[sample.target])
    turned = sample_neighbours(GRAPH, nodes, [1], seed=0, direction="out")
    assert torch.equal(GRAPH.source[turned.edge], turned.nodes[turned.source])
    own = sample_neighbours(GRAPH, nodes, [1], seed=0, backend="torch")
    assert len(calls) == 2
    assert own.nodes_per_hop[0] == 2


def test_nothing_is_made_on_the_cpu_by_default() -> None:
    """What says no device would be without values here; so all follows the device of the graph."""
    graph = Graph(torch.randint(0, 60, (2, 900), generator=generator(1)), 60)
    nodes = torch.arange(0, 60, 7)
    expected = sample_neighbours(graph, nodes, [4, 2], seed=3, backend="torch")
    with torch.device("meta"):
        sample = sample_neighbours(graph, nodes, [4, 2], seed=3, backend="torch")
        part = sample.to_subgraph(Degrees(graph.in_degree, graph.out_degree))
        induced = graph.subgraph(nodes)
    for one, other in zip(sample[:4], expected[:4], strict=True):
        assert torch.equal(one, other)
    assert part.graph.device == induced.graph.device == graph.device
