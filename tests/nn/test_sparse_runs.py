"""Features that are mostly zero, in a pass of many runs: as the matrix itself, but for masks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.sparse_runs import RunInputs, as_run_inputs
from coopsheaf.sheaves.kernels.runs import Copies, Runs, map_runs

R, N, K, OUT = 4, 12, 64, 3


def features() -> Tensor:
    rng = generator(1)
    x = torch.randn(N, K, generator=rng) * (torch.rand(N, K, generator=rng) < 0.08)
    x[3] = 0  # a row and a column without entries
    x[:, 7] = 0
    return x.double()


def runs() -> Runs:
    return Runs([torch.Generator().manual_seed(run) for run in range(R)], Copies())


def test_what_has_few_entries_is_known_by_them() -> None:
    assert type(as_run_inputs(features())) is RunInputs
    assert type(as_run_inputs(randn(N, K))) is Tensor
    assert type(as_run_inputs(features()[:, :8])) is Tensor


@pytest.mark.parametrize("turned", [False, True])
def test_the_product_and_its_gradient_are_those_of_the_matrix(turned: bool) -> None:
    x, bias = features(), randn(R, OUT, seed=2)
    weight = randn(R, K, OUT).mT if turned else randn(R, OUT, K)
    weight = weight.requires_grad_()
    inputs = as_run_inputs(x)
    got = map_runs(runs(), lambda given: F.linear(inputs, *given), [weight, bias])
    want = x @ weight.mT + bias.unsqueeze(1)
    assert_close(got, want)
    outer = randn(R, N, OUT, seed=3)
    gradients = [torch.autograd.grad((y * outer).sum(), weight)[0] for y in (got, want)]
    assert_close(*gradients)


def test_dropout_drops_entries_and_keeps_their_mean() -> None:
    x = features()
    inputs, seen = as_run_inputs(x), []

    def one(given: list[Tensor]) -> Tensor:
        dropped = F.dropout(inputs, 0.25)
        assert type(dropped) is RunInputs
        return F.linear(dropped, given[0]) - (dropped * 1.0) @ given[0].mT

    weight = randn(R, OUT, K)
    assert_close(map_runs(runs(), one, [weight]), torch.zeros(R, N, OUT).double())

    def matrix(given: list[Tensor]) -> Tensor:
        return dropout(inputs, 0.25) + given[0]

    state = runs()
    for _ in range(300):
        seen.append(map_runs(state, matrix, [torch.zeros(R).double()]))
    drawn = torch.stack(seen)  # (300, R, n, k)
    kept = drawn[..., x != 0] != 0
    assert abs(kept.double().mean() - 0.75) < 0.01
    values = drawn[..., x != 0][kept]
    assert_close(values, (x[x != 0].expand(300, R, -1)[kept] / 0.75), rtol=1e-4, atol=1e-6)
    assert (drawn[..., x == 0] == 0).all()
    assert not torch.equal(kept[:, 0], kept[:, 1])  # runs of different seeds


def test_other_operations_see_the_matrix() -> None:
    x = features()
    inputs = as_run_inputs(x)
    assert inputs.shape == x.shape
    assert inputs.dtype == x.dtype
    assert_close(inputs.sum(), x.sum())
    assert_close(torch.cat([inputs, x], dim=1), torch.cat([x, x], dim=1))
    assert_close(F.dropout(inputs, 0.5, training=False), x)
