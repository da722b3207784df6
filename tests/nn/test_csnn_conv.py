"""The diffusion layer against its equation."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, randn
from torch.testing import assert_close

from coopsheaf import CSNN, CSNNConv, FlatSheaf, Graph, in_laplacian, out_laplacian, record_maps
from coopsheaf.sheaves.kernels import KERNELS, use_kernel

ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)


def make(seed: int = 0, **options) -> CSNNConv:
    torch.manual_seed(seed)
    conv = CSNNConv(4, 3, **options).double()
    if conv.left is not None:
        torch.nn.init.normal_(conv.left.weight)
    return conv


@ALL_GRAPHS
def test_it_is_the_equation(name: str) -> None:
    """Y = (Δ_in)ᵀ Δ_out (I ⊗ W₁) X W₂ with dense matrices."""
    n, edge_index = ODD_GRAPHS[name]
    conv, x = make(), randn(n, 3, 4)
    source, target = conv.maps(x, edge_index)
    sheaf = FlatSheaf(edge_index, source.to_dense(), target.to_dense())
    operator = (
        in_laplacian(sheaf, "augmented").to_dense().T @ out_laplacian(sheaf, "augmented").to_dense()
    )
    w1, w2 = conv.left.weight, conv.right.weight.T
    weighted = torch.kron(torch.eye(n).double(), w1) @ x.flatten(0, 1) @ w2
    assert_close(conv(x, edge_index), (operator @ weighted).view_as(x), rtol=0, atol=1e-10)


@ALL_GRAPHS
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_agree_on_values_and_all_gradients(name: str, semantics: str, weighted) -> None:
    n, edge_index = ODD_GRAPHS[name]
    conv, x = make(semantics=semantics), randn(n, 3, 4).requires_grad_()
    weight = torch.rand(edge_index.shape[1]).double().requires_grad_() if weighted else None
    leaves = [x, *conv.parameters()] + ([weight] if weighted else [])
    results = []
    for kernel in KERNELS:
        with use_kernel(kernel):
            y = conv(x, edge_index, edge_weight=weight)
            gradients = torch.autograd.grad(
                y.square().sum(), leaves, allow_unused=True, materialize_grads=True
            )
            results.append([y, *gradients])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert_close(a, b, rtol=0, atol=1e-10)


def test_the_two_semantics_are_each_others_reversal_on_bidirected_graphs() -> None:
    n, edge_index = ODD_GRAPHS["bidirected"]
    paper, released = (
        make(left_weights=False, right_weights=False),
        make(left_weights=False, right_weights=False, semantics="released"),
    )
    x = randn(n, 3, 4)
    source, target = paper.maps(x, edge_index)
    a = paper.diffusion(Graph(edge_index, n), source, target, None).to_dense()
    b = released.diffusion(Graph(edge_index, n), source, target, None).to_dense()
    sheaf = FlatSheaf(edge_index, source, target)
    inward, outward = (
        kind(sheaf, "augmented").to_dense() for kind in (in_laplacian, out_laplacian)
    )
    assert_close(a, inward.T @ outward, rtol=0, atol=1e-12)
    assert_close(b, outward @ inward.T, rtol=0, atol=1e-12)
    assert not torch.allclose(a, b)


def test_information_flows_along_the_edges_and_against_them_when_released() -> None:
    edge_index = torch.tensor([[0, 1], [1, 2]])
    x = randn(3, 3, 4)
    for semantics, hears in (("paper", (2, 0)), ("released", (0, 2))):
        conv = make(semantics=semantics)
        source, target = conv.maps(x, edge_index)
        matrix = conv.diffusion(Graph(edge_index, 3), source, target, None).to_dense()
        blocks = matrix.view(3, 3, 3, 3).abs().amax((1, 3))
        assert blocks[hears] > 1e-6
        assert blocks[hears[::-1]] == 0


def test_weights_start_as_identity_and_orthogonal() -> None:
    conv = CSNNConv(4, 3)
    assert_close(conv.left.weight, torch.eye(3))
    assert_close(conv.right.weight @ conv.right.weight.T, torch.eye(4))
    without = CSNNConv(4, 3, left_weights=False, right_weights=False)
    assert without.left is None
    assert without.right is None


def test_positional_encodings_reach_the_learners_alone() -> None:
    n, edge_index = ODD_GRAPHS["path"]
    conv, x, pe = make(pe_channels=2), randn(n, 3, 4), randn(n, 2, seed=5)
    learned = conv.maps(x, edge_index, pe)
    assert not torch.allclose(learned[0].scale, conv.maps(x, edge_index, -pe)[0].scale)
    operator = conv.diffusion(Graph(edge_index, n), *learned, None)
    expected = operator.mv(conv.right(conv.left.weight @ x))
    assert_close(conv(x, edge_index, pe), expected)


def test_recording_maps_changes_nothing_and_sees_every_layer() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    model, x = CSNN(5, 4, 3, 2).double(), randn(n, 5)
    expected = model(x, edge_index)
    with record_maps(model) as maps:
        assert torch.equal(model(x, edge_index), expected)
    assert len(maps) == 3
    for conv, layer in zip(model.convs, maps, strict=True):
        assert layer.source.scale.shape == (n,)
        assert layer.target.orthogonal.shape == (n, 3, 3)
        assert conv.source_learner is not conv.target_learner
    assert not torch.equal(maps[0].source.scale, maps[0].target.scale)
    first = model.act(model.encoder(x)).view(n, 3, 4)
    source, target = model.convs[0].maps(first, edge_index)
    assert_close(maps[0].source.scale, source.scale)
    assert_close(maps[0].target.orthogonal, target.orthogonal)
    model(x, edge_index)
    assert len(maps) == 3  # nothing is recorded after the block


def test_recorded_maps_carry_gradients_and_hooks_go_after_an_error() -> None:
    n, edge_index = ODD_GRAPHS["path"]
    model, x = CSNN(5, 4, 1, 2).double(), randn(n, 5)
    with record_maps(model) as maps:
        model(x, edge_index)
    maps[0].source.scale.sum().backward()
    assert model.encoder.weight.grad.abs().sum() > 0
    with pytest.raises(RuntimeError, match="stop"), record_maps(model):
        raise RuntimeError("stop")
    assert not model.convs[0]._forward_hooks


def test_repr_states_the_transformation() -> None:
    assert repr(CSNNConv(4, 3)) == (
        "CSNNConv(4, stalk_dim=3, learner=MLP, orthogonal=Householder(3), scale=ExpScale(), "
        "semantics='paper')"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CSNNConv(4, 0), "`stalk_dim` must be an integer of at least 1; got 0"),
        (lambda: CSNNConv(0, 3), "`channels` must be an integer of at least 1; got 0"),
        (lambda: CSNNConv(4, 4, orthogonal="euler"), "must be 2 or 3 for Euler angles; got 4"),
        (lambda: CSNNConv(4, 3, semantics="dense"), "`semantics` must be one of 'paper', 'released', 'messages'; got 'dense'"),
        (lambda: CSNNConv(4, 3)(torch.zeros(5, 4, 3), torch.zeros(2, 1).long()), r"`x` must have shape \(n, 3, 4\); got \(5, 4, 3\)"),
        (lambda: CSNNConv(4, 3, pe_channels=2)(torch.zeros(5, 3, 4), torch.zeros(2, 1).long()), r"`pe` must have shape \(n, 2\); got None"),
        (lambda: CSNNConv(4, 3)(torch.zeros(5, 3, 4), torch.zeros(2, 1).long(), torch.zeros(5, 2)), r"`pe` must have shape \(n, 0\); got \(5, 2\)"),
        (lambda: CSNNConv(4, 3)(torch.zeros(5, 3, 4), torch.zeros(2, 1).long(), None, torch.ones(3)), r"`edge_weight` must have shape \(m,\) with m = 1"),
        (lambda: CSNNConv(4, 3)(torch.zeros(5, 3, 4), torch.zeros(2, 1).long(), None, -torch.ones(1)), "`edge_weight` must be finite and not negative"),
        (lambda: CSNNConv(4, 3)(torch.tensor(1.0), torch.zeros(2, 1).long()), r"`x` must have shape \(n, 3, 4\); got \(\)"),
        (lambda: CSNNConv(4, 3)([1.0], torch.zeros(2, 1).long()), "`x` must be a torch.Tensor; got list"),
        (lambda: CSNNConv(4, 3)(torch.zeros(5, 3, 4), torch.full((2, 1), 5)), "below the number of nodes, 5; got 5"),
    ],
)  # fmt: skip
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
