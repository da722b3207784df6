"""What a trained network says about a graph: outputs, scores, actions, explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coopsheaf.analysis.actions import (
    ActionReport,
    cooperative_network,
    flow_edges,
    read_actions,
)
from coopsheaf.analysis.columns import Columns
from coopsheaf.analysis.explain import Explanation
from coopsheaf.analysis.explain_run import ColumnRow, column_rows, explain_prediction
from coopsheaf.data.dataset import PARTS, NodeDataset
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.run import Run


@dataclass(frozen=True)
class Reading:
    """A run, a graph, and what the one says about the other.

    Args:
        run: the trained network.
        dataset: the graph.
        split: which of its splits.
        graph: its prepared edges.
        x: ``(n, F)`` in the network's precision.
        outputs: ``(n, c)``.
        actions: ``None`` if the network has none.
        silence: why there are no actions; empty if there are.
        edges: ``(2, m)`` in the direction in which they carry.
        most_frequent_of: number of draws of which an action is the most frequent one; ``None`` if
            a threshold decides.
    """

    run: Run
    dataset: NodeDataset
    split: int
    graph: Graph
    x: Tensor
    outputs: Tensor
    actions: ActionReport | None
    silence: str
    edges: Tensor
    most_frequent_of: int | None = None

    def part(self, name: str) -> Tensor:
        """The mask of ``"train"``, ``"val"`` or ``"test"``, ``(n,)``."""
        mask: Tensor = getattr(self.dataset, name)
        return mask[self.split]

    def scores(self) -> dict[str, float]:
        """The metric on each part of this graph; NaN where it is not defined."""
        task, y = self.run.task, self.dataset.y
        masks = {name: self.part(name) for name in PARTS}
        return {name: task.score(self.outputs[mask], y[mask]) for name, mask in masks.items()}

    def explain(self, nodes: Sequence[int], top: int = 10) -> list[Explanation]:
        """Why the network says what it says of some nodes."""
        if not nodes:
            return []
        columns = Columns.of_run(self.run)
        return [
            explain_prediction(
                self.run, self.dataset, node, graph=self.graph, columns=columns, top=top
            )
            for node in nodes
        ]

    def columns(self, why: Explanation, part: str, count: int = 10) -> list[ColumnRow]:
        """The columns that matter most in an explanation, and what happens without them."""
        inputs: dict[str, Any] = self.dataset.edge_inputs(self.x.dtype)
        return column_rows(self.run.model, self.x, self.graph, why, part, count, **inputs)


def read_run(
    run: Run,
    dataset: NodeDataset,
    split: int = 0,
    *,
    threshold: float | None = None,
    draws: int = 100,
) -> Reading:
    """Ask a trained network about a graph.

    Args:
        run: what :func:`~coopsheaf.train.run.load_run` returned.
        dataset: the graph; with other features than the run's it is refused.
        split: which of its splits.
        threshold, draws: of :func:`~coopsheaf.analysis.actions.read_actions`.
    """
    wanted = run.info["in_channels"]
    if dataset.num_features != wanted:
        raise ValueError(
            f"`dataset` must have the {wanted} features the model was trained with; got "
            f"{dataset.num_features}"
        )
    run.check_graph(dataset)
    run.check_edge_features(dataset)
    x = dataset.x.to(next(run.model.parameters()).dtype)
    graph = Graph(dataset.edge_index, dataset.num_nodes)
    inputs: dict[str, Any] = dataset.edge_inputs(x.dtype)
    with torch.no_grad():
        outputs = run.model(x, graph, **inputs)
    actions, silence, edges, frequent = None, "", dataset.edge_index, None
    try:
        cooperative_network(run.model)
    except ValueError:
        silence = (
            f"The model {run.info['model']} has no actions: its nodes do not choose whether to "
            "listen or to broadcast. Edges are drawn plainly."
        )
    else:
        actions = read_actions(run.model, x, graph, threshold=threshold, draws=draws, **inputs)
        edges = flow_edges(actions, edges)
        if actions.family == "cognn" and threshold is None:
            frequent = draws
    outputs = outputs.reshape(dataset.num_nodes, -1)
    return Reading(run, dataset, split, graph, x, outputs, actions, silence, edges, frequent)
