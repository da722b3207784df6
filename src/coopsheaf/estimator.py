"""CSNN as an estimator in the manner of scikit-learn: ``fit``, ``predict``, ``score``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.data.convert import from_data
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train.loop import EpochReport
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.run import Run, load_run, read_result, run_split, save_run

if TYPE_CHECKING:
    from typing_extensions import Self


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
        data: Data | NodeDataset,
        *,
        split: int = 0,
        report: Callable[[EpochReport], None] | None = None,
    ) -> Self:
        """Train on the training nodes of one graph; stop by its validation nodes.

        Args:
            data: a PyG ``Data`` with ``x``, ``edge_index`` and ``y`` (and, if it has them, masks
                and ``edge_weight``; without masks a stratified 60/20/20 split is drawn), or a
                dataset of this library.
            split: which of several splits.
            report: called after every epoch.
        """
        dataset = self._dataset(data)
        run, result = run_split(self._recipe(), dataset, split, report=report)
        self.run_, self.scores_ = run, result.scores
        self.classes_ = self._classes(data, dataset)
        return self

    def score(self, data: Data | NodeDataset, *, mask: Tensor | None = None) -> float:
        """The task's metric, over all labelled nodes or those of a mask."""
        logits, y = self._outputs(data), self._targets(data)
        known = ~torch.isnan(y) if y.is_floating_point() else y >= 0
        if mask is not None:
            if mask.dtype != torch.bool or mask.shape != known.shape:
                raise ValueError(
                    f"`mask` must be a boolean tensor of shape {tuple(known.shape)}; got "
                    f"{mask.dtype} of shape {tuple(mask.shape)}"
                )
            known = known & mask
        if not known.any():
            raise ValueError("`data.y` must have labels to compare with; it has none there")
        return self._run().task.score(logits[known], y[known])

    def save(self, folder: str | Path) -> None:
        """Write the trained model as a run, safetensors and JSON, into a folder without one."""
        run = self._run()
        if (Path(folder) / "run.json").exists():
            raise ValueError(f"{folder}: holds a run already; choose another folder")
        settings = {"name": type(self).__name__, "classes": self.classes_.tolist()}
        info = run.info | {"estimator": settings | self.get_params()}
        save_run(replace(run, info=info), Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model that :meth:`save` wrote; nothing in it is executed."""
        run = load_run(Path(folder))
        settings = dict(run.info.get("estimator", {}))
        name = settings.pop("name", None)
        if name != cls.__name__:
            raise ValueError(f"{folder}: must hold a {cls.__name__}; got {name or 'another run'}")
        classes = np.array(settings.pop("classes"), dtype=np.int64)
        estimator = cls(**settings)
        estimator.run_, estimator.classes_ = run, classes
        estimator.scores_ = read_result(run.info).scores
        return estimator

    def _dataset(self, data: Data | NodeDataset) -> NodeDataset:
        if not isinstance(data, Data | NodeDataset):
            raise ValueError(
                f"`data` must be a PyG Data or a NodeDataset; got {type(data).__name__}"
            )
        if not isinstance(data, NodeDataset):
            if data.y is not None and not isinstance(data.y, Tensor):
                raise ValueError(f"`data.y` must be a tensor; got {type(data.y).__name__}")
            task = "regression" if "regression" in self._tasks else None
            data = from_data(data, task=task, seed=self.seed)
        if data.task not in self._tasks:
            raise ValueError(
                f"`data.y` must be a target for {' or '.join(self._tasks)}; it is one for "
                f"{data.task}"
            )
        return data

    def _classes(self, data: Data | NodeDataset, dataset: NodeDataset) -> NDArray[np.int64]:
        """The numbers of the classes as the caller has them, in the order of the outputs."""
        if "regression" in self._tasks:
            return np.array([], dtype=np.int64)
        if isinstance(data, NodeDataset):
            return np.arange(max(2, dataset.out_channels))
        return np.array([int(name) for name in dataset.class_names])  # may have gaps

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

    @torch.no_grad()
    def _outputs(self, data: Data | NodeDataset) -> Tensor:
        run = self._run()
        if data.x is None or data.edge_index is None:
            raise ValueError("`data` must have `x` and `edge_index`")
        wanted = run.info["in_channels"]
        if data.x.dim() != 2 or data.x.shape[1] != wanted:
            raise ValueError(
                f"`data.x` must have shape (n, {wanted}), the features of training; got "
                f"{tuple(data.x.shape)}"
            )
        if not data.x.isfinite().all():
            raise ValueError("`data.x` must be finite; it holds NaN or infinity")
        like = next(run.model.parameters())  # its dtype, and the device it was trained on
        weight = getattr(data, "edge_weight", None)
        logits = run.model(
            data.x.to(like),
            data.edge_index.to(like.device),
            edge_weight=None if weight is None else weight.to(like),
        )
        return logits.cpu()

    def _targets(self, data: Data | NodeDataset) -> Tensor:
        """The labels of any graph as those of training were numbered; unknown ones -1 or NaN."""
        if isinstance(data, NodeDataset):
            return self._dataset(data).y
        if not isinstance(data.y, Tensor):
            raise ValueError("`data` must have a tensor `y`")
        y = data.y.detach().cpu()
        if y.dim() == 2 and y.shape[1] == 1:
            y = y.squeeze(1)
        if y.dim() != 1:
            raise ValueError(f"`data.y` must have shape (n,); got {tuple(data.y.shape)}")
        if "regression" in self._tasks:
            return y.float()
        numbers = y.nan_to_num(nan=-1.0) if y.is_floating_point() else y.long()
        classes = torch.from_numpy(self.classes_)
        foreign = numbers[(numbers != -1) & ~torch.isin(numbers, classes.to(numbers))]
        if len(foreign):
            raise ValueError(
                f"`data.y` must hold the classes of training, {self.classes_.tolist()}, or -1; "
                f"got {foreign[0].item()}"
            )
        codes = torch.searchsorted(classes, numbers.long())
        return torch.where(numbers == -1, -1, codes)

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != signature[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _join(*docs: str | None) -> str:
    """One docstring of several."""
    return "\n\n".join(inspect.cleandoc(doc or "") for doc in docs)


class CSNNClassifier(_Estimator):
    """Classifies the nodes of a graph::

        model = CSNNClassifier(epochs=100).fit(data)
        model.predict(data)        # class numbers, (n,)
        model.predict_proba(data)  # (n, classes)

    Graphs at prediction time may be new.
    """

    __doc__ = _join(__doc__, _Estimator.__doc__)

    _tasks = ("binary", "multiclass")

    def predict(self, data: Data | NodeDataset) -> NDArray[np.int64]:
        """The most probable class of every node, ``(n,)``, as ``data.y`` numbers them."""
        numbers = self._run().task.classes(self._outputs(data)).numpy()
        return self.classes_[numbers]

    def predict_proba(self, data: Data | NodeDataset) -> NDArray[np.float32]:
        """The probability of every class at every node, ``(n, classes)``, as in ``classes_``."""
        return self._run().task.probabilities(self._outputs(data)).numpy()


class CSNNRegressor(_Estimator):
    """Predicts a number for every node of a graph; ``score`` is the mean absolute error."""

    __doc__ = _join(__doc__, _Estimator.__doc__)

    _tasks = ("regression",)

    def predict(self, data: Data | NodeDataset) -> NDArray[np.float32]:
        """The predicted number of every node, ``(n,)``."""
        return self._outputs(data).squeeze(-1).numpy()
