"""GPR-GNN against its equation, and how it is trained."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_weight
from torch.testing import assert_close
from torch_geometric.nn import APPNP
from train.small import node_dataset
from zoo.dense import adjacency, symmetric

from coopsheaf.train import load_recipe, train
from coopsheaf.zoo.gprgnn import GPRGNN
from coopsheaf.zoo.gprgnn.network import pagerank_weights

N, EDGES = ODD_GRAPHS["random-directed"]


def build(**options: Any) -> GPRGNN:
    torch.manual_seed(0)
    return GPRGNN(5, 6, out_channels=3, **options).double().eval()


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equation(name: str, weighted: bool) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(num_hops=4, alpha=0.3), randn(n, 5).requires_grad_()
    weight = random_weight(edges.shape[1]) if weighted else None
    first, second = model.perceptron.lins
    h = (x @ first.weight.T + first.bias).relu() @ second.weight.T + second.bias
    s = symmetric(adjacency(n, edges, weight))
    powers = [torch.linalg.matrix_power(s, k) for k in range(5)]
    want = sum(gamma * power @ h for gamma, power in zip(model.gammas, powers, strict=True))
    got = model(x, edges, weight)
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("num_hops", [0, 1, 10, 64])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.9, 1.0])
def test_gammas_start_as_pagerank_and_sum_to_one(num_hops: int, alpha: float) -> None:
    weights = pagerank_weights(alpha, num_hops)
    assert weights.shape == (num_hops + 1,)
    assert_close(weights.sum(), torch.tensor(1.0).double(), rtol=0, atol=1e-13)
    assert_close(build(num_hops=num_hops, alpha=alpha).gammas.float(), weights.float())
    if alpha == 1.0:  # 0^0 is 1
        assert weights.tolist() == [1.0, *[0.0] * num_hops]


def test_with_the_first_weight_alone_it_is_its_perceptron() -> None:
    model, x = build(alpha=1.0), randn(N, 5)
    assert_close(model(x, EDGES), model.perceptron(x), rtol=0, atol=1e-14)
    assert not torch.allclose(build(alpha=0.9)(x, EDGES), model.perceptron(x))


def test_with_fixed_gammas_it_is_pygs_appnp() -> None:
    model, x = build(num_hops=6, alpha=0.2), randn(N, 5)
    loopless = EDGES[:, EDGES[0] != EDGES[1]]
    want = APPNP(6, 0.2)(model.perceptron(x), loopless)
    assert_close(model(x, loopless), want, rtol=0, atol=1e-7)  # gammas were drawn in single


def test_weight_decay_spares_the_gammas_but_in_the_re_run() -> None:
    """With no learning to speak of, decay is all that happens."""
    settings = {
        "train.optimizer": "adamw",
        "train.weight_decay": 1e6,
        "train.lr": 1e-7,
        "train.epochs": 20,
        "train.patience": 0,
        "train.select": "loss",
        "model.alpha": 1.0,
        "model.num_hops": 2,
    }
    for name, kept in (("gprgnn", 1.0), ("gprgnn-lab", 0.9**20)):
        run = train(node_dataset(), name, settings=settings | {"train.eval_every": 20})
        assert float(run.model.gammas[0].detach()) == pytest.approx(kept, rel=1e-3)
        assert run.model.perceptron.lins[0].weight.abs().max() < 0.1


def test_the_two_names_have_the_settings_of_their_sources() -> None:
    authors, lab = load_recipe("gprgnn/texas"), load_recipe("gprgnn-lab/texas")
    assert (authors.model.num_hops, authors.model.decay_gammas) == (10, False)
    assert (lab.model.num_hops, lab.model.decay_gammas) == (16, True)
    assert (authors.data.direction, lab.data.direction) == ("undirected", "stored")
    for name, alpha, lr, decay in (
        ("texas", 1.0, 0.05, 5e-4),
        ("wisconsin", 1.0, 0.05, 5e-4),
        ("cornell", 0.9, 0.05, 5e-4),
        ("film", 0.9, 0.01, 0.0),
    ):
        recipe = load_recipe(f"gprgnn-lab/{name}")
        found = (recipe.model.alpha, recipe.train.lr, recipe.train.weight_decay)
        assert found == (alpha, lr, decay)


def test_each_dropout_is_felt() -> None:
    x, quiet = randn(N, 5), {"input_dropout": 0.0, "dropout": 0.0, "hop_dropout": 0.0}
    model = build(**quiet).train()
    assert torch.equal(model(x, EDGES), model(x, EDGES))
    for name in quiet:
        model = build(**(quiet | {name: 0.5})).train()
        assert not torch.equal(model(x, EDGES), model(x, EDGES)), name


def test_bad_arguments_are_named_and_repr_states_the_transformation() -> None:
    for option, value in (("alpha", 2.0), ("num_hops", -1), ("hop_dropout", 1.0)):
        with pytest.raises(ValueError, match=f"`{option}`"):
            build(**{option: value})
    want = "GPRGNN(5, 6, num_layers=2, out_channels=3, num_hops=10, alpha=0.1)"
    assert repr(build()) == want
