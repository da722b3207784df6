"""The sparse product and its derivative."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, generator, graphs, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.sheaves.kernels.sparse import edge_products, sparse_product

SOME = settings(deadline=None, max_examples=30)


def dense(graph: Graph, blocks: Tensor) -> Tensor:
    n, b = graph.num_nodes, blocks.shape[-1]
    matrix = blocks.new_zeros(n, n, b, b)
    matrix = matrix.index_put((graph.target, graph.source), blocks, accumulate=True)
    return matrix.transpose(1, 2).reshape(n * b, n * b)


def identities(m: int, b: int) -> Tensor:
    return torch.eye(b, dtype=torch.float64).expand(m, b, b)


@pytest.fixture(params=[True, False], ids=["library", "bags"])
def block_product(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of multiplying blocks: the library's, and bags and slices where there is none."""
    if not request.param:
        monkeypatch.setattr(sparse, "_has_block_product", lambda work: False)
        monkeypatch.setattr(sparse, "SLICE_NUMEL", 20)


@pytest.mark.usefixtures("block_product")
@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("b", [1, 2, 3, 5])
def test_product_is_the_dense_product(name: str, b: int) -> None:
    n, edge_index = ODD_GRAPHS[name]
    graph = Graph(edge_index, n)
    x, blocks = randn(n, b, 4), randn(graph.num_edges, b, b)
    expected = (dense(graph, blocks) @ x.flatten(0, 1)).view_as(x)
    assert_close(sparse_product(x, graph, blocks), expected, rtol=0, atol=1e-12)
    plain = (dense(graph, identities(graph.num_edges, b)) @ x.flatten(0, 1)).view_as(x)
    assert_close(sparse_product(x, graph), plain, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("block_product")
@pytest.mark.parametrize("b", [1, 2])
def test_derivatives_of_any_order(b: int) -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    x = randn(n, b, 2).requires_grad_()
    blocks = randn(graph.num_edges, b, b).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, w: sparse_product(a, graph, w), (x, blocks))
    assert torch.autograd.gradgradcheck(lambda a, w: sparse_product(a, graph, w), (x, blocks))
    assert torch.autograd.gradcheck(lambda a: sparse_product(a, graph), (x,))


@SOME
@given(graphs(), st.integers(1, 4), st.integers(0, 3), st.integers(0, 99))
def test_any_graph_and_any_width(graph: Graph, b: int, c: int, seed: int) -> None:
    x, blocks = randn(graph.num_nodes, b, c, seed=seed), randn(graph.num_edges, b, b, seed=seed + 1)
    expected = (dense(graph, blocks) @ x.flatten(0, 1)).view_as(x)
    assert_close(sparse_product(x, graph, blocks), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("b", [1, 3])
def test_operators_pass_the_checks_of_torch(b: int) -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    arrays = (*graph.by_target, *graph.by_source)
    x, g = randn(n, b, 2).requires_grad_(), randn(n, b, 2, seed=1).requires_grad_()
    blocks = randn(graph.num_edges, b, b).requires_grad_()
    tests = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    )
    torch.library.opcheck(sparse._sparse_product, (x, blocks, *arrays), test_utils=tests)
    torch.library.opcheck(sparse._edge_products, (g, x, *arrays), test_utils=tests)
    if b == 1:
        torch.library.opcheck(sparse._sparse_product, (x, None, *arrays), test_utils=tests)


def test_inputs_need_not_be_contiguous() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    x = randn(4, 2, n).permute(2, 1, 0)
    assert_close(sparse_product(x, graph), sparse_product(x.contiguous(), graph))


def test_half_precision_accumulates_in_single() -> None:
    graph = Graph(torch.stack([torch.arange(400), torch.zeros(400, dtype=torch.int64)]), 400)
    x = torch.rand(400, 1, 3, generator=generator(0)).bfloat16()
    got = sparse_product(x, graph)
    assert got.dtype == torch.bfloat16
    assert_close(got[0], x.float().sum(0).bfloat16(), rtol=0, atol=0)


def test_autocast_does_not_reach_the_product() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    x = randn(n, 2, 3).float()
    blocks = randn(graph.num_edges, 2, 2).float().requires_grad_()
    expected = sparse_product(x, graph, blocks)
    (wanted,) = torch.autograd.grad(expected.sum(), blocks)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = sparse_product(x, graph, blocks)
        (gradient,) = torch.autograd.grad(got.sum(), blocks)
    assert_close(got, expected, rtol=0, atol=0)
    assert_close(gradient, wanted, rtol=0, atol=0)


def test_forward_mode_derivatives() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    x, blocks = randn(n, 2, 3), randn(graph.num_edges, 2, 2)
    dx, dblocks = randn(n, 2, 3, seed=5), randn(graph.num_edges, 2, 2, seed=6)
    _, tangent = torch.func.jvp(
        lambda a, w: sparse_product(a, graph, w), (x, blocks), (dx, dblocks)
    )
    expected = sparse_product(dx, graph, blocks) + sparse_product(x, graph, dblocks)
    assert_close(tangent, expected, rtol=0, atol=1e-12)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, dx)
        out = torch.autograd.forward_ad.unpack_dual(sparse_product(dual, graph))
    assert_close(out.tangent, sparse_product(dx, graph), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("b", [1, 3])
def test_edge_products_are_taken_at_the_two_ends(
    name: str, b: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 20)
    n, edge_index = ODD_GRAPHS[name]
    graph = Graph(edge_index, n)
    g, x = randn(n, b, 4).requires_grad_(), randn(n, b, 4, seed=1).requires_grad_()
    source, target = edge_index
    got, expected = edge_products(g, x, graph), g[target] @ x[source].mT
    assert_close(got, expected, rtol=0, atol=1e-12)
    cotangent = randn(*expected.shape, seed=2)
    for ours, theirs in zip(
        torch.autograd.grad(got, (g, x), cotangent),
        torch.autograd.grad(expected, (g, x), cotangent),
        strict=True,
    ):
        assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_edge_products_in_forward_mode() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    g, x, dg, dx = (randn(n, 2, 3, seed=seed) for seed in range(4))
    _, tangent = torch.func.jvp(lambda a, c: edge_products(a, c, graph), (g, x), (dg, dx))
    expected = edge_products(dg, x, graph) + edge_products(g, dx, graph)
    assert_close(tangent, expected, rtol=0, atol=1e-12)


def test_no_nodes() -> None:
    graph = Graph(torch.empty(2, 0, dtype=torch.int64), 0)
    assert sparse_product(randn(0, 2, 3), graph).shape == (0, 2, 3)
    assert sparse_product(randn(0, 2, 3), graph, randn(0, 2, 2)).shape == (0, 2, 3)


@pytest.mark.usefixtures("block_product")
@pytest.mark.parametrize("b", [1, 2])
def test_more_parallel_edges_than_a_matrix_has_entries(b: int) -> None:
    """The library samples a product at a pattern, which can hold no more than n² entries."""
    edges = torch.tensor([[0, 1, 1, 0, 1], [0, 0, 1, 1, 0]]).repeat(1, 3)
    graph = Graph(edges, 2)
    g, x = randn(2, b, 4), randn(2, b, 4, seed=1)
    expected = g[edges[1]] @ x[edges[0]].mT
    assert_close(edge_products(g, x, graph), expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("block_product")
@pytest.mark.parametrize("b", [1, 2])
def test_lists_of_short_integers(b: int) -> None:
    """Bounds may be int64 where the lists are int32."""
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    ptr, other, edge = graph.by_target
    x, blocks = randn(n, b, 4), randn(graph.num_edges, b, b)
    short = (ptr, other.int(), edge.int())
    assert torch.equal(
        sparse._multiply(x, blocks, *short), sparse._multiply(x, blocks, ptr, other, edge)
    )
    assert torch.equal(sparse._sample(x, x, *short), sparse._sample(x, x, ptr, other, edge))


def test_devices_build_no_sparse_tensor_and_take_no_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparse tensors and vectors of ones would be built anew in every product."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("not on a device")

    for name in ("sparse_csr_tensor", "sparse_bsr_tensor", "ones"):
        monkeypatch.setattr(torch, name, refuse)
    monkeypatch.setattr(Tensor, "new_ones", refuse)
    graph = Graph(torch.randint(0, 50, (2, 5000), generator=generator(0)), 50).to("meta")
    x, blocks = torch.empty(50, 3, 64, device="meta"), torch.empty(5000, 3, 3, device="meta")
    assert sparse._multiply(x, blocks, *graph.by_target).shape == x.shape
    assert sparse._multiply(x[:, :1], blocks[:, :1, :1], *graph.by_target).shape == (50, 1, 64)
    assert sparse._multiply(x[:, :1], None, *graph.by_target).shape == (50, 1, 64)
    assert len(sparse._slices(5000, 3 * 64, x.device)) == 1
    assert len(sparse._slices(5000 * 64, 3 * 64, torch.device("cpu"))) > 1
