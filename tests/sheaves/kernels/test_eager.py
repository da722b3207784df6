"""When hand-written derivatives stand in, and how they are differentiated again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import randn
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.testing import assert_close

from coopsheaf.sheaves.kernels.eager import (
    differentiable_backward,
    is_plain_compiled,
    is_plain_eager,
)

X, Y = randn(3), randn(3, seed=1)


def asked_inside(run: Callable[[Callable[[Tensor], Tensor]], object]) -> tuple[bool, bool]:
    """What both questions are answered inside a function that ``run`` runs."""
    answers: list[tuple[bool, bool]] = []

    def ask(x: Tensor) -> Tensor:
        answers.append((is_plain_eager(x), is_plain_compiled(x)))
        return x.sum()

    run(ask)
    assert answers
    assert len(set(answers)) == 1
    return answers[0]


def test_plain_tensors_are_plain() -> None:
    assert is_plain_eager(X)
    assert is_plain_eager(X, Y, None)
    assert is_plain_eager(None, X)
    assert is_plain_eager(X.float(), Y.float())
    assert is_plain_eager(X.clone().requires_grad_(), nn.Parameter(Y))
    assert is_plain_eager(X[::2], randn(4, 3).T, randn(0))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64, torch.int64, torch.bool], ids=str)  # fmt: skip
def test_other_numbers_are_not(dtype: torch.dtype) -> None:
    assert not is_plain_eager(X.to(dtype))
    assert not is_plain_eager(X, Y.to(dtype))


def test_numbers_of_two_kinds_are_not() -> None:
    assert not is_plain_eager(X, Y.float())
    assert not is_plain_eager(X, None, Y.float())


def test_other_devices_are_not() -> None:
    assert not is_plain_eager(X.to("meta"))
    assert not is_plain_eager(X, Y.to("meta"))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_the_mode_of_gradients_does_not_matter(mode: Callable[[], Any]) -> None:
    with mode():
        assert is_plain_eager(X, Y)


def test_autocast_needs_to_look_inside() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not is_plain_eager(X.float())
        with torch.autocast("cpu", enabled=False):
            assert is_plain_eager(X.float())
    assert is_plain_eager(X.float())


def test_forward_mode_needs_to_look_inside() -> None:
    with forward_ad.dual_level():
        assert not is_plain_eager(X)
        assert not is_plain_eager(forward_ad.make_dual(X, Y))
    assert is_plain_eager(X)


TRANSFORMS: dict[str, Callable[[Callable[[Tensor], Tensor]], object]] = {
    "grad": lambda ask: torch.func.grad(ask)(X),
    "vjp": lambda ask: torch.func.vjp(ask, X),
    "jvp": lambda ask: torch.func.jvp(ask, (X,), (Y,)),
    "vmap": lambda ask: torch.func.vmap(ask)(randn(2, 3)),
    "jacrev": lambda ask: torch.func.jacrev(ask)(X),
    "jacfwd": lambda ask: torch.func.jacfwd(ask)(X),
    "functional_call": lambda ask: torch.func.grad(lambda x: ask(x * 2))(X),
}


@pytest.mark.parametrize("run", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_need_to_look_inside(run: Callable[..., object]) -> None:
    assert asked_inside(run) == (False, False)
    assert is_plain_eager(X)


class Branch(nn.Module):
    """Adds one where eager derivatives would be used, ten where compiled ones would."""

    def forward(self, x: Tensor) -> Tensor:
        if is_plain_eager(x):
            return x + 1
        return x + 10 if is_plain_compiled(x) else x


def test_compilers_get_their_own_answer() -> None:
    torch.compiler.reset()
    branch = Branch()
    assert torch.equal(branch(X), X + 1)
    compiled = torch.compile(branch, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), X + 10)
    assert torch.equal(compiled(X.bfloat16()), X.bfloat16())
    assert not is_plain_compiled(X)


def test_exported_programs_get_the_plain_composition() -> None:
    """They may be run anywhere, so nothing of this machine's own is in them."""
    exported = torch.export.export(Branch(), (X,))
    assert torch.equal(exported.module()(X), X)


class Named(Tensor):
    """A subclass that changes nothing but the type."""


def test_a_subclass_of_tensor_is_a_tensor() -> None:
    assert is_plain_eager(X.as_subclass(Named), Y)


class Power(torch.autograd.Function):
    """x^power · y with a derivative of its own, differentiated again as a composition."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, power: int, y: Tensor) -> Tensor:
        ctx.power = power
        ctx.save_for_backward(x, y)
        return _compose(x, power, y)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, y = ctx.saved_tensors
        if torch.is_grad_enabled():
            inputs = x, ctx.power, y
            return differentiable_backward(_compose, inputs, ctx.needs_input_grad, grad)
        return ctx.power * x ** (ctx.power - 1) * y * grad, None, x**ctx.power * grad


def _compose(x: Tensor, power: int, y: Tensor) -> Tensor:
    return x**power * y


def test_gradients_can_be_differentiated_again() -> None:
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: Power.apply(x, 3, y), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: Power.apply(x, 3, y), (x, y))


def test_inputs_that_depend_on_each_other_are_kept_apart() -> None:
    """Without aliases the gradient of x would hold what goes through y as well, and so twice."""
    x = X.clone().requires_grad_()
    (first,) = torch.autograd.grad(Power.apply(x, 3, x.exp()).sum(), x, create_graph=True)
    assert_close(first, (3 * x**2 + x**3) * x.exp())
    (second,) = torch.autograd.grad(first.sum(), x)
    assert_close(second, (6 * x + 6 * x**2 + x**3) * x.exp())


def test_only_what_is_needed_comes_back() -> None:
    x, y = X.clone().requires_grad_(), Y.clone()
    found = differentiable_backward(_compose, (x, 2, y), (True, False, False), torch.ones(3).double())  # fmt: skip
    assert_close(found[0], 2 * X * Y)
    assert found[1:] == (None, None)
    assert found[0].requires_grad


def test_what_does_not_reach_the_output_has_no_gradient() -> None:
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    found = differentiable_backward(lambda x, y: x * 2, (x, y), (True, True), torch.ones(3).double())  # fmt: skip
    assert_close(found[0], torch.full((3,), 2.0).double())
    assert found[1] is None
