"""Explanations of a trained run: nodes by name, columns as its tables had them."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor, nn

from coopsheaf.analysis.columns import Columns
from coopsheaf.analysis.explain import Explanation, explain_node
from coopsheaf.analysis.explain_columns_check import mute_columns
from coopsheaf.data import messages
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.run import Run


class ColumnRow(NamedTuple):
    """What is said of one column.

    Args:
        name: of the column.
        value: what stands in it at the node, as the network sees it; empty for its neighbours and
            where features do not tell.
        attribution: by how much the score falls to first order if the column is at its mean.
        diffusion, learners: what of it passed through the diffusion, and through map learners;
            ``None`` for networks that learn no maps.
        muted: by how much it does fall.
    """

    name: str
    value: str
    attribution: float
    diffusion: float | None
    learners: float | None
    muted: float


def explain_prediction(
    run: Run,
    dataset: NodeDataset,
    node: int | str,
    *,
    graph: Graph | None = None,
    columns: Columns | None = None,
    **options: Any,
) -> Explanation:
    """Explain what a run says of one node of a graph, down to the columns of its tables::

        why = explain_prediction(run, dataset, "AC-100017")
        why.columns.rows("own")

    Several classes are explained by the margin over the runner-up, several labels and numbers by
    their output; see :func:`~coopsheaf.analysis.explain_node`.

    Args:
        run: a trained run with outputs for nodes.
        dataset: a graph with the features of training, such as :func:`coopsheaf.train.run_data`
            finds or reads.
        node: its name, or its number.
        graph: the prepared edges of the dataset, for whoever asks more than once.
        columns: likewise; by default :meth:`Columns.of_run`.
        options: of :func:`~coopsheaf.analysis.explain_node`.
    """
    if run.info["level"] != "node":
        raise ValueError("`run` must predict nodes: one of them is explained")
    run.check_edge_features(dataset)
    columns = Columns.of_run(run) if columns is None else columns
    columns.check(dataset.num_features)
    like = next(run.model.parameters())
    x = dataset.x.to(like.device, like.dtype)
    inputs: dict[str, Any] = dataset.edge_inputs(x.dtype, x.device)
    given: dict[str, Any] = {"margin": run.task.kind == "multiclass", **inputs, **options}
    if graph is None:
        graph = Graph(dataset.edge_index.to(x.device), dataset.num_nodes)
    number = find_node("`node`", dataset, node)
    return explain_node(run.model, x, graph, number, columns=columns, **given)


def column_rows(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    explanation: Explanation,
    part: str = "own",
    count: int = 10,
    **inputs: Any,
) -> list[ColumnRow]:
    """The columns that matter most in an explanation, each beside what happens without it.

    A forward pass per column.

    Args:
        model, x, edge_index, inputs: what was explained.
        explanation: what :func:`~coopsheaf.analysis.explain_node` found.
        part: ``"own"`` or ``"neighbours"``.
        count: how many rows at most.
    """
    found = explanation.columns
    chosen = found.top(part, count)
    muted = mute_columns(model, x, edge_index, explanation, part, chosen, **inputs)
    total, diffusion, learners = found.part(part), found.diffusion(part), found.learners(part)
    return [
        ColumnRow(
            name=found.names[column],
            value=found.columns.spell(column, x[found.node]) if part == "own" else "",
            attribution=float(total[column]),
            diffusion=None if diffusion is None else float(diffusion[column]),
            learners=None if learners is None else float(learners[column]),
            muted=fall,
        )
        for column, fall in zip(chosen, muted.tolist(), strict=True)
    ]


def find_node(argument: str, dataset: NodeDataset, node: int | str) -> int:
    """The number of a node that is given by name, or by number."""
    if isinstance(node, str):
        if node in dataset.node_ids:
            return dataset.node_ids.index(node)
        plain = node.isascii() and node.isdecimal() and len(node) < 20
        number = int(node) if plain else -1
    else:
        number = node
    if isinstance(node, bool) or not 0 <= number < dataset.num_nodes:
        kind = "a name or a number" if dataset.node_ids else "a number"
        raise ValueError(
            f"{argument} must be a node, {kind} from 0 to {dataset.num_nodes - 1}; got "
            f"{messages.show(node)}"
        )
    return number
