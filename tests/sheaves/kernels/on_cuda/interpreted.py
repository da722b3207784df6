"""The Triton kernels in Triton's interpreter, on the CPU: ``test_interpreted.py`` runs this file.

It needs a process of its own, with TRITON_INTERPRET=1 from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import generator
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.nn import SAGEConv, sage
from coopsheaf.sheaves import kernels
from coopsheaf.sheaves.graph import CSR
from coopsheaf.sheaves.kernels import factored, on_cuda, reference, sparse
from coopsheaf.sheaves.kernels.on_cuda import launch
from coopsheaf.sheaves.kernels.on_cuda.sage import Level, SageLevel, draw_dropout, draw_factors
from coopsheaf.sheaves.kernels.terms import Terms

# A loop, parallel edges, a node that hears nobody (0), one that nobody hears (4), one alone (3).
EDGES = torch.tensor([[0, 0, 1, 1, 2, 0, 0], [1, 1, 1, 2, 1, 4, 2]])
ODD = Graph(EDGES, 5)
EMPTY = torch.empty(2, 0, dtype=torch.int64)


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels run on the CPU, and nothing else of ours does."""
    monkeypatch.setattr(on_cuda, "DEVICE", "cpu")
    monkeypatch.setattr(on_cuda, "_wanted", True)
    monkeypatch.setattr(kernels, "_active", "factored")
    for module in (factored, sage):
        monkeypatch.setattr(module, "is_plain_eager", lambda *tensors: False)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so narrow that a row needs several."""
    monkeypatch.setattr(launch, "TILE", 16)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was computed here."""
    names: list[str] = []
    for name in ("node_maps", "sage_level", "neighbour_sums", "block_sums", "edge_products"):
        monkeypatch.setattr(on_cuda, name, _noting(names, name, getattr(on_cuda, name)))
    return names


def _noting(names: list[str], name: str, inner: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def note(*arguments: Any) -> Tensor:
        names.append(name)
        return inner(*arguments)

    return note


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed))


def make_terms(graph: Graph, d: int, h: int, *, weighted: bool) -> list[Tensor]:
    n, shape = graph.num_nodes, (graph.num_nodes, d, d)
    leaves = [randn(n, d, h), randn(n, seed=1), randn(*shape, seed=2), randn(*shape, seed=3)]
    leaves += [randn(graph.num_edges, seed=4)] if weighted else []
    return [leaf.requires_grad_() for leaf in leaves]


def both_ways(graph: Graph, leaves: list[Tensor], grad: Tensor | None = None) -> None:
    """Values and gradients are those of the dense matrix, up to a few roundings."""
    x, *parts = leaves
    got = on_cuda.node_maps(x, Terms(graph, *parts), factored.compose)
    grad = randn(*x.shape, seed=5) if grad is None else grad
    found = torch.autograd.grad(got, leaves, grad)
    doubled = [leaf.detach().double().requires_grad_() for leaf in leaves]
    expected = reference.node_maps(doubled[0], Terms(graph, *doubled[1:]))
    # Without edges the matrix does not depend on maps and weights.
    wanted = torch.autograd.grad(expected, doubled, grad.double(), materialize_grads=True)
    for one, other in zip((got, *found), (expected, *wanted), strict=True):
        assert_close(one, other.float(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", range(1, 9))
def test_node_maps_are_the_dense_matrix(d: int, weighted: bool) -> None:
    both_ways(ODD, make_terms(ODD, d, 3 + d % 3, weighted=weighted))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("d", [1, 3])
def test_rows_wider_than_a_block(d: int) -> None:
    assert launch.columns(37, 4) == 16
    both_ways(ODD, make_terms(ODD, d, 37, weighted=True))


@pytest.mark.parametrize("graph", [Graph(EMPTY, 0), Graph(EMPTY, 2), Graph(EMPTY.new_zeros(2, 1), 1)], ids=str)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_graphs_without_nodes_or_edges(graph: Graph, weighted: bool) -> None:
    both_ways(graph, make_terms(graph, 2, 3, weighted=weighted))


def test_memory_need_not_lie_in_order() -> None:
    leaves = make_terms(ODD, 3, 4, weighted=True)
    turned = [leaf.detach().mT.contiguous().mT if leaf.dim() == 3 else leaf.detach() for leaf in leaves]  # fmt: skip
    turned = [leaf.requires_grad_() for leaf in turned]
    assert not turned[0].is_contiguous()
    both_ways(ODD, turned, randn(4, 3, 5).permute(2, 1, 0))


@pytest.mark.parametrize("which", range(5), ids=["x", "diagonal", "left", "right", "weight"])
def test_each_gradient_alone(which: int) -> None:
    leaves = make_terms(ODD, 2, 3, weighted=True)
    grad = randn(5, 2, 3, seed=5)
    x, *parts = leaves
    (wanted,) = torch.autograd.grad(factored.compose(x, ODD, *parts), leaves[which], grad)
    alone = [leaf if k == which else leaf.detach() for k, leaf in enumerate(leaves)]
    got = on_cuda.node_maps(alone[0], Terms(ODD, *alone[1:]), factored.compose)
    (found,) = torch.autograd.grad(got, alone[which], grad)
    assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_second_derivatives_of_node_maps() -> None:
    leaves = make_terms(ODD, 2, 3, weighted=True)
    x, *parts = leaves

    def second(apply: Any) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(apply().sin().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(part.square().sum() for part in first), leaves)

    got = second(lambda: on_cuda.node_maps(x, Terms(ODD, *parts), factored.compose))
    wanted = second(lambda: factored.compose(x, ODD, *parts))
    assert_close(got, wanted, rtol=1e-4, atol=1e-4)


# The sparse products.


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_neighbours(weighted: bool, dtype: torch.dtype) -> None:
    x, weight = randn(5, 21).to(dtype), randn(7, seed=1).to(dtype)
    got = on_cuda.neighbour_sums(x, ODD.by_target, weight if weighted else None)
    messages = x[EDGES[0]].double() * (weight[:, None].double() if weighted else 1)
    expected = torch.zeros(5, 21, dtype=torch.float64).index_add(0, EDGES[1], messages)
    assert got.dtype == dtype
    assert_close(got, expected.to(dtype))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("b", [2, 3, 9])
def test_sums_of_blocks(b: int) -> None:
    """Also of blocks that are turned round, as the way back has them."""
    x, blocks = randn(5, b, 18).double(), randn(7, b, b, seed=1).double()
    for turned in (blocks, blocks.mT):
        got = on_cuda.block_sums(x, turned, ODD.by_target)
        messages = turned @ x[EDGES[0]]
        assert_close(got, torch.zeros_like(x).index_add(0, EDGES[1], messages))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("b", [1, 2, 3])
def test_products_at_edges(b: int) -> None:
    g, x = randn(5, b, 18).double(), randn(5, b, 18, seed=1).double()
    got = on_cuda.edge_products(g, x, ODD.by_target)
    assert_close(got, g[EDGES[1]] @ x[EDGES[0]].mT)
    got = on_cuda.edge_products(g, x, ODD.by_source)
    assert_close(got, g[EDGES[0]] @ x[EDGES[1]].mT)


def test_lists_of_short_integers() -> None:
    csr = ODD.by_target
    short = csr._replace(other=csr.other.int(), edge=csr.edge.int())
    x, blocks = randn(5, 2, 3), randn(7, 2, 2, seed=1)
    for apply in (
        lambda lists: on_cuda.neighbour_sums(x[:, 0], lists, blocks[:, 0, 0]),
        lambda lists: on_cuda.block_sums(x, blocks, lists),
        lambda lists: on_cuda.edge_products(x, x, lists),
    ):
        assert torch.equal(apply(short), apply(csr))


def test_products_of_graphs_without_edges() -> None:
    csr: CSR = Graph(EMPTY, 3).by_target
    assert on_cuda.edge_products(randn(3, 2, 4), randn(3, 2, 4), csr).shape == (0, 2, 2)
    assert not on_cuda.neighbour_sums(randn(3, 4), csr).any()
    assert not on_cuda.block_sums(randn(3, 2, 4), randn(0, 2, 2), csr).any()


def test_the_sparse_operators_use_them(launched: list[str]) -> None:
    for b in (1, 2):
        leaves = [randn(5, b, 3).double(), randn(7, b, b, seed=1).double()]
        x, blocks = (leaf.requires_grad_() for leaf in leaves)
        got = sparse.sparse_product(x, ODD, blocks)
        expected = torch.zeros(5, b, 3).double().index_add(0, EDGES[1], blocks @ x[EDGES[0]])
        assert_close(got, expected)
        found, wanted = (torch.autograd.grad(y.sin().sum(), (x, blocks)) for y in (got, expected))
        assert_close(found, wanted)
    assert set(launched) == {"neighbour_sums", "block_sums", "edge_products"}


# Levels of GraphSAGE.


def make_level(project: bool, shared: bool, sizes: tuple[int, int] = (5, 3)) -> list[Tensor]:
    """x and the parameters of two layers."""
    convs = [SAGEConv(*sizes, project=project) for _ in range(2)]
    x = randn(5, sizes[0]) if shared else randn(2, 5, sizes[0])
    parameters = sage._columns([p for conv in convs for p in sage._parameters(conv)], 2)
    return [leaf.detach().requires_grad_() for leaf in (x, *parameters)]


def compose(x: Tensor, *parameters: Tensor) -> Tensor:
    return sage._compose_columns(ODD, x, *parameters)


def level(act: str, p: float = 0.0) -> Level:
    inverse = sage._inverse_degree(ODD, torch.zeros(1))
    return Level(ODD, inverse, act, p, compose)


ENDINGS = {"none": lambda z: z, "relu": F.relu, "gelu": F.gelu}


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("sizes", [(5, 3), (19, 19)])
@pytest.mark.parametrize("shared", [True, False], ids=["one input", "inputs of their own"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("act", ENDINGS)
def test_a_level_is_its_composition(act: str, project: bool, shared: bool, sizes) -> None:
    leaves = make_level(project, shared, sizes)
    got, expected = SageLevel.apply(level(act), *leaves), ENDINGS[act](compose(*leaves))
    assert_close(got, expected, rtol=1e-5, atol=1e-5)
    grad = randn(5, sizes[1], 2, seed=9).permute(2, 0, 1)
    found, wanted = (torch.autograd.grad(y, leaves, grad) for y in (got, expected))
    assert_close(found, wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("act", ["none", "gelu"])
def test_dropout_draws_the_same_mask_there_and_back(act: str) -> None:
    leaves, p = make_level(True, True, (16, 16)), 0.25
    torch.manual_seed(3)
    dropped = draw_dropout(p)
    factors = draw_factors(torch.empty(2, 5, 16), dropped)
    assert factors.unique().tolist() == pytest.approx([0.0, 4 / 3])
    expected = ENDINGS[act](compose(*leaves)) * factors
    torch.manual_seed(3)
    got = SageLevel.apply(level(act, p), *leaves)
    assert_close(got, expected, rtol=1e-5, atol=1e-5)
    grad = randn(2, 5, 16, seed=9)
    found, wanted = (torch.autograd.grad(y, leaves, grad, retain_graph=True) for y in (got, expected))  # fmt: skip
    assert_close(found, wanted, rtol=1e-5, atol=2e-5)
    first = torch.autograd.grad(got, leaves, grad, create_graph=True)
    again = torch.autograd.grad(expected, leaves, grad, create_graph=True)
    second, twice = (torch.autograd.grad(sum(g.sin().sum() for g in some), leaves, materialize_grads=True) for some in (first, again))  # fmt: skip
    assert_close(second, twice, rtol=1e-4, atol=1e-4)


def test_the_law_of_dropout() -> None:
    """Kept as often as asked, whatever the neighbour; another pass is another mask."""
    kept = draw_factors(torch.empty(1, 64, 128), draw_dropout(0.2)) > 0
    assert abs(kept.float().mean() - 0.8) < 0.02
    assert abs((kept[..., 1:] == kept[..., :-1]).float().mean() - 0.68) < 0.02
    assert abs((kept[:, 1:] == kept[:, :-1]).float().mean() - 0.68) < 0.02
    other = draw_factors(torch.empty(1, 64, 128), draw_dropout(0.2)) > 0
    assert abs((kept == other).float().mean() - 0.68) < 0.02


def test_a_number_that_is_not_one_stays_seen() -> None:
    """An activation that turned NaN into zero would hide that training has failed."""
    leaves = make_level(True, True)
    with torch.no_grad():
        leaves[0][3] = torch.nan  # the node without edges
    out = SageLevel.apply(level("relu"), *leaves)
    assert out[:, 3].isnan().all()
    assert not out[:, :3].isnan().any()


# Who uses them.


def run(model: CSNN, x: Tensor) -> list[Tensor]:
    out = model(x, ODD)
    return [out, *torch.autograd.grad(out.square().sum(), list(model.parameters()))]


@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
def test_a_whole_network(semantics: str, launched: list[str], monkeypatch) -> None:
    torch.manual_seed(0)
    model = CSNN(4, 3, 2, 2, stalk_dim=3, learner="sage-projected", semantics=semantics).eval()
    x = randn(5, 4)
    got = run(model, x)
    assert {"node_maps", "sage_level"} <= set(launched)
    launched.clear()
    with on_cuda.use_triton(False):
        expected = run(model, x)
    assert not launched
    for one, other in zip(got, expected, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-4)


def other_uses() -> Iterator[tuple[str, Any]]:
    x, *parts = (leaf.detach() for leaf in make_terms(ODD, 2, 3, weighted=False))
    wide = [leaf.detach() for leaf in make_terms(ODD, 9, 1, weighted=False)]
    blocks = randn(5, 2, 2)
    yield "large stalks", lambda take: take(wide[0], Terms(ODD, *wide[1:]))
    yield "blocks", lambda take: take(x, Terms(ODD, blocks, *parts[1:]))
    yield "double", lambda take: take(x.double(), Terms(ODD, *(p.double() for p in parts)))
    yield "mixed", lambda take: take(x, Terms(ODD, parts[0].double(), *parts[1:]))
    yield "meta", lambda take: take(x.to("meta"), Terms(ODD, *(p.to("meta") for p in parts)))
    terms = Terms(ODD, *parts)
    yield "transform", lambda take: torch.func.vmap(lambda v: (take(v, terms), v)[1])(x[None])
    yield "gradient", lambda take: torch.func.grad(lambda v: (take(v, terms), v.sum())[1])(x)

    def dual(take: Any) -> None:
        with forward_ad.dual_level():
            take(x, terms)

    def autocast(take: Any) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            take(x, terms)

    def switched_off(take: Any) -> None:
        with on_cuda.use_triton(False):
            take(x, terms)

    yield "forward mode", dual
    yield "autocast", autocast
    yield "switched off", switched_off


@pytest.mark.parametrize(("name", "use"), list(other_uses()), ids=lambda v: v if isinstance(v, str) else "")  # fmt: skip
def test_everything_else_sees_the_composition(name: str, use: Any) -> None:
    answers: list[bool] = []

    def take(x: Tensor, terms: Terms) -> None:
        answers.append(on_cuda.takes_node_maps(x, terms))

    use(take)
    assert answers == [False]
    x, *parts = (leaf.detach() for leaf in make_terms(ODD, 2, 3, weighted=False))
    assert on_cuda.takes_node_maps(x, Terms(ODD, *parts))


def test_compilers_see_the_composition() -> None:
    x, *parts = (leaf.detach() for leaf in make_terms(ODD, 2, 3, weighted=False))

    def ask(x: Tensor) -> Tensor:
        return x + on_cuda.takes_node_maps(x, Terms(ODD, *parts))

    assert torch.equal(ask(x), x + 1)
    assert torch.equal(torch.compile(ask, backend="eager")(x), x)


def test_block_diagonals_go_another_way(launched: list[str]) -> None:
    leaves = make_terms(ODD, 2, 3, weighted=False)
    leaves[1] = randn(5, 2, 2, seed=1).requires_grad_()
    x, *parts = leaves
    got = factored.node_maps(x, Terms(ODD, *parts))
    expected = reference.node_maps(x, Terms(ODD, *parts))
    assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert_close(torch.autograd.grad(got.sum(), leaves), torch.autograd.grad(expected.sum(), leaves), rtol=1e-5, atol=1e-5)  # fmt: skip
    assert "node_maps" not in launched


def test_widening_layers_go_another_way(launched: list[str]) -> None:
    conv = SAGEConv(3, 6, project=True)
    x = randn(5, 3)
    assert_close(conv(x, ODD), sage.compose_convs(x, ODD, 1, *sage._parameters(conv))[0])
    assert "sage_level" not in launched
