r"""The strongest paths by which a network carries information to a node.

A path is as strong as the product of what its hops carry, each in the layer in which it takes
place; to stay where one is for a layer costs nothing. A layer of CSNN takes none, one or two hops:
one with the flow :math:`f_e` of the edge, two with the norms of the two passes,
:math:`w_{e'} l^B_i r^B_k \cdot w_e l^A_k r^A_j` for j → k → i
(:mod:`coopsheaf.analysis.passes`); with ``semantics="messages"`` it takes none or one. A layer of
CO-GNN takes none or one, with the coefficient of the edge under the actions of this very
prediction. Weights and activations of the layers are left out: they do not tell one path from
another.

The best walk of exactly h hops from every node is found by dynamic programming, from the last layer
to the first, at O(m) per layer and h. Walks that visit a node twice are no paths and left out, so
that of two walks of one length from the same node, a stronger one that does can hide a weaker one
that does not. The shortest walks are always paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.actions import inner_network, layer_passes
from coopsheaf.analysis.drawn_actions import coefficient
from coopsheaf.analysis.hops import Nodes, check_nodes
from coopsheaf.analysis.passes import LayerPasses
from coopsheaf.analysis.probing import evaluating
from coopsheaf.checks import check_int
from coopsheaf.models.csnn import CSNN
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.zoo.cognn.actions import record_actions
from coopsheaf.zoo.cognn.layers import Actions
from coopsheaf.zoo.cognn.network import CoGNN


@dataclass(frozen=True)
class FlowPath:
    """A way from one node to another.

    Args:
        nodes: from its start to the node explained; no node twice.
        layers: the layer of each hop, counted from 0.
        strength: the product of what the hops carry.
    """

    nodes: tuple[int, ...]
    layers: tuple[int, ...]
    strength: float

    def text(self, names: Sequence[str] | None = None) -> str:
        """The nodes with arrows between them."""
        return " → ".join(str(j) if names is None else names[j] for j in self.nodes)


@dataclass(frozen=True)
class LayerFlow:
    """What the edges carry in one layer.

    Args:
        graph: edges in the order of the caller's list, along the flow of information.
        flow: ``(m,)``, in one hop.
        first, second: ``(m,)``, in the first and second of two hops; ``None`` if there is but one.
    """

    graph: Graph
    flow: Tensor
    first: Tensor | None = None
    second: Tensor | None = None


def strongest_paths(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    node: int,
    *,
    sources: Nodes = None,
    count: int = 10,
    max_hops: int | None = None,
    **inputs: Any,
) -> tuple[FlowPath, ...]:
    """The strongest path from each source to a node, strongest first; see the module.

    Args:
        model: a CSNN or a CO-GNN; other networks have no flows, and the answer is empty.
        x: ``(n, F)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        node: where the paths end.
        sources: where they may begin; anywhere if not given.
        count: how many at most.
        max_hops: length of the longest; by default as far as the network reaches.
        inputs: ``pe``, ``edge_weight`` or ``edge_attr``, as the network takes them.
    """
    graph = as_graph(edge_index, x.shape[0])
    node = int(check_nodes("node", check_int("node", node, minimum=0), graph.num_nodes))
    check_int("count", count, minimum=1)
    if max_hops is not None:
        check_int("max_hops", max_hops, minimum=1)
    wanted = check_nodes("sources", sources, graph.num_nodes).tolist()
    network = inner_network(model)
    flows = layer_flows(network, x, graph, inputs)
    return search_paths(flows, node, sources=wanted, count=count, max_hops=max_hops)


@torch.no_grad()
def layer_flows(
    network: nn.Module, x: Tensor, graph: Graph, inputs: dict[str, Any]
) -> list[LayerFlow]:
    """What every layer of a CSNN or a CO-GNN carries; nothing for other networks."""
    if isinstance(network, CSNN):
        _, passes = layer_passes(network, x, graph, inputs)
        return [_csnn_flow(layer) for layer in passes]
    if not isinstance(network, CoGNN):
        return []
    with evaluating(network), record_actions(network) as actions:
        network(x, graph, **inputs)
    here, weight = graph.to("cpu"), inputs.get("edge_weight")
    weight = x.new_ones(graph.num_edges) if weight is None else weight
    weight = weight.detach().double().cpu()
    flows = []
    for conv, chosen in zip(network.convs, actions, strict=True):
        chosen = Actions(*(part.double().cpu() for part in chosen))
        flows.append(LayerFlow(here, coefficient(conv, here, chosen, weight)))
    return flows


def _csnn_flow(passes: LayerPasses) -> LayerFlow:
    if passes.second is None:
        return LayerFlow(passes.graph, passes.flow)
    return LayerFlow(passes.graph, passes.flow, passes.first.edge, passes.second.edge)


def search_paths(
    flows: Sequence[LayerFlow],
    node: int,
    *,
    sources: Sequence[int],
    count: int,
    max_hops: int | None = None,
) -> tuple[FlowPath, ...]:
    """The dynamic programme: from the last layer to the first, and back along its choices."""
    if not flows or flows[0].graph.num_edges == 0:
        return ()
    reach = sum(1 if layer.first is None else 2 for layer in flows)
    hops = reach if max_hops is None else min(reach, max_hops)
    n = flows[0].graph.num_nodes
    best = torch.zeros(hops + 1, n, dtype=torch.float64)  # by number of hops still to go
    best[0, node] = 1
    steps: list[_Step] = []
    for layer in reversed(flows):
        step = _Step(layer, best)
        steps.append(step)
        best = step.best
    steps.reverse()
    at = [j for j in dict.fromkeys(sources) if j != node]
    ranked = sorted(at, key=lambda j: (-float(best[1:, j].max()), j))
    found: list[FlowPath] = []
    for j in ranked:
        bound = float(best[1:, j].max())
        if bound == 0 or (len(found) >= count and bound <= found[count - 1].strength):
            break
        path = _strongest_simple(steps, best, j)
        if path is not None:
            found.append(path)
            found.sort(key=lambda path: (-path.strength, path.nodes))
    return tuple(found[:count])


def _strongest_simple(steps: Sequence[_Step], best: Tensor, start: int) -> FlowPath | None:
    order = torch.sort(best[1:, start], descending=True, stable=True)
    for strength, index in zip(order.values.tolist(), order.indices.tolist(), strict=True):
        if strength == 0:
            return None
        nodes, layers = [start], list[int]()
        for number, step in enumerate(steps):
            taken = step.taken(nodes[-1], index + 1 - len(layers))
            nodes += taken
            layers += [number] * len(taken)
        if len(set(nodes)) == len(nodes):
            return FlowPath(tuple(nodes), tuple(layers), strength)
    return None


class _Step:
    """One layer of the search: the best that goes into it, from the best that goes on behind it.

    Args:
        layer: what the edges carry.
        after: ``(hops + 1, n)``, strength of the best walk from each node behind this layer, by
            its number of hops.
    """

    def __init__(self, layer: LayerFlow, after: Tensor) -> None:
        graph = layer.graph
        self.source, self.target = graph.source, graph.target
        others = self.source != self.target  # a loop leads nowhere
        self.best = after.clone()
        self.edge = torch.full(after.shape, -1)  # the first hop from each node; -1: none
        self.second = torch.full(after.shape, -1)  # the hop after it; -1: none
        for h in range(1, len(after)):
            value, edge = self._over(layer.flow * others * after[h - 1][self.target])
            self._take(h, value, edge, torch.full_like(edge, -1))
            if layer.first is None or layer.second is None or h < 2:
                continue
            middle, onwards = self._over(layer.second * others * after[h - 2][self.target])
            value, edge = self._over(layer.first * others * middle[self.target])
            self._take(h, value, edge, onwards[self.target[edge.clamp(min=0)]])

    def _over(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The largest value among the edges out of each node, and the first edge that has it."""
        n, m = self.best.shape[1], len(values)
        largest = values.new_zeros(n).scatter_reduce(0, self.source, values, "amax")
        attained = (values == largest[self.source]) & (values > 0)
        number = torch.where(attained, torch.arange(m), m)
        edge = torch.full((n,), m).scatter_reduce(0, self.source, number, "amin")
        return largest, torch.where(edge < m, edge, -1)

    def _take(self, h: int, value: Tensor, edge: Tensor, second: Tensor) -> None:
        better = value > self.best[h]
        self.best[h] = torch.where(better, value, self.best[h])
        self.edge[h] = torch.where(better, edge, self.edge[h])
        self.second[h] = torch.where(better, second, self.second[h])

    def taken(self, node: int, hops: int) -> list[int]:
        """Where the best walk goes in this layer: none, one or two more nodes."""
        edges = [int(self.edge[hops, node]), int(self.second[hops, node])]
        return [int(self.target[edge]) for edge in edges if edge >= 0]
