"""What makes the factored kernel the default: nothing of size edges × stalk × channels."""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor
from graphs import generator, randn, random_directed, random_flat
from laws import DIRECTED, FLAT, AnySheaf, Build, parameters

from coopsheaf import CSNN, Graph
from coopsheaf.sheaves.kernels import sparse, use_kernel

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
@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_a_training_step_stays_small(learner: str, semantics: str) -> None:
    model = CSNN(5, H, 2, 1, stalk_dim=D, learner=learner, semantics=semantics, dropout=0.2)
    x = torch.randn(N, 5, generator=generator(1))
    with LargestTensor() as guard:
        model(x, GRAPH).sum().backward()
    assert guard.numel < M * D * H / 4
