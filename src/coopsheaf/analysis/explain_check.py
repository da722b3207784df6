r"""Explanations put to the test: mute nodes, cut edges, and see whether the prediction moves.

A node is *muted* by replacing its features with the baseline, and *cut off* by deleting all its
edges; by how much the score falls is measured by running the network again. Rank correlations
(Spearman) say whether the explanation puts nodes in the same order. To mute a node is a large
step and attributions are derivatives: the further a network is from linear on the way, the less
they agree, signs before sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.explain import Explanation, steady_actions
from coopsheaf.analysis.explain_columns import largest
from coopsheaf.analysis.probing import evaluating
from coopsheaf.checks import check_int
from coopsheaf.nn.edge_features import EdgeMeans
from coopsheaf.sheaves.graph import Graph, as_graph


@dataclass(frozen=True)
class ExplanationCheck:
    """What happened to the nodes that were muted and cut off, one after the other.

    Args:
        nodes: ``(k,)``.
        attribution: ``(k,)``, what the explanation says of muting them.
        muted: ``(k,)``, by how much the score fell when a node was muted.
        edge_attribution: ``(k,)``, what it says of cutting them off, summed over their edges;
            ``None`` without attributions of edges.
        cut: ``(k,)``, by how much the score fell when its edges were deleted.
        influence: ``(k,)``, norms of gradients.
    """

    nodes: Tensor
    attribution: Tensor
    muted: Tensor
    edge_attribution: Tensor | None
    cut: Tensor
    influence: Tensor

    @property
    def muting(self) -> float:
        """Rank correlation of attribution and effect of muting, signs included."""
        return rank_correlation(self.attribution, self.muted)

    @property
    def muting_size(self) -> float:
        """Rank correlation of their absolute values."""
        return rank_correlation(self.attribution.abs(), self.muted.abs())

    @property
    def cutting(self) -> float:
        """Rank correlation of the edges' attribution and the effect of cutting, signs included.

        NaN without attributions of edges.
        """
        if self.edge_attribution is None:
            return math.nan
        return rank_correlation(self.edge_attribution, self.cut)

    @property
    def cutting_size(self) -> float:
        """Rank correlation of influence and the absolute effect of cutting."""
        return rank_correlation(self.influence, self.cut.abs())


@torch.no_grad()
def check_explanation(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    explanation: Explanation,
    *,
    top: int = 10,
    sample: int = 20,
    seed: int = 0,
    **inputs: Any,
) -> ExplanationCheck:
    """Mute and cut off the nodes that matter most and some others, and compare.

    Two forward passes per node. The others are drawn from those that have any influence, because
    zeros agree with zeros and would make any explanation look good.

    Args:
        model: the network that was explained.
        x: ``(n, F)``, as it was explained on.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        explanation: what :func:`~coopsheaf.analysis.explain_node` found.
        top: how many of the nodes with the largest attribution.
        sample: how many others at most.
        seed: of the others.
        inputs: ``pe``, ``edge_weight`` or ``edge_attr``, as the network takes them.
    """
    graph = as_graph(edge_index, x.shape[0])
    if isinstance(inputs.get("edge_attr"), EdgeMeans):
        raise ValueError(
            "`edge_attr` must have a row per edge, of which some are cut; got means at the nodes"
        )
    check_int("top", top, minimum=1)
    check_int("sample", sample, minimum=0)
    check_int("seed", seed, minimum=0)
    if len(explanation.attribution) != graph.num_nodes:
        raise ValueError(
            f"`explanation` must belong to this graph of {graph.num_nodes} nodes; "
            f"got one of {len(explanation.attribution)} nodes"
        )
    first = torch.tensor(largest(explanation.attribution, top), dtype=torch.int64)
    others = (explanation.influence > 0).nonzero().flatten()
    others = others[~torch.isin(others, first)]
    drawn = torch.randperm(len(others), generator=torch.Generator().manual_seed(seed))[:sample]
    nodes = torch.cat([first, others[drawn]])

    def score(features: Tensor, edges: Graph, options: dict[str, Any]) -> float:
        return float(explanation.score.of(model(features, edges, **options)).double())

    muted, cut = [], []
    with evaluating(model), steady_actions(model):
        whole = score(x, graph, inputs)
        for j in nodes.tolist():
            features = x.clone()
            features[j] = explanation.baseline.to(x)
            muted.append(whole - score(features, graph, inputs))
            keep = (graph.source != j) & (graph.target != j)
            rest = Graph(graph.edge_index[:, keep], graph.num_nodes)
            options = dict(inputs)
            for name in ("edge_weight", "edge_attr"):
                if isinstance(options.get(name), Tensor):
                    options[name] = options[name][keep]
            cut.append(whole - score(x, rest, options))
    return ExplanationCheck(
        nodes=nodes,
        attribution=explanation.attribution[nodes],
        muted=torch.tensor(muted, dtype=torch.float64),
        edge_attribution=_at_nodes(explanation, nodes),
        cut=torch.tensor(cut, dtype=torch.float64),
        influence=explanation.influence[nodes],
    )


def _at_nodes(explanation: Explanation, nodes: Tensor) -> Tensor | None:
    """The attributions of all edges at each node, summed; a loop counts once."""
    values = explanation.edge_attribution
    if values is None:
        return None
    source, target = explanation.edges
    total = torch.zeros_like(explanation.attribution).index_add(0, source, values)
    return total.index_add(0, target, values * (source != target))[nodes]


def rank_correlation(a: Tensor, b: Tensor) -> float:
    """Spearman's rank correlation of two ``(k,)``; equals share the mean of their ranks.

    NaN with fewer than two values, or if all values of one side are equal.
    """
    if a.dim() != 1 or a.shape != b.shape:
        raise ValueError(
            f"`a` and `b` must have one shape (k,); got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    first, second = (ranks - ranks.mean() for ranks in (_ranks(a), _ranks(b)))
    size = float(first.norm() * second.norm())
    return float(first @ second) / size if size > 0 else math.nan


def _ranks(values: Tensor) -> Tensor:
    _, place, count = values.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    return (last - (count - 1) / 2)[place]
