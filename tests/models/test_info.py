"""What the registry knows of a model: what its name decides, and what can be set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from coopsheaf import make_model, register_model
from coopsheaf.models.network import POOLS, Network, make_linear
from coopsheaf.models.registry import MODELS, find_model, make_settings
from coopsheaf.sheaves.graph import Graph

X, EDGES = torch.ones(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


class Own(Network):
    """A network with arguments of all kinds."""

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 8,
        num_layers: int = 1,
        out_channels: int | None = None,
        *,
        slope: float | None = None,
        act: nn.Module | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.slope = slope
        self.first = nn.Linear(in_channels, hidden_channels)
        self.readout = make_linear(hidden_channels, out_channels)
        self.reset_parameters()

    def embed(self, x: Tensor, graph: Graph, **others: Any) -> Tensor:
        return self.first(x)


@pytest.fixture
def _registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test adds is gone after it."""
    monkeypatch.setattr(MODELS, "_known", dict(MODELS.known))
    return


def test_outputs_are_for_nodes_unless_whole_graphs_are_asked_for() -> None:
    assert make_model("mlp", 4, 2)(X, EDGES).shape == (3, 2)
    assert make_model("mlp", 4, 2, graph_level=True)(X, EDGES).shape == (1, 2)
    pooled = make_model("csnn", 4, graph_level=True, pool="sum", hidden_channels=2)
    assert pooled.pool is POOLS["sum"]


def test_what_a_name_decides_cannot_be_set() -> None:
    pinned = {name: MODELS[name].pinned for name in MODELS if MODELS[name].pinned}
    assert pinned, "there are models that are what a setting makes them"
    for name, settings in pinned.items():
        for setting in settings:
            with pytest.raises(ValueError, match=f"`{setting}` must be .*what makes {name!r}"):
                make_settings(name, **{setting: "another"})


@pytest.mark.parametrize("name", ["csnn-random", "nsd-random"])
def test_maps_that_are_never_trained_have_no_gradient(name: str) -> None:
    model = make_model(name, 4, 2)
    learned = {p for part in model.map_learners() for p in part.parameters()}
    assert learned
    assert not any(parameter.requires_grad for parameter in learned)
    assert all(p.requires_grad for p in model.parameters() if p not in learned)
    trained = make_model("csnn", 4, 2).map_learners()
    assert all(p.requires_grad for part in trained for p in part.parameters())


@pytest.mark.usefixtures("_registry")
def test_settings_are_the_arguments_that_text_can_say() -> None:
    info = register_model("own", Own)
    settings = make_settings("own")
    assert vars(settings) == {"hidden_channels": 8, "num_layers": 1, "slope": None, "pool": "mean"}
    assert make_model("own", 4, 2, slope=0.5).slope == 0.5
    assert (info.description, info.version, info.package) == ("Own", 1, None)
    assert find_model("own") is info


@pytest.mark.usefixtures("_registry")
def test_edge_weights_follow_the_network_unless_told_otherwise() -> None:
    assert register_model("own", Own).edge_weight
    assert not register_model("other", Own, edge_weight=False).edge_weight
