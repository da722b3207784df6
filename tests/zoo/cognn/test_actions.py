"""How actions are chosen: sampling, temperature, evaluation."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from graphs import ODD_GRAPHS, generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.cognn.actions import (
    ActionNetwork,
    ActionSampler,
    FixedTemperature,
    LearnedTemperature,
    gumbel_noise,
    record_actions,
    straight_through,
)
from coopsheaf.zoo.cognn.layers import ACTION_LAYERS, Actions

N, EDGES = ODD_GRAPHS["random-directed"]
GRAPH = Graph(EDGES, N)


def sampler(**options: object) -> ActionSampler:
    torch.manual_seed(0)
    options = {"temperature": LearnedTemperature(5, 0.5)} | options
    return ActionSampler(5, 4, 2, **options).double()  # type: ignore[arg-type]


# --- the sample -----------------------------------------------------------------------------------


def test_the_forward_value_is_exactly_zero_or_one() -> None:
    for dtype in (torch.float32, torch.float64):
        scores = randn(10_000, 2).to(dtype) * 3
        chosen = straight_through(scores, torch.rand(10_000, dtype=dtype))
        assert set(chosen.tolist()) == {0.0, 1.0}
        assert torch.equal(chosen == 1, scores.argmax(1) == 0)


def test_the_derivative_is_that_of_the_softmax() -> None:
    scores, tau = randn(40, 2).requires_grad_(), (0.2 + randn(40, seed=1).abs()).requires_grad_()
    probe = randn(40, seed=2)
    soft = ((scores / tau[:, None]).softmax(1)[:, 0] * probe).sum()
    want = torch.autograd.grad(soft, (scores, tau))
    got = torch.autograd.grad((straight_through(scores, 1 / tau) * probe).sum(), (scores, tau))
    for a, b in zip(got, want, strict=True):
        assert b.abs().max() > 1e-3
        assert_close(a, b, rtol=0, atol=1e-13)


def test_it_is_pytorchs_gumbel_softmax_with_the_same_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyTorch draws −log of an exponential: hand it the exponential that gives our noise."""
    scores, noise = randn(30, 2).requires_grad_(), gumbel_noise(randn(30, 2), generator(4))
    monkeypatch.setattr(Tensor, "exponential_", lambda self: self.copy_((-noise).exp()))
    theirs = F.gumbel_softmax(scores, tau=0.7, hard=True)[:, 0]
    ours = straight_through(scores + noise, torch.full((30,), 1 / 0.7, dtype=torch.float64))
    assert_close(ours, theirs, rtol=0, atol=1e-15)
    (a,) = torch.autograd.grad(ours.sum(), scores)
    (b,) = torch.autograd.grad(theirs.sum(), scores)
    assert_close(a, b, rtol=0, atol=1e-13)


def test_infinite_scores_force_an_action_without_harm() -> None:
    scores = torch.tensor([[math.inf, -math.inf], [-math.inf, math.inf]]).requires_grad_()
    chosen = straight_through(scores, torch.tensor([100.0, 100.0]))
    assert chosen.tolist() == [1, 0]
    chosen.sum().backward()
    assert scores.grad.abs().max() == 0


def test_noise_is_gumbels() -> None:
    """Mean γ, variance π²/6, within five standard errors; finite whatever is drawn."""
    noise = gumbel_noise(torch.empty(200_000, dtype=torch.float64), generator(0))
    assert abs(noise.mean() - 0.5772156649) < 5 * (math.pi**2 / 6 / 200_000) ** 0.5
    assert abs(noise.var() - math.pi**2 / 6) < 0.06
    half = gumbel_noise(torch.empty(200_000, dtype=torch.bfloat16), generator(0))
    assert half.dtype == torch.float32
    assert torch.isfinite(half).all()


def test_a_draw_of_zero_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, **options: torch.zeros(shape))
    assert torch.isfinite(gumbel_noise(torch.empty(3))).all()


def test_open_is_as_frequent_as_its_softmax() -> None:
    scores = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(100_000, 2)
    noisy = scores + gumbel_noise(scores, generator(1))
    share = straight_through(noisy, torch.ones(100_000).double()).mean()
    assert abs(share - torch.tensor(1.0).sigmoid()) < 5 * 0.5 / 100_000**0.5


# --- temperature ----------------------------------------------------------------------------------


def test_the_learned_temperature_is_bounded_and_its_equation() -> None:
    temperature = LearnedTemperature(5, 0.5).double()
    assert temperature.lin.bias is None
    x = 50 * randn(200, 5)
    tau = temperature(x)
    want = 1 / (torch.log1p(torch.exp(x @ temperature.lin.weight[0])) + 0.5)
    assert_close(tau, want, rtol=0, atol=1e-10)  # softplus is linear from 20 on
    assert ((tau > 0) & (tau <= 2)).all()
    assert tau.max() > 1.99  # the bound is reached
    assert_close(temperature.sharpness(x) * tau, torch.ones(200).double(), rtol=0, atol=1e-12)


def test_a_temperature_that_would_be_infinite_is_zero_and_harmless() -> None:
    temperature = LearnedTemperature(1, 0.0)
    with torch.no_grad():
        temperature.lin.weight.fill_(1.0)
    x = torch.tensor([[-1e4], [0.0], [1e4]])
    tau = temperature(x).tolist()
    assert tau[0] == 0
    assert tau[1] == pytest.approx(1 / math.log(2))
    assert tau[2] == pytest.approx(1e-4)
    scores = torch.tensor([[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]]).requires_grad_()
    chosen = straight_through(scores, temperature.sharpness(x))
    assert chosen.tolist() == [1, 1, 0]
    chosen.sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert torch.isfinite(temperature.lin.weight.grad).all()
    assert scores.grad[0].abs().max() == 0


def test_the_fixed_temperature_is_fixed() -> None:
    temperature = FixedTemperature(0.25)
    assert temperature(randn(3, 5)).tolist() == [0.25] * 3
    assert temperature.sharpness(randn(3, 5)).tolist() == [4.0] * 3


# --- the two networks -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ACTION_LAYERS)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_an_action_network_is_its_layers_with_relu_between(kind: str, num_layers: int) -> None:
    net = ActionNetwork(5, 4, num_layers, kind=kind, dropout=0.5).double().eval()
    y = x = randn(N, 5)
    for k, conv in enumerate(net.convs):
        y = conv(y.relu() if k else y, GRAPH)
    assert_close(net(x, GRAPH), y, rtol=0, atol=0)
    assert y.shape == (N, 2)


def test_gradients_reach_both_networks_and_the_temperature() -> None:
    model = sampler().train()
    actions = model(randn(N, 5), GRAPH)
    (actions.listens * randn(N) + actions.broadcasts * randn(N, seed=1)).sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, key


def test_the_two_networks_are_independent() -> None:
    model = sampler().eval()
    with torch.no_grad():
        model.listen_net.convs[-1].lin.bias.copy_(torch.tensor([1e9, -1e9]))
        model.broadcast_net.convs[-1].lin.bias.copy_(torch.tensor([-1e9, 1e9]))
    actions = model(randn(N, 5), GRAPH)
    assert actions.listens.tolist() == [1] * N
    assert actions.broadcasts.tolist() == [0] * N


# --- evaluation -----------------------------------------------------------------------------------


def draws(model: ActionSampler, calls: int = 6) -> list[list[float]]:
    x = 0.01 * randn(N, 5)
    out = []
    for _ in range(calls):
        generated = model.generator(x.device)
        out.append(torch.cat([*model(x, GRAPH, None, generated)]).tolist())
    return out


@pytest.mark.parametrize("evaluation", ["argmax", "seeded"])
def test_evaluation_can_be_deterministic(evaluation: str) -> None:
    model = sampler(evaluation=evaluation).eval()
    first, *others = draws(model)
    assert all(other == first for other in others)
    torch.manual_seed(5)
    assert draws(model)[0] == first


def test_evaluation_can_sample_and_training_always_does() -> None:
    for model in (sampler(evaluation="sample").eval(), sampler(evaluation="argmax").train()):
        assert len({tuple(drawn) for drawn in draws(model)}) > 1


def test_the_seed_of_evaluation_counts() -> None:
    kinds = {
        tuple(draws(sampler(evaluation="seeded", evaluation_seed=seed).eval(), 1)[0])
        for seed in range(4)
    }
    assert len(kinds) > 1


def test_seeded_noise_differs_between_the_networks_and_goes_on() -> None:
    """Layers and networks draw one after the other, not the same noise again."""
    model = sampler(evaluation="seeded").eval()
    for net in (model.listen_net, model.broadcast_net):
        torch.nn.init.zeros_(net.convs[-1].lin.weight)
        torch.nn.init.zeros_(net.convs[-1].lin.bias)
    generated = model.generator(torch.device("cpu"))
    layers = [model(randn(N, 5), GRAPH, None, generated) for _ in range(2)]
    drawn = {tuple(part.tolist()) for actions in layers for part in actions}
    assert len(drawn) == 4


def test_argmax_is_the_likelier_action() -> None:
    model, x = sampler().eval(), randn(N, 5)
    actions = model(x, GRAPH)
    assert torch.equal(actions.listens == 1, model.listen_net(x, GRAPH).argmax(1) == 0)
    assert torch.equal(actions.broadcasts == 1, model.broadcast_net(x, GRAPH).argmax(1) == 0)


# --- the rest -------------------------------------------------------------------------------------


def test_recording_changes_nothing_and_ends() -> None:
    model, x = sampler().eval(), randn(N, 5)
    with record_actions(model) as actions:
        first = model(x, GRAPH)
        model(x + 1, GRAPH)
    model(x, GRAPH)
    assert len(actions) == 2
    assert isinstance(actions[0], Actions)
    assert actions[0].listens is first.listens


def test_reprs() -> None:
    assert repr(sampler()) == (
        "ActionSampler(ActionNetwork(MeanConv(5, 4), MeanConv(4, 2)), "
        "LearnedTemperature(5, tau0=0.5), evaluation='argmax')"
    )
    assert repr(FixedTemperature(0.01)) == "FixedTemperature(0.01)"


def test_bad_arguments_are_named() -> None:
    for tau in (0, -1.0, math.inf, math.nan, True):
        with pytest.raises(ValueError, match="`tau` must be finite and positive; got"):
            FixedTemperature(tau)
    for tau0 in (-0.1, math.inf, math.nan, True):
        with pytest.raises(ValueError, match="`tau0` must be finite and not negative; got"):
            LearnedTemperature(5, tau0)
    with pytest.raises(ValueError, match="`evaluation` must be one of 'argmax', 'sample', 'seed"):
        sampler(evaluation="mean")
    with pytest.raises(ValueError, match="`evaluation_seed`"):
        sampler(evaluation_seed=-1)
    with pytest.raises(ValueError, match="`action` must be one of 'mean', 'sum', 'gcn', 'gin', 'l"):
        ActionNetwork(5, 4, 1, kind="gat")
    for arguments, name in (((5, 0, 1), "action_channels"), ((5, 4, 0), "action_layers")):
        with pytest.raises(ValueError, match=f"`{name}`"):
            ActionNetwork(*arguments)
