"""The directed sheaf diffusion against complex matrices, written out pair by pair."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from allocations import LargestTensor
from coboundaries import inverse_roots
from graphs import generator, randn
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph, Sheaf, sheaf_laplacian
from coopsheaf.sheaves import fold_directions, magnetic_sheaf
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.zoo.dsnn import DSNNConv
from coopsheaf.zoo.nsd import NSDConv

D, H, N = 2, 3, 7
# One way, both ways, an arc that is listed twice, a node alone.
ARCS = torch.tensor([[0, 1, 1, 2, 3, 3, 4, 5, 0], [1, 2, 0, 3, 1, 4, 0, 0, 5]])
ARCS = torch.cat([ARCS, ARCS[:, 3:4]], dim=1)

LAYERS: dict[str, dict[str, Any]] = {
    "diagonal": {"maps": "diagonal"},
    "orthogonal, weights": {"maps": "orthogonal"},
    "orthogonal, lp, hp": {
        "maps": "orthogonal",
        "learn_weights": False,
        "add_lp": True,
        "add_hp": True,
    },
    "general, elu, sparse, lp": {
        "maps": "general",
        "map_act": "elu",
        "sparse_learner": True,
        "add_lp": True,
    },
    "general, q learned": {"maps": "general", "q": 0.1, "learn_q": True},
    "identity": {"maps": "identity"},
    "diagonal, unnormalised, weights apart": {
        "maps": "diagonal",
        "normalization": None,
        "add_hp": True,
        "separate_weights": True,
    },
}
EACH_LAYER = pytest.mark.parametrize("settings", LAYERS.values(), ids=LAYERS)


def layer(seed: int = 0, **settings: Any) -> DSNNConv:
    torch.manual_seed(seed)
    conv = DSNNConv(H, D, **settings).double()
    for linear in (conv.left, conv.imaginary_left):
        if linear is not None:  # the identity would hide where it acts
            torch.nn.init.normal_(linear.weight)
    return conv


def delta(
    conv: DSNNConv,
    x: Tensor,
    n: int,
    arcs: Tensor,
    weight: Tensor | None = None,
    angles: Tensor | None = None,
) -> Tensor:
    """Δ as a complex matrix ``(n, total, n, total)``, every pair of neighbours on its own.

    Angles of nodes add a_i - a_j to the phase of every pair.
    """
    found: dict[tuple[int, int], list[Tensor]] = {}
    for e, (j, i) in enumerate(arcs.T.tolist()):
        one = torch.ones(()).double() if weight is None else weight[e]
        found.setdefault((j, i), []).append(one)
    total, kind, q = conv.total_dim, conv.edge_maps, conv.turn()
    features = x.view(n, 2, total, H)
    seen = (features.sum(2) if conv.sparse_learner else features).flatten(1)

    def learned(learner: torch.nn.Module, i: int, j: int, of: Tensor) -> Tensor:
        return learner.lin(torch.cat([of[i], of[j]]))

    def map_of(i: int, j: int) -> Tensor:
        raw = x.new_empty(0)
        if conv.map_learner is not None:
            raw = conv.map_act(learned(conv.map_learner, i, j, seen))
        return kind.dense(kind.make(raw[None]))[0]

    blocks = torch.zeros(n, total, n, total, dtype=torch.complex128)
    for i, j in {(min(pair), max(pair)) for pair in found}:
        there, back = found.get((i, j), []), found.get((j, i), [])
        size = torch.stack(there + back).mean()
        phase = torch.exp(2j * math.pi * q * (bool(there) - bool(back)) * torch.ones(()).double())
        if angles is not None:
            phase = phase * torch.exp(1j * (angles[i] - angles[j]))
        factor = size
        if conv.weight_learner is not None:
            flat = x.flatten(1)
            for a, b in ((i, j), (j, i)):
                factor = factor * torch.sigmoid(learned(conv.weight_learner, a, b, flat))[0] ** 2
        f_i, f_j = map_of(i, j), map_of(j, i)
        blocks[i, :D, i, :D] += factor * f_i.T @ f_i
        blocks[j, :D, j, :D] += factor * f_j.T @ f_j
        blocks[i, :D, j, :D] -= factor * f_i.T @ f_j * phase
        blocks[j, :D, i, :D] -= factor * f_j.T @ f_i * phase.conj()
        for k, sign in enumerate(conv.fixed_signs, start=D):
            blocks[i, k, i, k] += size
            blocks[j, k, j, k] += size
            blocks[i, k, j, k] -= sign * size * phase
            blocks[j, k, i, k] -= sign * size * phase.conj()
    if conv.normalization is None:
        return blocks
    own = torch.stack([blocks[i, :, i].real for i in range(n)])
    roots = inverse_roots(own + torch.eye(total).double()).to(torch.complex128)
    return torch.einsum("iab,ibjc,jcd->iajd", roots, blocks, roots)


def slow(conv: DSNNConv, x: Tensor, n: int, arcs: Tensor, weight: Tensor | None = None) -> Tensor:
    total = conv.total_dim
    real, imaginary = x[:, :total], x[:, total:]
    mixed = []
    for part, apart in ((real, False), (imaginary, conv.separate_weights)):
        left = conv.imaginary_left if apart else conv.left
        right = conv.imaginary_right if apart else conv.right
        mixed.append(torch.stack([left.weight @ row @ right.weight.T for row in part]))
    z = torch.complex(*mixed)
    y = torch.einsum("iajb,jbh->iah", delta(conv, x, n, arcs, weight), z)
    return torch.cat([y.real, y.imag], dim=1)


def as_complex(matrix: Tensor, n: int) -> Tensor:
    """[[A, -B], [B, A]], block by block, as A + iB ``(n·d, n·d)``."""
    d = matrix.shape[0] // (2 * n)
    blocks = matrix.view(n, 2, d, n, 2, d)
    a, b = blocks[:, 0, :, :, 0], blocks[:, 1, :, :, 0]
    assert_close(blocks[:, 1, :, :, 1], a, **EXACT)
    assert_close(blocks[:, 0, :, :, 1], -b, **EXACT)
    return torch.complex(a, b).reshape(n * d, n * d)


@EACH_LAYER
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equation(settings, weighted: bool) -> None:
    conv = layer(**settings)
    x = randn(N, 2 * conv.total_dim, H).requires_grad_()
    leaves, weight = [x, *conv.parameters()], None
    if weighted:
        weight = 0.5 + torch.rand(ARCS.shape[1], generator=generator(1), dtype=torch.float64)
        leaves.append(weight.requires_grad_())
    grads = []
    for out in (conv(x, ARCS, weight), slow(conv, x, N, ARCS, weight)):
        total = (out * randn(*out.shape, seed=1)).sum()
        grads.append([out, *torch.autograd.grad(total, leaves, retain_graph=True)])
    for got, want in zip(*grads, strict=True):
        assert_close(got, want, rtol=1e-10, atol=1e-10)
    for grad in grads[0][1:]:
        assert grad.abs().sum() > 0


@EACH_LAYER
def test_the_operator_is_hermitian_and_positive_with_its_spectrum_below_two(settings) -> None:
    for seed in range(4):
        conv = layer(seed, **settings)
        arcs = torch.randint(0, N, (2, 14), generator=generator(seed))
        arcs = arcs[:, arcs[0] != arcs[1]]
        x = (1 + 9 * (seed % 2)) * randn(N, 2 * conv.total_dim, H, seed=seed)
        operator = conv.laplacian(x, Graph(arcs, N))
        check_operator(operator)
        matrix = operator.to_dense()
        assert_close(matrix, matrix.T, **EXACT)
        values = torch.linalg.eigvalsh(as_complex(matrix, N))
        assert values.min() > -1e-12
        assert conv.normalization is None or values.max() < 2
        # As a real matrix it has each of them twice.
        twice = torch.linalg.eigvalsh(matrix)
        assert_close(twice, values.repeat_interleave(2), **EXACT)


@EACH_LAYER
def test_arcs_turned_round_conjugate_it(settings) -> None:
    conv = layer(**settings)
    x = randn(N, 2 * conv.total_dim, H)
    there = as_complex(conv.laplacian(x, Graph(ARCS, N)).to_dense(), N)
    back = as_complex(conv.laplacian(x, Graph(ARCS.flip(0), N)).to_dense(), N)
    assert_close(back, there.conj(), **EXACT)
    assert there.imag.abs().max() > 0.01


@EACH_LAYER
def test_no_turn_and_no_direction_are_neural_sheaf_diffusion(settings) -> None:
    """q = 0, or every edge both ways: NSD's operator on either part."""
    options = {k: v for k, v in settings.items() if k not in ("q", "learn_q", "separate_weights")}
    torch.manual_seed(0)
    nsd = NSDConv(H, D, **options).double()
    both = torch.cat([ARCS, ARCS.flip(0)], dim=1).unique(dim=1)
    for q, arcs in ((0.0, ARCS), (0.25, both)):
        conv = layer(**options, q=q)
        x = randn(N, conv.total_dim, H)
        for mine, theirs in ((nsd.map_learner, conv.map_learner), (nsd.weight_learner, conv.weight_learner)):  # fmt: skip
            if mine is not None:  # features of which both parts are x
                w = theirs.lin.weight.detach().unflatten(1, (2, 2, -1)).sum(2).flatten(1)
                mine.lin.weight.data = w
        got = conv.laplacian(torch.cat([x, x], dim=1), Graph(arcs, N)).to_dense()
        want = nsd.laplacian(x, Graph(both, N)).to_dense()
        assert_close(as_complex(got, N), want.to(torch.complex128), **EXACT)


def test_identity_maps_are_the_magnetic_laplacian_and_maps_the_sheaf_of_phases() -> None:
    for maps in ("identity", "general"):
        conv = layer(maps=maps, normalization=None, q=0.2)
        x = randn(N, 2 * D, H)
        pairs, charges = fold_directions(ARCS, N)
        ends = torch.stack(
            [
                conv.edge_maps.dense(conv.maps(x, Graph(pairs.flip(0), N))),
                conv.edge_maps.dense(conv.maps(x, Graph(pairs, N))),
            ],
            dim=1,
        )
        sheaf = magnetic_sheaf(Sheaf(pairs, ends, N), charges, 0.2)
        want = sheaf_laplacian(sheaf).to_dense()
        assert_close(conv.laplacian(x, Graph(ARCS, N)).to_dense(), want, **EXACT)


@EACH_LAYER
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_phase_at_every_node_conjugates_it(settings, seed: int) -> None:
    """Gauge: e^{ia_u} at the nodes and e^{i(a_u - a_v)} on the edges are one, whatever the maps."""
    conv = layer(seed, **settings)
    arcs = torch.randint(0, N, (2, 16), generator=generator(seed))
    low, high = arcs.min(0).values, arcs.max(0).values
    _, first = torch.unique(low * N + high, return_inverse=True)
    kept = [e for e in range(16) if low[e] != high[e] and first[e] not in first[:e]]
    arcs = arcs[:, kept]  # either way, no pair both ways
    assert arcs.shape[1] >= N  # not a forest, whose phases can all be undone
    x = randn(N, 2 * conv.total_dim, H, seed=seed)
    angles = 2 * math.pi * torch.rand(N, generator=generator(seed + 9), dtype=torch.float64)
    gauge = torch.polar(torch.ones(N).double(), angles).repeat_interleave(conv.total_dim)
    operator = as_complex(conv.laplacian(x, Graph(arcs, N)).to_dense(), N)
    turned = delta(conv, x, N, arcs, angles=angles).reshape(operator.shape)
    assert_close(gauge[:, None] * operator * gauge.conj()[None], turned, **EXACT)
    assert_close(torch.linalg.eigvalsh(turned), torch.linalg.eigvalsh(operator), **EXACT)


@pytest.mark.parametrize("maps", ["identity", "diagonal", "orthogonal", "general"])
@pytest.mark.parametrize("q", [0.05, 0.25, 0.4])
def test_phases_of_arcs_that_all_rise_can_be_undone(maps: str, q: float) -> None:
    """Nodes have heights, an arc rises by one: with -2πq · height at a node there is no phase."""
    heights = torch.tensor([0, 1, 1, 2, 2, 3, 0])
    rises = heights[None] == heights[:, None] + 1
    arcs = rises.nonzero().T  # with many cycles
    convs = [layer(3, maps=maps, q=turn) for turn in (q, 0.0)]
    x = randn(N, 2 * convs[0].total_dim, H)
    turned, plain = (as_complex(c.laplacian(x, Graph(arcs, N)).to_dense(), N) for c in convs)
    angles = (-2 * math.pi * q * heights.double()).repeat_interleave(convs[0].total_dim)
    gauge = torch.polar(torch.ones_like(angles), angles)
    assert plain.imag.abs().max() == 0
    assert turned.imag.abs().max() > 0.01
    assert_close(turned, gauge[:, None] * plain * gauge.conj()[None], **EXACT)
    # Around a directed triangle they cannot: it has no section.
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    conv = layer(maps="identity", q=q)
    values = torch.linalg.eigvalsh(as_complex(conv.laplacian(x[:3], Graph(ring, 3)).to_dense(), 3))
    assert values.min() > 0.01


def test_a_learned_q_stays_between_its_bounds() -> None:
    conv = layer(maps="diagonal", learn_q=True)
    assert conv.turn() == 0.25
    conv.q.data.fill_(0.7)
    assert conv.turn() == 0.25
    conv.q.data.fill_(-1.0)
    assert conv.turn() == 0.0
    conv.reset_parameters()
    assert conv.q == 0.25


@pytest.mark.parametrize("kind", ["diagonal", "orthogonal", "general"])
def test_nothing_has_the_size_of_edges_times_features(kind: str, monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    n, h, d = 20, 32, 3
    arcs = torch.randint(0, n, (2, 1200), generator=generator(0))
    arcs = arcs[:, arcs[0] != arcs[1]]
    graph, m = Graph(arcs, n), arcs.shape[1]
    torch.manual_seed(0)
    conv = DSNNConv(h, d, maps=kind, add_lp=True).double()
    x = randn(n, 2 * (d + 1), h).requires_grad_()
    conv(x, graph)  # what is derived from the graph once
    with LargestTensor() as guard:
        conv(x, graph).sum().backward()
    assert guard.numel <= 2 * m * d * d  # the blocks themselves
    if kind == "diagonal":
        assert guard.numel <= 2 * m * d


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"`q` must be between 0 and 1; got 1\.5"):
        DSNNConv(H, D, q=1.5)
    with pytest.raises(ValueError, match=r"`q` must be between 0 and 0.25 where it is learned"):
        DSNNConv(H, D, q=0.5, learn_q=True)
    with pytest.raises(ValueError, match="`sparse_reading` must be 'summed'"):
        DSNNConv(H, D, sparse_learner=True, sparse_reading="released")
    conv = layer(maps="diagonal")
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, 4, 3\)"):
        conv(randn(N, D, H), ARCS)
    with pytest.raises(ValueError, match=r"must not hold self-loops.* got one at node 2"):
        conv(randn(3, 2 * D, H), torch.tensor([[0, 2], [1, 2]]))


def test_repr() -> None:
    assert repr(DSNNConv(4, 2, maps="general", add_lp=True)) == (
        "DSNNConv(4, stalk_dim=2 + 1, maps=GeneralMaps(2), normalization='augmented')"
    )
