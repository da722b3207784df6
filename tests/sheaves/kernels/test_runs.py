"""Kernels in a pass of many runs: what they do for each of them alone."""

from __future__ import annotations

import pytest
import torch
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt
from coopsheaf.sheaves.kernels.runs import Copies, Runs, active_runs, map_runs
from coopsheaf.sheaves.kernels.sparse import edge_products, sparse_product

N, M, R = 5, 9, 3
EDGES = torch.randint(0, N, (2, M), generator=generator(3))


def runs(copies: Copies | None = None) -> Runs:
    return Runs([torch.Generator().manual_seed(run) for run in range(R)], copies or Copies())


@pytest.mark.parametrize("shares_x", [False, True])
@pytest.mark.parametrize("blocks", [None, (R, M, 2, 2), (M, 2, 2)])
def test_sparse_products_and_their_gradients(
    blocks: tuple[int, ...] | None, shares_x: bool
) -> None:
    graph = Graph(EDGES, N)
    x = randn(N, 2, 4) if shares_x else randn(R, N, 2, 4)
    b = None if blocks is None else randn(*blocks, seed=1)
    leaves = [t.requires_grad_() for t in (x, b) if t is not None]
    outer = randn(R, N, 2, 4, seed=2)

    def of(run: int) -> Tensor:
        own = b if b is None or b.dim() == 3 else b[run]
        return sparse_product(x if shares_x else x[run], graph, own)

    def one(given: list[Tensor]) -> Tensor:
        rest = iter(given[1:])
        own_x = x if shares_x else next(rest)
        own_b = b if b is None or b.dim() == 3 else next(rest)
        return sparse_product(own_x, graph, own_b)

    want = torch.stack([of(run) for run in range(R)])
    stacked = [torch.zeros(R), *(t for t in leaves if len(t) == R)]
    got = map_runs(runs(), one, stacked)
    # What all runs share has no run of its own: the product is the same in all of them.
    assert_close(got, want)
    gradients = (torch.autograd.grad((y * outer).sum(), leaves) for y in (got, want))
    for mine, alone in zip(*gradients, strict=True):
        assert_close(mine, alone)


def test_products_along_edges_and_roots_of_blocks() -> None:
    graph, g, x = Graph(EDGES, N), randn(R, N, 1, 4), randn(R, N, 1, 4, seed=1)
    got = map_runs(runs(), lambda given: edge_products(*given, graph), [g, x])
    assert_close(got, torch.stack([edge_products(a, b, graph) for a, b in zip(g, x, strict=True)]))
    blocks = randn(R, N, 3, 3)
    blocks = blocks @ blocks.mT
    got = map_runs(runs(), lambda given: inverse_sqrt(given[0]), [blocks])
    assert_close(got, torch.stack([inverse_sqrt(block) for block in blocks]))


def test_copies_are_the_graph_side_by_side() -> None:
    graph, copies = Graph(EDGES, N), Copies()
    for count in (3, 2, 4):
        want = Graph(torch.cat([EDGES + run * N for run in range(count)], dim=1), count * N)
        for got, same in ((copies.of(graph, count), want), (copies.of(graph.reverse(), count), want.reverse())):  # fmt: skip
            assert_close(got.edge_index, same.edge_index)
            for mine, theirs in ((got.by_target, same.by_target), (got.by_source, same.by_source)):
                assert_close(mine.ptr, theirs.ptr)
                assert_close(mine.other, theirs.other)
                assert_close(mine.edge, theirs.edge)


def test_copies_are_kept_and_do_not_pile_up() -> None:
    copies, graph = Copies(), Graph(EDGES, N)
    first = copies.of(graph, 3)
    again = copies.of(graph.reverse().reverse(), 2)
    assert first.by_target.other.data_ptr() == again.by_target.other.data_ptr()
    for _ in range(3 * Copies.MOST):
        copies.of(Graph(EDGES, N), 2)
    assert len(copies._known) <= Copies.MOST


def test_runs_are_seen_inside_of_a_pass_alone() -> None:
    seen = []

    def one(given: list[Tensor]) -> Tensor:
        seen.append(active_runs() is not None)
        return given[0]

    map_runs(runs(), one, [torch.zeros(R)])
    assert seen == [True]
    assert active_runs() is None
    with pytest.raises(RuntimeError, match="broken"):
        map_runs(runs(), lambda given: (_ for _ in ()).throw(RuntimeError("broken")), [torch.zeros(R)])  # fmt: skip
    assert active_runs() is None
    assert not torch._C._are_functorch_transforms_active()
