"""Diffusion with quiver Laplacians: against the equation, and where it is an undirected sheaf."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_orthogonal, random_weight
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph, Sheaf, sheaf_laplacian
from coopsheaf.sheaves import quiver_sheaf, spectrum
from coopsheaf.zoo.nsd import NSDConv
from coopsheaf.zoo.nsd.edge_maps import GeneralMaps, OrthogonalMaps
from coopsheaf.zoo.quiver import QuiverConv, QuiverNSD

D, H = 2, 3
KINDS = ["general", "diagonal", "orthogonal"]


def layer(**settings: Any) -> QuiverConv:
    torch.manual_seed(0)
    return QuiverConv(H, D, **settings).double()


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("maps", KINDS)
@pytest.mark.parametrize("normalization", [None, "augmented"])
def test_it_is_the_laplacian_of_the_quiver(name: str, maps: str, normalization: str | None) -> None:
    """With loops, parallel arcs and arcs back."""
    n, edges = ODD_GRAPHS[name]
    conv, x = layer(maps=maps, normalization=normalization), randn(n, D, H)
    weight = random_weight(edges.shape[1])
    along = conv.edge_maps.dense(conv.maps(x, Graph(edges, n)))
    want = sheaf_laplacian(quiver_sheaf(Graph(edges, n), along, edge_weight=weight), normalization)
    operator = conv.laplacian(x, edges, weight)
    assert_close(operator.to_dense(), want.to_dense(), **EXACT)
    check_operator(operator)
    values = spectrum(operator)
    assert values.min() > -1e-10
    assert normalization is None or values.max() <= 2 + 1e-10


def test_the_equation_node_by_node() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 3]])
    conv, x, w = layer(), randn(4, D, H), random_weight(4)
    a = conv.maps(x, Graph(edges, 4))
    eye = torch.eye(D).double()
    degree = torch.zeros(4, D, D).double()
    for e, (i, j) in enumerate(edges.T.tolist()):
        degree[i] += w[e] * a[e].T @ a[e]
        degree[j] += w[e] * eye
    values, vectors = torch.linalg.eigh(degree + eye)
    root = vectors @ torch.diag_embed(values.rsqrt()) @ vectors.mT
    torch.nn.init.normal_(conv.left.weight)
    hat = root @ (conv.left.weight @ x @ conv.right.weight.T)
    y = torch.zeros(4, D, H).double()
    for e, (i, j) in enumerate(edges.T.tolist()):
        y[i] += w[e] * a[e].T @ (a[e] @ hat[i] - hat[j])
        y[j] += w[e] * (hat[j] - a[e] @ hat[i])
    assert_close(conv(x, edges, w), root @ y, **EXACT)


def nsd_laplacian(kind: Any, arcs: Tensor, n: int, first: Tensor, second: Tensor) -> Tensor:
    """NSD's Laplacian of arcs without arcs back, listed both ways: maps at the targets."""
    both = Graph(torch.cat([arcs, arcs.flip(0)], dim=1), n)
    return kind.laplacian(torch.cat([second, first]), both, None, "augmented").to_dense()


def test_isometries_make_it_the_undirected_sheaf_of_nsd() -> None:
    """A = TᵀS with orthogonal S, T is NSD with S at the tail and T at the head of each arc."""
    arcs = torch.tensor([[0, 1, 2, 0], [1, 2, 3, 3]])
    s, t = random_orthogonal(4, D), random_orthogonal(4, D, seed=1)
    kind = OrthogonalMaps(D)
    quiver = sheaf_laplacian(quiver_sheaf(arcs, t.mT @ s), "augmented").to_dense()
    assert_close(nsd_laplacian(kind, arcs, 4, s, t), quiver, **EXACT)
    ends = sheaf_laplacian(Sheaf(arcs, torch.stack([s, t], dim=1)), "augmented").to_dense()
    assert_close(quiver, ends, **EXACT)
    # The layer itself: its maps are A at the tail and the identity at the head.
    conv, x = layer(maps="orthogonal"), randn(4, D, H)
    a = conv.maps(x, Graph(arcs, 4))
    own = conv.laplacian(x, arcs).to_dense()
    assert_close(own, nsd_laplacian(kind, arcs, 4, a, torch.eye(D).double().expand_as(a)), **EXACT)


def test_it_is_nsd_with_identities_at_the_heads() -> None:
    arcs = torch.tensor([[0, 1, 2], [1, 2, 0]])
    conv, x = layer(), randn(3, D, H)
    a = conv.maps(x, Graph(arcs, 3))
    want = nsd_laplacian(GeneralMaps(D), arcs, 3, a, torch.eye(D).double().expand_as(a))
    assert_close(conv.laplacian(x, arcs).to_dense(), want, **EXACT)


def test_identity_maps_are_those_of_the_graph() -> None:
    arcs = torch.tensor([[0, 1, 2], [1, 2, 0]])
    both = torch.cat([arcs, arcs.flip(0)], dim=1)
    x = randn(3, D, H)
    plain = NSDConv(H, D, maps="identity").double().laplacian(x, both).to_dense()
    assert_close(layer(maps="identity").laplacian(x, arcs).to_dense(), plain, **EXACT)


def test_fixed_coordinates_are_those_of_the_undirected_graph() -> None:
    arcs = torch.tensor([[0, 1, 2], [1, 2, 3]])
    both = torch.cat([arcs, arcs.flip(0)], dim=1)
    x = randn(4, D + 2, H)
    quiver = layer(add_lp=True, add_hp=True).laplacian(x, arcs)
    plain = NSDConv(H, D, maps="identity", add_lp=True, add_hp=True).double().laplacian(x, both)
    got, want = (op.to_dense().view(4, D + 2, 4, D + 2)[:, D:, :, D:] for op in (quiver, plain))
    assert_close(got, want, **EXACT)


@pytest.mark.parametrize("maps", KINDS)
def test_direction_counts(maps: str) -> None:
    arcs = torch.tensor([[0, 1, 2], [1, 2, 3]])
    torch.manual_seed(0)
    model = QuiverNSD(4, H, 1, 2, stalk_dim=D, maps=maps).double()
    x = randn(4, 4)
    assert not torch.allclose(model(x, arcs), model(x, arcs.flip(0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer(learn_weights=True), "`learn_weights` must be False for arcs; got True"),
        (lambda: QuiverNSD(4, H, maps="round"), "`maps` must be one of"),
        (lambda: layer()(randn(2, D, H), torch.tensor([[0], [1]]), torch.tensor([-1.0]).double()), "not negative"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
