"""An estimator and the graph that its rows are nodes of: what scikit-learn's tools take.

Cross-validation and searches cut tables into rows, and a row of a graph is nothing without its
neighbours. So the graph is given once, and rows say which of its nodes they are.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.tables.rows import NodeNames, read_names
from coopsheaf.estimators.base import GraphEstimator
from coopsheaf.estimators.parameters import copy_unfitted
from coopsheaf.estimators.scoring import as_targets
from coopsheaf.estimators.steps import final_step, run_steps
from coopsheaf.estimators.tags import make_tags, not_fitted
from coopsheaf.schema import brief

if TYPE_CHECKING:
    from typing_extensions import Self


class BoundGraph:
    """A graph that estimators share; it is read, never changed, and so never copied.

    Args:
        nodes, edges: a graph in any form that :func:`~coopsheaf.data.load_tables` takes.
        options: of :func:`~coopsheaf.data.load_tables`.
    """

    def __init__(self, nodes: Any, edges: Any, options: dict[str, Any]) -> None:
        if isinstance(nodes, NodeDataset):
            raise ValueError(
                "`nodes` must be tables, arrays, a networkx graph or a PyG Data; a NodeDataset has "
                "its split already: to_data() makes a Data of it"
            )
        self.nodes, self.edges = nodes, edges
        options, target = dict(options), options.get("target")
        own = [target] if isinstance(target, str) else list(target or ())
        self.own_targets = own  # what y is taken from, perhaps: no features
        options.pop("target", None)
        drop = options.pop("drop", ())
        drop = [drop] if isinstance(drop, str) else list(drop)
        self.options = options | {"drop": [*drop, *own]}

    @cached_property
    def names(self) -> NodeNames:
        """The names of the nodes, in the order of their table."""
        return read_names(self.nodes, self.edges, self.options.get("id"), self.options["drop"])

    def __deepcopy__(self, memo: Any) -> BoundGraph:
        return self

    def __repr__(self) -> str:
        return f"<graph of {len(self.names)} nodes>"


def with_graph(
    estimator: Any, nodes: Any, edges: Any = None, **tables: Any
) -> BoundClassifier | BoundRegressor:
    """An estimator whose rows are nodes of one graph::

        model = with_graph(CSNNClassifier(epochs=100), nodes, edges, target="label")
        cross_val_score(model, nodes["id"], nodes["label"])
        GridSearchCV(model, {"estimator__stalk_dim": [2, 4]}).fit(nodes["id"], nodes["label"])

    ``fit(rows, y)`` trains on these nodes, ``validation`` of them choosing the epoch;
    ``predict(rows)`` answers for others. Labels of other nodes are never seen. Their features and
    edges are: messages travel on the whole graph, in training too (*transductive*). Where the
    model will meet nodes that did not exist when it was trained, scores found so flatter it.

    Args:
        estimator: a graph estimator, or a ``Pipeline`` of scikit-learn that ends with one: its
            steps are fitted to the rows of training and applied to all nodes.
        nodes, edges: a graph in any form that :func:`~coopsheaf.data.load_tables` takes.
        tables: options of :func:`~coopsheaf.data.load_tables`. ``target`` names the columns that
            ``y`` is taken from, so that they are no features.
    """
    last = final_step(estimator)
    if not isinstance(last, GraphEstimator):
        raise ValueError(
            "`estimator` must be a GraphClassifier, a GraphRegressor or a Pipeline that ends with "
            f"one; got {type(last).__name__}"
        )
    classes = last._estimator_type == "classifier"
    graph = BoundGraph(nodes, edges, tables)
    return (BoundClassifier if classes else BoundRegressor)(estimator, graph)


class _Bound:
    """What bound estimators share; :func:`with_graph` makes them.

    Args:
        estimator: the estimator, or a pipeline that ends with it.
        graph: the graph.
    """

    _estimator_type: str

    def __init__(self, estimator: Any, graph: BoundGraph) -> None:
        self.estimator = estimator
        self.graph = graph

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """``estimator`` and ``graph``; with ``deep`` the settings as ``estimator__lr``."""
        params: dict[str, Any] = {"estimator": self.estimator, "graph": self.graph}
        if deep:
            inner = self.estimator.get_params(deep=True)
            params |= {f"estimator__{name}": value for name, value in inner.items()}
        return params

    def set_params(self, **values: Any) -> Self:
        """Change settings, those of the estimator as ``estimator__lr``."""
        inner = {}
        for name, value in values.items():
            if name in ("estimator", "graph"):
                setattr(self, name, value)
            elif name.startswith("estimator__"):
                inner[name.removeprefix("estimator__")] = value
            else:
                known = name in self.estimator.get_params(deep=True)
                hint = f" (did you mean 'estimator__{name}'?)" if known else ""
                raise ValueError(
                    f"a {type(self).__name__} has no setting {brief(name)}{hint}; there are "
                    "estimator, graph, and estimator__... for those of the estimator"
                )
        if inner:
            self.estimator.set_params(**inner)
        return self

    def fit(self, rows: Any, y: Any, sample_weight: Any = None, **options: Any) -> Self:
        """Train on some nodes of the graph.

        Args:
            rows: ``(k,)`` names of nodes, or a table with the column that names them; where nodes
                have no names, their numbers.
            y: ``(k,)`` targets, or ``(k, m)`` numbers.
            sample_weight: ``(k,)``, how much each node counts in the loss.
            options: of the estimator's ``fit``, such as ``report``.
        """
        names, places = self.graph.names, self.graph.names.find(rows)
        target = getattr(y, "name", None)
        y = _check_rows("y", as_targets(y), places)
        everyone = _spread(y, places, len(names))
        if sample_weight is not None:
            weight = np.zeros(len(names))
            weight[places] = _check_rows("sample_weight", as_targets(sample_weight), places)
            options["sample_weight"] = weight
        self.estimator_, self.nodes_ = run_steps(
            copy_unfitted(self.estimator), self.graph, places, y, target
        )
        tables = self.graph.options
        if self.nodes_ is not self.graph.nodes:
            tables = tables | {"drop": []}  # no step has seen them
        elif isinstance(target, str) and target in _columns(self.graph.nodes):
            tables = tables | {"drop": list(dict.fromkeys((*tables["drop"], target)))}
        self.model_.fit(self.nodes_, everyone, self.graph.edges, **tables, **options)
        self._kept: dict[str, NDArray[Any]] = {}
        return self

    @property
    def model_(self) -> GraphEstimator:
        """The trained graph estimator itself, which also predicts on other graphs and is saved."""
        if not hasattr(self, "estimator_"):
            raise not_fitted(self)
        found: GraphEstimator = final_step(self.estimator_)
        return found

    def predict(self, rows: Any) -> NDArray[Any]:
        """Predictions at some nodes of the graph, ``(k,)``."""
        return self._at("predict", rows)

    def score(self, rows: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy or R² at some nodes of the graph."""
        predicted = self.predict(rows)
        y = _check_rows("y", as_targets(y), predicted)
        if sample_weight is not None:
            sample_weight = _check_rows("sample_weight", as_targets(sample_weight), predicted)
        return self.model_._score(y, predicted, sample_weight)

    def _at(self, method: str, rows: Any) -> NDArray[Any]:
        """What a method says of all nodes, found once, at some of them."""
        model, places = self.model_, self.graph.names.find(rows)
        if method not in self._kept:
            self._kept[method] = getattr(model, method)(self.nodes_, self.graph.edges)
        return self._kept[method][places]

    @property
    def n_features_in_(self) -> int:
        return self.model_.n_features_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        return make_tags(self._estimator_type, names=True)

    def __repr__(self) -> str:
        return f"with_graph({self.estimator!r}, {self.graph!r})"


class BoundClassifier(_Bound):
    """Classifies some nodes of one graph; :func:`with_graph` makes it."""

    _estimator_type = "classifier"

    def predict_proba(self, rows: Any) -> NDArray[np.float32]:
        """The probability of every class at some nodes, ``(k, classes)``."""
        return self._at("predict_proba", rows)

    @property
    def classes_(self) -> NDArray[Any]:
        found: NDArray[Any] = self.model_.classes_
        return found


class BoundRegressor(_Bound):
    """Predicts numbers at some nodes of one graph; :func:`with_graph` makes it."""

    _estimator_type = "regressor"


def _check_rows(name: str, values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    if len(values) != len(places):
        raise ValueError(
            f"`{name}` must have one entry for each of the {len(places)} rows; got {len(values)}"
        )
    return values


def _spread(y: NDArray[Any], places: NDArray[np.int64], n: int) -> Any:
    """Targets of some nodes as those of all, unknown elsewhere."""
    if y.dtype.kind == "f":
        numbers = np.full((n, *y.shape[1:]), np.nan)
        numbers[places] = y
        return numbers
    if y.ndim != 1:
        return _spread(y.astype(np.float64), places, n)
    values: list[Any] = [None] * n
    for place, value in zip(places.tolist(), y.tolist(), strict=True):
        values[place] = value
    return values


def _columns(nodes: Any) -> list[str]:
    """The names of the columns of a table in memory."""
    names = nodes if isinstance(nodes, dict) else getattr(nodes, "columns", ())
    return [str(name) for name in names]
