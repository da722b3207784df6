"""P6: the directed Laplacians may have negative real parts, and the heat flows with a minus."""

from __future__ import annotations

import math

import pytest
import torch
from graphs import path, randn, random_orthogonal
from paper.networks import bare_csnn, set_maps
from paper.operators import (
    DIFFUSIONS,
    random_pair,
    simple,
)
from torch import Tensor

from coopsheaf import (
    ConformalMaps,
    FlatSheaf,
    Graph,
    Sheaf,
    dirichlet_energy,
    in_laplacian,
    out_laplacian,
    sheaf_laplacian,
    spectrum,
)

THETA = 0.8


def rotation(angle: float) -> Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]], dtype=torch.float64)


def twisted_edge(scale: float) -> FlatSheaf:
    """One edge, S = I, T = scale × rotation; going to and fro rotates by 2·THETA."""
    ones = torch.ones(2, dtype=torch.float64)
    source = ConformalMaps(ones, torch.eye(2, dtype=torch.float64).repeat(2, 1, 1))
    target = ConformalMaps(scale * ones, rotation(THETA).repeat(2, 1, 1))
    return FlatSheaf(simple(2, [(0, 1)]), source, target)


def sorted_complex(values: Tensor) -> Tensor:
    order = sorted(values.tolist(), key=lambda z: (round(z.real, 9), round(z.imag, 9)))
    return torch.tensor(order, dtype=torch.complex128)


@pytest.mark.parametrize("normalization", [None, "augmented"])
def test_one_edge_in_closed_form(normalization: str | None) -> None:
    """S = I, T = 3 Rot(θ) on one edge: L_out has the eigenvalues 1 ± 3 e^(±iθ), two left of 0."""
    values = spectrum(out_laplacian(twisted_edge(3.0), normalization))
    turn = complex(math.cos(THETA), math.sin(THETA))
    expected = [1 + sign * 3 * z for sign in (1, -1) for z in (turn, turn.conjugate())]
    share = 1.0 if normalization is None else 0.5  # 1 / (deg s² + 1)
    expected = sorted_complex(share * torch.tensor(expected, dtype=torch.complex128))
    torch.testing.assert_close(sorted_complex(values), expected, rtol=1e-10, atol=1e-10)
    assert (values.real < -0.5).sum() == 2
    assert (values.imag.abs() > 0.5).all()


def test_random_maps_on_the_four_node_path() -> None:
    """On the path of four nodes random maps, one side louder, mostly give negative real parts."""
    graph, least_out, least_in = Graph(path(4)), [], []
    for seed in range(20):
        source, target = random_pair(4, 2, seed)
        loud = ConformalMaps(3 * target.scale, target.orthogonal)
        sheaf = FlatSheaf(graph, source, loud)
        least_out.append(float(spectrum(out_laplacian(sheaf)).real.min()))
        sheaf = FlatSheaf(graph, ConformalMaps(3 * source.scale, source.orthogonal), target)
        least_in.append(float(spectrum(in_laplacian(sheaf)).real.min()))
    assert sum(value < -0.1 for value in least_out) >= 15
    assert sum(value < -0.1 for value in least_in) >= 15


def test_undirected_laplacians_stay_positive() -> None:
    """The same path with one map per node and no direction is positive semi-definite."""
    nodes = torch.arange(3)
    graph = Graph(torch.stack([nodes, nodes + 1]), 4)
    for seed in range(10):
        scale = 3 * torch.rand(4, generator=torch.Generator().manual_seed(seed)).double()
        maps = scale[:, None, None] * random_orthogonal(4, 2, seed)
        sheaf = Sheaf(graph, torch.stack([maps[:-1], maps[1:]], dim=1))
        values = spectrum(sheaf_laplacian(sheaf))
        assert not values.is_complex()
        assert values.min() > -1e-10


RING = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3)]


def trivial(graph: Graph, d: int) -> tuple[ConformalMaps, Sheaf]:
    """Identity maps, and the undirected trivial sheaf that measures the energy."""
    eye = torch.eye(d, dtype=torch.float64)
    n, keep = graph.num_nodes, graph.source < graph.target
    maps = ConformalMaps(torch.ones(n, dtype=torch.float64), eye.repeat(n, 1, 1))
    edges = graph.edge_index[:, keep]
    return maps, Sheaf(edges, eye.repeat(edges.shape[1], 2, 1, 1), n)


@pytest.mark.parametrize("name", DIFFUSIONS)
def test_the_heat_equation_has_a_minus(name: str) -> None:
    """With S = T = I the step X - τ P X lowers the energy, step by step; X + τ P X raises it."""
    graph = simple(5, RING)
    maps, sheaf = trivial(graph, 2)
    operator = DIFFUSIONS[name](graph, maps, maps)
    normalization = "augmented" if name.endswith("augmented") else None
    tau = 1 / spectrum(operator).real.max()
    cooled = heated = randn(5, 2, 3, seed=1)
    first = before = dirichlet_energy(sheaf, cooled, normalization)
    for _ in range(30):
        cooled = cooled - tau * (operator @ cooled)
        after = dirichlet_energy(sheaf, cooled, normalization)
        assert after < before
        before = after
    assert before < 0.1 * first
    warmer = dirichlet_energy(sheaf, heated + tau * (operator @ heated), normalization)
    assert warmer > 1.5 * first


@pytest.mark.parametrize("semantics", ["paper", "released"])
def test_a_layer_steps_downhill(semantics: str) -> None:
    """A CSNN layer with identity maps, weights and activation is X - P X and lowers the energy."""
    graph = Graph(path(6))
    model = bare_csnn(6, 2, 1, 1, left_weights=False, right_weights=False, semantics=semantics)
    for learner in (model.convs[0].source_learner, model.convs[0].target_learner):
        set_maps(learner, torch.ones(6), torch.zeros(6, 1))
    maps, sheaf = trivial(graph, 2)
    x = randn(6, 2, 1, seed=2)
    after = model(x.flatten(1), graph).reshape_as(x)
    expected = x - DIFFUSIONS[f"{semantics}-augmented"](graph, maps, maps) @ x
    torch.testing.assert_close(after, expected, rtol=1e-12, atol=1e-12)
    assert dirichlet_energy(sheaf, after, "augmented") < dirichlet_energy(sheaf, x, "augmented")
