"""What makes the factored kernel the default: nothing of size edges × stalk × channels."""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor
from graphs import ODD_GRAPHS, generator, randn, random_directed, random_flat
from laws import DIRECTED, FLAT, AnySheaf, Build, parameters
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.sheaves.kernels import KERNELS, sparse, use_kernel
from coopsheaf.sheaves.kernels.terms import Terms

N, M, D, H = 20, 2000, 3, 16
GRAPH = Graph(torch.randint(0, N, (2, M), generator=generator(0)), N)


def largest(sheaf: AnySheaf, build: Build) -> int:
    x = randn(N, D, H).requires_grad_()
    leaves = [x, *(leaf.requires_grad_() for leaf in parameters(sheaf))]
    with LargestTensor() as guard:
        torch.autograd.grad(build(sheaf).mv(x).sum(), leaves)
    return guard.numel


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("build", FLAT.values(), ids=FLAT)
def test_flat_operators_stay_small(build: Build, weighted: bool, monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    assert largest(random_flat(GRAPH, D, weighted=weighted), build) <= 2 * M


@pytest.mark.parametrize("build", DIRECTED.values(), ids=DIRECTED)
def test_operators_with_maps_at_edges_stay_at_the_size_of_their_maps(build, monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    assert largest(random_directed(GRAPH, D, weighted=True), build) <= M * D * D


def test_the_guard_sees_what_the_edgewise_kernel_allocates() -> None:
    with use_kernel("edgewise"):
        assert largest(random_flat(GRAPH, D), FLAT["paper"]) >= M * D * H


@pytest.mark.parametrize("learner", ["mlp", "sage-graph-norm", "sage-projected"])
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
def test_a_training_step_stays_small(learner: str, semantics: str) -> None:
    model = CSNN(5, H, 2, 1, stalk_dim=D, learner=learner, semantics=semantics, dropout=0.2)
    x = torch.randn(N, 5, generator=generator(1))
    with LargestTensor() as guard:
        model(x, GRAPH).sum().backward()
    assert guard.numel < M * D * H / 4


@pytest.mark.parametrize("h", [2, 60])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("blocks", [False, True])
def test_derivatives_need_no_symmetry(blocks: bool, weighted: bool, h: int) -> None:
    """Any diagonal and any maps: the blocks of a Laplacian are symmetric, which would hide much."""
    n, edges = ODD_GRAPHS["random-directed"]
    graph = Graph(edges, n)
    leaves = [randn(n, D, h), randn(n, D, D, seed=1) if blocks else randn(n, seed=1)]
    leaves += [randn(n, D, D, seed=2), randn(n, D, D, seed=3)]
    leaves += [randn(edges.shape[1], seed=4)] if weighted else []
    leaves = [leaf.requires_grad_() for leaf in leaves]
    results = []
    for kernel in KERNELS.values():
        x, diagonal, left, right, *weight = leaves
        y = kernel.node_maps(x, Terms(graph, diagonal, left, right, *(weight or [None])))
        grad = randn(h, D, n, seed=5).permute(2, 1, 0)  # as it comes out of other operations
        results.append([y, *torch.autograd.grad(y, leaves, grad)])
    for others in results[1:]:
        for got, want in zip(others, results[0], strict=True):
            assert_close(got, want, rtol=1e-11, atol=1e-11)
