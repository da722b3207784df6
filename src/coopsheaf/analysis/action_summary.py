"""Who does what: actions counted by class, degree, homophily, correctness or part of the split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from coopsheaf.analysis.actions import ACTIONS, ActionReport
from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.tensor_checks import check_tensor


@dataclass(frozen=True)
class NodeGroups:
    """Nodes put into groups.

    Args:
        by: what by, as a word for a heading.
        names: of the groups.
        index: ``(n,)`` integers, the group of each node; -1 for those in none.
    """

    by: str
    names: tuple[str, ...]
    index: Tensor


@dataclass(frozen=True)
class ActionRow:
    """One group in one layer.

    Args:
        layer: counted from 0.
        group: its name.
        nodes: how many there are in it.
        counts: how many of them do what, in the order of :data:`~coopsheaf.analysis.ACTIONS`.
        broadcasting: mean effective strength.
        listening: mean effective strength.
        source_scale: mean of s, or of the shares of draws.
        target_scale: mean of t, or of the shares of draws.
    """

    layer: int
    group: str
    nodes: int
    counts: tuple[int, ...]
    broadcasting: float
    listening: float
    source_scale: float
    target_scale: float

    @property
    def shares(self) -> tuple[float, ...]:
        """The counts as shares of the group."""
        return tuple(count / self.nodes for count in self.counts)


@dataclass(frozen=True)
class ActionSummary:
    """Actions by layer and group: rows that can be printed."""

    by: str
    rows: tuple[ActionRow, ...]

    @property
    def header(self) -> list[str]:
        return ["layer", self.by, "nodes", *ACTIONS, "broadcasting", "listening"]

    @property
    def table(self) -> list[list[str]]:
        """Text under :attr:`header`: layers counted from 1, shares in per cent."""
        return [
            [
                str(row.layer + 1),
                row.group,
                str(row.nodes),
                *(f"{100 * share:.1f} %" for share in row.shares),
                f"{row.broadcasting:.3f}",
                f"{row.listening:.3f}",
            ]
            for row in self.rows
        ]


def summarise_actions(report: ActionReport, groups: NodeGroups | None = None) -> ActionSummary:
    """Count actions and average strengths, by layer and group.

    Args:
        report: what :func:`~coopsheaf.analysis.read_actions` found.
        groups: as :func:`group_nodes` makes them; all nodes together if not given. Groups without
            nodes are left out.
    """
    n = len(report.layers[0].action)
    if groups is None:
        groups = NodeGroups("group", ("all",), torch.zeros(n, dtype=torch.int64))
    if groups.index.shape != (n,):
        raise ValueError(
            f"`groups` must hold one group per node of the report, {n}; "
            f"got {tuple(groups.index.shape)}"
        )
    index = groups.index.cpu()
    rows = []
    for number, layer in enumerate(report.layers):
        for k, name in enumerate(groups.names):
            inside = index == k
            if not inside.any():
                continue
            count = torch.bincount(layer.action[inside], minlength=len(ACTIONS))
            strengths = (
                layer.broadcasting,
                layer.listening,
                layer.source_scale,
                layer.target_scale,
            )
            means = [float(values[inside].mean()) for values in strengths]
            rows.append(ActionRow(number, name, int(inside.sum()), tuple(count.tolist()), *means))
    return ActionSummary(groups.by, tuple(rows))


def group_nodes(
    by: str,
    edge_index: Tensor | Graph,
    *,
    num_nodes: int | None = None,
    y: Tensor | None = None,
    predicted: Tensor | None = None,
    class_names: Sequence[str] = (),
    parts: Mapping[str, Tensor] | None = None,
    bins: int = 4,
) -> NodeGroups:
    """Put nodes into groups by name: a key of :data:`GROUPINGS`.

    Args:
        by: ``"class"``, ``"degree"``, ``"homophily"``, ``"correctness"`` or ``"part"``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`; for degree and homophily.
        num_nodes: n; the largest index plus one if not given.
        y: ``(n,)`` class numbers, -1 where unknown; for class, homophily and correctness.
        predicted: ``(n,)`` class numbers; for correctness.
        class_names: in the order of their numbers.
        parts: names and masks ``(n,)`` of the parts of a split; for part.
        bins: number of bins of homophily.
    """
    check_choice("by", by, GROUPINGS)
    graph = as_graph(edge_index, num_nodes)
    if by == "degree":
        return degree_bins(graph)
    if by == "part":
        return _by_part(parts, graph.num_nodes)
    labels = _check_labels("y", y, graph.num_nodes)
    if by == "class":
        return _by_class(labels, class_names)
    if by == "homophily":
        return homophily_bins(graph, labels, bins=bins)
    guesses = _check_labels("predicted", predicted, graph.num_nodes)
    index = torch.where(labels < 0, -1, (labels != guesses).long())
    return NodeGroups("prediction", ("correct", "wrong"), index)


def node_homophily(
    edge_index: Tensor | Graph, y: Tensor, *, num_nodes: int | None = None
) -> Tensor:
    """The share of each node's neighbours that have its label, ``(n,)``.

    Neighbours are the other ends of all edges at a node, whichever way they point; loops do not
    count, and neither do neighbours whose label is not known. NaN for nodes whose own label is not
    known or that have no neighbour to compare with.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        y: ``(n,)`` class numbers, -1 where unknown.
        num_nodes: n; the largest index plus one if not given.
    """
    graph = as_graph(edge_index, num_nodes)
    labels = _check_labels("y", y, graph.num_nodes)
    ends = graph.edge_index.cpu()
    known = (labels[ends] >= 0).all(0) & (ends[0] != ends[1])
    source, target = ends[:, known]
    same = (labels[source] == labels[target]).double()
    alike, count = (
        torch.zeros(graph.num_nodes, dtype=torch.float64)
        .index_add(0, source, values)
        .index_add(0, target, values)
        for values in (same, torch.ones_like(same))
    )
    return torch.where(count > 0, alike / count, torch.nan)


def homophily_bins(
    edge_index: Tensor | Graph, y: Tensor, *, num_nodes: int | None = None, bins: int = 4
) -> NodeGroups:
    """Nodes by :func:`node_homophily`, in bins of one width; nodes without it are in none."""
    check_int("bins", bins, minimum=1)
    share = node_homophily(edge_index, y, num_nodes=num_nodes)
    index = (share.nan_to_num(0.0) * bins).floor().long().clamp(max=bins - 1)
    names = tuple(f"{k / bins:.3g}–{(k + 1) / bins:.3g}" for k in range(bins))
    return NodeGroups("homophily", names, torch.where(share.isnan(), -1, index))


def degree_bins(edge_index: Tensor | Graph, *, num_nodes: int | None = None) -> NodeGroups:
    """Nodes by the number of edges into them, up to powers of two: 0, 1, 2, 3–4, 5–8, …"""
    degree = as_graph(edge_index, num_nodes).in_degree.cpu()
    # Bin k > 0 ends with 2^(k - 1).
    largest = int(degree.max()) if degree.numel() else 0
    ends = torch.tensor([0, *(2**k for k in range(largest.bit_length() + 1))])
    index = torch.searchsorted(ends, degree)
    names = ["0", "1", "2", *(f"{a + 1}–{2 * a}" for a in ends[2:].tolist())]
    return NodeGroups("degree", tuple(names[: int(index.max()) + 1 if index.numel() else 1]), index)


def _by_class(labels: Tensor, class_names: Sequence[str]) -> NodeGroups:
    classes = max(int(labels.max()) + 1 if labels.numel() else 0, len(class_names))
    names = [*class_names, *(str(k) for k in range(len(class_names), classes))]
    return NodeGroups("class", tuple(names), labels.clamp(min=-1))


def _by_part(parts: Mapping[str, Tensor] | None, num_nodes: int) -> NodeGroups:
    if not parts:
        raise ValueError("`parts` must hold at least one mask to group by part; got none")
    index = torch.full((num_nodes,), -1)
    for k, (name, mask) in enumerate(parts.items()):
        if mask.dtype != torch.bool or mask.shape != (num_nodes,):
            raise ValueError(
                f"`parts` must hold boolean masks of shape ({num_nodes},); "
                f"got {mask.dtype} of shape {tuple(mask.shape)} for {name!r}"
            )
        index[mask.cpu()] = k
    return NodeGroups("part", tuple(parts), index)


def _check_labels(argument: str, labels: Tensor | None, num_nodes: int) -> Tensor:
    if labels is None:
        raise ValueError(f"`{argument}` must hold a class number per node; got None")
    tensor = check_tensor(argument, labels)
    if tensor.dtype != torch.int64 or tensor.shape != (num_nodes,):
        raise ValueError(
            f"`{argument}` must be an int64 tensor of shape ({num_nodes},), the class of each "
            f"node; got {tensor.dtype} of shape {tuple(tensor.shape)}"
        )
    return tensor.cpu()


GROUPINGS: dict[str, str] = {
    "class": "the classes",
    "degree": "the number of edges into a node",
    "homophily": "the share of neighbours with the same label",
    "correctness": "whether the prediction is right",
    "part": "the parts of the split",
}
"""What nodes can be grouped by."""
