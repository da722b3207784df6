"""What scikit-learn does with estimators: clone them, search, cross-validate, check them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from coopsheaf import (
    CSNNClassifier,
    CSNNRegressor,
    GraphClassifier,
    GraphRegressor,
    with_graph,
)
from coopsheaf.data.errors import DataError
from coopsheaf.estimators.scoring import accuracy, r_squared

FAST = {"hidden_channels": 8, "num_layers": 1, "epochs": 30, "lr": 0.05}


def tables(n: int = 80) -> tuple[Any, Any]:
    """A label that follows from a number of the node and of the one it hears from."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    label = np.where(a + np.roll(a, 1) > 0, "yes", "no")  # node i hears from i - 1
    nodes = {"id": [f"n{i}" for i in range(n)], "a": a, "noise": rng.normal(size=n), "kind": rng.choice(["u", "v"], n), "label": label}  # fmt: skip
    edges = {"source": [f"n{i}" for i in range(n)], "target": [f"n{(i + 1) % n}" for i in range(n)]}
    return pandas.DataFrame(nodes), pandas.DataFrame(edges)


def arrays(n: int = 80) -> tuple[Any, Any, Any]:
    nodes, _ = tables(n)
    x = nodes[["a", "noise"]].to_numpy()
    return x, (nodes["label"] == "yes").astype(int).to_numpy(), np.array([range(n), [*range(1, n), 0]])  # fmt: skip


@pytest.mark.parametrize(
    "estimator",
    [
        GraphClassifier("gcn", hidden_channels=4, lr=0.1),
        GraphRegressor(seed=3, batch_kind="nodes"),
        CSNNClassifier(input_dropout=0.1, device="cpu"),
        CSNNRegressor(validation=0.3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_clone(estimator: Any) -> None:
    copy = clone(estimator)
    assert type(copy) is type(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert repr(copy) == repr(estimator)
    bound = with_graph(estimator, *tables())
    again = clone(bound)
    assert again.graph is bound.graph  # not copied: it may be large
    assert again.estimator is not bound.estimator
    assert again.get_params()["estimator__seed"] == estimator.seed


def test_scikit_learn_knows_what_they_are() -> None:
    for kind in (GraphClassifier, CSNNClassifier):
        assert is_classifier(kind())
        assert is_classifier(with_graph(kind(), *tables()))
    for kind in (GraphRegressor, CSNNRegressor):
        assert is_regressor(kind())
        assert is_regressor(with_graph(kind(), *tables()))
    assert get_tags(CSNNClassifier()).target_tags.required


def test_a_search_over_models_and_their_settings() -> None:
    nodes, edges = tables()
    grid = [
        {"estimator__model": ["gcn"], "estimator__hidden_channels": [4]},
        {"estimator__model": ["csnn"], "estimator__stalk_dim": [1, 2]},
    ]
    bound = with_graph(GraphClassifier(**FAST), nodes, edges, target="label")
    search = GridSearchCV(bound, grid, cv=3).fit(nodes["id"], nodes["label"])
    assert len(search.cv_results_["params"]) == 3
    assert search.best_estimator_.model_.run_.recipe.model_name == search.best_params_["estimator__model"]  # fmt: skip
    assert search.best_score_ > 0.7
    assert search.classes_.tolist() == ["no", "yes"]
    assert search.score(nodes["id"], nodes["label"]) > 0.8
    assert search.predict(nodes["id"][:3]).shape == (3,)
    assert not hasattr(bound, "estimator_")


def test_cross_validation_hears_neighbours_and_hides_labels() -> None:
    """A node's label needs its neighbour; labels of other nodes are not there to be heard."""
    nodes, edges = tables(120)
    bound = with_graph(CSNNClassifier(**FAST), nodes, edges, target="label")
    with_edges = cross_val_score(bound, nodes["id"], nodes["label"], cv=4).mean()
    lonely = with_graph(CSNNClassifier(**FAST), nodes, edges.iloc[:1], target="label")
    without = cross_val_score(lonely, nodes["id"], nodes["label"], cv=4).mean()
    assert with_edges > without + 0.05
    # Labels of the rows that are not trained on cannot matter: they are nowhere.
    rows = np.arange(0, 120, 2)
    one = clone(bound).fit(nodes["id"][rows], nodes["label"][rows])
    turned = nodes.assign(label=np.where(np.arange(120) % 2, "no", nodes["label"]))
    two = with_graph(CSNNClassifier(**FAST), turned, edges, target="label")
    two.fit(turned["id"][rows], turned["label"][rows])
    np.testing.assert_array_equal(one.predict_proba(nodes["id"]), two.predict_proba(nodes["id"]))


def test_only_the_rows_are_trained_on() -> None:
    nodes, edges = tables()
    bound = with_graph(CSNNClassifier(**FAST, validation=0.25), nodes, edges, target="label")
    rows = nodes.iloc[10:50]
    bound.fit(rows, rows["label"])  # a table with the column of names will do
    parts = bound.model_.notes_
    assert any("30/10/0 nodes to train, validate and test" in note for note in parts)
    assert bound.model_.feature_names_in_.tolist() == ["a", "noise", "kind"]
    assert bound.n_features_in_ == 3
    # Columns are standardised by the nodes that are trained on.
    column = next(c for c in bound.model_.run_.info["encoder"]["columns"] if c["name"] == "a")
    assert not np.isclose(column["mean"], nodes["a"].mean(), atol=1e-3)


def test_the_column_that_y_is_taken_from_is_no_feature() -> None:
    nodes, edges = tables()
    for y, more in ((nodes["label"], {}), (nodes["label"].to_numpy(), {"target": "label"})):
        bound = with_graph(CSNNClassifier(**FAST | {"epochs": 1}), nodes, edges, **more)
        bound.fit(nodes["id"], y)
        assert "label" not in bound.model_.feature_names_in_
    with pytest.warns(UserWarning, match="column 'label' gives the target away"):
        with_graph(CSNNClassifier(epochs=1), nodes, edges).fit(nodes["id"], y)


def test_nodes_without_names_are_numbers() -> None:
    x, y, edges = arrays()
    bound = with_graph(GraphClassifier("gcn", **FAST), x, edges)
    rows = np.arange(80)
    scores = cross_val_score(bound, rows, y, cv=3)
    assert scores.shape == (3,)
    proba = cross_val_predict(bound, rows.reshape(-1, 1), y, cv=3, method="predict_proba")
    assert proba.shape == (80, 2)
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-5)


def test_a_regression_is_searched() -> None:
    nodes, edges = tables()
    y = pandas.Series(3 * nodes["a"] + 2 * nodes["noise"] + 1, name="c")
    bound = with_graph(CSNNRegressor(**FAST), nodes, edges, target="label")
    search = GridSearchCV(bound, {"estimator__lr": np.array([0.01, 0.1])}, cv=3)
    search.fit(nodes["id"], y)
    predicted = search.predict(nodes["id"])
    assert search.score(nodes["id"], y) == pytest.approx(r2_score(y, predicted))
    assert search.score(nodes["id"], y) > 0.5
    assert not hasattr(bound, "predict_proba")


def test_steps_are_fitted_to_the_rows_and_applied_to_all_nodes() -> None:
    nodes, edges = tables()
    nodes.loc[3, "a"] = np.nan
    prepare = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "noise"]),
            ("kind", OneHotEncoder(), ["kind"]),
        ]
    )
    pipeline = Pipeline([("prepare", prepare), ("net", CSNNClassifier(**FAST))])
    bound = with_graph(pipeline, nodes, edges, target="label")
    rows = nodes["id"][:40]
    bound.fit(rows, nodes["label"][:40])
    scaler = bound.estimator_.named_steps["prepare"].named_transformers_["numbers"][-1]
    assert scaler.mean_[0] == pytest.approx(nodes["a"][:40].mean())  # pandas leaves gaps out, too
    assert bound.model_.feature_names_in_.tolist() == ["numbers__a", "numbers__noise", "kind__kind_u", "kind__kind_v"]  # fmt: skip
    assert bound.predict(nodes["id"]).shape == (80,)
    grid = {"estimator__net__stalk_dim": [1, 2], "estimator__prepare__numbers__standardscaler__with_mean": [True]}  # fmt: skip
    search = GridSearchCV(bound, grid, cv=2).fit(nodes["id"], nodes["label"])
    assert search.best_score_ > 0.5
    x, y, index = arrays()
    on_arrays = with_graph(make_pipeline(StandardScaler(), CSNNClassifier(**FAST)), x, index)
    assert on_arrays.fit(np.arange(60), y[:60]).score(np.arange(60, 80), y[60:]) > 0.5


def test_a_bound_estimator_is_the_last_step_of_a_pipeline() -> None:
    nodes, edges = tables()
    bound = with_graph(CSNNClassifier(**FAST), nodes, edges, target="label")
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows[["id"]]), bound)
    assert cross_val_score(pipeline, nodes, nodes["label"], cv=2).mean() > 0.5


def test_weights_of_samples_pass_through_searches() -> None:
    nodes, edges = tables()
    weight = np.where(np.arange(80) % 4, 1.0, 0.0)
    bound = with_graph(CSNNClassifier(**FAST), nodes, edges, target="label")
    search = GridSearchCV(bound, {"estimator__lr": [0.05]}, cv=2)
    search.fit(nodes["id"], nodes["label"], sample_weight=weight)
    chosen = nodes["id"][weight > 0]
    plain = clone(bound).fit(chosen, nodes["label"][weight > 0], sample_weight=np.ones(60))
    # Nodes of weight zero are as good as none, but for the messages that they send.
    np.testing.assert_array_equal(search.best_estimator_.predict_proba(nodes["id"]), plain.predict_proba(nodes["id"]))  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (["n1", "n900"], "row 1 is 'n900', which is none of its 80 nodes"),
        (["n1", "n2", "n1"], "'n1' is in row 0 and in row 2"),
        (np.zeros((2, 3)), "got 3 columns without names. Features are those of the graph"),
        ({"name": ["n1", "n2"]}, "rows must have the column 'id', which names the nodes; they have 'name'"),
    ],
)  # fmt: skip
def test_rows_that_are_no_nodes_are_one_line(rows: Any, rule: str) -> None:
    bound = with_graph(CSNNClassifier(), *tables(), target="label")
    with pytest.raises(DataError) as error:
        bound.fit(rows, ["yes", "no", "yes"][: len(rows)])
    assert rule in str(error.value)
    assert "\n" not in str(error.value)


def test_what_cannot_be_bound_is_said() -> None:
    nodes, edges = tables()
    with pytest.raises(ValueError, match="must be a GraphClassifier, a GraphRegressor or a Pipeline that ends with one; got StandardScaler"):  # fmt: skip
        with_graph(StandardScaler(), nodes, edges)
    bound = with_graph(CSNNClassifier(), nodes, edges)
    with pytest.raises(ValueError, match=r"no setting 'lr' \(did you mean 'estimator__lr'\?\)"):
        bound.set_params(lr=0.1)
    with pytest.raises(ValueError, match="not trained yet"):
        bound.predict(nodes["id"])
    with pytest.raises(ValueError, match=r"`y` must have one entry for each of the 80 rows; got 3"):
        bound.fit(nodes["id"], [1, 2, 3])
    assert repr(bound) == "with_graph(CSNNClassifier(), <graph of 80 nodes>)"


def test_scores_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import accuracy_score

    rng = np.random.default_rng(1)
    y, p, w = rng.normal(size=(20, 2)), rng.normal(size=(20, 2)), rng.random(20)
    assert r_squared(y, p) == pytest.approx(r2_score(y, p))
    assert r_squared(y, p, w) == pytest.approx(r2_score(y, p, sample_weight=w))
    assert r_squared(np.ones(3), np.ones(3)) == r2_score(np.ones(3), np.ones(3)) == 1
    assert r_squared(np.ones(3), np.zeros(3)) == r2_score(np.ones(3), np.zeros(3)) == 0
    a, b = rng.integers(3, size=20), rng.integers(3, size=20)
    assert accuracy(a, b, w) == pytest.approx(accuracy_score(a, b, sample_weight=w))


# --- check_estimator ----------------------------------------------------------------------------


def path(rows: Any) -> np.ndarray:
    """Node i is heard by node i + 1."""
    n = rows.shape[0] if hasattr(rows, "shape") else len(np.asarray(rows))
    return np.array([np.arange(n - 1), np.arange(1, n)]) if n else np.zeros((2, 0), dtype=int)


class ClassifierOnAPath(GraphClassifier):
    """Rows of whatever scikit-learn checks with, joined to a graph: checks know no edges."""

    _closed = True

    def __init__(self, *, seed: int = 0, **settings: Any) -> None:
        super().__init__("gcn", seed=seed, **settings)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return super().fit(X, y, path(X), sample_weight=sample_weight)

    def predict(self, X: Any) -> Any:
        return super().predict(X, path(X))

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X, path(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return super().score(X, y, path(X), sample_weight=sample_weight)


class RegressorOnAPath(GraphRegressor):
    _closed = True

    def __init__(self, *, seed: int = 0, **settings: Any) -> None:
        super().__init__("gcn", seed=seed, **settings)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return super().fit(X, y, path(X), sample_weight=sample_weight)

    def predict(self, X: Any) -> Any:
        return super().predict(X, path(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return super().score(X, y, path(X), sample_weight=sample_weight)


# The checks that an estimator of nodes does not pass, and why; docs/estimators.md has them, too.
NOT_PASSED = {
    "check_methods_sample_order_invariance": "what a node is depends on its neighbours, here the rows before it",
    "check_methods_subset_invariance": "a part of a graph is another graph",
    "check_sample_weight_equivalence_on_dense_data": "to leave a node out, or to repeat it, makes another graph",
    "check_sample_weight_equivalence_on_sparse_data": "to leave a node out, or to repeat it, makes another graph",
    "check_do_not_raise_errors_in_init_or_set_params": "names of settings are checked at once, so that a typing error is one in its own line; values are checked by fit",
    "check_no_attributes_set_in_init": "settings are taken by name, and no signature lists those of every model",
    "check_dict_unchanged": "predict leaves what it had to say of new data in notes_",
    "check_sample_weights_pandas_series": "a DataFrame has a column that names the nodes; this one has features alone",
    "check_classifier_data_not_an_array": "a DataFrame has a column that names the nodes; this one has features alone",
    "check_regressor_data_not_an_array": "a DataFrame has a column that names the nodes; this one has features alone",
    "check_supervised_y_2d": "a column of targets is one target, without a warning",
    "check_regressor_multioutput": "predictions are in single precision, as they are computed",
    "check_complex_data": "refused in other words",
    "check_estimators_empty_data_messages": "refused in other words",
    "check_fit2d_1sample": "refused in other words: a graph of one node has nothing to validate by",
}  # fmt: skip
OF_CLASSIFIERS = {"check_classifier_data_not_an_array", "check_supervised_y_2d"}
OF_REGRESSORS = {"check_regressor_data_not_an_array", "check_regressor_multioutput"}


def not_passed(estimator: Any) -> dict[str, str]:
    others = OF_REGRESSORS if is_classifier(estimator) else OF_CLASSIFIERS
    return {name: why for name, why in NOT_PASSED.items() if name not in others}


QUICK = {"epochs": 20, "hidden_channels": 16, "lr": 0.05}


with warnings.catch_warnings():  # that nothing here inherits from scikit-learn's classes
    warnings.simplefilter("ignore")
    each_check = parametrize_with_checks(
        [ClassifierOnAPath(**QUICK), RegressorOnAPath(**QUICK)], expected_failed_checks=not_passed
    )


@pytest.mark.filterwarnings("ignore:.*gives the target away")
@each_check
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_documentation_lists_what_is_not_passed() -> None:
    page = Path(__file__).parents[2] / "docs" / "estimators.md"
    text = page.read_text(encoding="utf-8")
    for name, why in NOT_PASSED.items():
        assert f"| `{name}` | {why} |" in text, name
    assert text.count("| `check_") == len(NOT_PASSED)
