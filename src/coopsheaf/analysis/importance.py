r"""Which columns a trained network needs: by how much its score falls when one is shuffled.

The features of column c are moved among the nodes by a random permutation, all features of the
column together, the other columns and the edges left as they are. Every node then has a value of
the column, only not its own, and neither have its neighbours. With m the metric of the run on a
part of the split,

.. math:: \text{drop}_c = m(X) - m(X_c^{\pi}),

with the sign turned where lower is better, so that a positive drop always means: it got worse.
Several permutations give a mean and a spread.

It says what *this network* uses, not what could be used: of two columns that say the same, each
can look unimportant because the other one is still there, and a column that the network never
learned to use has none at all. Shuffled rows can be such as never occur (a customer since 1990,
born in 2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from coopsheaf.analysis.columns import Columns
from coopsheaf.checks import check_choice, check_int
from coopsheaf.data.dataset import PARTS, NodeDataset
from coopsheaf.data.metrics import METRICS
from coopsheaf.data.pack import prepared_graph
from coopsheaf.predictions import node_outputs
from coopsheaf.scale.inference import infer
from coopsheaf.train.batches import CHUNK
from coopsheaf.train.data import run_data
from coopsheaf.train.run import Run

WHERE = {part: f"the {part} nodes of the split" for part in PARTS} | {"all": "all labelled nodes"}


@dataclass(frozen=True, eq=False)
class ColumnImportance:
    """By how much the score falls without each of some columns.

    Args:
        names: ``c`` columns.
        metric: what was measured.
        part: on which nodes.
        score: with every column in its place.
        drops: ``(c, repeats)``, by how much the score got worse, one permutation each.
    """

    names: tuple[str, ...]
    metric: str
    part: str
    score: float
    drops: Tensor

    @property
    def mean(self) -> Tensor:
        """``(c,)``, over the permutations."""
        return self.drops.mean(1)

    @property
    def spread(self) -> Tensor:
        """``(c,)``, standard deviation over the permutations, that of the population."""
        return self.drops.std(1, unbiased=False)

    def order(self) -> list[int]:
        """The columns, the most important first; the first of equals first."""
        return torch.sort(self.mean, descending=True, stable=True).indices.tolist()

    @property
    def label(self) -> str:
        """What people call the metric."""
        return METRICS[self.metric].label

    @property
    def header(self) -> list[str]:
        return ["column", f"drop of {self.label}", "±"]

    def rows(self, count: int | None = None) -> list[list[str]]:
        """A row of text per column, the most important first, under :attr:`header`."""
        chosen = self.order()[: None if count is None else check_int("count", count, minimum=1)]
        mean, spread = self.mean, self.spread
        return [
            [self.names[c], f"{float(mean[c]):+.4f}", f"{float(spread[c]):.4f}"] for c in chosen
        ]


def column_importance(
    run: Run,
    dataset: NodeDataset | None = None,
    split: int | None = None,
    *,
    part: str = "val",
    columns: Sequence[str] | None = None,
    repeats: int = 5,
    seed: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> ColumnImportance:
    """Shuffle one column after the other and score the run again; see the module.

    A forward pass per column and repeat.

    Args:
        run: a trained run with outputs for nodes.
        dataset: its graph, or another one with the same features and labels; by default the data
            that the run was trained on.
        split: which of its splits; by default that of the run, or the first of another graph.
        part: ``"val"``, ``"test"``, ``"train"``, or ``"all"`` for every labelled node. Whoever
            chooses columns by what is found keeps ``"test"`` for the end.
        columns: names of some columns; by default all.
        repeats: how many permutations of each.
        seed: of the permutations. The same for all columns, which are moved alike.
        report: called with how many columns are done, and of how many.
    """
    if run.info["level"] != "node":
        raise ValueError("`run` must predict nodes: columns are shuffled among them")
    check_choice("part", part, WHERE)
    check_int("repeats", repeats, minimum=1)
    check_int("seed", seed, minimum=0)
    about = Columns.of_run(run)
    chosen = list(range(len(about))) if columns is None else about.find(columns)
    if dataset is None:
        found = run_data(run)
        assert isinstance(found.dataset, NodeDataset)
        dataset, split = found.dataset, found.split if split is None else split
    mask = _mask(dataset, 0 if split is None else split, part)
    y, sign = dataset.y[mask], 1 if METRICS[run.task.metric].higher else -1
    whole = run.task.score(node_outputs(run, dataset)[mask], y)
    if math.isnan(whole):
        raise ValueError(
            f"the {METRICS[run.task.metric].label} must be defined on {WHERE[part]} to see it "
            f"fall; on these {int(mask.sum())} it is not"
        )
    graph, dtype = prepared_graph(dataset), next(run.model.parameters()).dtype
    inputs: dict[str, Any] = dataset.edge_inputs(dtype)
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(dataset.num_nodes, generator=generator) for _ in range(repeats)]
    drops = torch.zeros(len(chosen), repeats, dtype=torch.float64)
    for place, column in enumerate(chosen):
        here = about.features(column)
        for number, order in enumerate(orders):
            x = dataset.x.clone()
            x[:, here] = dataset.x[:, here][order]
            outputs = infer(run.model, x, graph, **inputs, chunk=run.recipe.batch.chunk or CHUNK)
            drops[place, number] = sign * (whole - run.task.score(outputs.cpu()[mask], y))
        if report is not None:
            report(place + 1, len(chosen))
    names = tuple(about.names[column] for column in chosen)
    return ColumnImportance(names, run.task.metric, part, whole, drops)


def _mask(dataset: NodeDataset, split: int, part: str) -> Tensor:
    """``(n,)``, the labelled nodes of a part."""
    y = dataset.y
    known = y >= 0 if not y.is_floating_point() else ~y.isnan()
    known = known if known.dim() == 1 else known.any(1)
    if not 0 <= split < dataset.num_splits:
        raise ValueError(
            f"`split` must be between 0 and {dataset.num_splits - 1} for {dataset.name}; "
            f"got {split}"
        )
    if part != "all":
        known = known & getattr(dataset, part)[split]
    if not known.any():
        raise ValueError(
            f"there must be labelled nodes to score; {WHERE[part]}: there are none"
            + ("" if part == "all" else " ('all' takes every labelled node)")
        )
    return known
