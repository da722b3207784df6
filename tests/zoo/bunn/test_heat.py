"""Heat kernels against dense matrix exponentials."""

from __future__ import annotations

import math

import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, generator, path, randn, random_weight
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.bunn import heat as heat_module
from coopsheaf.zoo.bunn.heat import Heat, LimitHeat, SpectralHeat, TaylorHeat

B, C = 2, 3
UNDIRECTED = ["bidirected", "path", "no-edges", "single-node", "single-loop"]
ISOLATED = (6, bidirected(torch.tensor([[1, 4], [4, 2]])))  # 0, 3 and 5 are alone
CONNECTED = (6, bidirected(torch.tensor([[0, 1, 2, 3, 4, 1], [1, 2, 3, 4, 5, 4]])))


def graph_of(name: str) -> Graph:
    n, edges = {**ODD_GRAPHS, "isolated": ISOLATED, "connected": CONNECTED}[name]
    return Graph(edges, n)


def dense_laplacian(
    graph: Graph, weight: Tensor | None = None, normalization: str = "symmetric"
) -> Tensor:
    """I - D_in^-½ A D_out^-½ or I - D_in^-1 A, with A_ij the weight of the edges j→i."""
    n = graph.num_nodes
    weight = torch.ones(graph.num_edges, dtype=torch.float64) if weight is None else weight
    a = torch.zeros(n, n, dtype=torch.float64)
    a = a.index_put((graph.target, graph.source), weight, accumulate=True)
    heard, sent = (torch.where(a.sum(k) > 0, a.sum(k), 1.0) for k in (1, 0))
    if normalization == "random-walk":
        return torch.eye(n, dtype=torch.float64) - a / heard[:, None]
    return torch.eye(n, dtype=torch.float64) - a / (heard[:, None] * sent[None, :]).sqrt()


def spread(matrix: Tensor, g: Tensor) -> Tensor:
    return torch.einsum("ij,jbc->ibc", matrix, g)


def spectral(tau: float, count: int = 500, bundles: int = B) -> SpectralHeat:
    module = SpectralHeat(bundles, num_eigenpairs=count).double()
    with torch.no_grad():
        module.tau.fill_(tau)
    return module


# --- Taylor ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ODD_GRAPHS, "connected"])
@pytest.mark.parametrize("normalization", ["symmetric", "random-walk"])
@pytest.mark.parametrize("weighted", [False, True])
def test_taylor_is_the_dense_polynomial(name: str, normalization: str, weighted: bool) -> None:
    graph = graph_of(name)
    weight = random_weight(graph.num_edges).requires_grad_() if weighted else None
    g = randn(graph.num_nodes, B, C).requires_grad_()
    laplacian = dense_laplacian(graph, weight, normalization)
    matrix = sum(
        (-0.7) ** k / math.factorial(k) * torch.linalg.matrix_power(laplacian, k) for k in range(5)
    )
    got = TaylorHeat(4, 0.7, normalization=normalization)(g, graph, None, weight)
    expected = spread(matrix, g)
    assert_close(got, expected, rtol=0, atol=1e-12)
    leaves = [g] if weight is None or graph.num_edges == 0 else [g, weight]
    cotangent = randn(*g.shape, seed=3)
    for ours, theirs in zip(
        torch.autograd.grad(got, leaves, cotangent),
        torch.autograd.grad(expected, leaves, cotangent),
        strict=True,
    ):
        assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["connected", "isolated", "random-directed"])
@pytest.mark.parametrize("tau", [0.1, 1.0, 2.0])
def test_taylor_of_degree_30_is_the_exponential(name: str, tau: float) -> None:
    graph = graph_of(name)
    g = randn(graph.num_nodes, B, C)
    exact = spread(torch.linalg.matrix_exp(-tau * dense_laplacian(graph)), g)
    assert_close(TaylorHeat(30, tau)(g, graph), exact, rtol=0, atol=1e-8)


def test_few_steps_and_a_long_time_are_not_the_kernel() -> None:
    """τ = 1.5 and four steps, as published for one dataset: the error is not small."""
    graph = graph_of("connected")
    exact = torch.linalg.matrix_exp(-1.5 * dense_laplacian(graph))
    eye = torch.eye(6, dtype=torch.float64).unsqueeze(1)
    assert (TaylorHeat(4, 1.5)(eye, graph).squeeze(1) - exact).abs().max() > 0.05


# --- spectral -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*UNDIRECTED, "isolated", "connected"])
@pytest.mark.parametrize("tau", [0.0, 0.5, 3.0])
def test_the_full_spectrum_is_the_exponential(name: str, tau: float) -> None:
    graph = graph_of(name)
    g = randn(graph.num_nodes, B, C)
    exact = spread(torch.linalg.matrix_exp(-tau * dense_laplacian(graph)), g)
    assert_close(spectral(tau)(g, graph), exact, rtol=0, atol=1e-12)


def test_bundles_have_times_of_their_own_and_gradients_reach_them() -> None:
    graph, g = graph_of("connected"), randn(6, 3, C)
    module = spectral(0.0, bundles=3)
    with torch.no_grad():
        module.tau.copy_(torch.tensor([-1.0, 0.5, 2.0]))  # ReLU makes the first one 0
    z = module(g, graph)
    for b, tau in enumerate((0.0, 0.5, 2.0)):
        exact = spread(torch.linalg.matrix_exp(-tau * dense_laplacian(graph)), g)[:, b]
        assert_close(z[:, b], exact, rtol=0, atol=1e-12)
    z.square().sum().backward()
    assert module.tau.grad[0] == 0
    assert (module.tau.grad[1:] != 0).all()


def test_weights_enter_the_spectrum() -> None:
    graph, g = graph_of("connected"), randn(6, B, C)
    half = random_weight(graph.num_edges // 2)
    weight = torch.cat([half, half])
    exact = spread(torch.linalg.matrix_exp(-dense_laplacian(graph, weight)), g)
    assert_close(spectral(1.0)(g, graph, None, weight), exact, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="`edge_weight` must be the same both ways"):
        spectral(1.0)(g, graph, None, random_weight(graph.num_edges))


def test_truncation_projects_on_the_smoothest_eigenvectors() -> None:
    graph, g = graph_of("connected"), randn(6, B, C)
    vectors = torch.linalg.eigh(dense_laplacian(graph)).eigenvectors[:, :3]
    expected = spread(vectors @ vectors.T, g)
    assert_close(spectral(0.0, 3)(g, graph), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tau", [0.3, 4.0, 100.0])
def test_the_exact_kernel_contracts(tau: float) -> None:
    for name in ("connected", "isolated", "bidirected"):
        graph = graph_of(name)
        g = randn(graph.num_nodes, B, C)
        z = spectral(tau)(g, graph)
        assert (z.norm(dim=0) <= g.norm(dim=0) + 1e-12).all()


def test_after_a_long_time_the_harmonic_part_is_left() -> None:
    """The projection on D^½ 1, for times that would turn rounding into decay or growth."""
    graph, g = graph_of("connected"), randn(6, B, C)
    u = graph.in_degree.double().sqrt()
    expected = spread(torch.outer(u, u) / u.square().sum(), g)
    for tau in (1e3, 1e30):
        assert_close(spectral(tau)(g, graph), expected, rtol=0, atol=1e-12)
    assert_close(LimitHeat(by_degree=True)(g, graph), expected, rtol=0, atol=1e-12)


def test_eigenpairs_are_kept_with_a_prepared_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, g, module = graph_of("connected"), randn(6, B, C), spectral(1.0)
    first = module(g, graph)
    monkeypatch.setattr(torch.linalg, "eigh", None)
    assert torch.equal(module(g, graph), first)


def test_directions_and_large_graphs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="`edge_index` must hold every edge both ways"):
        spectral(1.0)(randn(4, B, C), graph_of("one-way"))
    monkeypatch.setattr(heat_module, "MAX_DENSE_NODES", 5)
    with pytest.raises(ValueError, match=r"at most 5 nodes .*Taylor.*; got 6"):
        spectral(1.0)(randn(6, B, C), graph_of("connected"))


@pytest.mark.parametrize(
    ("init", "expected"),
    [("linear", [2.5, 5.0, 7.5, 10.0]), ("multiscale", [0.01, 0.1, 1.0, 10.0])],
)
def test_where_times_start(init: str, expected: list[float]) -> None:
    assert_close(SpectralHeat(4, 10.0, tau_init=init).tau.detach(), torch.tensor(expected))


def test_uniform_times_start_around_tau() -> None:
    torch.manual_seed(0)
    tau = SpectralHeat(1000, 10.0).tau
    assert 9.5 <= tau.min() < 9.51
    assert 10.49 < tau.max() <= 10.5


# --- all ------------------------------------------------------------------------------------------

EACH_HEAT = pytest.mark.parametrize(
    "module",
    [
        TaylorHeat(6, 1.2),
        TaylorHeat(3, 0.5, normalization="random-walk"),
        spectral(0.8),
        spectral(0.8, 1),
        LimitHeat(),
        LimitHeat(by_degree=True),
    ],
    ids=repr,
)


@EACH_HEAT
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_batch_is_its_graphs_one_by_one(module: Heat, shuffled: bool) -> None:
    parts = [graph_of(name) for name in ("connected", "single-node", "path", "isolated")]
    features = [randn(part.num_nodes, B, C, seed=k) for k, part in enumerate(parts)]
    start = torch.tensor([0, *(part.num_nodes for part in parts)]).cumsum(0)
    edges = torch.cat([part.edge_index + s for part, s in zip(parts, start, strict=False)], dim=1)
    batch = torch.cat([torch.full((p.num_nodes,), k) for k, p in enumerate(parts)])
    g = torch.cat(features)
    alone = torch.cat([module(f, part) for f, part in zip(features, parts, strict=True)])
    new = torch.arange(len(g))  # node i is now called new[i]
    if shuffled:
        new = torch.randperm(len(g), generator=generator(0))
    old = new.argsort()
    together = module(g[old], Graph(new[edges], len(g)), batch[old])
    assert_close(together, alone[old], rtol=0, atol=1e-12)


def test_empty_places_of_a_batch_take_no_eigenpair() -> None:
    """A path of three nodes has the eigenvalues 0, 1 and 2; three places beside it are empty."""
    big, small, module = graph_of("connected"), Graph(path(3), 3), spectral(0.8, 3)
    g = randn(9, B, C)
    edges = torch.cat([small.edge_index, big.edge_index + 3], dim=1)
    batch = torch.tensor([0] * 3 + [1] * 6)
    alone = torch.cat([module(g[:3], small), module(g[3:], big)])
    assert_close(module(g, Graph(edges, 9), batch), alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("module", [TaylorHeat(5, 0.0), TaylorHeat(0, 1.0), spectral(0.0)])
def test_no_time_changes_nothing(module: Heat) -> None:
    for name in ("connected", "isolated", "no-edges"):
        graph = graph_of(name)
        g = randn(graph.num_nodes, B, C)
        assert_close(module(g, graph), g, rtol=0, atol=1e-13)


@pytest.mark.parametrize("module", [TaylorHeat(30, 1.0), spectral(1.0)])
def test_isolated_nodes_cool_by_themselves(module: Heat) -> None:
    g = randn(6, B, C)
    alone = torch.tensor([0, 3, 5])
    z = module(g, graph_of("isolated"))
    assert_close(z[alone], math.exp(-1.0) * g[alone], rtol=0, atol=1e-13)


def test_the_mean_sees_no_edges() -> None:
    g = randn(5, B, C)
    mean = g.mean(0, keepdim=True).expand_as(g)
    assert_close(LimitHeat()(g, Graph(path(5), 5)), mean, rtol=0, atol=1e-13)


@EACH_HEAT
def test_it_compiles_in_one_piece(module: Heat) -> None:
    torch.compiler.reset()
    graph, g = graph_of("connected"), randn(6, B, C)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert_close(compiled(g, graph), module(g, graph), rtol=0, atol=1e-12)


def test_reprs_state_the_transformation() -> None:
    assert repr(TaylorHeat(8, 1)) == "TaylorHeat(8, tau=1.0, normalization='symmetric')"
    assert repr(SpectralHeat(4)) == (
        "SpectralHeat(4, tau=1.0, num_eigenpairs=500, tau_init='uniform')"
    )
    assert repr(LimitHeat()) == "LimitHeat(by_degree=False)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TaylorHeat(-1, 1.0), "`num_steps` must be an integer of at least 0; got -1"),
        (lambda: TaylorHeat(1, -1.0), "`tau` must be a finite number of at least 0; got -1.0"),
        (lambda: TaylorHeat(1, float("nan")), "`tau` must be a finite number"),
        (lambda: TaylorHeat(1, 1.0, normalization="?"), "`normalization` must be one of"),
        (lambda: SpectralHeat(0), "`num_bundles` must be an integer of at least 1; got 0"),
        (lambda: SpectralHeat(1, num_eigenpairs=0), "`num_eigenpairs` must be an integer"),
        (lambda: SpectralHeat(1, tau_init="?"), "`tau_init` must be one of 'uniform'"),
        (lambda: SpectralHeat(65, tau_init="multiscale"), "`num_bundles` must be at most 64"),
    ],
)
def test_bad_arguments_are_named(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
