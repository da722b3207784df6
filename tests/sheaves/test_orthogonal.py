"""Orthogonal parametrisations and scales."""

from __future__ import annotations

import math

import pytest
import torch
from graphs import randn
from hypothesis import given, settings
from hypothesis import strategies as st
from released import orthogonal as orthogonal_by_definition
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.sheaves.orthogonal import (
    ORTHOGONAL,
    SCALES,
    Cayley,
    Euler,
    ExpScale,
    Householder,
    MatrixExponential,
    RectifiedScale,
    SoftplusScale,
    UnitScale,
    make_orthogonal,
    make_scale,
)

KINDS = [(kind, d) for kind in (Householder, Cayley, MatrixExponential) for d in (1, 2, 3, 5)]
KINDS += [(Euler, 2), (Euler, 3)]
EACH = pytest.mark.parametrize(("kind", "d"), KINDS)


def parameters(k: int, seed: int = 0, n: int = 7) -> Tensor:
    return torch.tanh(randn(n, k, seed=seed))


@EACH
def test_matrices_are_orthogonal_with_the_stated_determinant(kind, d: int) -> None:
    orthogonal = kind(d)
    assert orthogonal.num_parameters == d * (d - 1) // 2
    q = orthogonal(parameters(orthogonal.num_parameters))
    eye = torch.eye(d).double().expand_as(q)
    assert_close(q.mT @ q, eye, rtol=0, atol=1e-12)
    determinant = (-1.0) ** d if kind is Householder else 1.0
    assert_close(torch.linalg.det(q), torch.full((7,), determinant).double(), rtol=0, atol=1e-10)


@EACH
def test_zero_parameters_give_the_stated_matrix(kind, d: int) -> None:
    q = kind(d)(torch.zeros(1, d * (d - 1) // 2).double())[0]
    sign = -1 if kind is Householder else 1
    assert_close(q, sign * torch.eye(d).double(), rtol=0, atol=1e-12)


@EACH
def test_gradients_are_right_and_no_parameter_is_dead(kind, d: int) -> None:
    orthogonal = kind(d)
    p = parameters(orthogonal.num_parameters, n=3).requires_grad_()
    if p.numel():
        assert torch.autograd.gradcheck(orthogonal, (p,))
        jacobian = torch.autograd.functional.jacobian(lambda a: orthogonal(a).flatten(), p[0])
        assert torch.linalg.matrix_rank(jacobian, atol=1e-6) == orthogonal.num_parameters


@pytest.mark.parametrize("d", [2, 3, 4])
def test_they_are_what_their_definitions_say(d: int) -> None:
    p = parameters(d * (d - 1) // 2)
    assert_close(Householder(d)(p), orthogonal_by_definition("householder", p, d))
    if d <= 3:
        assert_close(Euler(d)(p), orthogonal_by_definition("euler", p, d))
    # The other two are defined with a full triangle whose diagonal cancels.
    rows, columns = torch.tril_indices(d, d)
    full = torch.zeros(7, rows.numel()).double()
    full[:, rows != columns] = p
    full[:, rows == columns] = 0.7
    assert_close(Cayley(d)(p), orthogonal_by_definition("cayley", full, d))
    assert_close(MatrixExponential(d)(p), orthogonal_by_definition("matrix_exp", full, d))


def test_householder_in_two_dimensions_reaches_the_rotations_with_negative_cosine() -> None:
    p = torch.linspace(-0.999, 0.999, 50).double()[:, None]
    q = Householder(2)(p)
    expected = torch.stack([p**2 - 1, 2 * p, -2 * p, p**2 - 1], -1).view(-1, 2, 2)
    assert_close(q, expected / (1 + p**2)[..., None], rtol=0, atol=1e-12)
    assert (q[:, 0, 0] < 0).all()


def test_half_precision_comes_back_single_and_orthogonal() -> None:
    for name in ORTHOGONAL:
        orthogonal = make_orthogonal(name, 3)
        q = orthogonal(parameters(orthogonal.num_parameters).bfloat16())
        assert q.dtype == torch.float32
        assert_close(q.mT @ q, torch.eye(3).expand_as(q), rtol=0, atol=1e-5)


def test_exp_scale_is_bounded_by_ten() -> None:
    raw = torch.tensor([[-50.0], [0.0], [1.0], [100.0]]).double()
    assert_close(ExpScale()(raw), torch.tensor([math.exp(-50), 1.0, math.e, 10.0]).double())


def test_exp_scale_has_no_gradient_above_its_bound_and_does_not_overflow() -> None:
    raw = torch.tensor([[1.0], [5.0], [1000.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(ExpScale()(raw).sum(), raw)
    assert_close(gradient, torch.tensor([[math.e], [0.0], [0.0]]))


def test_rectified_scale_bears_infinity() -> None:
    assert RectifiedScale()(torch.tensor([[-torch.inf]])).item() == 0.0


def test_softplus_scale_is_positive_and_one_at_zero() -> None:
    raw = torch.tensor([[-20.0], [0.0], [30.0]]).double()
    scale = SoftplusScale()(raw)
    assert scale[0] > 0
    assert_close(scale[1], torch.tensor(1.0).double())
    assert scale[2] > 30


@settings(max_examples=50, deadline=None)
@given(st.floats(-1e30, -1.0, allow_subnormal=False))
def test_rectified_scale_is_exactly_zero_on_an_open_set_and_keeps_its_gradient(raw: float) -> None:
    value = torch.tensor([[raw]], dtype=torch.float64, requires_grad=True)
    scale = RectifiedScale()(value)
    assert scale.item() == 0.0
    (gradient,) = torch.autograd.grad(scale.sum(), value)
    assert gradient.item() == 1.0


def test_rectified_scale_is_one_plus_raw_above() -> None:
    raw = torch.tensor([[-0.5], [0.0], [3.0]]).double()
    assert_close(RectifiedScale()(raw), torch.tensor([0.5, 1.0, 4.0]).double())


def test_unit_scale_takes_no_parameter() -> None:
    assert UnitScale().num_parameters == 0
    assert torch.equal(UnitScale()(torch.zeros(3, 0)), torch.ones(3))


class Bias(nn.Module):
    """A learner with six free rows, repeated for every copy of a graph of six nodes."""

    def __init__(self, outputs: int, scale: float) -> None:
        super().__init__()
        self.start = scale
        self.raw = nn.Parameter(torch.zeros(6, outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.raw.zero_()
            self.raw[:, -1] = self.start

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.raw.repeat(x.shape[0] // 6, 1)


def test_silent_nodes_that_the_task_needs_recover() -> None:
    """Nodes 0-2 must report what nodes 3-5 know, and start deaf: T = 0 exactly."""
    torch.manual_seed(0)
    edge_index = torch.tensor([[3, 4, 5], [0, 1, 2]])
    y = torch.randint(0, 2, (64, 3)).float() * 2 - 1
    x = torch.zeros(64, 6, 2)
    x[:, 3:, 0] = y
    copies = Graph(torch.cat([edge_index + 6 * k for k in range(64)], dim=1), 64 * 6)

    def error(model: CSNN) -> Tensor:
        outputs = model(x.flatten(0, 1), copies).view(64, 6)
        return (outputs[:, :3] - y).square().mean()

    def listening(model: CSNN) -> Tensor:
        return model.convs[0].target_learner(torch.zeros(6, 8), Graph(edge_index, 6)).scale[:3]

    def start(scale: str, raw: float) -> CSNN:
        model = CSNN(2, 4, 1, 1, stalk_dim=2, act=None, learner=Bias(2, 0.0), scale=scale)
        with torch.no_grad():
            model.convs[0].target_learner.learner.raw[:3, -1] = raw
        return model

    model = start("rectified", -1.5)
    assert (listening(model) == 0).all()
    before = error(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        loss = error(model)
        loss.backward()
        optimizer.step()
    assert (listening(model) > 0).all()
    assert loss < 0.05 * before

    # A plain maximum would leave them deaf for ever.
    class Dead(RectifiedScale):
        def __call__(self, raw: Tensor) -> Tensor:
            return (1 + raw[:, 0]).clamp(min=0)

    dead = start("rectified", -1.5)
    dead.convs[0].target_learner.scale = Dead()
    error(dead).backward()
    assert (dead.convs[0].target_learner.learner.raw.grad[:3] == 0).all()


def test_names_resolve_and_errors_list_the_choices() -> None:
    for name, kind in SCALES.items():
        assert isinstance(make_scale(name), kind)
    scale = RectifiedScale()
    assert make_scale(scale) is scale
    with pytest.raises(
        ValueError,
        match="`scale` must be one of 'exp', 'softplus', 'rectified', 'unit'; got 'relu'",
    ):
        make_scale("relu")
    with pytest.raises(ValueError, match=r"`orthogonal` must be one of 'householder', .* got 'qr'"):
        make_orthogonal("qr", 3)
    with pytest.raises(ValueError, match=r"made for stalk dimension 3; got Euler\(2\)"):
        make_orthogonal(Euler(2), 3)
    with pytest.raises(ValueError, match="`stalk_dim` must be 2 or 3 for Euler angles; got 4"):
        Euler(4)
    with pytest.raises(ValueError, match="`stalk_dim` must be an integer of at least 1; got 0"):
        Householder(0)
    with pytest.raises(ValueError, match=r"`parameters` must have shape \(..., 3\) .*got \(2, 4\)"):
        Cayley(3)(torch.zeros(2, 4))
