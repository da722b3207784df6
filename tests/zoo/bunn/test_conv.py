"""Bundle diffusion against the dense bundle Laplacian."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, randn, random_orthogonal
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.bunn.conv import BundleConv, BundleLearner
from coopsheaf.zoo.bunn.heat import Heat, SpectralHeat, TaylorHeat
from coopsheaf.zoo.platonov.layers import FeedForward

N, BUNDLES, D, K = 6, 2, 3, 2
H = BUNDLES * D * K
GRAPH = Graph(bidirected(torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 4, 4]])), N)  # 5 is alone
MAPS = random_orthogonal(N * BUNDLES, D).view(N, BUNDLES, D, D)
EYE = torch.eye(D, dtype=torch.float64).expand(N, BUNDLES, D, D)


def conv(heat: Heat, update: nn.Module | None = None, concat: str = "none") -> BundleConv:
    update = nn.Identity() if update is None else update
    return BundleConv(H, BUNDLES, D, heat=heat, update=update, concat=concat).double()


def exact(tau: float) -> SpectralHeat:
    heat = SpectralHeat(BUNDLES).double()
    with torch.no_grad():
        heat.tau.fill_(tau)
    return heat


def bundle_laplacian(maps: Tensor) -> Tensor:
    """Of one bundle, node by node: I, and -O_iᵀ O_j / √(d_i d_j) for every edge j→i."""
    blocks = torch.zeros(N, N, D, D, dtype=torch.float64)
    for i in range(N):
        blocks[i, i] = torch.eye(D)
    degree = GRAPH.in_degree.double()
    for j, i in GRAPH.edge_index.T.tolist():
        blocks[i, j] -= maps[i].T @ maps[j] / (degree[i] * degree[j]).sqrt()
    return blocks.transpose(1, 2).reshape(N * D, N * D)


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("kind", ["taylor", "spectral"])
def test_heat_in_the_common_frame_is_heat_of_the_bundle(tau: float, kind: str) -> None:
    heat = TaylorHeat(30, tau) if kind == "taylor" else exact(tau)
    x = randn(N, H)
    got = conv(heat)(x, MAPS, GRAPH).view(N, BUNDLES, D, K)
    for b in range(BUNDLES):
        kernel = torch.linalg.matrix_exp(-tau * bundle_laplacian(MAPS[:, b]))
        field = x.view(N, BUNDLES, D, K)[:, b].reshape(N * D, K)
        expected = (kernel @ field).view(N, D, K)
        assert_close(got[:, b], expected, rtol=0, atol=1e-8 if kind == "taylor" else 1e-12)


@pytest.mark.parametrize("heat", [TaylorHeat(8, 0.0), exact(0.0)], ids=repr)
def test_no_time_and_no_update_is_the_identity(heat: Heat) -> None:
    x = randn(N, H)
    assert_close(conv(heat)(x, EYE, GRAPH), x, rtol=0, atol=1e-13)
    assert_close(conv(heat)(x, MAPS, GRAPH), x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("concat", ["node", "common", "none"])
def test_what_the_update_sees(concat: str) -> None:
    torch.manual_seed(0)
    heat, x = TaylorHeat(5, 0.7), randn(N, H).requires_grad_()
    update = FeedForward(H if concat == "none" else 2 * H, H, H).double()
    common = torch.einsum("nbde,nbek->nbdk", MAPS, x.view(N, BUNDLES, D, K))
    z = heat(common.reshape(N, BUNDLES, D * K), GRAPH).reshape(N, H)
    seen = {
        "node": torch.cat([x, z], dim=1),
        "common": torch.cat([common.reshape(N, H), z], dim=1),
        "none": z,
    }[concat]
    h = update(seen).view(N, BUNDLES, D, K)
    expected = torch.einsum("nbed,nbek->nbdk", MAPS, h).reshape(N, H)
    got = conv(heat, update, concat)(x, MAPS, GRAPH)
    assert_close(got, expected, rtol=0, atol=1e-12)
    (a,) = torch.autograd.grad(got.square().sum(), x)
    (b,) = torch.autograd.grad(expected.square().sum(), x)
    assert_close(a, b, rtol=0, atol=1e-12)


def test_without_the_node_frame_a_common_turn_of_all_frames_changes_nothing() -> None:
    """Identity update: only the transports O_iᵀ O_j count."""
    turn = random_orthogonal(1, D, seed=4)[0]
    x, layer = randn(N, H), conv(TaylorHeat(6, 1.0))
    assert_close(layer(x, turn @ MAPS, GRAPH), layer(x, MAPS, GRAPH), rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_layers", [0, 2])
@pytest.mark.parametrize(("orthogonal", "d"), [("euler", 2), ("euler", 3), ("householder", 4)])
def test_learned_maps_are_orthogonal(num_layers: int, orthogonal: str, d: int) -> None:
    torch.manual_seed(0)
    learner = BundleLearner(5, 3, d, num_layers=num_layers, orthogonal=orthogonal).double()
    n, edges = ODD_GRAPHS["isolated"]
    maps = learner(10 * randn(n, 5), Graph(edges, n))
    assert maps.shape == (n, 3, d, d)
    eye = torch.eye(d, dtype=torch.float64).expand_as(maps)
    assert_close(maps.mT @ maps, eye, rtol=0, atol=1e-12)


def test_angles_are_two_pi_times_the_output_without_bound() -> None:
    torch.manual_seed(0)
    learner, x = BundleLearner(5, 3, 2, num_layers=0, dropout=0.5).double().eval(), randn(N, 5)
    output = learner.lin_out(nn.functional.gelu(learner.lin_in(x)))  # (n, B)
    maps = learner(x, GRAPH)
    assert_close(maps[..., 0, 0], torch.cos(2 * torch.pi * output), rtol=0, atol=1e-12)
    assert_close(maps[..., 1, 0], torch.sin(2 * torch.pi * output), rtol=0, atol=1e-12)


def test_reprs_state_the_transformation() -> None:
    learner = BundleLearner(5, 3, 2, num_layers=1)
    assert repr(learner) == "BundleLearner(5, 3, 2, num_layers=1, orthogonal=Euler(2))"
    layer = BundleConv(8, 2, 2, heat=TaylorHeat(4, 1.5), update=FeedForward(16, 8, 8))
    assert repr(layer) == (
        "BundleConv(8, 2, 2, heat=TaylorHeat(4, tau=1.5, normalization='symmetric'), "
        "update=FeedForward(16, 8, 8, dropout=0.0), concat='node')"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BundleLearner(5, 3, 1, num_layers=1), "`stalk_dim` must be an integer of at le"),
        (lambda: BundleLearner(5, 3, 4, num_layers=1), "`stalk_dim` must be 2 or 3 for Euler"),
        (lambda: BundleLearner(5, 3, 2, num_layers=-1), "`num_layers` must be an integer of at"),
        (
            lambda: BundleConv(7, 2, 2, heat=TaylorHeat(1, 1.0), update=nn.Identity()),
            "`channels` must be a multiple of num_bundles · stalk_dim = 4; got 7",
        ),
        (lambda: conv(TaylorHeat(1, 1.0), concat="?"), "`concat` must be one of 'node'"),
        (lambda: conv(TaylorHeat(1, 1.0))(randn(N, H), MAPS[:2], GRAPH), "`maps` must have shape"),
    ],
)
def test_bad_arguments_are_named(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
