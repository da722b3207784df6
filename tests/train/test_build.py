"""From a recipe to a network, in the units of its targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from train.small import graph_dataset, node_dataset, recipe, with_edge_features

from coopsheaf.train.build import Rescaled, build_model
from coopsheaf.train.loop import evaluate
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.run import load_run, run_split


class Given(nn.Module):
    """A network that returns what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_outputs_are_in_the_units_of_the_training_targets() -> None:
    model = Rescaled(Given(), 2)  # type: ignore[arg-type]
    y = torch.tensor([[100.0, -1.0], [300.0, float("nan")], [200.0, -3.0]])
    model.fit(y)
    x = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    spread = (20_000 / 3) ** 0.5
    want = torch.tensor([[200.0, -2.0], [200.0 + spread, -3.0]])
    assert_close(model(x), want)
    assert_close(model.finish(x), want)


def test_targets_that_are_all_the_same_or_all_unknown_scale_nothing() -> None:
    model = Rescaled(Given(), 2)  # type: ignore[arg-type]
    model.fit(torch.tensor([[5.0, float("nan")], [5.0, float("nan")]]))
    assert torch.equal(model(torch.tensor([[0.5, 0.5]])), torch.tensor([[5.5, 0.5]]))


def test_parameters_are_drawn_from_the_seed_of_the_recipe() -> None:
    states = []
    for seed in (0, 0, 1):
        torch.rand(1)  # whatever was drawn before
        states.append(build_model(recipe(seed=seed), node_dataset()).state_dict())
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
    assert any(not torch.equal(value, states[2][name]) for name, value in states[0].items())


@pytest.mark.parametrize(("task", "outputs"), [("multiclass", 3), ("binary", 1), ("regression", 1)])
def test_the_task_decides_outputs_and_units(task: str, outputs: int) -> None:
    dataset = node_dataset(task=task)
    model = build_model(recipe(), dataset)
    assert isinstance(model, Rescaled) == (task == "regression")
    assert model(dataset.x, dataset.edge_index).shape == (40, outputs)


def test_precision_and_level_come_from_recipe_and_data() -> None:
    double = recipe(precision="64")
    assert {p.dtype for p in build_model(double, node_dataset()).parameters()} == {torch.float64}
    whole = build_model(replace(double), graph_dataset())
    graph = graph_dataset().graphs[0]
    assert whole.eval()(graph.x.double(), graph.edge_index).shape == (1, 2)


def test_features_of_edges_are_a_size_of_the_network() -> None:
    model = build_model(recipe(), with_edge_features(node_dataset()))
    assert model.edge_channels == 2
    assert build_model(recipe(), node_dataset()).edge_channels == 0


def test_a_model_that_cannot_use_features_of_edges_names_columns_and_models() -> None:
    data = with_edge_features(node_dataset())
    message = (
        r"^gcn cannot use edge features \(columns amount, hour\); leave them out or choose csnn or "
        r"csnn-random or geom-gcn or "
    )
    with pytest.raises(ValueError, match=message):
        build_model(default_recipe("gcn"), data)
    with pytest.raises(ValueError, match=r"gcn cannot use edge features \(2 columns\)"):
        build_model(default_recipe("gcn"), replace(data, edge_names=()))
    many = replace(data, edge_attr=torch.ones(data.num_edges, 7), edge_names=tuple("abcdefg"))
    with pytest.raises(ValueError, match=r"\(columns a, b, c, d, e, \.\.\.\)"):
        build_model(default_recipe("gcn"), many)


def test_many_graphs_whose_edges_have_features_are_trained_on_and_read_back(tmp_path: Path) -> None:
    data = graph_dataset()
    for graph in data.graphs:
        graph.edge_attr = torch.rand(graph.edge_index.shape[1], 3)
    _, result = run_split(recipe(epochs=2), replace(data), out=tmp_path)
    again = load_run(tmp_path)
    assert again.model.edge_channels == again.info["edge_channels"] == 3
    feed = make_feed(replace(data), 0, again.recipe, torch.device("cpu"))
    scores = evaluate(again.model, feed, again.task)
    assert scores == pytest.approx(result.scores)
