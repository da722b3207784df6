"""Layers as compiled kernels: the function of their compositions, in either precision of products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from accuracy import check_as_exact, with_gradients
from graphs import ODD_GRAPHS, randn
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.nn import ProjectedSAGELearner, fused, sage
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.products import use_products
from coopsheaf.sheaves.kernels import native, use_kernel

if not native.is_available():
    pytest.skip("coopsheaf-kernels is not installed", allow_module_level=True)

ACTS = {"identity": fused.IDENTITY, "relu": fused.RELU, "gelu": fused.GELU}
N = 1000  # more than two blocks of rows
BIG = Graph(torch.randint(0, N, (2, 3000), generator=torch.Generator().manual_seed(1)), N)
GRAPHS = {"big": BIG} | {
    name: Graph(edges, n)
    for name, (n, edges) in ODD_GRAPHS.items()
    if name in ("no-edges", "isolated", "self-loops", "parallel")
}


@pytest.fixture(autouse=True)
def compiled() -> Any:
    with use_kernel("native"):
        yield


def compare(
    ours: Callable[..., Tensor], composed: Callable[..., Tensor], inputs: list[Tensor]
) -> None:
    single = [tensor.float() for tensor in inputs]
    exact = with_gradients(composed, [tensor.double() for tensor in single])
    check_as_exact(with_gradients(ours, single), with_gradients(composed, single), exact)


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 3, 33), (N, 300, 96), (41, 17, 4), (2, 64, 32)])
def test_linear(sizes: tuple[int, int, int], act: str) -> None:
    n, k, o = sizes
    inputs = [randn(n, k, seed=1), randn(o, k, seed=2), randn(o, seed=3)]
    code = ACTS[act]
    if act == "relu" and n == N:  # so many sums that one has the other sign, and another slope
        inputs[0] = inputs[0].abs()
        inputs[1] = inputs[1].abs() * torch.sign(randn(o, 1, seed=4))
    compare(partial(fused.linear, act=code), lambda *given: fused._compose_linear(*given, code, False), inputs)  # fmt: skip
    bare = lambda x, weight: fused.linear(x, weight, None, code)  # noqa: E731
    compare(bare, lambda *given: fused._compose_linear(*given, None, code, False), inputs[:2])


def mlp_parameters(k: int, m: int, o: int) -> list[Tensor]:
    shapes = [(m, k), (m,), (o, m), (o,)] * 2
    return [randn(*shape, seed=10 + seed) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize("sizes", [(1, 2, 3, 1), (N, 96, 32, 4), (50, 7, 40, 11)])
def test_pairs_of_mlps(sizes: tuple[int, int, int, int]) -> None:
    n, k, m, o = sizes
    inputs = [randn(n, k), *mlp_parameters(k, m, o)]
    compare(lambda x, *p: fused.mlps(x, p), lambda x, *p: fused._compose_mlps(x, False, *p), inputs)


def sage_parameters(k: int, o: int, project: bool) -> list[Tensor]:
    shapes: list[tuple[int, ...]] = [(o, k), (o,), (o, k)]
    shapes += [(k, k), (k,)] if project else []
    return [randn(*shape, seed=20 + seed) for seed, shape in enumerate(shapes * 2)]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("act", ["identity", "gelu"])
def test_levels_of_graphsage(name: str, project: bool, shared: bool, act: str) -> None:
    graph = GRAPHS[name]
    n, k, o = graph.num_nodes, 19, 12
    x = randn(n, k) if shared else randn(2, n, k)

    def ours(x: Tensor, *parameters: Tensor) -> Tensor:
        degree = sage._inverse_degree(graph, x)
        return fused.sage_level(x, graph, degree, 2, parameters, ACTS[act])

    def composed(x: Tensor, *parameters: Tensor) -> Tensor:
        return fused._COMPOSED[ACTS[act]](sage.compose_convs(x, graph, 2, *parameters))

    compare(ours, composed, [x, *sage_parameters(k, o, project)])


def test_levels_that_widen() -> None:
    def composed(x: Tensor, *parameters: Tensor) -> Tensor:
        return sage.compose_convs(x, BIG, 2, *parameters)

    def ours(x: Tensor, *parameters: Tensor) -> Tensor:
        return fused.sage_level(x, BIG, sage._inverse_degree(BIG, x), 2, parameters)

    compare(ours, composed, [randn(N, 5), *sage_parameters(5, 40, True)])


@pytest.mark.parametrize("d", range(1, 9))
@pytest.mark.parametrize("left", [True, False])
def test_weights_of_a_layer(d: int, left: bool) -> None:
    for n, h in ((1, 1), (210, 32), (9, 13)):
        weights = [randn(d, d, seed=1)] if left else []
        inputs = [randn(n, d, h), *weights, randn(h, h, seed=2)]
        if left:
            compare(fused.mix, lambda x, w, v: F.linear(w @ x, v), inputs)
        else:
            compare(lambda x, v: fused.mix(x, None, v), F.linear, inputs)


@pytest.mark.parametrize("act", ACTS)
def test_the_end_of_a_layer(act: str) -> None:
    inputs = [randn(520, 3, 17), randn(520, 3, 17, seed=1), randn(3, 1, seed=2)]
    compare(
        lambda *given: fused.update(*given, ACTS[act], 0.0),
        lambda *given: fused._compose_update(*given, ACTS[act], (0, 0)),
        inputs,
    )


def test_activations_far_out() -> None:
    """The tails of the normal law and of tanh, where an approximation would show."""
    x = torch.linspace(-12, 12, 4001).unsqueeze(1)
    one = torch.ones(1, 1)
    for code, act in ((fused.GELU, F.gelu), (fused.RELU, F.relu)):
        got = fused.linear(x, one, None, code)
        assert_close(got.double(), act(x.double()), rtol=2e-6, atol=1e-9)
        ends = torch.tensor([[1e30], [torch.inf]])
        assert torch.equal(fused.linear(ends, one, None, code), ends)


# Masks.

KEEP = 0.8


def masked(seed: int, count: int = 5000) -> Tensor:
    return fused.draw_factors(torch.empty(count), seed, fused.dropped_share(1 - KEEP))


def philox(counter: int, key: int) -> list[int]:
    """Philox4x32-10 as its paper states it."""
    mask, words, keys = 0xFFFFFFFF, [counter & 0xFFFFFFFF, counter >> 32, 0, 0], [key & 0xFFFFFFFF, key >> 32]  # fmt: skip
    for _ in range(10):
        left, right = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            right >> 32 ^ words[1] ^ keys[0], right & mask,
            left >> 32 ^ words[3] ^ keys[1], left & mask,
        ]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & mask, (keys[1] + 0xBB67AE85) & mask]
    return words


def test_the_generator_is_philox() -> None:
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # its published vector
    seed, threshold = 0x1234567_89ABCDEF, fused.dropped_share(0.5)
    got = fused.draw_factors(torch.empty(1024), seed, threshold) > 0
    for entry in range(1024):
        block, place = divmod(entry, 128)
        which, lane = divmod(place, 16)
        word = philox(block * 16 + lane, seed)[which // 2]
        bits = word >> 16 if which % 2 else word & 0xFFFF
        assert bool(got[entry]) == (bits >= threshold), entry


def test_the_law_of_masks() -> None:
    found = masked(7, 200_000)
    kept = found > 0
    assert_close(kept.float().mean().item(), KEEP, rtol=0, atol=4e-3)
    assert set(found.unique().tolist()) == {0.0, float(found.max())}
    assert_close(found.mean().item(), 1.0, rtol=0, atol=5e-3)
    other = masked(8, 200_000) > 0
    both = (kept & other).float().mean().item()  # two seeds know nothing of each other
    assert_close(both, KEEP**2, rtol=0, atol=6e-3)
    assert torch.equal(found[:777], masked(7, 777))  # a place is enough


def layer_with_dropout(kind: str, x: Tensor) -> Tensor:
    torch.manual_seed(3)
    if kind == "drop":
        return dropout(x, 0.2)
    if kind == "update":
        return fused.update(x, x.sin(), torch.zeros(2, 1), fused.GELU, 0.2)
    parameters = [p.float() for p in sage_parameters(6, 6, True)]
    flat = x.flatten(1)
    return fused.sage_level(flat, BIG, sage._inverse_degree(BIG, flat), 2, parameters, fused.GELU, 0.2)  # fmt: skip


@pytest.mark.parametrize("kind", ["drop", "update", "sage"])
def test_masks_on_the_way_back_are_those_of_the_way_there(kind: str) -> None:
    x, step = randn(N, 2, 3).float(), 1e-2 * randn(N, 2, 3, seed=5).float()
    leaf = x.clone().requires_grad_()
    value = layer_with_dropout(kind, leaf)
    (slope,) = torch.autograd.grad(value.sum(), leaf)
    up, down = layer_with_dropout(kind, x + step), layer_with_dropout(kind, x - step)
    numeric = (up - down).double().sum() / 2
    # With another mask a fifth of the entries would be wrong.
    assert_close((slope * step).double().sum(), numeric, rtol=6e-2, atol=2e-3)


@pytest.mark.parametrize("kind", ["drop", "update", "sage"])
def test_the_number_of_threads_changes_nothing(kind: str) -> None:
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            leaf = randn(N, 2, 3).float().requires_grad_()
            value = layer_with_dropout(kind, leaf)
            found.append((value, torch.autograd.grad(value.square().sum(), leaf)[0]))
    finally:
        torch.set_num_threads(before)
    for value, slope in found[1:]:
        assert torch.equal(value, found[0][0])
        assert torch.equal(slope, found[0][1])


@pytest.mark.parametrize("kind", ["update", "sage"])
def test_second_derivatives_see_the_same_mask(kind: str) -> None:
    leaf = randn(N, 2, 3).float().requires_grad_()
    value = layer_with_dropout(kind, leaf)
    (plain,) = torch.autograd.grad(value.sum(), leaf, retain_graph=True)
    (again,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
    assert_close(again, plain, rtol=1e-4, atol=1e-5)
    assert torch.autograd.grad(again.sum(), leaf)[0].abs().sum() > 0


def test_compiled_code_draws_the_masks_of_eager_code() -> None:
    x = torch.ones(64, 10)
    torch.compiler.reset()
    compiled = torch.compile(lambda x: dropout(x, 0.3), backend="aot_eager", fullgraph=True)
    torch.manual_seed(1)
    wanted = dropout(x, 0.3)
    torch.manual_seed(1)
    assert_close(compiled(x), wanted)


# bfloat16.


def rounded(x: Tensor) -> Tensor:
    return x.bfloat16().double()


def test_products_in_bfloat16_round_their_factors_and_nothing_else() -> None:
    x, weight = randn(N, 37).float(), randn(21, 37, seed=1).float()
    with use_products("bf16"):
        got = with_gradients(lambda x, w: fused.linear(x, w, None), [x, weight])
    grad = torch.linspace(-1, 1, N * 21).view(N, 21)
    wanted = [
        rounded(x) @ rounded(weight).T,
        rounded(grad) @ rounded(weight),
        rounded(grad).T @ rounded(x),
    ]
    for ours, true in zip(got, wanted, strict=True):
        assert_close(ours.double(), true, rtol=0, atol=3e-6 * float(true.abs().max()))
    assert (got[0] - x @ weight.T).abs().max() > 1e-3  # it was rounded


@pytest.mark.parametrize("sizes", [(1, 1, 1), (17, 31, 16), (33, 32, 17), (449, 64, 64), (31, 65, 33), (64, 3, 90)])  # fmt: skip
def test_parts_of_tiles_are_whole_products(sizes: tuple[int, int, int]) -> None:
    """Rows, columns and sums that fill no tile of 16 by 16, and sums over pairs."""
    n, k, o = sizes
    x, weight = randn(n, k).float(), randn(o, k, seed=1).float()
    grad = torch.linspace(-1, 1, n * o).view(n, o)
    with use_products("bf16"):
        got = with_gradients(lambda x, w: fused.linear(x, w, None), [x, weight])
    wanted = [rounded(x) @ rounded(weight).T, rounded(grad) @ rounded(weight), rounded(grad).T @ rounded(x)]  # fmt: skip
    for ours, true in zip(got, wanted, strict=True):
        assert_close(ours.double(), true, rtol=0, atol=3e-6 * float(true.abs().max()))


def test_numbers_that_are_none_stay_so_in_bfloat16() -> None:
    x = torch.tensor([[float("nan"), 1.0], [float("inf"), 1.0], [3e38, 0.0]])
    with use_products("bf16"):
        got = fused.linear(x, torch.eye(2), None)
    assert got[0, 0].isnan()
    assert got[1].isnan().tolist() == [False, True] or got[1, 0].isinf()
    assert got[2, 0] > 2.9e38


# Whole networks.


def network(seed: int = 0, **options: str) -> CSNN:
    torch.manual_seed(seed)
    learner = ProjectedSAGELearner(8, 2, dropout=0.0)
    return CSNN(6, 8, 2, 3, stalk_dim=3, learner=learner, **options)


def losses(kernel: str, precision: str = "single", **options: str) -> list[float]:
    x, y = randn(N, 6).float(), torch.arange(N) % 3
    model, found = network(**options), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with use_kernel(kernel), use_products(precision):
        for _ in range(50):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x, BIG), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found


@pytest.mark.parametrize("semantics", ["paper", "messages"])
def test_fifty_steps_are_those_of_plain_operations(semantics: str) -> None:
    plain = losses("factored", semantics=semantics)
    assert plain[0] - plain[-1] > 0.01
    assert_close(losses("native", semantics=semantics), plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", ["native", "factored"])
def test_fifty_steps_in_bfloat16_stay_near(kernel: str) -> None:
    plain = losses("factored")
    half = losses(kernel, "bf16")
    assert_close(half, plain, rtol=0, atol=2e-2)
    assert half != plain


def test_hooks_are_called() -> None:
    model, heard = network(), []
    model.encoder.register_forward_hook(lambda *given: heard.append(given))
    model(randn(N, 6).float(), BIG)
    assert len(heard) == 1


def test_another_encoder_is_called_as_it_is() -> None:
    model = network()
    model.encoder = nn.Sequential(model.encoder)
    got = model(randn(N, 6).float(), BIG)
    assert_close(got, network()(randn(N, 6).float(), BIG), rtol=1e-4, atol=1e-5)
