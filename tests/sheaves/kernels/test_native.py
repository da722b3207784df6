"""The compiled kernels: the function of the reference, and of plain operations where they stand in."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from accuracy import check_as_exact, with_gradients
from graphs import ODD_GRAPHS, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import ConformalMaps, Graph
from coopsheaf.sheaves import kernels
from coopsheaf.sheaves.graph import CSR
from coopsheaf.sheaves.kernels import library, native, reference, use_kernel
from coopsheaf.sheaves.kernels.terms import NodeTerms, dense_terms
from coopsheaf.sheaves.orthogonal import ExpScale, Householder, conformal_maps

if not native.is_available():
    pytest.skip("coopsheaf-kernels is not installed", allow_module_level=True)

BIG = Graph(torch.randint(0, 300, (2, 4000), generator=torch.Generator().manual_seed(0)), 300)
ODD = {name: Graph(edges, n) for name, (n, edges) in ODD_GRAPHS.items()} | {"big": BIG}


@pytest.fixture(autouse=True)
def compiled() -> Any:
    with use_kernel("native"):
        yield


def operator(graph: Graph, scaled: bool) -> Callable[..., Tensor]:
    def apply(x: Tensor, diagonal: Tensor, left: Tensor, right: Tensor, *scales: Tensor) -> Tensor:
        maps: Any = (left, right)
        if scaled:
            maps = tuple(map(ConformalMaps, scales, maps))
        terms = NodeTerms(graph, diagonal, *maps)
        if x.dtype == torch.float64:
            return reference.node_maps(x, dense_terms(terms))
        return kernels.node_maps(x, terms)

    return apply


def parts(n: int, d: int, h: int, scaled: bool) -> list[Tensor]:
    shapes: list[tuple[int, ...]] = [(n, d, h), (n,), (n, d, d), (n, d, d)]
    shapes += [(n,), (n,)] if scaled else []
    return [randn(*shape, seed=seed) for seed, shape in enumerate(shapes)]


def compare(function: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    single = [tensor.float() for tensor in inputs]
    exact = with_gradients(function, [tensor.double() for tensor in single])
    with use_kernel("factored"):
        plain = with_gradients(function, single)
    check_as_exact(with_gradients(function, single), plain, exact)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("d", range(1, 9))
def test_every_stalk_dimension(d: int, scaled: bool) -> None:
    graph = ODD["random-directed"]
    for h in (1, 5, 16, 33):
        compare(operator(graph, scaled), parts(graph.num_nodes, d, h, scaled))


@pytest.mark.parametrize("name", ODD)
def test_odd_graphs_and_many_channels(name: str) -> None:
    graph = ODD[name]
    if name == "big":
        return compare_big(graph)
    return compare(operator(graph, True), parts(graph.num_nodes, 3, 50, True))


def compare_big(graph: Graph) -> None:
    """Against the edgewise kernel: the dense reference would take too long."""
    inputs = [part.float() for part in parts(graph.num_nodes, 4, 40, True)]

    def apply(*given: Tensor) -> Tensor:
        x, diagonal, left, right, *scales = given
        maps = map(ConformalMaps, scales, (left, right))
        return kernels.node_maps(x, NodeTerms(graph, diagonal, *maps))

    with use_kernel("edgewise"):
        exact = with_gradients(apply, [tensor.double() for tensor in inputs])
        plain = with_gradients(apply, inputs)
    check_as_exact(with_gradients(apply, inputs), plain, exact)


def test_lists_of_32_bits() -> None:
    def shortened(lists: CSR) -> CSR:
        return CSR(lists.ptr, lists.other.int(), lists.edge.int())

    short = Graph(BIG.edge_index, BIG.num_nodes)
    object.__setattr__(short, "by_target", shortened(BIG.by_target))
    object.__setattr__(short, "by_source", shortened(BIG.by_source))
    inputs = [part.float() for part in parts(300, 3, 20, True)]
    for ours, theirs in zip(
        with_gradients(operator(short, True), inputs),
        with_gradients(operator(BIG, True), inputs),
        strict=True,
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("d", range(1, 9))
def test_maps_of_free_numbers(d: int) -> None:
    raw = 2 * randn(37, d * (d - 1) // 2 + 1)
    raw[0] = 5.0  # beyond the bound of the scale

    def flat(raw: Tensor) -> Tensor:
        maps = conformal_maps(raw, ExpScale(), Householder(d))
        return torch.cat([maps.scale.unsqueeze(1), maps.orthogonal.flatten(1)], dim=1)

    compare(flat, [raw])


def test_factors_of_a_laplacian() -> None:
    degree = torch.arange(40.0)

    def flat(own: Tensor, other: Tensor) -> Tensor:
        return torch.stack(kernels.augmented_factors(own, other, degree))

    compare(flat, [randn(40, seed=1), randn(40, seed=2)])


def test_second_derivatives_go_through_the_composition() -> None:
    graph = ODD["random-directed"]
    inputs = [part.float() for part in parts(graph.num_nodes, 2, 3, True)]

    def second() -> list[Tensor]:
        leaves = [part.clone().requires_grad_() for part in inputs]
        value = operator(graph, True)(*leaves)
        (gradient,) = torch.autograd.grad(value.square().sum(), leaves[:1], create_graph=True)
        return list(torch.autograd.grad(gradient.square().sum(), leaves))

    ours = second()
    with use_kernel("factored"):
        theirs = second()
    assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_transforms_and_tangents_see_the_composition() -> None:
    graph = ODD["random-directed"]
    x, *others = (part.float() for part in parts(graph.num_nodes, 2, 3, True))

    def function(x: Tensor) -> Tensor:
        return operator(graph, True)(x, *others)

    direction = torch.ones_like(x)
    _, tangent = torch.func.jvp(function, (x,), (direction,))
    assert_close(tangent, function(direction), rtol=1e-4, atol=1e-4)  # it is linear
    batched = torch.func.vmap(function)(torch.stack([x, direction]))
    assert_close(batched[1], tangent, rtol=1e-4, atol=1e-4)


def test_without_gradients_nothing_is_kept_and_nothing_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = ODD["random-directed"]
    inputs = [part.float().requires_grad_() for part in parts(graph.num_nodes, 3, 7, True)]
    wanted = operator(graph, True)(*inputs)
    monkeypatch.setattr(native._NodeMaps, "apply", None)
    with torch.no_grad():
        got = operator(graph, True)(*inputs)
    assert torch.equal(got, wanted)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    inputs = [part.float() for part in parts(300, 3, 20, True)]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(with_gradients(operator(BIG, True), inputs))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


SETS = ["portable", "avx2", "avx512", "avx512_bf16", "amx"]


def supported() -> list[str]:
    loaded = library.load_library()
    assert loaded is not None
    return SETS[: SETS.index(loaded.instructions) + 1]


@pytest.mark.parametrize("instructions", SETS)
def test_every_set_of_instructions(instructions: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if instructions not in supported():
        pytest.skip(f"this processor has no {instructions}")
    package = importlib.import_module("coopsheaf_kernels")
    try:
        other = library.Library(package.LIBRARY, "test", instructions)
    except AttributeError:
        pytest.skip(f"built without {instructions}")
    monkeypatch.setattr(native, "load_library", lambda: other)
    for d, h in ((3, 33), (5, 7)):
        compare(operator(ODD["random-directed"], True), parts(9, d, h, True))
    test_maps_of_free_numbers(4)
    check_halved_products(other)


def check_halved_products(of: library.Library) -> None:
    """x Wᵀ in bfloat16, the sum in single precision."""
    for n, k, o in ((3, 5, 2), (40, 64, 48), (450, 33, 70)):
        x, weight, out = randn(n, k).float(), randn(o, k, seed=1).float(), torch.empty(n, o)
        of("linear", n, k, o, x, weight, None, 0, 1, out, out)
        wanted = x.bfloat16().double() @ weight.bfloat16().double().T
        assert_close(out.double(), wanted, rtol=0, atol=3e-6 * float(wanted.abs().max()))


def test_numbers_too_small_to_be_normal_are_zero_and_stay_numbers_elsewhere() -> None:
    x, out = torch.full((1, 16), 1e-40), torch.empty(1, 16)
    native.call("linear", 1, 16, 16, x, torch.eye(16), None, 0, 0, out, out)
    assert out.count_nonzero() == 0
    assert (x * 0.5).count_nonzero() == 16  # this thread computes as before


# What is installed badly is not used, and said.


def fresh_load() -> library.Library | None:
    return library.load_library.__wrapped__()


def test_without_the_package_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert fresh_load() is None


@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_a_damaged_library_is_said_and_not_used(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "library.so"
    damaged.write_bytes(content)
    package = importlib.import_module("coopsheaf_kernels")
    monkeypatch.setattr(package, "LIBRARY", damaged)
    with pytest.warns(UserWarning, match="coopsheaf-kernels is installed but does not load"):
        assert fresh_load() is None


def test_a_library_of_another_age_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "INTERFACE", library.INTERFACE + 1)
    with pytest.warns(UserWarning, match="install both of the same age"):
        assert fresh_load() is None


def test_instructions_that_this_machine_lacks_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They would end the process at the first call, without a word."""
    found = native.load_library().instructions  # type: ignore[union-attr]
    monkeypatch.setattr(library, "_SETS", (*library._SETS, "newest"))
    monkeypatch.setenv("COOPSHEAF_INSTRUCTIONS", "newest")
    with pytest.warns(UserWarning, match=f"this machine has {found}, and not newest"):
        assert fresh_load() is None
    monkeypatch.setenv("COOPSHEAF_INSTRUCTIONS", "fast")
    with pytest.warns(UserWarning, match="instructions must be one of portable, avx2"):
        assert fresh_load() is None
    monkeypatch.setenv("COOPSHEAF_INSTRUCTIONS", "portable")
    assert fresh_load().instructions == "portable"  # type: ignore[union-attr]


def test_an_unknown_kernel_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_active", None)
    monkeypatch.setenv("COOPSHEAF_KERNEL", "fastest")
    with pytest.raises(ValueError, match="`COOPSHEAF_KERNEL` must be one of"):
        kernels.active_kernel()


def test_loading_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fresh_load() is not None


def test_a_library_knows_whose_threads_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    import coopsheaf_kernels

    assert native.uses_threads(), "this PyTorch has a C function for parallel loops"
    monkeypatch.setattr(library, "parallel_loop", lambda: None)
    alone = library.Library(coopsheaf_kernels.LIBRARY, "0.1.0")
    try:
        assert not alone.uses_threads
    finally:
        monkeypatch.undo()
        library.Library(coopsheaf_kernels.LIBRARY, "0.1.0")  # all share one loop: as it was
    assert native.uses_threads()
