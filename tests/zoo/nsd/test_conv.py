"""The layer of Neural Sheaf Diffusion against its equation, written out densely."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from coboundaries import (
    adjacency_matrix,
    atlas,
    augmented_matrix,
    laplacian_matrix,
    reverse_of,
    symmetric_weight,
)
from graphs import bidirected, generator, path, randn
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.nsd.edge_learners import MixedLearner
from coopsheaf.zoo.nsd.edge_maps import OrthogonalMaps

D, H = 2, 4
N, EDGES = atlas()[-2]

LAYERS: dict[str, dict[str, Any]] = {
    "diagonal": {"maps": "diagonal"},
    "orthogonal": {"maps": "orthogonal"},
    "orthogonal, weights": {"maps": "orthogonal", "learn_weights": True},
    "euler, weights, lp, hp": {
        "maps": OrthogonalMaps(D, "euler"),
        "learn_weights": True,
        "add_lp": True,
        "add_hp": True,
    },
    "general": {"maps": "general"},
    "general, elu, sparse, lp": {
        "maps": "general",
        "map_act": "elu",
        "sparse_learner": True,
        "add_lp": True,
    },
    "diagonal, sparse as released": {
        "maps": "diagonal",
        "sparse_learner": True,
        "sparse_reading": "released",
    },
    "orthogonal, sparse as released, hp": {
        "maps": "orthogonal",
        "sparse_learner": True,
        "sparse_reading": "released",
        "add_hp": True,
    },
    "identity, hp": {"maps": "identity", "add_hp": True},
    "diagonal, unnormalised, lp": {"maps": "diagonal", "normalization": None, "add_lp": True},
    "no weights": {"maps": "diagonal", "left_weights": False, "right_weights": False},
}
EACH_LAYER = pytest.mark.parametrize("settings", LAYERS.values(), ids=LAYERS)


def layer(seed: int = 0, **settings: Any) -> NSDConv:
    torch.manual_seed(seed)
    conv = NSDConv(H, D, **settings).double()
    if conv.left is not None:  # the identity would hide where it acts
        torch.nn.init.normal_(conv.left.weight)
    return conv


def slow(
    conv: NSDConv, x: Tensor, n: int, edges: Tensor, edge_weight: Tensor | None = None
) -> Tensor:
    """Δ (I ⊗ W₁) X W₂, every matrix dense and every edge on its own."""
    back, ends = reverse_of(edges), [(int(j), int(i)) for j, i in edges.T]

    def learned(learner: torch.nn.Module, features: Tensor) -> Tensor:
        pairs = [torch.cat([features[i], features[j]]) for j, i in ends]
        return torch.stack([learner.lin(pair) for pair in pairs])

    kind = conv.edge_maps
    raw = x.new_empty(len(ends), 0)
    if isinstance(conv.map_learner, MixedLearner):  # all 2d blocks, d rows of two, summed
        pairs = [torch.cat([x[i], x[j]]).reshape(conv.total_dim, 2 * H).sum(0) for j, i in ends]
        raw = conv.map_act(torch.stack([conv.map_learner.lin(pair) for pair in pairs]))
    elif conv.map_learner is not None:
        features = x.sum(1) if conv.map_learner.in_channels == H else x.flatten(1)
        raw = conv.map_act(learned(conv.map_learner, features))
    maps = kind.dense(kind.make(raw))
    if conv.weight_learner is not None:
        z = torch.sigmoid(learned(conv.weight_learner, x.flatten(1)))[:, 0]
        maps = (z * z[back])[:, None, None] * maps
    normalized = conv.normalization == "augmented"

    def normalize(matrix: Tensor) -> Tensor:
        return augmented_matrix(matrix, n) if normalized else matrix

    matrix = normalize(laplacian_matrix(n, edges, maps, edge_weight)).view(n, D, n, D)
    total = conv.total_dim
    delta = x.new_zeros(n, total, n, total)
    delta[:, :D, :, :D] = matrix
    adjacency = adjacency_matrix(n, edges, edge_weight)
    degree = adjacency.sum(1).diag()
    for k, sign in enumerate(conv.fixed_signs):
        delta[:, D + k, :, D + k] = normalize(degree - sign * adjacency)
    if conv.left is not None:
        x = torch.stack([conv.left.weight @ row for row in x])
    if conv.right is not None:
        x = x @ conv.right.weight.T
    return (delta.view(n * total, n * total) @ x.flatten(0, 1)).view_as(x)


def test_readings_of_the_sparse_learner() -> None:
    """The same for stalks of dimension 1; for d = 2 the released one does not know its ends."""

    def maps(d: int, reading: str) -> Tensor:
        torch.manual_seed(0)
        conv = NSDConv(H, d, maps="diagonal", sparse_learner=True, sparse_reading=reading).double()
        return conv.maps(randn(N, d, H), EDGES)

    assert_close(maps(1, "released"), maps(1, "summed"))
    back = reverse_of(EDGES)
    assert_close(maps(2, "released"), maps(2, "released")[back])
    for d in (2, 3):
        assert (maps(d, "released") - maps(d, "summed")).abs().max() > 0.1
    with pytest.raises(ValueError, match="`sparse_reading` goes with `sparse_learner`"):
        NSDConv(H, 2, sparse_reading="released")
    with pytest.raises(ValueError, match="'summed', 'released'; got 'other'"):
        NSDConv(H, 2, sparse_learner=True, sparse_reading="other")


@EACH_LAYER
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equation(settings, weighted: bool) -> None:
    conv = layer(**settings)
    x = randn(N, conv.total_dim, H).requires_grad_()
    leaves, weight = [x, *conv.parameters()], None
    if weighted:  # one number per edge, whichever way it is listed
        leaves.append(symmetric_weight(EDGES).requires_grad_())
        weight = (leaves[-1] + leaves[-1][reverse_of(EDGES)]) / 2
    grads = []
    for out in (conv(x, EDGES, weight), slow(conv, x, N, EDGES, weight)):
        total = (out * randn(*out.shape, seed=1)).sum()
        grads.append([out, *torch.autograd.grad(total, leaves, retain_graph=True)])
    for got, want in zip(*grads, strict=True):
        assert_close(got, want, rtol=1e-10, atol=1e-10)
    for grad in grads[0][1:]:
        assert grad.abs().sum() > 0


@EACH_LAYER
def test_the_learned_operator_obeys_the_laws(settings) -> None:
    conv = layer(**settings)
    laplacian = conv.laplacian(randn(N, conv.total_dim, H), EDGES)
    check_operator(laplacian)
    matrix = laplacian.to_dense()
    assert_close(matrix, matrix.T, **EXACT)
    values = torch.linalg.eigvalsh(matrix)
    assert values.min() > -1e-12
    assert conv.normalization is None or values.max() < 2


def test_the_spectrum_stays_below_two_whatever_is_learned() -> None:
    for seed, (n, edges) in enumerate(atlas(40)):
        for settings in LAYERS.values():
            conv = layer(seed, **settings)
            if conv.normalization is None:
                continue
            x = 10 * randn(n, conv.total_dim, H, seed=seed)  # saturates tanh and sigmoid
            values = torch.linalg.eigvalsh(conv.laplacian(x, Graph(edges, n)).to_dense())
            assert values.min() > -1e-12
            assert values.max() < 2


def test_fixed_coordinates_are_laplacians_of_the_graph() -> None:
    conv = layer(maps="diagonal", normalization=None, add_lp=True, add_hp=True)
    matrix = conv.laplacian(randn(N, D + 2, H), EDGES).to_dense().view(N, D + 2, N, D + 2)
    adjacency = adjacency_matrix(N, EDGES)
    degree = adjacency.sum(1).diag()
    assert_close(matrix[:, D, :, D], degree + adjacency, **EXACT)
    assert_close(matrix[:, D + 1, :, D + 1], degree - adjacency, **EXACT)
    for other in range(D + 1):
        assert matrix[:, other, :, D + 1].abs().max() == 0
        assert matrix[:, D + 1, :, other].abs().max() == 0


@pytest.mark.parametrize("normalization", [None, "degree"])
def test_fixed_coordinates_are_normalised_by_the_augmented_degree_alone(normalization) -> None:
    adjacency = adjacency_matrix(4, path(4))
    degree = adjacency.sum(1).diag()
    root = (degree + torch.eye(4)).diag().rsqrt().diag()
    for name, want in ((normalization, degree - adjacency), ("augmented", None)):
        conv = layer(maps="general", normalization=name, add_hp=True)
        matrix = conv.laplacian(randn(4, 3, H), path(4)).to_dense().view(4, 3, 4, 3)[:, 2, :, 2]
        expected = root @ (degree - adjacency) @ root if want is None else want
        assert_close(matrix, expected, **EXACT)


def test_a_layer_can_diffuse_on_the_sheaf_of_another() -> None:
    first, second = layer(maps="general"), layer(1, maps="general", learn_maps=False)
    assert second.map_learner is None
    x, seen = randn(N, D, H), randn(N, D, H, seed=1)
    laplacian = first.laplacian(seen, EDGES)
    want = laplacian.to_dense() @ (second.left.weight @ second.right(x)).flatten(0, 1)
    assert_close(second(x, EDGES, laplacian=laplacian).flatten(0, 1), want, **EXACT)
    with pytest.raises(ValueError, match="`laplacian` must be given"):
        second(x, EDGES)


def test_how_it_starts() -> None:
    torch.manual_seed(0)
    conv = NSDConv(H, 3, add_lp=True)
    assert torch.equal(conv.left.weight, torch.eye(4))
    assert_close(conv.right.weight @ conv.right.weight.T, torch.eye(H))
    for name, parameter in NSDConv(H, D, left_weights=False, learn_maps=False).named_parameters():
        assert name == "right.weight"
        assert parameter.shape == (H, H)


@pytest.mark.parametrize("kind", ["diagonal", "orthogonal", "general"])
def test_nothing_has_the_size_of_edges_times_features(kind: str, monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    n, h, d = 20, 32, 3
    one_way = torch.randint(0, n, (2, 1200), generator=generator(0))
    edges = bidirected(one_way[:, one_way[0] != one_way[1]])
    graph, m = Graph(edges, n), edges.shape[1]
    torch.manual_seed(0)
    conv = NSDConv(h, d, maps=kind, learn_weights=kind == "orthogonal", add_lp=True).double()
    x = randn(n, d + 1, h).requires_grad_()
    graph.partners()
    with LargestTensor() as guard:
        conv(x, graph).sum().backward()
    assert guard.numel <= m * d * d  # the blocks themselves
    if kind == "diagonal":
        assert guard.numel <= m * d


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"`learn_weights` must be False .* DiagonalMaps\(2\)"):
        NSDConv(H, D, maps="diagonal", learn_weights=True)
    with pytest.raises(ValueError, match=r"must be 'augmented' or None for OrthogonalMaps"):
        NSDConv(H, D, normalization="degree")
    with pytest.raises(ValueError, match="`normalization` must be one of 'augmented', 'degree'"):
        NSDConv(H, D, normalization="plain")
    with pytest.raises(ValueError, match="`map_act` must be one of"):
        NSDConv(H, D, map_act="relu")
    conv = layer(maps="diagonal")
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, 2, 4\)"):
        conv(randn(N, 3, H), EDGES)
    weight = torch.ones(6).double()
    weight[0] = 2.0
    with pytest.raises(
        ValueError, match=r"same in both directions of an edge; got 2 for \(0, 1\) and 1 for"
    ):
        conv(randn(4, D, H), path(4), weight)


def test_repr() -> None:
    assert repr(NSDConv(4, 3, maps="general", add_lp=True)) == (
        "NSDConv(4, stalk_dim=3 + 1, maps=GeneralMaps(3), normalization='augmented')"
    )
    assert repr(NSDConv(4, 2)) == (
        "NSDConv(4, stalk_dim=2, maps=OrthogonalMaps(Householder(2)), normalization='augmented')"
    )
