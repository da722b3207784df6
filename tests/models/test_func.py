"""Every network under the transforms of ``torch.func``: the derivatives that autograd gives.

They failed wherever a sparse product was in the way, whose derivative they do not see.
"""

from __future__ import annotations

import pytest
import torch
from graphs import randn
from models.test_all import EACH_MODEL, F_IN, OUT, build, simple_graph
from torch import Tensor
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.models.network import Network

N, EDGES = 4, simple_graph(4, 4)
EXACT = {"rtol": 1e-9, "atol": 1e-10}


def score(model: Network, x: Tensor, edges: Tensor | Graph = EDGES) -> Tensor:
    return model(x, edges).square().sum()


def jacobian(model: Network, x: Tensor) -> Tensor:
    """Row by row with autograd, ``(n, out, n, in)``."""
    x = x.clone().requires_grad_()
    out = model(x, EDGES)
    rows = [torch.autograd.grad(entry, x, retain_graph=True)[0] for entry in out.flatten()]
    return torch.stack(rows).view(*out.shape, *x.shape)


@EACH_MODEL
def test_grad_and_vjp_are_those_of_autograd(name: str) -> None:
    model, x, v = build(name, N), randn(N, F_IN), randn(N, OUT, seed=1)
    leaf = x.clone().requires_grad_()
    (want,) = torch.autograd.grad(score(model, leaf), leaf)
    assert_close(grad(lambda x: score(model, x))(x), want, **EXACT)
    (want,) = torch.autograd.grad((model(leaf, EDGES) * v).sum(), leaf)
    out, pull = vjp(lambda x: model(x, EDGES), x)
    assert_close(out, model(x, EDGES), **EXACT)
    assert_close(pull(v)[0], want, **EXACT)


@EACH_MODEL
def test_jacobians_are_those_of_a_loop(name: str) -> None:
    model, x = build(name, N), randn(N, F_IN)
    want = jacobian(model, x)
    assert_close(jacrev(lambda x: model(x, EDGES))(x), want, **EXACT)
    assert_close(jacfwd(lambda x: model(x, EDGES))(x), want, **EXACT)
    step = randn(N, F_IN, seed=2)
    _, along = jvp(lambda x: model(x, EDGES), (x,), (step,))
    assert_close(along, (want * step).sum((2, 3)), **EXACT)


@EACH_MODEL
def test_the_hessian_is_that_of_two_backward_passes(name: str) -> None:
    model, x = build(name, N), randn(N, F_IN)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(score(model, leaf), leaf, create_graph=True)
    rows = [torch.autograd.grad(entry, leaf, retain_graph=True)[0] for entry in first.flatten()]
    want, size = torch.stack(rows).flatten(1), x.numel()
    got = hessian(lambda x: score(model, x))(x).view(size, size)
    assert_close(got, want, **EXACT)
    if name != "cognn":  # the straight-through gradient of an action is no gradient of anything
        assert_close(got, got.T, **EXACT)
        assert got.abs().max() > 0


@EACH_MODEL
def test_gradients_of_parameters_are_those_of_autograd(name: str) -> None:
    model, x = build(name, N), randn(N, F_IN)
    parameters = {k: v.detach() for k, v in model.named_parameters() if v.requires_grad}
    got = grad(lambda p: functional_call(model, p, (x, EDGES)).square().sum())(parameters)
    score(model, x).backward()
    for key, value in model.named_parameters():
        if value.requires_grad:
            want = torch.zeros_like(value) if value.grad is None else value.grad
            assert_close(got[key], want, **EXACT)


@EACH_MODEL
def test_many_inputs_at_once(name: str) -> None:
    if name == "ggnn":
        pytest.skip("PyTorch has no rule for a batch of GRU cells")
    model, xs = build(name, N), torch.stack([randn(N, F_IN, seed=k) for k in range(3)])
    each = torch.stack([model(x, EDGES) for x in xs])
    assert_close(vmap(lambda x: model(x, EDGES))(xs), each, **EXACT)


def test_a_batch_of_second_derivatives_from_outside_is_refused_rather_than_zero() -> None:
    model, leaf = build("csnn"), randn(N, F_IN).requires_grad_()
    out = model(leaf, EDGES)
    directions = torch.eye(out.numel()).double().view(-1, *out.shape)
    with pytest.raises(RuntimeError, match="transform the whole function"):
        vmap(lambda v: torch.autograd.grad(out, leaf, v, create_graph=True))(directions)


@EACH_MODEL
def test_a_graph_met_in_a_transform_can_be_trained_on(name: str) -> None:
    model, x, graph = build(name, N), randn(N, F_IN), Graph(EDGES, N)
    jacrev(lambda x: score(model, x, graph))(x)
    for kept in graph._memo.values():
        for tensor in kept.by_target if isinstance(kept, Graph) else [kept]:
            assert not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    assert_close(model(x, graph), model(x, EDGES), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["csnn", "nsd-general", "gcn"])
def test_gradients_of_edge_weights(name: str) -> None:
    model, x = build(name, N), randn(N, F_IN)
    weight = torch.full((EDGES.shape[1],), 0.7, dtype=torch.float64, requires_grad=True)
    (want,) = torch.autograd.grad(model(x, EDGES, weight).square().sum(), weight)
    got = grad(lambda w: model(x, EDGES, w).square().sum())(weight.detach())
    assert_close(got, want, **EXACT)
