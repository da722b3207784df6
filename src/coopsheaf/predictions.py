"""What a trained run says of a graph: outputs at all nodes, predictions, a table of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.pack import prepared_graph
from coopsheaf.scale.inference import infer
from coopsheaf.train.batches import CHUNK
from coopsheaf.train.run import Run
from coopsheaf.train.run_info import CheckpointError


@dataclass(frozen=True)
class Predictions:
    """Predictions at all nodes of a graph.

    Args:
        ids: the nodes' names.
        values: a class name or a number for each.
        class_names: names of the columns of ``probabilities``; empty for a regression.
        probabilities: ``(n, classes)``; ``None`` for a regression.
        id_name: heading of the ids.
    """

    ids: tuple[str, ...]
    values: tuple[str, ...] | tuple[float, ...]
    class_names: tuple[str, ...]
    probabilities: Tensor | None
    id_name: str = "id"

    def rows(self) -> Iterator[list[str]]:
        """The heading, then one row per node: id, prediction, a probability per class."""
        yield [self.id_name, "prediction", *(f"p({name})" for name in self.class_names)]
        if self.probabilities is None:
            for node, value in zip(self.ids, self.values, strict=True):
                yield [node, repr(value)]
            return
        shares = self.probabilities.tolist()
        for node, value, row in zip(self.ids, self.values, shares, strict=True):
            yield [node, str(value), *(f"{share:.6f}" for share in row)]

    def to_csv(self, *, raw: bool = False) -> str:
        """The rows as comma-separated text.

        Args:
            raw: every text as it is. Otherwise one that a spreadsheet would run as a formula has an
                apostrophe before it.
        """
        text = io.StringIO()
        rows = self.rows() if raw else (list(map(shield, row)) for row in self.rows())
        csv.writer(text, lineterminator="\n").writerows(rows)
        return text.getvalue()

    @property
    def num_shielded(self) -> int:
        """The number of cells that :meth:`to_csv` puts an apostrophe before."""
        return sum(shield(cell) != cell for row in self.rows() for cell in row)


def shield(cell: str) -> str:
    """A cell that no spreadsheet runs: numbers and words as they are, formulas as text."""
    return f"'{cell}" if cell.startswith(_FORMULAS) and not _NUMBER.fullmatch(cell) else cell


_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(inf|nan|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)")


def predict(run: Run, dataset: NodeDataset | GraphDataset) -> Predictions:
    """Predict at all nodes of a graph.

    Args:
        run: a trained run for nodes.
        dataset: a graph with the features of training, such as :func:`coopsheaf.train.run_data`
            finds or reads.
    """
    if isinstance(dataset, GraphDataset):
        raise ValueError("the run predicts whole graphs; predict takes node tasks only")
    logits = node_outputs(run, dataset)
    ids = dataset.node_ids or tuple(str(i) for i in range(dataset.num_nodes))
    name = (run.info.get("tables") or {}).get("id") or "id"
    if run.task.kind == "regression":
        numbers = logits.reshape(len(ids), -1)[:, 0].tolist()
        return Predictions(ids, tuple(numbers), (), None, name)
    probabilities = run.task.probabilities(logits.double())
    names = run.class_names or tuple(str(k) for k in range(probabilities.shape[1]))
    classes = tuple(names[k] for k in run.task.classes(logits).tolist())
    return Predictions(ids, classes, names, probabilities, name)


def node_outputs(run: Run, dataset: NodeDataset) -> Tensor:
    """The outputs of a run at all nodes of a graph, ``(n, out)``, in bounded memory."""
    dtype = next(run.model.parameters()).dtype
    if dataset.num_features != run.info["in_channels"]:
        raise CheckpointError(
            f"the data has {dataset.num_features} features; the model was trained with "
            f"{run.info['in_channels']}"
        )
    weight = dataset.edge_weight
    return infer(
        run.model,
        dataset.x,
        prepared_graph(dataset),
        edge_weight=None if weight is None else weight.to(dtype),
        chunk=run.recipe.batch.chunk or CHUNK,
    )
