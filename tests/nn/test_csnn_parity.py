"""Every configuration of a layer: the fast computation is the dense one."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from graphs import ODD_GRAPHS, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import CSNN, CSNNConv, Graph
from coopsheaf.nn.learners import LEARNERS
from coopsheaf.sheaves.kernels import use_kernel

N, EDGES = ODD_GRAPHS["random-directed"]
GRAPH = Graph(EDGES, N)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_values_and_gradients_are_those_of_the_dense_operator(learner, semantics, d) -> None:
    """With and without W₁, W₂, edge weights and positional encodings; both sizes of product."""
    for k, (left, right) in enumerate(itertools.product([False, True], repeat=2)):
        weighted, pe, h = k in (1, 2), k in (0, 1), (4, 60, 4, 60)[k]
        torch.manual_seed(k)
        options = {"left_weights": left, "right_weights": right, "pe_channels": 2 * pe}
        conv = CSNNConv(h, d, learner=learner, semantics=semantics, **options).double().eval()
        x, encoding = randn(N, d, h).requires_grad_(), randn(N, 2) if pe else None
        weight = torch.rand(EDGES.shape[1]).double().requires_grad_() if weighted else None
        leaves = [x, *conv.parameters(), *([weight] if weighted else [])]
        results = []
        for kernel in ("reference", "factored"):
            with use_kernel(kernel):
                y = conv(x, GRAPH, encoding, weight)
            loss = (y * randn(N, d, h, seed=3)).sum() / h
            gradients = torch.autograd.grad(loss, leaves, materialize_grads=True, allow_unused=True)
            results.append([y, *gradients])
        for got, expected in zip(*results, strict=True):
            assert_close(got, expected, rtol=1e-10, atol=1e-10)


def dense_layer(conv: CSNNConv, x: Tensor, semantics: str) -> Tensor:
    """The layer as its equation reads: L (I ⊗ W₁) X W₂ with dense matrices, nothing written by hand.

    The kernels compared above share what stands before the operator; this shares nothing but the
    learners' raw maps.
    """
    source, target = (maps.scale[:, None, None] * maps.orthogonal for maps in conv.maps(x, GRAPH))
    x = torch.einsum("ab,nbh,gh->nag", conv.left.weight, x, conv.right.weight)
    row, column = GRAPH.target, GRAPH.source  # each receiver gathers what its sources send
    if semantics == "released":
        row, column = column, row
    one = torch.ones(EDGES.shape[1], dtype=x.dtype)
    s2, t2 = source.square().sum((1, 2)) / conv.stalk_dim, target.square().sum((1, 2)) / conv.stalk_dim  # fmt: skip
    into, out = (torch.zeros(N, dtype=x.dtype).index_add(0, ends, one) for ends in (row, column))
    sends, hears = out * s2, into * t2
    # The degree that a step divides by, and the one its diagonal is made of.
    steps = [(sends, sends), (hears, hears)]
    if semantics == "released":
        steps = [(hears, hears), (sends, into * s2)]
    if semantics == "messages":
        steps = [(sends, 0 * sends)]
    for degree, own in steps:
        root = (degree + 1).rsqrt()
        blocks = torch.einsum("i,iba,ibc,ich->iah", root[row], target[row], source[column], root[column, None, None] * x[column])  # fmt: skip
        x = (own / (degree + 1))[:, None, None] * x - torch.zeros_like(x).index_add(0, row, blocks)
    return x


@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
@pytest.mark.parametrize(("d", "h"), [(2, 3), (3, 4), (3, 60), (5, 2)])
def test_weights_that_are_not_symmetric_have_the_gradients_of_their_equation(
    d: int, h: int, semantics: str
) -> None:
    """W₁ starts as the identity, which hides a transposed gradient; here it is anything."""
    torch.manual_seed(0)
    conv = CSNNConv(h, d, learner="mlp", semantics=semantics).double().eval()
    with torch.no_grad():
        conv.left.weight.copy_(randn(d, d, seed=5))
        conv.right.weight.copy_(randn(h, h, seed=6))
    leaves = [x := randn(N, d, h).requires_grad_(), *conv.parameters()]
    results = []
    for y in (conv(x, GRAPH), dense_layer(conv, x, semantics)):
        gradients = torch.autograd.grad((y * randn(N, d, h, seed=3)).sum() / h, leaves)
        results.append([y, *gradients])
    for got, expected in zip(*results, strict=True):
        assert_close(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [2, 4])
@pytest.mark.parametrize("h", [2, 40])
def test_second_derivatives_are_those_of_the_dense_operator(d: int, h: int) -> None:
    torch.manual_seed(0)
    conv = CSNNConv(h, d, learner="sage-projected").double().eval()
    x = randn(N, d, h).requires_grad_()
    weight = torch.rand(EDGES.shape[1]).double().requires_grad_()
    leaves = [x, weight, *conv.parameters()]
    results = []
    for kernel in ("reference", "factored"):
        with use_kernel(kernel):
            y = conv(x, GRAPH, edge_weight=weight).square().mean()
            first = torch.autograd.grad(y, leaves, create_graph=True)
            second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
        results.append([*first, *second])
    for got, expected in zip(*results, strict=True):
        assert_close(got, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("d", [2, 4])
def test_forward_mode_derivatives(d: int) -> None:
    torch.manual_seed(0)
    conv = CSNNConv(40, d, learner="sage-projected").double().eval()
    x, tangent, weights = randn(N, d, 40), randn(N, d, 40, seed=1), randn(N, d, 40, seed=2)
    _, along = torch.func.jvp(lambda x: conv(x, GRAPH), (x,), (tangent,))
    x.requires_grad_()
    (gradient,) = torch.autograd.grad((conv(x, GRAPH) * weights).sum(), x)
    assert_close((along * weights).sum(), (gradient * tangent).sum(), rtol=1e-10, atol=1e-10)


def train(kernel: str, dtype: torch.dtype, seed: int = 0) -> list[float]:
    torch.manual_seed(seed)
    learner, drop = "sage-projected", {"dropout": 0.2, "input_dropout": 0.2}
    model = CSNN(5, 8, 2, 3, learner=learner, norm="layer", **drop).to(dtype)
    x, y, losses = randn(N, 5).to(dtype), torch.arange(N) % 3, []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with use_kernel(kernel):
        for _ in range(15):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x, GRAPH), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_training_with_the_same_masks_runs_the_same_way() -> None:
    expected = train("reference", torch.float64)
    assert expected[-1] < expected[0]
    assert train("factored", torch.float64) == pytest.approx(expected, rel=1e-8)
    assert train("edgewise", torch.float64) == pytest.approx(expected, rel=1e-8)


def test_training_is_reproducible_bit_for_bit() -> None:
    assert train("factored", torch.float32) == train("factored", torch.float32)
    assert train("factored", torch.float32) != train("factored", torch.float32, seed=1)
