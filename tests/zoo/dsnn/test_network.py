"""Directed Sheaf Neural Network: what is around its layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import randn
from laws import EXACT
from torch.testing import assert_close

from coopsheaf.models.registry import make_settings
from coopsheaf.train.recipes import load_recipe
from coopsheaf.zoo.dsnn import DSNN, ComplexReLU
from coopsheaf.zoo.nsd import NSD

F_IN, H, OUT, N = 5, 4, 3, 6
ARCS = torch.tensor([[0, 1, 1, 2, 3, 5], [1, 2, 0, 3, 1, 0]])
BOTH = torch.cat([ARCS, ARCS.flip(0)], dim=1).unique(dim=1)


def network(**settings: Any) -> DSNN:
    torch.manual_seed(0)
    model = DSNN(F_IN, H, 3, OUT, stalk_dim=2, **settings).double().eval()
    for epsilon in model.epsilons:
        torch.nn.init.normal_(epsilon)
    return model


@pytest.mark.parametrize("second_linear", [False, True])
@pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general"])
def test_layers_follow_the_equation(maps: str, second_linear: bool) -> None:
    model = network(maps=maps, second_linear=second_linear, add_lp=True)
    x = randn(N, F_IN)
    start = F.relu(model.encoder(x))  # of equal parts, complex and real ReLU are one
    start = (model.second(start) if second_linear else start).view(N, 3, H)
    state = torch.cat([start, start], dim=1)
    for conv, epsilon in zip(model.convs, model.epsilons, strict=True):
        real, imaginary = conv(state, ARCS).chunk(2, dim=1)
        kept = torch.cat([torch.where(real >= 0, part, 0) for part in (real, imaginary)], dim=1)
        parts = [(1 + epsilon.tanh()) * part for part in state.chunk(2, dim=1)]
        state = torch.cat(parts, dim=1) - kept
    assert_close(model(x, ARCS), model.readout(state.flatten(1)), **EXACT)


@pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])
def test_without_a_turn_it_is_neural_sheaf_diffusion(maps: str) -> None:
    model = network(maps=maps, q=0.0, act="elu", add_hp=True)
    torch.manual_seed(0)
    nsd = NSD(F_IN, H, 3, OUT, stalk_dim=2, maps=maps, add_hp=True).double().eval()
    state = model.state_dict()
    for key, value in state.items():
        if "learner" in key:  # both parts are one
            state[key] = value.unflatten(1, (2, 2, -1)).sum(2).flatten(1)
    state["readout.weight"] = state["readout.weight"].unflatten(1, (2, -1)).sum(1)
    nsd.load_state_dict(state)
    x = randn(N, F_IN)
    assert_close(model(x, ARCS), nsd(x, BOTH), **EXACT)
    turned = network(maps=maps, q=0.25, act="elu", add_hp=True)
    assert_close(turned(x, BOTH), nsd(x, BOTH), **EXACT)  # nobody points one way
    assert (turned(x, ARCS) - nsd(x, BOTH)).abs().max() > 1e-3


def test_parts_have_masks_of_their_own() -> None:
    model = network(maps="identity", dropout=0.5, input_dropout=0.5).train()
    torch.manual_seed(1)
    real, imaginary = model.encode(randn(N, F_IN)).chunk(2, dim=1)
    assert (real - imaginary).abs().max() > 0.1
    real, imaginary = model.eval().encode(randn(N, F_IN)).chunk(2, dim=1)
    assert_close(real, imaginary, **EXACT)


def test_complex_relu() -> None:
    z = torch.tensor([[1.0, -2.0, 0.0, 3.0, 4.0, -5.0]])
    assert ComplexReLU()(z).tolist() == [[1.0, 0.0, 0.0, 3.0, 0.0, -5.0]]


def test_self_loops_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must not hold self-loops.*data\.self_loops=remove"):
        network()(randn(3, F_IN), torch.tensor([[0, 1, 2], [1, 0, 2]]))


def test_settings_are_those_of_nsd_and_its_own() -> None:
    settings = make_settings("dsnn")
    assert (settings.q, settings.learn_q, settings.act) == (0.25, False, "complex-relu")
    assert not hasattr(settings, "sparse_reading")
    assert settings.stalk_dim == make_settings("nsd-orthogonal").stalk_dim
    model = make_settings("dsnn", learn_q=True, separate_weights=True).build(F_IN, OUT)
    assert {key for key, _ in model.named_parameters() if key.endswith(".q")} == {
        "convs.0.q",
        "convs.1.q",
    }
    model = load_recipe("dsnn/cornell").model.build(1703, 5)
    assert (model.num_layers, model.total_dim, model.convs[0].q) == (1, 5, 0.25)


def test_half_precision_is_close() -> None:
    model, x = network(maps="general"), randn(N, F_IN)
    want = model(x, ARCS)
    with torch.autocast("cpu", torch.bfloat16):
        got = model.float()(x.float(), ARCS)
    assert_close(got.double(), want, rtol=0.1, atol=0.1)


def test_repr() -> None:
    assert repr(network(add_lp=True)) == (
        "DSNN(5, 4, num_layers=3, out_channels=3, stalk_dim=2 + 1, "
        "maps=OrthogonalMaps(Householder(2)))"
    )
