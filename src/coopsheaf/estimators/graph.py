"""Estimators of the nodes of a graph, by any model or by CSNN."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.estimators.base import GraphEstimator
from coopsheaf.estimators.scoring import accuracy, r_squared


def _join(doc: str | None, settings: str) -> str:
    """A docstring and what arguments mean, indented as they are."""
    return inspect.cleandoc(doc or "") + "\n\n" + settings


_SETTINGS = inspect.cleandoc(GraphEstimator.__doc__ or "").partition("\n\n")[2]
_WITHOUT_MODEL = "Args:\n" + _SETTINGS.partition("list_models`.\n")[2]


class GraphClassifier(GraphEstimator):
    """Classifies the nodes of a graph::

        model = GraphClassifier("gcn", hidden_channels=32).fit(x, y, edges=edge_index)
        model.predict(x, edge_index)        # classes, (n,)
        model.predict_proba(x, edge_index)  # (n, classes)
        model.score(x, y, edge_index)       # accuracy

        model = GraphClassifier().fit(nodes, edges, target="label")  # DataFrames, paths, ...
        model.predict_table(new_nodes, new_edges).to_csv()

    Graphs at prediction time may be new, and come in another form than that of training. For
    cross-validation and searches of scikit-learn see :func:`~coopsheaf.with_graph`.
    """

    __doc__ = _join(__doc__, _SETTINGS)

    _tasks = ("binary", "multiclass")
    _estimator_type = "classifier"

    def predict(self, nodes: Any, edges: Any = None) -> NDArray[Any]:
        """The most probable class of every node, ``(n,)``, as the targets of training name them."""
        return self._answers(self._read(nodes, edges))

    def predict_proba(self, nodes: Any, edges: Any = None) -> NDArray[np.float32]:
        """The probability of every class at every node, ``(n, classes)``, as in ``classes_``."""
        outputs = self._outputs(self._read(nodes, edges))
        return self._run().probabilities(outputs).numpy()

    def _answers(self, dataset: NodeDataset) -> NDArray[Any]:
        return self.classes_[self._run().classes(self._outputs(dataset)).numpy()]

    def _score(self, y: Any, predicted: Any, weight: Any) -> float:
        return accuracy(y, predicted, weight)

    def _own_targets(self, dataset: NodeDataset) -> NDArray[Any]:
        return self.classes_[dataset.y.numpy()]  # the last one for unknown ones, not counted

    def _describe(self, channels: int) -> None:
        super()._describe(channels)
        self.classes_ = self._classes()

    def _classes(self) -> NDArray[Any]:
        """The classes as the caller has them, in the order of the outputs."""
        if self.schema_ is not None and self.schema_.targets is not None:
            return self.schema_.targets.labels()
        return np.arange(max(2, self._run().info["out_channels"]))


class GraphRegressor(GraphEstimator):
    """Predicts a number for every node of a graph, or several; ``score`` is R²."""

    __doc__ = _join(__doc__, _SETTINGS)

    _tasks = ("regression",)
    _estimator_type = "regressor"

    def predict(self, nodes: Any, edges: Any = None) -> NDArray[np.float32]:
        """The predicted number of every node, ``(n,)``, or ``(n, k)`` of several targets."""
        return self._answers(self._read(nodes, edges))

    def _answers(self, dataset: NodeDataset) -> NDArray[np.float32]:
        return self._outputs(dataset).squeeze(-1).numpy()

    def _score(self, y: Any, predicted: Any, weight: Any) -> float:
        return r_squared(y, predicted, weight)

    def _own_targets(self, dataset: NodeDataset) -> NDArray[Any]:
        return dataset.y.numpy()


def _no_model(shorthand: GraphEstimator, settings: dict[str, Any]) -> None:
    if "model" in settings:
        kind, general = type(shorthand).__name__, type(shorthand).__mro__[1].__name__
        raise TypeError(f"{kind} has no setting 'model': it is a csnn; {general} takes others")


class CSNNClassifier(GraphClassifier):
    """Classifies the nodes of a graph by a CSNN: ``GraphClassifier("csnn", ...)``."""

    __doc__ = _join(__doc__, _WITHOUT_MODEL)
    _closed = True  # its constructor names all arguments: the model is none

    def __init__(
        self, *, seed: int = 0, device: str = "auto", validation: float = 0.2, **settings: Any
    ) -> None:
        _no_model(self, settings)
        super().__init__("csnn", seed=seed, device=device, validation=validation, **settings)


class CSNNRegressor(GraphRegressor):
    """Predicts numbers at the nodes of a graph by a CSNN: ``GraphRegressor("csnn", ...)``."""

    __doc__ = _join(__doc__, _WITHOUT_MODEL)
    _closed = True

    def __init__(
        self, *, seed: int = 0, device: str = "auto", validation: float = 0.2, **settings: Any
    ) -> None:
        _no_model(self, settings)
        super().__init__("csnn", seed=seed, device=device, validation=validation, **settings)
