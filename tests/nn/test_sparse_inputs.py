"""Features that are mostly zero: the same numbers from fewer of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import bidirected, generator, randn
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.models.registry import MODELS
from coopsheaf.nn import sparse_inputs
from coopsheaf.nn.sparse_inputs import SparseInputs, apply_to_inputs, note_zeros, take_inputs

N, C = 12, 20


def thin(n: int = N, c: int = C, seed: int = 0) -> Tensor:
    """A matrix with few entries, and with an empty row and an empty column."""
    x = randn(n, c, seed=seed) * (torch.rand(n, c, generator=generator(seed)) < 0.2)
    x[3], x[:, 5] = 0, 0
    return x


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small matrices are worth it."""
    monkeypatch.setattr(sparse_inputs, "LEAST_ENTRIES", 1)
    monkeypatch.setattr(sparse_inputs, "LARGEST_SHARE", 0.5)


def noted(x: Tensor) -> Tensor:
    note_zeros(x)
    assert isinstance(take_inputs(x), SparseInputs)
    return x


def test_products_and_derivatives_are_those_of_the_matrix() -> None:
    x, w = thin(), randn(C, 4, seed=1).requires_grad_()
    rows = SparseInputs.of(x)
    assert rows.shape == x.shape
    assert_close(rows.to_dense(), x)
    assert_close(rows @ w, x @ w)
    g = randn(N, 4, seed=2)
    (found,) = torch.autograd.grad((rows @ w).tanh(), w, g)
    (wanted,) = torch.autograd.grad((x @ w).tanh(), w, g)
    assert_close(found, wanted)
    assert torch.autograd.gradcheck(lambda w: rows @ w, (w,))
    assert torch.autograd.gradgradcheck(lambda w: (rows @ w).square(), (w,))


def test_rows_are_divided_by_their_lengths() -> None:
    x = thin()
    assert_close(SparseInputs.of(x).normalize().to_dense(), F.normalize(x, dim=1))


def test_dropout_is_that_of_the_entries() -> None:
    x = torch.zeros(400, 500, dtype=torch.float64)
    x[:, ::25] = 1.0  # 20 of each row
    torch.manual_seed(0)
    kept = SparseInputs.of(x).drop(0.25).to_dense()
    assert kept.unique().tolist() == pytest.approx([0.0, 4 / 3])
    share = (kept > 0).sum() / (x > 0).sum()
    assert abs(share - 0.75) < 0.02  # 8000 entries: four deviations
    assert_close(kept.mean() / x.mean(), torch.tensor(1.0).double(), atol=0.03, rtol=0)
    assert not (kept[x == 0]).any()


def test_a_linear_layer_of_them() -> None:
    x = noted(thin())
    for layer in (nn.Linear(C, 4).double(), nn.Linear(C, 4, bias=False).double()):
        assert_close(apply_to_inputs(layer, take_inputs(x)), layer(x))
        seen: list[Any] = []
        layer.register_forward_hook(lambda _, given, out, seen=seen: seen.append(given[0]))
        apply_to_inputs(layer, take_inputs(x))
        assert_close(seen[0], x)  # who listens hears the matrix


def test_what_is_not_known_stays_what_it_is() -> None:
    x = noted(thin())
    assert isinstance(take_inputs(x.clone()), Tensor)
    assert isinstance(take_inputs(x.clone().requires_grad_()), Tensor)
    x[0, 0] = 7.0  # written to: what was noted is no longer true
    assert isinstance(take_inputs(x), Tensor)
    full = randn(N, C, seed=3)
    note_zeros(full)
    assert take_inputs(full) is full
    assert take_inputs(full, 0.5, training=False) is full


def test_large_matrices_alone_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_inputs, "LEAST_ENTRIES", N * C + 1)
    x = thin()
    note_zeros(x)
    assert take_inputs(x) is x


def test_transforms_see_the_matrix() -> None:
    x, layer = noted(thin()), nn.Linear(C, 4).double()

    def value(weight: Tensor) -> Tensor:
        found = take_inputs(x)
        assert isinstance(found, Tensor)
        return F.linear(found, weight).square().sum()

    torch.func.grad(value)(layer.weight.detach())


def test_nothing_is_kept_of_a_tensor_that_is_gone() -> None:
    before = len(sparse_inputs._KNOWN)
    x = noted(thin())
    assert len(sparse_inputs._KNOWN) == before + 1
    del x
    assert len(sparse_inputs._KNOWN) == before


# Models whose inputs are taken by their entries.
SPARSE = (
    "mlp", "gcn-plain", "gat-plain", "gcnii", "gcnii-star", "gprgnn", "fagcn", "pairnorm", "linkx",
    "dirgnn", "mixhop", "mixhop-linkx", "h2gcn", "h2gcn-linkx", "ggcn", "geom-gcn", "fsgnn",
    "acm-gcn", "acm-gcn-plus", "acmii", "glognn", "glognn++",
)  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_networks_give_the_same_with_and_without(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs and gradients, in evaluation and in training without dropout."""
    settings: dict[str, Any] = {"hidden_channels": 8, "num_layers": 2}
    known = set(MODELS[name].settings.__dataclass_fields__)
    settings |= {
        key: 0.0
        for key in ("dropout", "input_dropout", "hop_dropout", "attention_dropout")
        if key in known
    }
    torch.manual_seed(0)
    model = MODELS[name].settings(**settings).build(C, 3, graph_level=False, num_nodes=N).double()
    ends = torch.randint(0, N, (2, 20), generator=generator(5))
    graph = Graph(bidirected(ends[:, ends[0] != ends[1]]), N)
    x = thin()
    calls: list[tuple[int, int]] = []
    multiply = SparseInputs.__matmul__
    monkeypatch.setattr(
        SparseInputs,
        "__matmul__",
        lambda rows, matrix: calls.append(rows.shape) or multiply(rows, matrix),
    )
    for training in (False, True):
        model.train(training)
        found = []
        for inputs in (x, noted(x.clone())):
            out = model(inputs, graph)
            grads = torch.autograd.grad(
                out.square().sum(), list(model.parameters()), allow_unused=True
            )
            found.append((out, [g for g in grads if g is not None]))
            assert bool(calls) == (inputs is not x)
        calls.clear()
        assert_close(found[1], found[0])


def test_with_dropout_the_mean_is_kept() -> None:
    """Over many draws a network sees what it sees in evaluation, where it is linear."""
    settings = MODELS["gprgnn"].settings(
        num_layers=1, input_dropout=0.5, hop_dropout=0.0, num_hops=2
    )
    torch.manual_seed(0)
    model = settings.build(C, 3, graph_level=False, num_nodes=N).double()
    graph, x = Graph(bidirected(torch.tensor([[0, 1, 2], [1, 2, 3]])), N), noted(thin())
    with torch.no_grad():
        wanted = model.eval()(x, graph)
        model.train()
        draws = torch.stack([model(x, graph) for _ in range(2000)])
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - wanted).abs() <= 5 * error + 1e-12).all()
