"""CSNN as an estimator in the manner of scikit-learn: ``fit``, ``predict``, ``score``."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.tables.load import load_tables, read_tables_like
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.predictions import Predictions, node_outputs, predict, score
from coopsheaf.schema import brief_text, find_fault, keys, of_hint, unknown_keys
from coopsheaf.train.data import table_schema
from coopsheaf.train.loop import EpochReport
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.run import Run, load_run, read_result, run_split, save_run

if TYPE_CHECKING:
    from typing_extensions import Self

WARNING = "WARNING:"  # how a note begins that nobody should overlook


class _Estimator:
    """What both estimators share.

    Args:
        hidden_channels, num_layers, stalk_dim, learner, scale, semantics, norm, dropout: see
            :class:`~coopsheaf.CSNN`; what is not given is that of the default recipe
            (:func:`~coopsheaf.train.default_recipe`).
        lr, weight_decay, epochs, patience, class_weights: see
            :class:`~coopsheaf.train.TrainConfig`; likewise.
        seed: of the split, the initialisation and dropout.
    """

    _tasks: tuple[str, ...]

    def __init__(
        self,
        *,
        hidden_channels: int | None = None,
        num_layers: int | None = None,
        stalk_dim: int | None = None,
        learner: str | None = None,
        scale: str | None = None,
        semantics: str | None = None,
        norm: str | None = None,
        dropout: float | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        class_weights: bool = False,
        seed: int = 0,
    ) -> None:
        self.hidden_channels = hidden_channels
        self.num_layers = num_layers
        self.stalk_dim = stalk_dim
        self.learner = learner
        self.scale = scale
        self.semantics = semantics
        self.norm = norm
        self.dropout = dropout
        self.lr = lr
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.patience = patience
        self.class_weights = class_weights
        self.seed = seed

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **values: Any) -> Self:
        """Change settings; takes effect with the next ``fit``."""
        for name, value in values.items():
            if name not in self._names():
                raise ValueError(f"unknown setting {name!r}; there are {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def fit(
        self,
        nodes: Any,
        edges: Any = None,
        *,
        split: int = 0,
        report: Callable[[EpochReport], None] | None = None,
        **tables: Any,
    ) -> Self:
        """Train on the training nodes of one graph; stop by its validation nodes.

        Columns are encoded as on the command line: numbers are standardised by the training nodes,
        texts are categories. What was decided is in ``notes_`` and in ``schema_``, which every
        later graph is read with.

        Args:
            nodes, edges: a graph in any form that :func:`~coopsheaf.data.load_tables` takes: paths,
                DataFrames, Arrow tables, a networkx graph, arrays, a PyG ``Data`` (whose masks and
                ``edge_weight`` are used). A dataset of this library is taken as it is.
            split: which of several splits.
            report: called after every epoch.
            tables: options of :func:`~coopsheaf.data.load_tables`, such as ``target="label"``.
        """
        self.schema_: TableSchema | None = None
        self.notes_: tuple[str, ...] = ()
        extra: dict[str, Any] = {}
        if isinstance(nodes, NodeDataset):
            if edges is not None or tables:
                raise ValueError("a NodeDataset stands alone: give no edges and no options with it")
            dataset = self._checked(nodes)
        else:
            task = "regression" if "regression" in self._tasks else None
            options = {"task": task, "seed": self.seed} | tables
            data = load_tables(nodes, edges, **options)
            dataset = self._checked(data.dataset)
            self.schema_, self.notes_, extra = data.schema, data.notes, data.kept
            if getattr(nodes, "edge_attr", None) is not None and not data.schema.edge_features:
                warnings.warn(
                    "the edge_attr of the data is not used: edge_features=['edge_attr'] would use "
                    "it",
                    stacklevel=2,
                )
        _warn(self.notes_)
        run, result = run_split(self._recipe(), dataset, split, extra=extra, report=report)
        self.run_, self.scores_ = run, result.scores
        self.classes_ = self._classes(dataset)
        return self

    def score(self, nodes: Any, edges: Any = None, *, mask: Tensor | None = None) -> float:
        """The task's metric, over all labelled nodes or those of a mask."""
        return score(self._run(), self._read(nodes, edges, labelled=True), mask).value

    def predict_table(self, nodes: Any, edges: Any = None) -> Predictions:
        """Predictions with the names of the nodes: ``rows()``, ``to_csv()``."""
        return predict(self._run(), self._read(nodes, edges))

    def save(self, folder: str | Path) -> None:
        """Write the trained model as a run, safetensors and JSON, into a folder without one.

        ``coopsheaf predict`` takes it, too, if it was trained on tables.
        """
        run = self._run()
        if (Path(folder) / "run.json").exists():
            raise ValueError(f"{folder}: holds a run already; choose another folder")
        settings = {"name": type(self).__name__}
        info = run.info | {"estimator": settings | self.get_params()}
        save_run(replace(run, info=info), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that :meth:`save` wrote; nothing in it is executed."""
        run = load_run(Path(folder))
        try:
            estimator = cls(**cls._stored_settings(run.info))
            estimator.run_, estimator.notes_ = run, ()
            estimator.schema_ = table_schema(run) if run.info.get("tables") else None
            estimator.classes_ = estimator._classes(None)
            estimator.scores_ = read_result(run.info).scores
        except ValueError as error:
            raise ValueError(f"{folder}: {error}") from None
        return estimator

    @classmethod
    def _stored_settings(cls, info: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that ``run.json`` holds, which anybody may have written."""
        settings = dict(info.get("estimator", {}))
        name = settings.pop("name", None)
        if name != cls.__name__:
            raise ValueError(
                f"must hold a {cls.__name__}; got {brief_text(name or 'another run', 60)}"
            )
        found = (info["model"], info["level"], info["task"])
        if found not in {("csnn", "node", task) for task in cls._tasks}:
            raise ValueError(
                f"a {cls.__name__} must be a csnn for {' or '.join(cls._tasks)} of nodes; this is "
                f"a {found[0]} for {found[2]}, level {found[1]}"
            )
        settings.pop("classes", None)  # of earlier versions
        if unknown := unknown_keys(settings, cls._names()):
            raise ValueError(f"estimator in run.json has {unknown[0]}, which is no setting")
        # Those that a class of the user's own adds are its own business.
        hints = get_type_hints(_Estimator.__init__)
        kinds = {name: of_hint(hints[name]) for name in settings if name in hints}
        if fault := find_fault(settings, keys({}, kinds)):
            raise ValueError(f"estimator in run.json: {fault}")
        return settings

    def _checked(self, dataset: AnyDataset) -> NodeDataset:
        if not isinstance(dataset, NodeDataset) or dataset.task not in self._tasks:
            raise ValueError(
                f"the targets must be for {' or '.join(self._tasks)} of nodes; they are for "
                f"{dataset.task}"
            )
        return dataset

    def _read(self, nodes: Any, edges: Any = None, *, labelled: bool = False) -> NodeDataset:
        """A graph, read as that of training was."""
        self._run()
        if isinstance(nodes, NodeDataset):
            return self._checked(nodes)
        if self.schema_ is None:
            raise ValueError(
                "`nodes` must be a NodeDataset, as in training; only a model that was trained on "
                f"tables or a Data knows how to read a {type(nodes).__name__}"
            )
        data = read_tables_like(nodes, edges, None, self.schema_, labelled=labelled)
        self.notes_ = data.notes
        _warn(self.notes_)
        return self._checked(data.dataset)

    def _classes(self, dataset: NodeDataset | None) -> NDArray[Any]:
        """The classes as the caller has them, in the order of the outputs."""
        if "regression" in self._tasks:
            return np.array([], dtype=np.int64)
        if self.schema_ is not None and self.schema_.targets is not None:
            return self.schema_.targets.labels()
        outputs = self._run().info["out_channels"] if dataset is None else dataset.out_channels
        return np.arange(max(2, outputs))

    def _recipe(self) -> Recipe:
        """The default recipe of CSNN with what was given."""
        base, params = default_recipe("csnn"), self.get_params()
        given = {name: value for name, value in params.items() if value is not None}
        of_model = given.keys() & {item.name for item in fields(base.model)}
        model = replace(base.model, **{name: given[name] for name in of_model})
        train = replace(base.train, **{n: v for n, v in given.items() if n not in of_model})
        return replace(base, model=model, train=train, name="estimator", source="")

    def _run(self) -> Run:
        if not hasattr(self, "run_"):
            raise ValueError(f"this {type(self).__name__} is not trained yet: call fit first")
        return self.run_

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != signature[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _warn(notes: Sequence[str]) -> None:
    """Say aloud what nobody should overlook."""
    for note in notes:
        if note.startswith(WARNING):
            warnings.warn(note.removeprefix(WARNING).strip(), stacklevel=4)


def _join(*docs: str | None) -> str:
    """One docstring of several."""
    return "\n\n".join(inspect.cleandoc(doc or "") for doc in docs)


class CSNNClassifier(_Estimator):
    """Classifies the nodes of a graph::

        model = CSNNClassifier(epochs=100).fit(data)
        model.predict(data)        # classes, (n,)
        model.predict_proba(data)  # (n, classes)

        model = CSNNClassifier().fit(nodes, edges, target="label")  # DataFrames, paths, ...
        model.predict_table(new_nodes, new_edges).to_csv()

    Graphs at prediction time may be new, and come in another form than that of training.
    """

    __doc__ = _join(__doc__, _Estimator.__doc__)

    _tasks = ("binary", "multiclass")

    def predict(self, nodes: Any, edges: Any = None) -> NDArray[Any]:
        """The most probable class of every node, ``(n,)``, as the targets of training name them."""
        logits = node_outputs(self._run(), self._read(nodes, edges))
        return self.classes_[self._run().task.classes(logits).numpy()]

    def predict_proba(self, nodes: Any, edges: Any = None) -> NDArray[np.float32]:
        """The probability of every class at every node, ``(n, classes)``, as in ``classes_``."""
        logits = node_outputs(self._run(), self._read(nodes, edges))
        return self._run().task.probabilities(logits).numpy()


class CSNNRegressor(_Estimator):
    """Predicts a number for every node of a graph; ``score`` is the mean absolute error."""

    __doc__ = _join(__doc__, _Estimator.__doc__)

    _tasks = ("regression",)

    def predict(self, nodes: Any, edges: Any = None) -> NDArray[np.float32]:
        """The predicted number of every node, ``(n,)``, or ``(n, k)`` of several targets."""
        return node_outputs(self._run(), self._read(nodes, edges)).squeeze(-1).numpy()
