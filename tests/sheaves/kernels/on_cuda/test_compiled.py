"""Every launch of a Triton kernel is compiled for two kinds of cards; none is needed for that."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import generator
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.nn import SAGEConv, sage
from coopsheaf.sheaves import kernels as decided
from coopsheaf.sheaves.kernels import factored, on_cuda
from coopsheaf.sheaves.kernels.terms import Terms

triton = pytest.importorskip("triton", reason="needs Triton: pip install 'coopsheaf[triton]'")

GRAPH = Graph(torch.randint(0, 6, (2, 20), generator=generator(0)), 6)


def narrow(graph: Graph) -> Graph:
    """The same graph with lists of 32 bits, as packs have them."""
    lists = [
        csr._replace(other=csr.other.int(), edge=csr.edge.int())
        for csr in (graph.by_target, graph.by_source)
    ]
    return Graph._build(graph.source, graph.target, *lists)


GRAPHS = {"int64": GRAPH, "int32": narrow(GRAPH)}
EACH_GRAPH = pytest.mark.parametrize("lists", GRAPHS)
ARCHITECTURES = {80: "sm_80", 90: "sm_90"}
POINTERS = {torch.float32: "*fp32", torch.float64: "*fp64", torch.bfloat16: "*bf16", torch.int64: "*i64", torch.int32: "*i32"}  # fmt: skip


class Compiler:
    """Stands in for a kernel: a launch is compiled, for all architectures, and not run."""

    def __init__(self, kernel: Any, made: dict[tuple[Any, ...], str]) -> None:
        self.kernel, self.made = kernel, made

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        assert 1 <= len(grid) <= 3
        assert all(0 < size < 2**16 for size in grid[1:])
        return self.compile

    def compile(self, *values: Any, **named: Any) -> None:
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        options = {name: named.pop(name) for name in ("num_warps", "enable_fp_fusion")}
        given = dict(zip(self.kernel.arg_names, values, strict=False)) | named
        assert list(given) == self.kernel.arg_names, "all arguments, in their order"
        known = {p.name: given[p.name] for p in self.kernel.params if p.is_constexpr}
        kinds = {n: "constexpr" if n in known else kind_of(value) for n, value in given.items()}
        source = ASTSource(fn=self.kernel, signature=kinds, constexprs=known)
        for number, name in ARCHITECTURES.items():
            key = (self.kernel.__name__, str(kinds), str(known), name)
            if key not in self.made:
                target = GPUTarget("cuda", number, 32)
                self.made[key] = triton.compile(source, target=target, options=options).asm["ptx"]


def kind_of(value: object) -> str:
    if isinstance(value, Tensor):
        return POINTERS[value.dtype]
    if isinstance(value, float):
        return "fp32"
    assert isinstance(value, int)
    return "i32" if -(2**31) <= value < 2**31 else "i64"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> dict[tuple[Any, ...], str]:
    """The PTX of everything that is launched."""
    from coopsheaf.sheaves.kernels.on_cuda import programs

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(on_cuda, "DEVICE", "cpu")
    monkeypatch.setattr(on_cuda, "_wanted", True)
    monkeypatch.setattr(decided, "_active", "factored")
    monkeypatch.setattr(sage, "is_plain_eager", lambda *tensors: False)
    made: dict[tuple[Any, ...], str] = {}
    for name, kernel in vars(programs).copy().items():
        if isinstance(kernel, triton.JITFunction) and name not in ("sum_mapped", "keep_entries"):
            monkeypatch.setattr(programs, name, Compiler(kernel, made))
    return made


def kernels(made: dict[tuple[Any, ...], str]) -> set[str]:
    """What was compiled, each for both architectures."""
    for (name, *_, architecture), ptx in made.items():
        assert f".target {architecture}" in ptx
        assert f".entry {name}(" in ptx
    counts = [sum(key[-1] == name for key in made) for name in ARCHITECTURES.values()]
    assert counts[0] == counts[1] > 0
    return {key[0] for key in made}


def assert_narrow(made: dict[tuple[Any, ...], str], lists: str) -> None:
    """Whatever was handed lists of edges had them in as many bits."""
    wanted = "*i32" if lists == "int32" else "*i64"
    for _, kinds, *_ in made:
        given = dict(re.findall(r"'(other|edge)': '([^']+)'", kinds))
        assert set(given.values()) <= {wanted}, kinds
    assert any("'other'" in kinds for _, kinds, *_ in made)


@EACH_GRAPH
@pytest.mark.parametrize(("d", "h", "weighted"), [(1, 64, True), (3, 32, False), (8, 5, True)])
def test_node_maps(
    d: int, h: int, weighted: bool, lists: str, made: dict[tuple[Any, ...], str]
) -> None:
    leaves = [torch.randn(6, d, h), torch.randn(6), torch.randn(6, d, d), torch.randn(6, d, d)]
    leaves += [torch.randn(20)] if weighted else []
    x, *parts = (leaf.requires_grad_() for leaf in leaves)
    on_cuda.node_maps(x, Terms(GRAPHS[lists], *parts), factored.compose).sum().backward()
    products = {"multiply_ends"} if weighted else set()
    assert kernels(made) == {"apply_node_maps", "differentiate_node_maps"} | products
    assert_narrow(made, lists)


@EACH_GRAPH
@pytest.mark.parametrize("act", [None, F.relu, F.gelu], ids=["none", "relu", "gelu"])
def test_sage_levels(act: Any, lists: str, made: dict[tuple[Any, ...], str]) -> None:
    graph = GRAPHS[lists]
    convs = [SAGEConv(12, 8, project=act is not None) for _ in range(2)]
    dropout = 0.2 if act is F.gelu else 0.0
    y = sage.apply_convs(convs, torch.randn(6, 12), graph, act, dropout)
    torch.autograd.grad(y.sum(), convs[0].lin_l.weight, create_graph=True)
    first = {"hear_neighbours"} | ({"add_bias_relu"} if act is not None else set())
    drawn = {"draw_factors"} if dropout else set()
    products = {"sum_neighbours"}  # of the composition, which is differentiated again
    assert kernels(made) == first | drawn | products
    assert_narrow(made, lists)
    made.clear()
    sage.apply_convs(convs, torch.randn(6, 12), graph, act, dropout).sum().backward()
    back = {"differentiate_ending", "differentiate_relu"} if act is not None else set()
    assert kernels(made) == first | {"sum_neighbours"} | back
    assert_narrow(made, lists)


@EACH_GRAPH
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_sparse_products(dtype: torch.dtype, lists: str, made: dict[tuple[Any, ...], str]) -> None:
    csr, x = GRAPHS[lists].by_target, torch.randn(6, 3, 5).to(dtype)
    on_cuda.neighbour_sums(x.flatten(1), csr, torch.randn(20).to(dtype))
    on_cuda.neighbour_sums(x.flatten(1), csr)
    on_cuda.block_sums(x, torch.randn(20, 3, 3).to(dtype).mT, csr)
    on_cuda.edge_products(x, x, csr)
    assert_narrow(made, lists)
    assert kernels(made) == {"sum_neighbours", "sum_blocks", "multiply_ends"}
