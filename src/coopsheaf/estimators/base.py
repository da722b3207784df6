"""What estimators of nodes share: ``fit``, how graphs are read, ``save`` and ``load``."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.tables.load import TableData, load_tables, read_tables_like
from coopsheaf.data.tables.reading.graph_objects import is_networkx, is_pyg
from coopsheaf.data.tables.reading.table import NODE
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.estimators.arguments import (
    are_edges,
    as_nodes,
    check_classes,
    check_mask,
    check_weight,
    check_width,
    is_array,
    weigh,
    without_silent,
)
from coopsheaf.estimators.parameters import Parameters
from coopsheaf.estimators.scoring import as_targets, is_known
from coopsheaf.estimators.settings import known_settings, make_recipe
from coopsheaf.estimators.tags import make_tags, not_fitted
from coopsheaf.predictions import Predictions, node_outputs, predict
from coopsheaf.schema import (
    brief_text,
    find_fault,
    keys,
    number,
    of_hint,
    text,
    unknown_keys,
    whole,
)
from coopsheaf.train.data import table_schema
from coopsheaf.train.loop import EpochReport
from coopsheaf.train.run import Run, load_run, read_result, run_split, save_run

if TYPE_CHECKING:
    from typing_extensions import Self

    from coopsheaf.analysis.explain import Explanation

WARNING = "WARNING:"  # how a note begins that nobody should overlook
# What a file may say of the arguments of the constructors here.
OWN_KINDS = {
    "model": text,
    "seed": whole(high=2**32 - 1),
    "device": text,
    "validation": number,
    "n_features_in": whole(1),
}


class GraphEstimator(Parameters, ABC):
    """A model that is trained on one graph and predicts at the nodes of any.

    Args:
        model: a name of :func:`~coopsheaf.models.list_models`.
        seed: of the split, the initialisation and dropout.
        device: as Lightning Fabric names it: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        validation: the share of the labelled nodes that chooses the epoch, where ``y`` is given;
            graphs with targets of their own have a split of their own, or 60/20/20.
        settings: any setting of the model, such as ``hidden_channels`` or ``input_dropout``, of
            its training (:class:`~coopsheaf.train.TrainConfig`), such as ``lr`` or ``epochs``, and
            of batches as ``batch_kind``, ``batch_size``, ...
            (:class:`~coopsheaf.train.BatchConfig`). What is not given is that of the default
            recipe for such data (:func:`~coopsheaf.train.default_for`). ``get_params()`` lists
            them.
    """

    _tasks: ClassVar[tuple[str, ...]]
    _estimator_type: ClassVar[str]

    def __init__(
        self,
        model: str = "csnn",
        *,
        seed: int = 0,
        device: str = "auto",
        validation: float = 0.2,
        **settings: Any,
    ) -> None:
        self.model = model
        self.seed = seed
        self.device = device
        self.validation = validation
        self._keep(settings)

    def fit(
        self,
        nodes: Any,
        y: Any = None,
        edges: Any = None,
        *,
        sample_weight: Any = None,
        split: int = 0,
        report: Callable[[EpochReport], None] | None = None,
        **tables: Any,
    ) -> Self:
        """Train on the labelled nodes of one graph; stop by those that validate.

        Columns are encoded as on the command line: numbers are standardised by the training nodes,
        texts are categories. What was decided is in ``notes_`` and in ``schema_``, which every
        later graph is read with.

        Args:
            nodes: a graph, or its table of nodes, in any form that
                :func:`~coopsheaf.data.load_tables` takes: paths, DataFrames, Arrow tables, a
                networkx graph, arrays, a PyG ``Data`` (whose masks and ``edge_weight`` are used). A
                dataset of this library is taken as it is.
            y: ``(n,)`` classes or numbers, one for each row of ``nodes``; ``None`` or NaN where it
                is to be predicted. Instead of it, a column can be named by ``target``; then the
                second argument is the edges, ``fit(nodes, edges, target="label")``.
            edges: the table of edges likewise, a ``(2, m)`` array or an adjacency.
            sample_weight: ``(n,)``, how much each training node counts in the loss. Nodes of weight
                0 are not trained on, but carry messages. Validation weighs all alike.
            split: which of several splits of the graph's own.
            report: called after every evaluation.
            tables: options of :func:`~coopsheaf.data.load_tables`, such as ``target="label"``.
        """
        nodes = as_nodes(nodes)
        if edges is None and y is not None and tables.get("target") is not None:
            y, edges = None, y
        if edges is None and are_edges(y) and not (is_pyg(nodes) or is_networkx(nodes)):
            raise ValueError(
                "the second argument is `y`, the targets: give edges by name, fit(nodes, y, "
                "edges=...), or name the column of targets, fit(nodes, edges, target=...)"
            )
        if y is None and is_array(nodes) and not isinstance(nodes, NodeDataset):
            raise ValueError(
                f"{type(self).__name__}.fit requires y to be passed, but the target y is None: an "
                "array of features has no targets of its own"
            )
        asked = self.model, self._given(), self.seed, type(self).__name__
        make_recipe(*asked)  # what does not fit is said before anything is read
        self.schema_: TableSchema | None = None
        self.notes_: tuple[str, ...] = ()
        extra: dict[str, Any] = {}
        weight = check_weight(sample_weight)
        if isinstance(nodes, NodeDataset):
            if edges is not None or y is not None or tables:
                raise ValueError(
                    "a NodeDataset stands alone: give no y, no edges and no options with it"
                )
            dataset = self._checked(nodes)
        else:
            data = self._first(nodes, y, edges, weight, tables)
            dataset = self._checked(data.dataset)
            self.schema_, self.notes_, extra = data.schema, data.notes, data.kept
            if getattr(nodes, "edge_attr", None) is not None and not data.schema.edge_features:
                warnings.warn(
                    "the edge_attr of the data is not used: edge_features=['edge_attr'] would use "
                    "it",
                    stacklevel=2,
                )
        if weight is not None:
            dataset = weigh(dataset, weight)
        _warn(self.notes_)
        recipe = make_recipe(*asked, dataset)
        run, result = run_split(
            recipe, dataset, split, extra=extra, device=self.device, report=report
        )
        self.run_, self.scores_ = run, result.scores
        self._width: int | None = nodes.shape[1] if is_array(nodes) else None
        self._describe(dataset.num_features)
        return self

    @abstractmethod
    def predict(self, nodes: Any, edges: Any = None) -> NDArray[Any]:
        """What is predicted at every node."""

    @abstractmethod
    def _score(self, y: Any, predicted: Any, weight: Any) -> float:
        """Higher is better."""

    @abstractmethod
    def _own_targets(self, dataset: NodeDataset) -> NDArray[Any]:
        """The targets of a graph as the caller has them, unknown ones in whatever form."""

    def score(
        self,
        nodes: Any,
        y: Any = None,
        edges: Any = None,
        *,
        sample_weight: Any = None,
        mask: Any = None,
    ) -> float:
        """Accuracy of a classifier, R² of a regressor, over all labelled nodes; 1 at best.

        The metric of training, on each part of its split, is in ``scores_``.

        Args:
            nodes, edges: a graph as in ``fit``; without ``y``, the second argument is the edges.
            y: ``(n,)`` targets; by default those that the graph has of its own.
            sample_weight: ``(n,)``.
            mask: ``(n,)`` booleans; only these nodes.
        """
        if edges is None and y is not None and are_edges(y):
            y, edges = None, y
        dataset = self._read(nodes, edges, labelled=y is None)
        if y is None:
            known = dataset.y >= 0 if not dataset.y.is_floating_point() else ~dataset.y.isnan()
            chosen = (known if known.dim() == 1 else known.any(1)).numpy()
            y = self._own_targets(dataset)
        else:
            y = as_targets(y)
            if len(y) != dataset.num_nodes:
                raise ValueError(
                    f"`y` must have one entry for each of the {dataset.num_nodes} nodes; got "
                    f"{len(y)}"
                )
            chosen = is_known(y)
        if mask is not None:
            chosen = chosen & check_mask(mask, len(chosen))
        if not chosen.any():
            columns = self.schema_.targets.columns if self.schema_ and self.schema_.targets else ()
            where = f" in column {columns[0]!r}" if columns else ""
            raise ValueError(
                f"there must be labels to compare with{where}; there are none that the model knows"
            )
        weight = check_weight(sample_weight)
        if weight is not None and len(weight) != len(chosen):
            raise ValueError(
                f"`sample_weight` must have shape ({len(chosen)},); got ({len(weight)},)"
            )
        predicted = self._answers(dataset)
        return self._score(y[chosen], predicted[chosen], None if weight is None else weight[chosen])

    @abstractmethod
    def _answers(self, dataset: NodeDataset) -> NDArray[Any]:
        """Predictions at all nodes of a graph that has been read."""

    def predict_table(self, nodes: Any, edges: Any = None) -> Predictions:
        """Predictions with the names of the nodes: ``rows()``, ``to_csv()``."""
        return predict(self._run(), self._read(nodes, edges))

    def explain(self, nodes: Any, edges: Any = None, *, node: Any, **options: Any) -> Explanation:
        """Why one node is predicted what it is: which nodes, paths and columns moved it::

            why = model.explain(nodes, edges, node="AC-100017")
            why.columns.rows("own"), why.columns.rows("neighbours"), why.rows()

        Args:
            nodes, edges: a graph as in ``predict``.
            node: the name of the node, as the column of ids has it, or its number.
            options: of :func:`~coopsheaf.analysis.explain_node`, such as ``output``.
        """
        from coopsheaf.analysis.explain_run import explain_prediction  # brings the zoo with it

        return explain_prediction(self._run(), self._read(nodes, edges), str(node), **options)

    def save(self, folder: str | Path) -> None:
        """Write the trained model as a run, safetensors and JSON, into a folder without one.

        ``coopsheaf predict`` takes it, too, if it was trained on tables.
        """
        run = self._run()
        if (Path(folder) / "run.json").exists():
            raise ValueError(f"{folder}: holds a run already; choose another folder")
        stored = {name: value for name, value in self.get_params().items() if value is not None}
        if self._width is not None:
            stored["n_features_in"] = self._width
        info = run.info | {"estimator": {"name": type(self).__name__} | stored}
        save_run(replace(run, info=info), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that :meth:`save` wrote; nothing in it is executed."""
        run = load_run(Path(folder))
        try:
            settings = cls._stored_settings(run.info)
            width = settings.pop("n_features_in", None)
            estimator = cls(**settings)
            estimator._width = width
            estimator.run_, estimator.notes_ = run, ()
            estimator.schema_ = table_schema(run) if run.info.get("tables") else None
            estimator.scores_ = read_result(run.info).scores
            estimator._describe(run.info["in_channels"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{folder}: {error}") from None
        return estimator

    @classmethod
    def _stored_settings(cls, info: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that ``run.json`` holds, which anybody may have written."""
        stored = dict(info.get("estimator", {}))
        name = stored.pop("name", None)
        kinds = {kind.__name__ for kind in (cls, *_below(cls))}
        if name not in kinds:
            raise ValueError(
                f"must hold a {cls.__name__}; got {brief_text(name or 'another run', 60)}"
            )
        if info["level"] != "node" or info["task"] not in cls._tasks:
            raise ValueError(
                f"a {cls.__name__} must be for {' or '.join(cls._tasks)} of nodes; this is for "
                f"{info['task']}, level {info['level']}"
            )
        arguments, model = cls._arguments(), info["model"]
        if "model" in arguments:
            stored.setdefault("model", model)  # a shorthand does not say it
        wanted = stored.get("model", cls().model if "model" not in arguments else model)
        if wanted != model:
            raise ValueError(
                f"a {cls.__name__} must be a {brief_text(str(wanted), 60)}; this is a {model}"
            )
        stored.pop("classes", None)  # of earlier versions
        places = known_settings(model)
        if unknown := unknown_keys(stored, arguments, places, ("n_features_in",)):
            raise ValueError(f"estimator in run.json has {unknown[0]}, which is no setting")
        # Arguments that a class of the user's own adds are its own business.
        kinds_of = {n: OWN_KINDS[n] for n in (*arguments, "n_features_in") if n in OWN_KINDS}
        kinds_of |= {n: of_hint(place.hint | None) for n, place in places.items()}
        if fault := find_fault(stored, keys({}, kinds_of)):
            raise ValueError(f"estimator in run.json: {fault}")
        return {n: v for n, v in stored.items() if v is not None or n in arguments}

    def _first(
        self, nodes: Any, y: Any, edges: Any, weight: Tensor | None, tables: dict[str, Any]
    ) -> TableData:
        """Read the graph of training."""
        regression = "regression" in self._tasks
        options: dict[str, Any] = {"task": "regression" if regression else None, "seed": self.seed}
        if y is not None:
            options |= {"y": without_silent(y, weight), "validation": self.validation}
            if not regression:
                check_classes(y)
                options["task"] = "classification"
        return load_tables(nodes, edges, **options | tables)

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
        nodes = as_nodes(nodes)
        check_width(nodes, self._width, type(self).__name__)
        if self.schema_ is None:
            raise ValueError(
                "`nodes` must be a NodeDataset, as in training; only a model that was trained on "
                f"tables or a Data knows how to read a {type(nodes).__name__}"
            )
        data = read_tables_like(nodes, edges, None, self.schema_, labelled=labelled)
        self.notes_ = data.notes
        _warn(self.notes_)
        return self._checked(data.dataset)

    def _outputs(self, dataset: NodeDataset) -> Tensor:
        # A checksum is of targets, too, which nobody has to know here: nodes are trusted to be
        # those of training where a network belongs to one graph.
        return node_outputs(self._run(), replace(dataset, checksum=""))

    def _describe(self, channels: int) -> None:
        """What scikit-learn's users look for after a fit."""
        names = () if self.schema_ is None else self.schema_.encoder.names
        found = channels if self.schema_ is None else len(names)
        self.n_features_in_ = found if self._width is None else self._width
        self.__dict__.pop("feature_names_in_", None)
        if self.schema_ is not None and self.schema_.id != NODE:  # columns that have names
            self.feature_names_in_ = np.array(names, dtype=object)

    def _run(self) -> Run:
        if not hasattr(self, "run_"):
            raise not_fitted(self)
        return self.run_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    def __sklearn_tags__(self) -> Any:
        return make_tags(self._estimator_type)


def _warn(notes: Sequence[str]) -> None:
    """Say aloud what nobody should overlook."""
    for note in notes:
        if note.startswith(WARNING):
            warnings.warn(note.removeprefix(WARNING).strip(), stacklevel=4)


def _below(kind: type) -> list[type]:
    """The classes that are derived from one, however far below."""
    direct: list[type] = kind.__subclasses__()
    return [found for child in direct for found in (child, *_below(child))]
