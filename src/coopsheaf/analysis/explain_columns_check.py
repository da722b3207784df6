r"""Attributions of columns put to the test: mute a column, and see whether the prediction moves.

To *mute* column c is to set its features to the baseline: at the node that is explained (its own
part), or at all other nodes (its neighbours' part). By how much the score falls is measured by
running the network again, and compared with what the attribution said, by ranks (Spearman).

An attribution is a derivative and muting a finite step, so that they agree as far as the network is
straight on the way. One-hot columns are moved from 1 to the share of their category, and a
neighbours' column at every node at once: these are the longest steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.explain import Explanation, steady_actions
from coopsheaf.analysis.explain_check import rank_correlation
from coopsheaf.analysis.explain_columns import PARTS
from coopsheaf.analysis.hops import check_nodes
from coopsheaf.analysis.probing import evaluating
from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph, as_graph


@dataclass(frozen=True, eq=False)
class MutedColumns:
    """What happened to some columns of one part, muted one after the other.

    Args:
        columns: ``(c,)``, their numbers.
        attribution: ``(c,)``, what the explanation says of muting them.
        muted: ``(c,)``, by how much the score fell.
    """

    columns: Tensor
    attribution: Tensor
    muted: Tensor

    @property
    def muting(self) -> float:
        """Rank correlation of the two, signs included; NaN with fewer than two columns."""
        return rank_correlation(self.attribution, self.muted)

    @property
    def muting_size(self) -> float:
        """Rank correlation of their absolute values."""
        return rank_correlation(self.attribution.abs(), self.muted.abs())


@dataclass(frozen=True, eq=False)
class ColumnCheck:
    """What happened to a node's own columns and to those of all others.

    Args:
        own, neighbours: the columns of each part that were muted.
    """

    own: MutedColumns
    neighbours: MutedColumns

    @property
    def muting(self) -> float:
        """Rank correlation over the columns of both parts in one list, signs included."""
        return self._together().muting

    @property
    def muting_size(self) -> float:
        """Rank correlation of the absolute values, likewise."""
        return self._together().muting_size

    def _together(self) -> MutedColumns:
        a, b = self.own, self.neighbours
        return MutedColumns(
            torch.cat([a.columns, b.columns]),
            torch.cat([a.attribution, b.attribution]),
            torch.cat([a.muted, b.muted]),
        )


def check_columns(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    explanation: Explanation,
    *,
    top: int = 10,
    sample: int = 20,
    seed: int = 0,
    **inputs: Any,
) -> ColumnCheck:
    """Mute the columns that matter most and some others, in both parts, and compare.

    A forward pass per column and part. The others are drawn from the columns that have any
    attribution, because zeros agree with zeros and would make any explanation look good.

    Args:
        model: the network that was explained.
        x: ``(n, F)``, as it was explained on.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        explanation: what :func:`~coopsheaf.analysis.explain_node` found.
        top: how many of the columns with the largest attribution, of each part.
        sample: how many others at most.
        seed: of the others.
        inputs: ``pe``, ``edge_weight`` or ``edge_attr``, as the network takes them.
    """
    check_int("top", top, minimum=1)
    check_int("sample", sample, minimum=0)
    generator = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    found = {}
    for part in PARTS:
        values = explanation.columns.part(part)
        first = torch.tensor(explanation.columns.top(part, top), dtype=torch.int64)
        others = values.nonzero().flatten()
        others = others[~torch.isin(others, first)]
        drawn = torch.randperm(len(others), generator=generator)[:sample]
        chosen = torch.cat([first, others[drawn]])
        muted = mute_columns(model, x, edge_index, explanation, part, chosen.tolist(), **inputs)
        found[part] = MutedColumns(chosen, values[chosen], muted)
    return ColumnCheck(**found)


@torch.no_grad()
def mute_columns(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    explanation: Explanation,
    part: str,
    columns: Sequence[int],
    **inputs: Any,
) -> Tensor:
    """By how much the score of an explanation falls when columns are muted, one by one.

    Args:
        model, x, edge_index, explanation, inputs: as in :func:`check_columns`.
        part: ``"own"`` mutes the column at the node that is explained, ``"neighbours"`` at all
            others.
        columns: their numbers.

    Returns:
        ``(c,)``, in double precision.
    """
    graph = as_graph(edge_index, x.shape[0])
    check_choice("part", part, PARTS)
    about = explanation.columns
    if about.cells.shape[0] != graph.num_nodes:
        raise ValueError(
            f"`explanation` must belong to this graph of {graph.num_nodes} nodes; "
            f"got one of {about.cells.shape[0]} nodes"
        )
    about.columns.check(x.shape[1])
    if not columns:  # nothing that a lonely node hears
        return torch.empty(0, dtype=torch.float64)
    check_nodes("columns", list(columns), len(about.columns), things="columns")
    baseline, node = explanation.baseline.to(x), explanation.node

    def score(features: Tensor) -> float:
        return float(explanation.score.of(model(features, graph, **inputs)).double())

    fall = []
    with evaluating(model), steady_actions(model):
        whole = score(x)
        for column in columns:
            features, here = x.clone(), about.columns.features(column).to(x.device)
            if part == "own":
                features[node, here] = baseline[here]
            else:
                features[:, here] = baseline[here]
                features[node, here] = x[node, here]
            fall.append(whole - score(features))
    return torch.tensor(fall, dtype=torch.float64)
