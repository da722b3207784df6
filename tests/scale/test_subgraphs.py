"""Parts of a graph: their edges, what they remember of the whole, and what operators make of it."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from graphs import ODD_GRAPHS, graphs, randn, random_conformal, random_weight
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.scale.halo import degrees_of
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.graph import Degrees
from coopsheaf.sheaves.laplacian import flat_in_laplacian, flat_out_laplacian


@st.composite
def parts(draw: st.DrawFn) -> tuple[Graph, torch.Tensor]:
    graph = draw(graphs())
    order = draw(st.permutations(range(graph.num_nodes)))
    return graph, torch.tensor(order[: draw(st.integers(0, len(order)))], dtype=torch.int64)


@settings(deadline=None, max_examples=80)
@given(parts())
def test_a_part_has_the_edges_among_its_nodes(case: tuple[Graph, torch.Tensor]) -> None:
    graph, nodes = case
    part = graph.subgraph(nodes)
    chosen = set(nodes.tolist())
    wanted = sorted(
        e for e in range(graph.num_edges) if {int(graph.source[e]), int(graph.target[e])} <= chosen
    )
    assert sorted(part.edge.tolist()) == wanted
    assert torch.equal(nodes[part.graph.source], graph.source[part.edge])
    assert torch.equal(nodes[part.graph.target], graph.target[part.edge])
    again = Graph(part.graph.edge_index, nodes.numel())
    for got, want in zip(
        (*part.graph.by_target, *part.graph.by_source),
        (*again.by_target, *again.by_source),
        strict=True,
    ):
        assert torch.equal(got, want)
    assert part.graph.whole is not None
    assert torch.equal(part.graph.whole.into, graph.in_degree[nodes])
    assert torch.equal(part.graph.whole.out, graph.out_degree[nodes])


@settings(deadline=None, max_examples=50)
@given(graphs(), st.data())
def test_rows_are_taken_in_the_order_asked_for(graph: Graph, data: st.DataObject) -> None:
    n = graph.num_nodes
    nodes = torch.tensor(data.draw(st.lists(st.integers(0, n - 1), max_size=5)), dtype=torch.int64)
    position, place = graph.by_target.take(nodes)
    ptr = graph.by_target.ptr.tolist()
    assert position.tolist() == [k for i in nodes.tolist() for k in range(ptr[i], ptr[i + 1])]
    assert torch.equal(graph.target[graph.by_target.edge[position]], nodes[place])


def test_what_a_part_remembers_stays_with_it() -> None:
    n, edges = ODD_GRAPHS["random-directed"]
    graph = Graph(edges, n)
    part = graph.subgraph(torch.tensor([3, 1, 7])).graph
    assert part.whole is not None
    into, out = part.whole
    for same in (copy.deepcopy(part), pickle.loads(pickle.dumps(part)), part.to("cpu")):
        assert torch.equal(same.whole.into, into)
        assert torch.equal(same.whole.out, out)
    turned = part.reverse().whole
    assert (turned.into is out, turned.out is into) == (True, True)
    loops = part.with_self_loops().whole
    assert torch.equal(loops.into, into + 1)
    smaller = part.subgraph(torch.tensor([2, 0])).graph.whole
    assert smaller.into.tolist() == [int(graph.in_degree[7]), int(graph.in_degree[3])]
    assert graph.whole is None
    assert graph.reverse().whole is None


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 1], r"`nodes` must be a torch.Tensor; got list"),
        (
            torch.tensor([0.0]),
            r"`nodes` must be an int64 tensor of shape \(k,\); got torch.float32",
        ),
        (torch.tensor([[0]]), r"`nodes` must be an int64 tensor of shape \(k,\)"),
        (torch.tensor([0, 9]), r"`nodes` must be in \[0, 9\); got 0 to 9"),
        (torch.tensor([-1]), r"`nodes` must be in \[0, 9\); got -1 to -1"),
        (torch.tensor([2, 2]), r"`nodes` must be different from each other"),
    ],
)
def test_nodes_that_do_not_fit(nodes, message: str) -> None:
    n, edges = ODD_GRAPHS["random-directed"]
    with pytest.raises(ValueError, match=message):
        Graph(edges, n).subgraph(nodes)


def test_degrees_that_do_not_fit() -> None:
    n, edges = ODD_GRAPHS["random-directed"]
    with pytest.raises(ValueError, match=r"`whole.out` must have shape \(9,\)"):
        Graph(edges, n).part_of(Degrees(torch.ones(9), torch.ones(8)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("laplacian", [flat_out_laplacian, flat_in_laplacian])
def test_the_laplacian_of_a_part_is_a_block_of_the_whole_one(laplacian, weighted: bool) -> None:
    n, edges = ODD_GRAPHS["random-directed"]
    graph, d = Graph(edges, n), 2
    weight = random_weight(graph.num_edges) if weighted else None
    source, target = random_conformal(n, d, 0), random_conformal(n, d, 5)
    matrix = laplacian(graph, source, target, weight, "augmented").to_dense().view(n, d, n, d)
    nodes = torch.tensor([8, 0, 3, 4])
    part = graph.subgraph(nodes, degrees_of(graph, weight))
    kept = None if weight is None else weight[part.edge]
    maps = [type(m)(m.scale[nodes], m.orthogonal[nodes]) for m in (source, target)]
    got = laplacian(part.graph, *maps, kept, "augmented").to_dense()
    wanted = matrix[nodes][:, :, nodes].reshape(4 * d, 4 * d)
    assert_close(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_what_is_heard_makes_up_for_missing_edges(semantics: str) -> None:
    """A node that hears the same from everybody hears it from any of them, times their number."""
    n, d = 6, 2
    star = torch.stack([torch.arange(1, n), torch.zeros(n - 1, dtype=torch.int64)])
    edges = torch.cat([star, star.flip(0)], dim=1)
    one = random_conformal(1, d, 3)
    maps = type(one)(one.scale.expand(n), one.orthogonal.expand(n, d, d))
    x = randn(2, d, 3)[[0] + [1] * (n - 1)]
    graph = Graph(edges, n)
    whole = SEMANTICS[semantics](graph, maps, maps, None).mv(x)
    nodes = torch.tensor([0, 2, 4])
    small = type(one)(maps.scale[nodes], maps.orthogonal[nodes])
    part = graph.subgraph(nodes).graph
    got = SEMANTICS[semantics](part, small, small, None).mv(x[nodes])
    assert_close(got, whole[nodes], rtol=0, atol=1e-12)
    alone = graph.subgraph(torch.tensor([0])).graph  # nothing to hear, and no division by zero
    tiny = type(one)(maps.scale[:1], maps.orthogonal[:1])
    assert torch.isfinite(SEMANTICS[semantics](alone, tiny, tiny, None).mv(x[:1])).all()
