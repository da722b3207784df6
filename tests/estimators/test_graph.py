"""The estimators, as somebody who knows scikit-learn would use them."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import generator
from torch_geometric.data import Data, HeteroData
from train.small import node_dataset, recipe

from coopsheaf import CSNNClassifier, CSNNRegressor, GraphClassifier
from coopsheaf.cli import main
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.run import run_split

FAST = {"hidden_channels": 4, "num_layers": 1, "stalk_dim": 2, "epochs": 15, "lr": 0.05}


def graph(n: int = 60, classes: int = 3, seed: int = 0, **more: object) -> Data:
    rng = generator(seed)
    y = torch.arange(n) % classes
    x = torch.randn(n, 5, generator=rng) + 3 * torch.nn.functional.one_hot(y, 5).float()
    edge_index = torch.randint(0, n, (2, 3 * n), generator=rng)
    return Data(x=x, edge_index=edge_index, y=y, **more)


def masks(n: int = 60) -> dict[str, torch.Tensor]:
    part = torch.arange(n) % 5
    return {"train_mask": part < 3, "val_mask": part == 3, "test_mask": part == 4}


@pytest.fixture(scope="module")
def fitted() -> CSNNClassifier:
    return CSNNClassifier(**FAST).fit(graph())


def test_a_classifier_learns(fitted: CSNNClassifier) -> None:
    data = graph()
    prediction = fitted.predict(data)
    assert prediction.shape == (60,)
    assert prediction.dtype == np.int64
    probabilities = fitted.predict_proba(data)
    assert probabilities.shape == (60, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (probabilities.argmax(1) == prediction).all()
    assert fitted.score(data) == pytest.approx((prediction == data.y.numpy()).mean())
    assert fitted.score(data) > 0.65  # a third by chance
    assert fitted.scores_.keys() == {"train", "val", "test"}
    assert fitted.classes_.tolist() == [0, 1, 2]


def test_new_graphs_may_have_other_sizes_and_no_labels(fitted: CSNNClassifier) -> None:
    other = graph(40, seed=5)
    assert fitted.score(other) > 0.5
    other.y = None
    assert fitted.predict(other).shape == (40,)
    with pytest.raises(ValueError, match="there must be labels to compare with in column 'y'"):
        fitted.score(other)


def test_classes_keep_the_callers_numbers() -> None:
    data = graph()
    numbers = torch.tensor([2, 5, 11])
    data.y = numbers[data.y]
    model = CSNNClassifier(**FAST).fit(data)
    assert model.classes_.tolist() == [2, 5, 11]
    prediction = model.predict(data)
    assert set(prediction) <= {2, 5, 11}
    assert model.score(data) == pytest.approx((prediction == data.y.numpy()).mean())
    assert model.score(data) > 0.65


def test_a_score_does_not_depend_on_which_classes_are_there(fitted: CSNNClassifier) -> None:
    """A graph with classes 1 and 2 only must not have them taken for 0 and 1."""
    data = graph()
    right = fitted.predict(data) == data.y.numpy()
    some = data.y > 0
    data.y = torch.where(some, data.y, -1)
    assert fitted.score(data) == pytest.approx(right[some.numpy()].mean())
    one = torch.zeros(60, dtype=torch.bool)
    one[1] = True
    assert fitted.score(data, mask=one) == float(right[1])
    with pytest.raises(ValueError, match="there must be labels to compare with"):
        fitted.score(data, mask=~some)
    data.y[0] = 7
    with pytest.warns(UserWarning, match="1 labels are none of the model's classes; not counted"):
        assert fitted.score(data) == pytest.approx(right[some.numpy()].mean())


def test_two_classes_are_selected_by_auroc_and_scored_by_accuracy() -> None:
    data = graph(classes=2)
    model = CSNNClassifier(**FAST).fit(data)
    assert model.predict_proba(data).shape == (60, 2)
    assert set(model.predict(data)) <= {0, 1}
    assert model.run_.task.metric == "auroc"
    assert model.score(data) == (model.predict(data) == data.y.numpy()).mean() > 0.8
    data.y = data.y.float()
    again = CSNNClassifier(**FAST).fit(data)
    assert again.score(data) == model.score(data)


def test_masks_are_used() -> None:
    data = graph(**masks())
    model = CSNNClassifier(**FAST).fit(data)
    for part in ("train", "val", "test"):
        assert model.score(data, mask=data[f"{part}_mask"]) == pytest.approx(model.scores_[part])
    # Labels outside the masks decide nothing.
    changed = data.clone()
    changed.y[changed.test_mask] = 0
    other = CSNNClassifier(**FAST).fit(changed)
    np.testing.assert_array_equal(model.predict_proba(data), other.predict_proba(data))


def test_one_of_several_splits() -> None:
    data = graph()
    part = torch.stack([torch.arange(60) % 5, torch.arange(60).flip(0) % 5], dim=1)
    data.train_mask, data.val_mask, data.test_mask = part < 3, part == 3, part == 4
    first, second = (CSNNClassifier(**FAST).fit(data, split=split) for split in (0, 1))
    assert first.run_.info["split"] == 0
    assert (first.predict_proba(data) != second.predict_proba(data)).any()
    with pytest.raises(ValueError, match="`split` must be between 0 and 1"):
        CSNNClassifier(**FAST).fit(data, split=2)


def test_edge_weights_are_used(fitted: CSNNClassifier) -> None:
    weight = torch.rand(180, generator=generator(3))
    data = graph(edge_weight=weight)
    model = CSNNClassifier(**FAST).fit(data)
    lighter = graph(edge_weight=weight / 9)
    assert (model.predict_proba(data) != model.predict_proba(lighter)).any()
    # Weights are neither made up nor left out in silence.
    with pytest.raises(ValueError, match="no column 'edge_weight'"):
        model.predict_proba(graph())
    with pytest.raises(ValueError, match="trained without weights of edges; leave 'edge_weight' out"):  # fmt: skip
        fitted.predict_proba(data)
    with pytest.raises(ValueError, match="a weight must be a finite number"):
        CSNNClassifier(**FAST).fit(graph(edge_weight=weight - 1))


def r_squared_by_hand(y: np.ndarray, predicted: np.ndarray) -> float:
    y, predicted = y.astype(float), predicted.astype(float)
    return 1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum()


def test_regression() -> None:
    data = graph()
    data.y = data.x.sum(1) + 4
    model = CSNNRegressor(**FAST | {"epochs": 60}).fit(data)
    prediction = model.predict(data)
    assert prediction.shape == (60,)
    assert model.score(data) == pytest.approx(r_squared_by_hand(data.y.numpy(), prediction))
    assert model.score(data) > 0.5
    error = np.abs(prediction - data.y.numpy())
    part = model.run_.info["result"]["scores"]
    assert min(part.values()) <= error.mean() <= max(part.values())  # the metric of training
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")
    data.y[:50] = float("nan")
    expected = r_squared_by_hand(data.y[50:].numpy(), prediction[50:])
    assert model.score(data) == pytest.approx(expected)


def test_datasets_of_this_library() -> None:
    dataset = node_dataset(60)
    model = CSNNClassifier(**FAST).fit(dataset, split=1)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(dataset).shape == (60,)
    assert 0 <= model.score(dataset) <= 1
    mask = dataset.test[1]
    assert model.score(dataset, mask=mask) == pytest.approx(model.scores_["test"])


@pytest.mark.parametrize(("kind", "task"), [(CSNNClassifier, "multiclass"), (CSNNClassifier, "binary"), (CSNNRegressor, "regression")])  # fmt: skip
def test_saved_and_loaded_it_is_the_same(kind, task, tmp_path: Path) -> None:
    data = graph(classes=2 if task == "binary" else 3)
    data.y = data.y.float() * 1.5 if task == "regression" else data.y + 3
    model = kind(**FAST, seed=4, norm="layer").fit(data, drop=["x[1]"] if task == "binary" else [])
    model.save(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "model.safetensors",
        "run.json",
    ]
    back = kind.load(tmp_path / "model")
    assert back.get_params() == model.get_params()
    assert back.scores_ == model.scores_
    if task != "regression":
        assert back.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(back.predict(data), model.predict(data))
    assert back.score(data) == model.score(data)
    back.save(str(tmp_path / "again"))  # paths may be texts
    assert repr(kind.load(str(tmp_path / "again"))) == repr(model)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"estimator": 7}, "estimator must be an object; got 7"),
        ({"estimator": {}}, "it lacks 'name'"),
        ({"estimator": {"name": ["CSNNClassifier"]}}, r"estimator\.name must be text"),
        ({"estimator": {"name": "x" * 5000}}, r"must hold a CSNNClassifier; got xxx"),
        ({"estimator": {"name": "CSNNClassifier", "magic": 1}}, "has 'magic', which is no setting"),
        ({"estimator": {"name": "CSNNClassifier", "self": 1}}, "has 'self', which is no setting"),
        ({"epochs": "many"}, "epochs must be a whole number of at least .*, or null; got 'many'"),
        ({"lr": [0.1]}, "lr must be a finite number, or null; got a list of 1"),
        ({"lr": True}, "lr must be a finite number, or null; got True"),
        ({"seed": None}, "seed must be a whole number"),
        ({"seed": 10**400}, "seed must be a whole number .* got a whole number of many digits"),
        ({"class_weights": 1}, "class_weights must be true or false, or null; got 1"),
        ({"learner": {}}, "learner must be text"),
        ({"task": "binary"}, "out_channels must be 1 for task binary; got 3"),
        (
            {"level": "graph"},
            "a CSNNClassifier must be for binary or multiclass of nodes; this is for multiclass, level graph",
        ),
    ],
)
def test_a_forged_estimator_is_one_line(
    change: dict, rule: str, fitted: CSNNClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model/run.json"
    info = json.loads(path.read_text())
    whole = change.keys() <= info.keys() - {"seed"}
    path.write_text(json.dumps(info | change if whole else info | {"estimator": info["estimator"] | change}))  # fmt: skip
    with pytest.raises(ValueError, match=rule) as caught:
        CSNNClassifier.load(tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_classifier_that_calls_itself_a_regressor(fitted: CSNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model/run.json"
    path.write_text(path.read_text().replace('"CSNNClassifier"', '"CSNNRegressor"'))
    with pytest.raises(
        ValueError, match="CSNNRegressor must be for regression of nodes; this is for multiclass"
    ):
        CSNNRegressor.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"class_names": ["0", "1"]}, "the classes of the run, multiclass with 3; they have multiclass with 2"),
        ({"class_names": ["0", "1", "5"]}, "they have multiclass with 3 others"),
        ({"class_names": ["0", "1", "9" * 30]}, "classes that go with it"),
        ({"class_names": ["0", "1", "x"]}, "classes that go with it"),
        ({"task": "multilabel"}, "classes that go with it"),
        ({"label_type": "truth"}, "classes that go with it"),
    ],
)  # fmt: skip
def test_forged_classes_are_one_line(
    change: dict, rule: str, fitted: CSNNClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model/run.json"
    info = json.loads(path.read_text())
    info["tables"]["targets"] |= change
    path.write_text(json.dumps(info))
    with pytest.raises(ValueError, match=rule) as caught:
        CSNNClassifier.load(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_other_folders_are_refused(fitted: CSNNClassifier, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a run"):
        CSNNClassifier.load(tmp_path)
    fitted.save(tmp_path / "model")
    with pytest.raises(ValueError, match="must hold a CSNNRegressor; got CSNNClassifier"):
        CSNNRegressor.load(tmp_path / "model")
    run_split(recipe(epochs=1), node_dataset(), out=tmp_path / "run")
    with pytest.raises(ValueError, match="must hold a CSNNClassifier; got another run"):
        CSNNClassifier.load(tmp_path / "run")
    (tmp_path / "model" / "run.json").write_text(json.dumps([]))
    with pytest.raises(ValueError, match=r"run\.json: not a run of coopsheaf"):
        CSNNClassifier.load(tmp_path / "model")


def test_settings_are_read_changed_and_cloned() -> None:
    model = CSNNClassifier(stalk_dim=4, dropout=0.5)
    params = model.get_params()
    assert params["stalk_dim"] == 4
    assert params["learner"] is None  # that of the default recipe
    assert model.get_params(deep=False) == params
    # What scikit-learn's clone does.
    copied = type(model)(**{name: copy.deepcopy(value) for name, value in params.items()})
    assert copied.get_params() == params
    assert copied is not model
    assert not hasattr(copied, "run_")
    assert copied.set_params(lr=0.5, epochs=3) is copied
    assert (copied.lr, copied.epochs) == (0.5, 3)
    assert model.lr is None
    with pytest.raises(
        ValueError,
        match="CSNNClassifier has no setting 'depth'; there are seed, device, validation, hidden_channels,",
    ):
        copied.set_params(depth=3)


def test_it_shows_what_was_set() -> None:
    assert repr(CSNNClassifier()) == "CSNNClassifier()"
    assert repr(CSNNRegressor(stalk_dim=4, norm="layer")) == "CSNNRegressor(stalk_dim=4, norm='layer')"  # fmt: skip
    assert eval(repr(CSNNClassifier(lr=0.5))).get_params() == CSNNClassifier(lr=0.5).get_params()


def test_settings_take_effect_with_the_next_fit(fitted: CSNNClassifier) -> None:
    data = graph()
    model = CSNNClassifier(**FAST).fit(data)
    before = model.predict_proba(data)
    np.testing.assert_array_equal(before, fitted.predict_proba(data))  # the same seed
    model.set_params(seed=1, epochs=2)
    np.testing.assert_array_equal(model.predict_proba(data), before)
    assert (model.fit(data).predict_proba(data) != before).any()
    assert model.run_.info["result"]["epochs"] == 2


def test_the_callers_data_is_not_changed(fitted: CSNNClassifier) -> None:
    data = graph(edge_weight=torch.ones(180), **masks())
    before = data.clone()
    model = CSNNClassifier(**FAST).fit(data)
    for call in (model.predict, model.predict_proba, model.score):
        call(data)
    assert data.keys() == before.keys()
    for key, value in before.items():
        assert torch.equal(data[key], value), key
        assert not data[key].requires_grad


def test_reports_come_after_every_epoch() -> None:
    seen: list[int] = []
    CSNNClassifier(**FAST).fit(graph(), report=lambda state: seen.append(state.epoch))
    assert seen == list(range(1, 16))


@pytest.mark.parametrize("call", ["predict", "predict_proba", "score"])
def test_an_untrained_model_says_so(call: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="this CSNNClassifier is not trained yet: call fit first"):
        getattr(CSNNClassifier(), call)(graph())
    with pytest.raises(ValueError, match="not trained yet"):
        CSNNClassifier().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_wrong_targets_are_explained() -> None:
    data = graph()
    data.y = torch.rand(60, generator=generator(1))
    with pytest.raises(ValueError, match="must be for binary or multiclass of nodes; they are for regression"):  # fmt: skip
        CSNNClassifier(**FAST).fit(data)
    with pytest.raises(ValueError, match="must be for regression of nodes; they are for multiclass"):  # fmt: skip
        CSNNRegressor(**FAST).fit(node_dataset())


def test_wrong_features_are_explained(fitted: CSNNClassifier) -> None:
    data = graph()
    data.x = data.x[:, :4]
    with pytest.raises(ValueError, match=r"must have the feature columns of the training table; it lacks 'x\[4\]'"):  # fmt: skip
        fitted.predict(data)
    data = graph()
    data.x[3, 2] = float("nan")
    with pytest.raises(ValueError, match=r"`data\.x` must be finite"):
        fitted.predict(data)
    with pytest.raises(ValueError, match="must be finite; row 3, column 2 is nan"):
        CSNNClassifier(**FAST).fit(data)
    with pytest.raises(ValueError, match="`data` must have `edge_index`"):
        fitted.predict(Data(x=graph().x))
    with pytest.raises(ValueError, match="`data`: name the target"):
        CSNNClassifier(**FAST).fit(Data(x=graph().x, edge_index=graph().edge_index))


def test_wrong_settings_are_explained() -> None:
    for settings, message in (
        ({"stalk_dim": 0}, "`stalk_dim` must be an integer of at least 1"),
        ({"semantics": "mine"}, "`semantics` must be one of"),
        ({"learner": "magic"}, "`learner` must be one of"),
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"lr": float("nan")}, "`lr` must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            CSNNClassifier(**FAST | settings).fit(graph())


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    model = CSNNClassifier(epochs=2).fit(Data(x=torch.randn(40, 3), edge_index=torch.randint(0, 40, (2, 80)), y=torch.arange(40) % 2))  # fmt: skip
    model.save(tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run already"):
        model.save(tmp_path / "run")


# --- tables and graphs of other libraries ---------------------------------------------------------


def frames(n: int = 60, **columns: object):
    """Tables of people whose label follows from two numbers, and their acquaintances."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    label = np.where(x.sum(1) + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    nodes = {"id": [f"p{i}" for i in range(n)], "a": x[:, 0], "b": x[:, 1], "kind": ["u", "v"] * (n // 2), "label": label}  # fmt: skip
    edges = {"source": [f"p{i}" for i in range(n)] * 2, "target": [f"p{(i * 7 + 1 + i // n) % n}" for i in range(2 * n)]}  # fmt: skip
    return pandas.DataFrame(nodes | columns), pandas.DataFrame(edges)


@pytest.fixture(scope="module")
def on_tables() -> CSNNClassifier:
    return CSNNClassifier(**FAST).fit(*frames(), target="label")


def as_networkx(nodes, edges):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    for row in nodes.to_dict("records"):
        graph.add_node(row.pop("id"), **row)
    graph.add_edges_from(zip(edges["source"], edges["target"], strict=True))
    return graph


@pytest.mark.parametrize("form", ["paths", "polars", "pyarrow", "networkx"])
def test_a_graph_in_any_form_is_the_same(on_tables: CSNNClassifier, form: str, tmp_path: Path) -> None:  # fmt: skip
    nodes, edges = frames()
    if form == "paths":
        nodes.to_csv(tmp_path / "n.csv"), edges.to_parquet(tmp_path / "e.parquet")
        given = (tmp_path / "n.csv", str(tmp_path / "e.parquet"))
    elif form == "networkx":
        given = (as_networkx(nodes, edges),)
    else:
        library = pytest.importorskip(form)
        make = library.from_pandas if form == "polars" else library.Table.from_pandas
        given = (make(nodes), make(edges))
    ours = on_tables.predict_proba(nodes, edges)
    np.testing.assert_allclose(on_tables.predict_proba(*given), ours, atol=1e-6)
    again = CSNNClassifier(**FAST).fit(*given, target="label")
    np.testing.assert_allclose(again.predict_proba(nodes, edges), ours, atol=1e-6)
    assert again.classes_.tolist() == ["no", "yes"]
    assert again.score(*given) == pytest.approx(on_tables.score(nodes, edges))


@pytest.mark.parametrize(
    ("values", "kind"), [([3, 8], np.int64), ([False, True], np.bool_), (["no", "yes"], object)]
)
def test_labels_come_back_as_they_were(values: list[object], kind: type, tmp_path: Path) -> None:
    nodes, edges = frames()
    nodes["label"] = [values[cell == "yes"] for cell in nodes["label"]]
    model = CSNNClassifier(**FAST).fit(nodes, edges, target="label")
    prediction = model.predict(nodes, edges)
    assert prediction.dtype == kind
    assert {*prediction.tolist()} <= {*values}
    assert (prediction == nodes["label"].to_numpy()).mean() > 0.7
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(CSNNClassifier.load(tmp_path / "run").predict(nodes, edges), prediction)  # fmt: skip
    table = model.predict_table(nodes, edges)
    assert table.ids == tuple(nodes["id"])
    assert table.values == tuple(map(str, prediction))


def test_the_scale_of_a_column_does_not_matter(on_tables: CSNNClassifier) -> None:
    nodes, edges = frames()
    large = nodes.assign(b=nodes["b"] * 1e6)
    model = CSNNClassifier(**FAST).fit(large, edges, target="label")
    np.testing.assert_allclose(model.predict_proba(large, edges), on_tables.predict_proba(nodes, edges), atol=1e-4)  # fmt: skip
    data = graph()
    plain = CSNNClassifier(**FAST).fit(data).score(data)
    data.x = data.x * torch.tensor([1, 1, 1, 1, 1e6])
    assert CSNNClassifier(**FAST).fit(data).score(data) == pytest.approx(plain, abs=0.02)


def test_categories_are_those_of_training(on_tables: CSNNClassifier) -> None:
    """A graph that has other ones does not get an encoder of its own."""
    nodes, edges = frames()
    turned = nodes.assign(kind=["w", "v"] * 30)
    found = on_tables.predict_proba(as_networkx(turned, edges))
    assert any("column 'kind': 30 cells have a category not seen" in n for n in on_tables.notes_)
    np.testing.assert_allclose(found, on_tables.predict_proba(turned, edges), atol=1e-6)
    assert (found[1::2] != on_tables.predict_proba(nodes, edges)[1::2]).any()  # neighbours changed


def test_a_saved_model_predicts_on_the_command_line(
    on_tables: CSNNClassifier, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, edges = frames()
    nodes.to_csv(tmp_path / "n.csv"), edges.to_csv(tmp_path / "e.csv")
    on_tables.save(tmp_path / "run")
    words = ("predict", tmp_path / "run", "--nodes", tmp_path / "n.csv", "--edges", tmp_path / "e.csv", "-o", tmp_path / "o.csv")  # fmt: skip
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 0, capsys.readouterr().err
    assert (tmp_path / "o.csv").read_text() == on_tables.predict_table(nodes, edges).to_csv()


def test_a_leak_is_said_aloud() -> None:
    nodes, edges = frames()
    nodes["paid"] = [100 + i if cell == "yes" else i for i, cell in enumerate(nodes["label"])]
    with pytest.warns(UserWarning, match="column 'paid' gives the target away"):
        CSNNClassifier(**FAST | {"epochs": 1}).fit(nodes, edges, target="label")


def test_features_of_edges_are_used_if_asked_for() -> None:
    data = graph(edge_attr=torch.rand(180, 2, generator=generator(3)))
    with pytest.warns(UserWarning, match=r"edge_attr of the data is not used: edge_features=\['edge_attr'\]"):  # fmt: skip
        CSNNClassifier(**FAST | {"epochs": 1}).fit(data)
    model = CSNNClassifier(**FAST).fit(data, edge_features=["edge_attr"])
    assert model.schema_ is not None
    assert model.schema_.edge_features == ("edge_attr[0]", "edge_attr[1]")
    before = model.predict_proba(data)
    data.edge_attr = 1 - data.edge_attr
    assert (model.predict_proba(data) != before).any()
    with pytest.raises(ValueError, match=r"no column 'edge_attr\[0\]' \(wanted as a feature of edges\)"):  # fmt: skip
        model.predict(graph())


def test_several_types_become_one_graph() -> None:
    data = HeteroData()
    data["user"].x = torch.randn(40, 3, generator=generator(1))
    data["user"].y = (data["user"].x[:, 0] > 0).long()
    data["item"].x = torch.randn(20, 2, generator=generator(2))
    data["user", "buys", "item"].edge_index = torch.stack([torch.arange(40), torch.arange(40) % 20])
    model = CSNNClassifier(**FAST).fit(data, drop=["user.x[0]"])
    assert any("one graph is made of 2 types of nodes" in note for note in model.notes_)
    assert model.predict(data).shape == (60,)
    assert model.predict_table(data).ids[39:41] == ("user/39", "item/0")


# --- any model, any setting ------------------------------------------------------------------------


def test_any_model_and_any_setting_by_name(tmp_path: Path) -> None:
    data = graph()
    model = GraphClassifier("gcn", hidden_channels=4, epochs=3, weight_decay=0.1, patience=0).fit(
        data
    )
    recipe = model.run_.recipe
    assert (recipe.model_name, recipe.model.hidden_channels) == ("gcn", 4)
    assert (recipe.train.weight_decay, recipe.train.epochs, recipe.train.patience) == (0.1, 3, 0)
    assert recipe.model.num_layers == default_recipe("gcn").model.num_layers
    batches = GraphClassifier("sage", epochs=2, batch_kind="nodes", batch_size=20).fit(data).run_
    assert (batches.recipe.batch.kind, batches.recipe.batch.size) == ("nodes", 20)
    assert CSNNClassifier(input_dropout=0.2, epochs=1).fit(data).run_.recipe.model.input_dropout == 0.2  # fmt: skip
    model.save(tmp_path / "gcn")
    assert repr(GraphClassifier.load(tmp_path / "gcn")) == repr(model)
    with pytest.raises(ValueError, match="must hold a CSNNClassifier; got GraphClassifier"):
        CSNNClassifier.load(tmp_path / "gcn")
    short = CSNNClassifier(**FAST).fit(data)
    short.save(tmp_path / "csnn")
    general = GraphClassifier.load(tmp_path / "csnn")
    assert (general.model, general.stalk_dim) == ("csnn", 2)
    np.testing.assert_array_equal(general.predict(data), short.predict(data))


def test_what_an_earlier_version_saved_is_loaded(fitted: CSNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model/run.json"
    info = json.loads(path.read_text())
    then = dict.fromkeys(("learner", "scale", "semantics", "norm", "dropout", "weight_decay", "patience"))  # fmt: skip
    info["estimator"] = {"name": "CSNNClassifier", **then, **FAST, "class_weights": False, "seed": 0}  # fmt: skip
    path.write_text(json.dumps(info))
    back = CSNNClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(back.predict(graph()), fitted.predict(graph()))
    assert back.dropout is None


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"input_droput": 0.1}, r"CSNNClassifier has no setting 'input_droput' \(did you mean 'input_dropout'\?\)"),
        ({"random_state": 0}, r"no setting 'random_state' \(did you mean 'seed'\?\)"),
        ({"max_iter": 5}, r"\(did you mean 'epochs'\?\)"),
        ({"model": "gcn"}, "no setting 'model'"),
        ({"pool": "mean"}, "no setting 'pool'"),
        ({"processes": 2}, "no setting 'processes'"),
    ],
)  # fmt: skip
def test_an_unknown_setting_is_one_line(settings: dict, rule: str) -> None:
    with pytest.raises(TypeError, match=rule) as caught:
        CSNNClassifier(**settings)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=rule):
        CSNNClassifier().set_params(**settings)


def test_wrong_values_and_models_are_said_by_fit() -> None:
    data = graph()
    for estimator, rule in (
        (GraphClassifier("gnc"), r"`model` must be one of .*; got 'gnc'"),
        (GraphClassifier("gcn", epochs=2).set_params(epochs="many"), "GraphClassifier: `epochs` must be a whole number; got 'many'"),
        (GraphClassifier("csnn", stalk_dim=2).set_params(model="gcn"), "GraphClassifier of model 'gcn' has no setting 'stalk_dim'"),
        (CSNNClassifier(seed="a"), "`seed` must be a whole number; got 'a'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rule):
            estimator.fit(data)
    assert GraphClassifier(hidden_channels=np.int64(4), epochs=1).fit(data).run_.recipe.model.hidden_channels == 4  # fmt: skip


# --- targets apart, weights ------------------------------------------------------------------------


def test_targets_may_stand_apart(on_tables: CSNNClassifier) -> None:
    nodes, edges = frames()
    model = CSNNClassifier(**FAST, validation=0.25).fit(nodes.drop(columns="label"), nodes["label"], edges)  # fmt: skip
    assert model.classes_.tolist() == ["no", "yes"]
    assert any("45/15/0 nodes to train, validate and test" in note for note in model.notes_)
    assert np.isnan(model.scores_["test"])
    assert model.feature_names_in_.tolist() == ["a", "b", "kind"]
    # A column of the same name is the target, not a feature.
    same = CSNNClassifier(**FAST, validation=0.25).fit(nodes, nodes["label"], edges)
    np.testing.assert_array_equal(same.predict_proba(nodes, edges), model.predict_proba(nodes, edges))  # fmt: skip
    assert model.score(nodes, nodes["label"], edges) == model.score(nodes, edges)
    data = graph(**masks())
    x, y, edge_index = data.x.numpy(), data.y.numpy(), data.edge_index.numpy()
    first = CSNNClassifier(**FAST).fit(x, y, edges=edge_index)
    assert (first.n_features_in_, hasattr(first, "feature_names_in_")) == (5, False)
    # Masks are about the targets of the data itself.
    second = CSNNClassifier(**FAST).fit(data, data.y)
    np.testing.assert_array_equal(first.predict_proba(x, edge_index), second.predict_proba(data))
    with pytest.raises(ValueError, match="X has 4 features, but CSNNClassifier is expecting 5"):
        first.predict(x[:, :4], edge_index)


def test_unknown_targets_are_not_trained_on() -> None:
    data = graph()
    y = [None if i % 2 else int(k) for i, k in enumerate(data.y)]
    model = CSNNClassifier(**FAST).fit(data.x.numpy(), y, edges=data.edge_index.numpy())
    assert any("30 nodes labelled, 30 not" in note for note in model.notes_)
    right = model.predict(data.x.numpy(), data.edge_index.numpy()) == data.y.numpy()
    assert model.score(data.x.numpy(), y, data.edge_index.numpy()) == right[::2].mean()


def test_what_fit_cannot_take_is_one_line() -> None:
    nodes, edges = frames()
    x, y = graph().x.numpy(), graph().y.numpy()
    for arguments, options, rule in (
        ((nodes, edges), {}, r"the second argument is `y`, the targets: give edges by name"),
        ((nodes, nodes["label"]), {}, r"`edges` must be given beside `nodes`"),
        ((nodes, nodes["label"], edges), {"target": "label"}, "`y` and `target` exclude each other"),
        ((x, y[:5], graph().edge_index.numpy()), {}, r"`y` must have one entry for each of the 60 rows of `nodes`; got 5"),
        ((x, x[:, 0], graph().edge_index.numpy()), {}, "it is continuous, numbers with fractions, which a GraphRegressor"),
        ((x, y, graph().edge_index.numpy()), {"sample_weight": [1.0]}, r"`sample_weight` must have shape \(60,\); got \(1,\)"),
        ((x, y, graph().edge_index.numpy()), {"sample_weight": -np.ones(60)}, "not negative"),
        ((node_dataset(), y), {}, "a NodeDataset stands alone"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=rule) as caught:
            CSNNClassifier(**FAST).fit(*arguments, **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="`validation` must be a share between 0 and 1; got 2"):
        CSNNClassifier(validation=2).fit(x, y, graph().edge_index.numpy())
    with pytest.raises(ValueError, match=r"`sample_weight` goes with steps on the whole graph"):
        CSNNClassifier(batch_kind="nodes").fit(x, y, graph().edge_index.numpy(), sample_weight=np.ones(60))  # fmt: skip


def test_weights_of_samples_are_felt() -> None:
    data = graph(**masks())
    plain = CSNNClassifier(**FAST).fit(data)
    same = CSNNClassifier(**FAST).fit(data, sample_weight=np.full(60, 3.0))
    np.testing.assert_allclose(same.predict_proba(data), plain.predict_proba(data), atol=1e-4)
    weight = torch.where(data.y == 0, 100.0, 1.0)
    heavy = CSNNClassifier(**FAST).fit(data, sample_weight=weight)
    assert heavy.predict_proba(data)[:, 0].mean() > plain.predict_proba(data)[:, 0].mean() + 0.02
    assert heavy.run_.info["dataset_checksum"] != plain.run_.info["dataset_checksum"]
    right = plain.predict(data) == data.y.numpy()
    assert plain.score(data, sample_weight=weight) == pytest.approx(np.average(right, weights=weight))  # fmt: skip


def test_the_device_is_passed_on() -> None:
    with pytest.raises(ValueError, match="abacus"):
        CSNNClassifier(device="abacus", epochs=1).fit(graph())
    assert CSNNClassifier(device="cpu", epochs=1).fit(graph()).predict(graph()).shape == (60,)
