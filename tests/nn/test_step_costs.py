"""What a layer of CSNN costs in a training step, counted instead of timed.

Each number is what a model with two layers does more than one with a single layer, forward and
backward. They may fall; a change that makes one rise makes training slower.
"""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor, StepCounts
from graphs import generator

from coopsheaf import CSNN, Graph
from coopsheaf.nn import GraphNormSAGELearner, MLPLearner, ProjectedSAGELearner
from coopsheaf.sheaves.kernels import KERNELS, use_kernel

N, H = 600, 32  # more nodes than any weight has rows
GRAPH = Graph(torch.randint(0, N, (2, 20_000), generator=generator(0)), N)


def counts(layers: int, d: int, learner, **options) -> StepCounts:
    torch.manual_seed(0)
    model = CSNN(5, H, layers, 2, stalk_dim=d, learner=learner, dropout=0.2, **options)
    x = torch.randn(N, 5, generator=generator(1))
    model(x, GRAPH).sum().backward()  # what depends on the graph alone is remembered
    with StepCounts(N * d * H) as guard:
        model(x, GRAPH).sum().backward()
    return guard


# Products: one per weight and two derivatives. The MLPs' first layers, which see the same input,
# count as one; those of GraphSAGE are faster one by one. So roman-empire has 3 · 2 · 3 in each of the
# three layers of its learners (W, W_l and W_r, for S and for T), and 3 for W₂. Batched: none that
# PyTorch would do entry by entry (d = 3), else R x and Lᵀ h and their transposes, and W₁ x and its
# own, and in either case the gradients of the maps. Large: new tensors of n·d·h numbers or more.
@pytest.mark.parametrize(
    ("d", "learner", "options", "products", "batched", "large"),
    [
        (3, MLPLearner(32), {"left_weights": False}, 12, 4, 32),
        (4, ProjectedSAGELearner(32, 3), {}, 57, 15, 37),
        (3, ProjectedSAGELearner(64, 5), {"left_weights": False}, 93, 4, 67),
        (4, GraphNormSAGELearner(32, 2), {}, 27, 15, 34),
    ],
    ids=["tolokers", "roman-empire", "minesweeper", "amazon-ratings"],
)
def test_products_and_large_tensors_per_layer(d, learner, options, products, batched, large):
    with use_kernel("factored"):
        one, two = (counts(layers, d, learner, **options) for layers in (1, 2))
    got = two.products - one.products, two.batched - one.batched, two.large - one.large
    assert got == (products, batched, large)


# With compiled kernels PyTorch multiplies nothing in a layer but what a norm of the learners needs,
# and allocates less.
@pytest.mark.skipif("native" not in KERNELS, reason="coopsheaf-kernels is not installed")
@pytest.mark.parametrize(
    ("d", "learner", "options", "large"),
    [
        (3, MLPLearner(32), {"left_weights": False}, 20),
        (4, ProjectedSAGELearner(32, 3), {}, 21),
        (3, ProjectedSAGELearner(64, 5), {"left_weights": False}, 37),
    ],
    ids=["tolokers", "roman-empire", "minesweeper"],
)
def test_compiled_kernels_leave_little_to_pytorch(d, learner, options, large: int) -> None:
    with use_kernel("native"):
        one, two = (counts(layers, d, learner, **options) for layers in (1, 2))
    assert (two.products - one.products, two.batched - one.batched) == (0, 0)
    assert two.large - one.large == large


@pytest.mark.parametrize("learner", [MLPLearner(32), ProjectedSAGELearner(32, 3)], ids=str)
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
def test_nothing_has_the_size_of_a_message_per_edge(learner, semantics: str) -> None:
    model = CSNN(5, H, 2, 2, learner=learner, semantics=semantics, dropout=0.2)
    with LargestTensor() as guard:
        model(torch.randn(N, 5), GRAPH).sum().backward()
    assert guard.numel < GRAPH.num_edges * 3 * H / 10


def test_evaluation_draws_nothing() -> None:
    model = CSNN(5, H, 2, 2, learner=ProjectedSAGELearner(32, 3), dropout=0.2).eval()
    state = torch.get_rng_state()
    model(torch.randn(N, 5, generator=generator(1)), GRAPH)
    assert torch.equal(torch.get_rng_state(), state)
