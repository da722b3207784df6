"""One call trains a model on data."""

from __future__ import annotations

from pathlib import Path

import pytest
from published import REAL_DATA, needs_real_data
from torch_geometric.data import Data
from train.small import node_dataset, recipe

from coopsheaf.train import load_run, run_data, run_split, train


def test_a_graph_at_hand(tmp_path: Path) -> None:
    data = node_dataset()
    run = train(data, recipe=recipe(epochs=3), out=tmp_path / "run")
    assert run.scores == run_split(recipe(epochs=3), data)[0].scores
    assert load_run(tmp_path / "run").scores == run.scores
    graph = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    few = {"train.epochs": 2, "model.norm": None, "train.class_weights": True}
    run = train(graph, "gcn-plain", settings=few)
    assert (run.recipe.train.epochs, run.recipe.train.class_weights) == (2, True)


@needs_real_data
def test_a_dataset_by_name_is_found_again(tmp_path: Path) -> None:
    run = train("texas", settings={"train.epochs": 2}, data_dir=REAL_DATA, out=tmp_path / "run", split=3)  # fmt: skip
    found = run_data(load_run(tmp_path / "run"))
    assert (found.dataset.name, found.split) == ("texas", 3)
    assert run.recipe.name == "csnn/texas, changed"


def test_wrong_calls_are_explained() -> None:
    with pytest.raises(ValueError, match=r"`data` must be the name of a dataset.*got list"):
        train([1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`model` and `recipe` exclude each other"):
        train(node_dataset(), "mlp", recipe=recipe())
    with pytest.raises(
        ValueError, match="`recipe` must be one for 'texas'; got one for 'tolokers'"
    ):
        train("texas", recipe="csnn/tolokers")
    with pytest.raises(ValueError, match="unknown setting 'stalks'"):
        train(node_dataset(), settings={"model.stalks": 3})
