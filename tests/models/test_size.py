"""Sizes that no machine can bear are refused before anything is built."""

from __future__ import annotations

import pytest
import torch

from coopsheaf.models import make_model
from coopsheaf.models.registry import MODELS, make_settings
from coopsheaf.models.size import check_parameters, estimate_parameters


@pytest.mark.parametrize("name", MODELS)
def test_estimates_are_exact(name: str) -> None:
    """Also of deep networks, of which only shallow ones are built."""
    torch.manual_seed(0)
    before = torch.get_rng_state()
    deepest = 8 if name.startswith("h2gcn") else 12  # each round doubles the width of it
    settings = make_settings(name, num_layers=deepest)
    estimate = estimate_parameters(settings, 7, 3, num_nodes=6)
    assert torch.equal(torch.get_rng_state(), before)
    network = settings.make(7, 3, num_nodes=6)
    assert estimate == sum(parameter.numel() for parameter in network.parameters())


def test_two_numbers_of_layers() -> None:
    settings = make_settings("csnn", num_layers=11, learner_layers=13, hidden_channels=4)
    count = sum(parameter.numel() for parameter in settings.make(7, 3).parameters())
    assert estimate_parameters(settings, 7, 3) == count


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_channels": 10**20}, "more parameters than PyTorch can count.*`hidden_channels`"),
        ({"hidden_channels": 10**6}, r"e\+12 parameters, .* make `hidden_channels` smaller"),
        ({"learner_channels": 10**9}, r"e\+\d+ parameters, .* make `learner_channels` smaller"),
        ({"stalk_dim": 1000}, "`stalk_dim` must be at most 256; got 1000"),
        ({"num_layers": 10**12}, "`num_layers` must be at most 1000; got 1000000000000"),
        ({"learner_layers": 10**12}, "`learner_layers` must be at most 1000"),
    ],
)
def test_too_large(values: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_model("csnn", 100, 5, **values)


def test_an_optimiser_needs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings("mlp", hidden_channels=5000, num_layers=4)
    count = estimate_parameters(settings, 10, 2)
    monkeypatch.setattr("coopsheaf.models.size._memory", lambda: 4 * count)
    check_parameters(settings, 10, 2)
    with pytest.raises(ValueError, match=r"this machine has 0.2 GB"):
        check_parameters(settings, 10, 2, copies=2)
