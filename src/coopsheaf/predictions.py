"""What a trained run says of a graph: outputs at all nodes, predictions, a table of them."""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.messages import show_list
from coopsheaf.data.pack import own_order, prepared_graph
from coopsheaf.scale.inference import infer
from coopsheaf.tensor_checks import check_tensor
from coopsheaf.train.batches import CHUNK
from coopsheaf.train.feed import GraphFeed
from coopsheaf.train.links import LinkNetwork
from coopsheaf.train.metrics import compute
from coopsheaf.train.run import Run
from coopsheaf.train.run_info import CheckpointError
from coopsheaf.train.summary import Summary, summarise

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?(inf|nan|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)")


def shield(cell: str) -> str:
    """A cell that no spreadsheet runs: numbers and words as they are, formulas as text."""
    return f"'{cell}" if cell.startswith(_FORMULAS) and not _NUMBER.fullmatch(cell) else cell


class _Rows(ABC):
    """What can be written as a table."""

    @abstractmethod
    def rows(self) -> Iterator[list[str]]:
        """The heading, then one row each."""

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


@dataclass(frozen=True)
class Predictions(_Rows):
    """Predictions at all nodes of a graph, or for all graphs.

    Args:
        ids: the names of the nodes or graphs.
        values: for each a class, the labels that hold (``a|b``), a number, or a number per target.
        class_names: names of the columns of ``probabilities``; empty for a regression.
        probabilities: ``(n, classes)``; ``None`` for a regression.
        id_name: heading of the ids.
        target_names: what the numbers of a regression with several targets are.
    """

    ids: tuple[str, ...]
    values: tuple[Any, ...]
    class_names: tuple[str, ...]
    probabilities: Tensor | None
    id_name: str = "id"
    target_names: tuple[str, ...] = ()

    def rows(self) -> Iterator[list[str]]:
        """The heading, then one row per node: id, prediction, a probability per class."""
        several = [f"prediction({name})" for name in self.target_names]
        values = several or ["prediction"]
        yield [self.id_name, *values, *(f"p({name})" for name in self.class_names)]
        if self.probabilities is None:
            for node, value in zip(self.ids, self.values, strict=True):
                yield [node, *map(repr, value)] if several else [node, repr(value)]
            return
        shares = self.probabilities.tolist()
        for node, value, row in zip(self.ids, self.values, shares, strict=True):
            yield [node, str(value), *(f"{share:.6f}" for share in row)]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class LinkPredictions(_Rows):
    """How likely each of some pairs of nodes is a link.

    Args:
        sources, targets: names of the nodes of each pair.
        scores: ``(k,)`` probabilities.
        names: headings of the sources and the targets.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    scores: Tensor
    names: tuple[str, str] = ("source", "target")

    def rows(self) -> Iterator[list[str]]:
        """The heading, then one row per pair: source, target, probability."""
        yield [*self.names, "score"]
        for source, target, score in zip(
            self.sources, self.targets, self.scores.tolist(), strict=True
        ):
            yield [source, target, f"{score:.6f}"]

    def __len__(self) -> int:
        return len(self.sources)


def predict(run: Run, dataset: AnyDataset) -> Predictions:
    """Predict at all nodes of a graph, or for all graphs of a collection.

    Args:
        run: a trained run for nodes or graphs.
        dataset: data with the features of training, such as :func:`coopsheaf.train.run_data` finds
            or reads.
    """
    logits, order = _outputs(run, dataset), own_order(dataset)
    tables = run.info.get("tables") or {}
    if isinstance(dataset, GraphDataset):
        ids, name = dataset.graph_ids, tables.get("graph")
    else:
        ids, name = tuple(dataset.node_ids), tables.get("id")
    name = "id" if name is None or name.startswith("<") else name  # that of a graph object
    ids = ids or tuple(str(i) for i in range(len(logits)))
    if order is not None:  # rows as the user had them
        logits, ids = logits[order], tuple(ids[i] for i in order.tolist())
    if run.task.kind == "regression":
        return _numbers(run, logits.reshape(len(ids), -1), ids, name)
    probabilities = run.probabilities(logits.double())
    names = run.class_names or tuple(str(k) for k in range(probabilities.shape[1]))
    if run.task.kind == "multilabel":
        values = tuple(
            "|".join(label for label, yes in zip(names, row, strict=True) if yes)
            for row in (probabilities > 0.5).tolist()
        )
    else:
        values = tuple(names[k] for k in run.classes(logits.double()).tolist())
    return Predictions(ids, values, names, probabilities, name)


class Score(NamedTuple):
    """A metric, and over how many labelled nodes or graphs."""

    value: float
    labelled: int


def score(run: Run, dataset: NodeDataset | GraphDataset, mask: Tensor | None = None) -> Score:
    """The metric of a run over all that is labelled, whatever part of a split it is in.

    Args:
        run: a trained run for nodes or graphs.
        dataset: data with the features of training and labels.
        mask: ``(n,)`` booleans; only these nodes or graphs.
    """
    logits, y, known = _labelled(run, dataset, mask)
    adjusted = run.decision.adjust(logits[known].double())
    answers = run.task.answers(adjusted, y[known], run.decision.threshold)
    return Score(compute(run.task.metric, answers), int(known.sum()))


def summaries(
    run: Run, dataset: NodeDataset | GraphDataset, masks: Mapping[str, Tensor]
) -> dict[str, tuple[Summary, int]]:
    """All metrics of a run over what is labelled in some parts, and how much that is.

    Args:
        run: a trained run for nodes or graphs.
        dataset: data with the features of training and labels.
        masks: ``(n,)`` booleans by part; a part without labels is left out.
    """
    logits, y, known = _labelled(run, dataset, None)
    found = {}
    for part, mask in masks.items():
        if (here := known & mask).any():
            summary = summarise(run.task, run.decision, logits[here], y[here])
            found[part] = (summary, int(here.sum()))
    return found


def _labelled(
    run: Run, dataset: NodeDataset | GraphDataset, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs, targets, and which of them are known and wanted."""
    y = dataset.stack("y") if isinstance(dataset, GraphDataset) else dataset.y
    known = y >= 0 if not y.is_floating_point() else ~y.isnan()
    known = known if known.dim() == 1 else known.any(1)
    if mask is not None:
        if mask.dtype != torch.bool or mask.shape != known.shape:
            raise ValueError(
                f"`mask` must be a boolean tensor of shape {tuple(known.shape)}; got "
                f"{mask.dtype} of shape {tuple(mask.shape)}"
            )
        known = known & mask
    if not known.any():
        columns = _target_columns(run)
        where = f" in column {show_list(columns)}" if columns else ""
        raise ValueError(
            f"there must be labels to compare with{where}; there are none that the run knows"
        )
    return _outputs(run, dataset), y, known


def _outputs(run: Run, dataset: AnyDataset) -> Tensor:
    """``(n, out)`` of nodes or graphs."""
    levels = {"link": "links", "graph": "whole graphs", "node": "nodes"}
    level = {GraphDataset: "graph", LinkDataset: "link"}.get(type(dataset), "node")
    if level == "link" or run.info["level"] == "link":
        raise ValueError("predict takes tasks of nodes and graphs; predict_links scores links")
    if level != run.info["level"]:
        raise ValueError(
            f"the run predicts {levels[run.info['level']]}; the data is for {levels[level]}"
        )
    if isinstance(dataset, GraphDataset):
        return graph_outputs(run, dataset)
    assert isinstance(dataset, NodeDataset)
    return node_outputs(run, dataset)


def _target_columns(run: Run) -> list[str]:
    """What the targets are called in the tables of a run."""
    return ((run.info.get("tables") or {}).get("targets") or {}).get("columns") or []


def _numbers(run: Run, outputs: Tensor, ids: tuple[str, ...], name: str) -> Predictions:
    if outputs.shape[1] == 1:
        return Predictions(ids, tuple(outputs[:, 0].tolist()), (), None, name)
    columns = _target_columns(run) or range(outputs.shape[1])
    values = tuple(map(tuple, outputs.tolist()))
    return Predictions(ids, values, (), None, name, tuple(map(str, columns)))


@torch.no_grad()
def graph_outputs(run: Run, dataset: GraphDataset) -> Tensor:
    """The outputs of a run for all graphs, ``(graphs, out)``, some of them at a time."""
    if dataset.num_features != run.info["in_channels"]:
        raise CheckpointError(
            f"the data has {dataset.num_features} features; the model was trained with "
            f"{run.info['in_channels']}"
        )
    run.check_graph(dataset)
    run.check_edge_features(dataset)
    parameter = next(run.model.parameters())
    feed = GraphFeed(
        dataset,
        batch_size=run.recipe.train.batch_size,
        seed=0,
        device=parameter.device,
        dtype=parameter.dtype,
    )
    every = torch.arange(len(dataset.graphs)).split(feed.batch_size)
    return torch.cat([feed.step(run.model, part)[0] for part in every]).cpu()


@torch.no_grad()
def predict_links(
    run: Run, dataset: LinkDataset | NodeDataset | Data, pairs: Tensor
) -> LinkPredictions:
    """How likely some pairs of nodes of a graph are links.

    Args:
        run: a trained run for links.
        dataset: a graph with the features of training, which may be new; messages travel on all of
            its ``edge_index``. That of a :class:`~coopsheaf.data.LinkDataset` are its training
            edges. A PyG ``Data`` needs ``x`` and ``edge_index``, and may have ``edge_weight``.
        pairs: ``(2, k)`` numbers of nodes, sources above targets.
    """
    if not isinstance(run.model, LinkNetwork):
        raise ValueError(
            f"`run` must be one for links; its task is {run.task.kind!r}: predict takes it"
        )
    if isinstance(dataset, Data):
        dataset = _as_dataset(dataset)
    n = dataset.num_nodes
    _check_pairs(pairs, n)
    decoder = run.model.decoder
    ends = decoder.ends(_infer(run, run.model.network, dataset))
    source, target = pairs
    logits = decoder.score(ends, source[:, None], target[:, None]).squeeze(1)
    ids = dataset.node_ids or tuple(str(i) for i in range(n))
    tables = run.info.get("tables") or {}
    names = (tables.get("source") or "source", tables.get("edge_target") or "target")
    return LinkPredictions(
        tuple(ids[i] for i in source.tolist()),
        tuple(ids[i] for i in target.tolist()),
        run.task.probabilities(logits.double()),
        names,
    )


def _as_dataset(data: Data) -> NodeDataset:
    """A graph of which only features and edges are wanted."""
    if data.x is None or data.edge_index is None:
        raise ValueError("`dataset` must have `x` and `edge_index`; got a Data without")
    n = len(data.x)
    nobody = torch.zeros(1, n, dtype=torch.bool)
    return NodeDataset(
        "data",
        data.x,
        data.edge_index,
        torch.full((n,), -1),
        *(nobody, nobody, nobody),
        task="binary",
        metric="auroc",
        edge_weight=data.edge_weight,
    )


def _check_pairs(pairs: Tensor, n: int) -> None:
    check_tensor("pairs", pairs)
    if pairs.dtype != torch.int64 or pairs.dim() != 2 or len(pairs) != 2:
        raise ValueError(
            "`pairs` must be an int64 tensor of shape (2, k), sources above targets; "
            f"got {pairs.dtype} of shape {tuple(pairs.shape)}"
        )
    bad = ((pairs < 0) | (pairs >= n)).any(0).nonzero()
    if len(bad):
        place = int(bad[0])
        raise ValueError(
            f"`pairs` must hold nodes 0 to {n - 1}; pair {place} is "
            f"{tuple(pairs[:, place].tolist())}"
        )


def node_outputs(run: Run, dataset: NodeDataset) -> Tensor:
    """The outputs of a run at all nodes of a graph, ``(n, out)``, in bounded memory."""
    return _infer(run, run.model, dataset)


def _infer(run: Run, model: nn.Module, dataset: NodeDataset | LinkDataset) -> Tensor:
    """What a network of a run gives at all nodes of a graph."""
    dtype = next(model.parameters()).dtype
    if dataset.num_features != run.info["in_channels"]:
        raise CheckpointError(
            f"the data has {dataset.num_features} features; the model was trained with "
            f"{run.info['in_channels']}"
        )
    run.check_graph(dataset)
    run.check_edge_features(dataset)
    inputs: dict[str, Any] = dataset.edge_inputs(dtype)
    chunk = run.recipe.batch.chunk or CHUNK
    return infer(model, dataset.x, prepared_graph(dataset), **inputs, chunk=chunk)
