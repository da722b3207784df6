"""Settings for data that nobody has tuned on: what the rule says, and who asks it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from train.small import graph_dataset, link_dataset, node_dataset

from coopsheaf import CSNNClassifier, CSNNRegressor, GraphClassifier
from coopsheaf.compare.lineup import find_contestants
from coopsheaf.data import load_tables
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train import train
from coopsheaf.train.defaults import FAMILY, MANY, Seen, default_for, look_at, rule
from coopsheaf.train.recipe import DataConfig, Recipe, default_recipe
from coopsheaf.train.run import load_run, run_split


def wide(n: int = 40, features: int = MANY) -> NodeDataset:
    data = node_dataset(n)
    noise = torch.randn(n, features - 5, generator=torch.Generator().manual_seed(1))
    return replace(data, x=torch.cat([data.x, noise], dim=1))


def said(recipe: Recipe) -> dict[str, object]:
    mapping = recipe.to_mapping()
    return {f"{s}.{key}": value for s in ("model", "train") for key, value in mapping[s].items()}


def test_the_rule_is_short() -> None:
    assert len(inspect.getsource(rule).splitlines()) - 2 <= 10  # its name and what it says


@pytest.mark.parametrize("features", [1, MANY - 1, MANY, 10 * MANY])
def test_what_the_rule_says_is_what_is_built_and_printed(features: int) -> None:
    data = wide(features=max(features, 6))
    seen = look_at(data)
    assert seen == Seen(data.num_features)
    recipe = default_for("csnn", data)
    assert rule(seen).items() <= said(recipe).items()
    for key, value in rule(seen).items():
        assert f"{key} = {value}" in recipe.source
    assert f"for {data.num_features:,} features; not tuned" in recipe.source
    assert recipe.name == "default"
    others = set(said(recipe)) - set(rule(seen))
    plain = said(default_recipe("csnn"))
    assert {key: said(recipe)[key] for key in others} == {key: plain[key] for key in others}


def test_nothing_is_learned_from_targets_or_parts_that_are_set_apart() -> None:
    data = wide()
    other = replace(data, y=data.y.flip(0), test=data.val, val=data.test)
    assert default_for("csnn", other) == default_for("csnn", data)


def test_other_models_and_tasks_have_their_default_recipe() -> None:
    for name in ("gcn-plain", "mlp", "nsd-diag", "linkx"):
        assert default_for(name, wide()) == default_recipe(name)
    for data in (graph_dataset(), link_dataset(), node_dataset(task="regression")):
        assert default_for("csnn", data) == default_recipe("csnn")
    assert default_for("csnn", wide(), "texas").train.eval_every == 1


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("features", [6, MANY])
def test_the_family_trains_with_it(name: str, features: int) -> None:
    data = wide(features=features)
    run_split(default_for(name, data).set("train.epochs=2", "model.hidden_channels=4"), data)


# Who asks.


@pytest.mark.parametrize("features", [6, MANY])
def test_estimators_use_it_and_what_is_given_wins(features: int, tmp_path: Path) -> None:
    data = wide(features=features)
    want = rule(look_at(data))
    model = CSNNClassifier(epochs=2, hidden_channels=4).fit(data)
    assert want.items() <= said(model.run_.recipe).items()
    model.save(tmp_path / "run")
    stored = load_run(tmp_path / "run").recipe
    assert stored.source == default_for("csnn", data).source
    own = GraphClassifier("csnn", epochs=2, semantics="paper", weight_decay=0.1).fit(data)
    found = said(own.run_.recipe)
    assert (found["model.semantics"], found["train.weight_decay"]) == ("paper", 0.1)
    assert found["model.map_start"] == want["model.map_start"]


def test_estimators_of_numbers_and_of_other_models_do_not() -> None:
    numbers = CSNNRegressor(epochs=2, hidden_channels=4).fit(node_dataset(task="regression"))
    assert numbers.run_.recipe.model.semantics == "paper"
    assert numbers.run_.recipe.source == ""
    assert GraphClassifier("mlp", epochs=2).fit(wide()).run_.recipe.source == ""


def test_training_in_one_call_uses_it_for_data_at_hand() -> None:
    data = wide()
    settings = {"train.epochs": 2, "model.hidden_channels": 4, "model.dropout": 0.1}
    found = said(train(data, settings=settings).recipe)
    assert found["model.dropout"] == 0.1
    assert (rule(look_at(data)) | {"model.dropout": 0.1}).items() <= found.items()
    chosen = default_recipe("csnn").set("train.epochs=2", "model.hidden_channels=4")
    assert train(data, recipe=chosen).recipe.model.semantics == "paper"  # as it was said


def test_comparisons_use_it() -> None:
    data = wide()
    csnn, gcn = find_contestants(("csnn", "gcn-plain"), DataConfig(), dataset=data)
    assert rule(look_at(data)).items() <= said(csnn.recipe).items()
    assert gcn.recipe.hash() == default_recipe("gcn-plain").hash()
    (fixed,) = find_contestants(
        ("csnn",), DataConfig(), settings=["model.semantics=paper"], dataset=data
    )
    assert fixed.recipe.model.semantics == "paper"


def test_tables_use_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from coopsheaf.cli import main

    rows = ["id,a,b,label", *(f"{k},{k % 3},{k % 5},{'xy'[k % 2]}" for k in range(30))]
    (tmp_path / "nodes.csv").write_text("\n".join(rows))
    edges = ["source,target", *(f"{k},{(k + 1) % 30}" for k in range(30))]
    (tmp_path / "edges.csv").write_text("\n".join(edges))
    tables = ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv")]
    out = ["--out", str(tmp_path / "run"), "--results", str(tmp_path / "results")]
    with pytest.raises(SystemExit) as ended:
        main(["train", *tables, "--target", "label", "--epochs", "2", *out])
    assert ended.value.code == 0
    data = load_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", target="label").dataset
    recipe = load_run(tmp_path / "run").recipe
    assert rule(look_at(data)).items() <= said(recipe).items()
    text = " ".join(capsys.readouterr().out.split())
    assert "model.semantics = messages" in text
