r"""Who listens and who broadcasts: the actions of the nodes of a CSNN or a CO-GNN.

**CSNN.** The learned maps :math:`S_i = s_i Q_i` and :math:`T_i = t_i R_i` act through the operator
of their layer, which normalises them. What one edge j → i alone carries has the norm :math:`f_e =
w_e \langle u_i, v_j \rangle`, the *flow* (:mod:`coopsheaf.analysis.passes` derives it and the
2-vectors u and v). The *effective strengths* of a node, **listening** and **broadcasting**, say
what would flow into it, and out of it, if its neighbours were the layer's average: root mean
squares over all nodes at the other end, in units of that over all pairs of the same layer. Only
products of giving and taking are carried, and they are formed within a layer; so the unit, and with
it the threshold, belongs to a layer. :mod:`coopsheaf.analysis.strengths` has the derivation. Where
a map is zero the strength is exactly 0, and so are all flows in or out.

A node *listens* if its strength is at least the threshold, likewise for broadcasting.

**The threshold** is a quarter unless it is given: of the layer's root mean square, which is 1. All
nodes called silent then carry together at most 1/16 of the squared strength of their layer, however
few the others are: a median would miss a network in which most nodes are silent, and a search for
two groups would find them where there is one. Nodes that are all alike are all STANDARD.
:func:`sensitivity` says what other thresholds give.

**CO-GNN.** Actions are drawn: the numbers are shares of seeded draws. Flow is the mean over draws
of the coefficient with which a layer carries an edge: 0 when closed; when open the edge weight
times 1 (sum, GIN), one over the in-degree (mean) or the normalisation by open degrees (GCN).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.drawn_actions import draw_actions, most_frequent
from coopsheaf.analysis.passes import LayerPasses, read_passes
from coopsheaf.analysis.probing import evaluating
from coopsheaf.analysis.strengths import read_strengths, sum_at
from coopsheaf.checks import check_int
from coopsheaf.models.csnn import CSNN
from coopsheaf.models.network import Network
from coopsheaf.nn.csnn_conv import CSNNConv, LayerMaps, record_maps
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.zoo.cognn.network import CoGNN

ACTIONS = ("standard", "listen", "propagate", "isolate")
"""What a node does with its edges; an action number is an index into this."""

# A node below this share of the root mean square strength counts as silent.
SHARE = 0.25
# Below how many of the draws a node of a CO-GNN counts as silent.
HALF = 0.5

# How many edges are compared at once, so that no tensor of m maps is held.
_EDGES_TOGETHER = 1 << 18


@dataclass(frozen=True)
class LayerActions:
    """What the nodes do in one layer; n nodes, m edges in the order of the edge list.

    Args:
        source_scale: ``(n,)``, CSNN: s; CO-GNN: share of draws in which the node broadcasts.
        target_scale: ``(n,)``, CSNN: t; CO-GNN: share of draws in which the node listens.
        broadcasting: ``(n,)``, effective strength; CSNN: in units of the layer's root mean square.
        listening: ``(n,)``, likewise.
        action: ``(n,)`` integers, indices into :data:`ACTIONS`.
        flow: ``(m,)``, how strongly an edge carries, not negative.
        from_identity: ``(m,)``, in [0, 1]: the Frobenius distance of :math:`R_i^\\top Q_j` to the
            nearer of +I and -I over its largest value, :math:`\\sqrt{2d}`; ``None`` for CO-GNN.
        typical_flow: ``(m,)``, the flow that an edge would have between two nodes of the layer's
            root mean square strength, 0 for loops; ``None`` for CO-GNN.
    """

    source_scale: Tensor
    target_scale: Tensor
    broadcasting: Tensor
    listening: Tensor
    action: Tensor
    flow: Tensor
    from_identity: Tensor | None
    typical_flow: Tensor | None = None


@dataclass(frozen=True)
class ActionReport:
    """The actions of a network on one graph.

    Args:
        family: ``"csnn"`` or ``"cognn"``.
        threshold: the effective strength below which a node does not listen or broadcast, in every
            layer in the unit of that layer.
        layers: one entry per layer.
        direction: ``"source_to_target"`` if ``flow`` is carried along the edges, and
            ``"target_to_source"`` if against them, as the released semantics of CSNN does.
    """

    family: str
    threshold: float
    layers: tuple[LayerActions, ...]
    direction: str = "source_to_target"

    @property
    def counts(self) -> Tensor:
        """Nodes per layer and action, ``(layers, 4)``."""
        rows = [torch.bincount(layer.action, minlength=len(ACTIONS)) for layer in self.layers]
        return torch.stack(rows)


@dataclass(frozen=True)
class Sensitivity:
    """How the shares of the actions depend on the threshold.

    Args:
        thresholds: ``(k,)``.
        shares: ``(layers, k, 4)``, shares of the nodes in the order of :data:`ACTIONS`.
    """

    thresholds: Tensor
    shares: Tensor


def read_actions(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    threshold: float | None = None,
    draws: int = 100,
    seed: int = 0,
    **inputs: Any,
) -> ActionReport:
    """What every node does in every layer, and what every edge carries.

    Dropout is off. See the module for the equations.

    Args:
        model: a :class:`~coopsheaf.CSNN` or a :class:`~coopsheaf.zoo.cognn.CoGNN`.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        threshold: of the effective strengths, positive; by default a quarter of their root mean
            square in the layer, 0.25. For CO-GNN, of the shares of draws; by default an action is
            the most frequent of the four.
        draws: of the actions of a CO-GNN; a CSNN does not draw.
        seed: of the draws.
        inputs: ``batch``, ``batch_size``, ``pe``, ``edge_weight`` or ``edge_attr``, as the network
            takes them.
    """
    network = cooperative_network(model)
    threshold = None if threshold is None else _check_threshold("threshold", threshold)
    check_int("draws", draws, minimum=1)
    check_int("seed", seed, minimum=0)
    graph = as_graph(edge_index, x.shape[0])
    if isinstance(network, CSNN):
        return _read_csnn(network, x, graph, threshold, inputs)
    return _read_cognn(network, x, graph, threshold, draws, seed, inputs)


def sensitivity(report: ActionReport, thresholds: Sequence[float] | None = None) -> Sensitivity:
    """The share of each action per layer, for a range of thresholds.

    Args:
        report: what :func:`read_actions` found.
        thresholds: positive; by default from an eighth to eight times that of the report, two
            steps to the doubling, and for CO-GNN from 0.05 to 0.95.
    """
    if thresholds is None:
        steps = range(-6, 7)
        csnn = report.family == "csnn"
        thresholds = (
            [report.threshold * 2 ** (k / 2) for k in steps]
            if csnn
            else [k / 20 for k in range(1, 20)]
        )
    values = [_check_threshold("thresholds", value) for value in thresholds]
    shares = torch.zeros(len(report.layers), len(values), len(ACTIONS), dtype=torch.float64)
    for row, layer in enumerate(report.layers):
        for k, value in enumerate(values):
            action = choose_actions(layer.listening, layer.broadcasting, value)
            count = torch.bincount(action, minlength=len(ACTIONS))
            shares[row, k] = count.double() / max(len(action), 1)
    return Sensitivity(torch.tensor(values, dtype=torch.float64), shares)


def choose_actions(listening: Tensor, broadcasting: Tensor, threshold: float) -> Tensor:
    """Indices into :data:`ACTIONS`, ``(n,)``: who is at least as strong as the threshold."""
    deaf, mute = ~(listening >= threshold), ~(broadcasting >= threshold)
    return 2 * deaf.long() + mute.long()


def flow_edges(report: ActionReport, edge_index: Tensor | Graph) -> Tensor:
    """The edges in the direction in which they carry, ``(2, m)``: from row 0 to row 1."""
    edges = edge_index.edge_index if isinstance(edge_index, Graph) else edge_index
    return edges if report.direction == "source_to_target" else edges.flip(0)


def inner_network(model: nn.Module) -> nn.Module:
    """The network itself, where a model is wrapped to answer in the units of its targets."""
    inside = getattr(model, "network", None)
    return inside if isinstance(inside, Network) else model


def cooperative_network(model: nn.Module) -> CSNN | CoGNN:
    """The network with actions that a model is."""
    network = inner_network(model)
    if not isinstance(network, CSNN | CoGNN):
        raise ValueError(
            f"`model` must be a CSNN or a CO-GNN to have actions; got {type(network).__name__}"
        )
    return network


@torch.no_grad()
def layer_passes(
    network: CSNN, x: Tensor, graph: Graph, inputs: dict[str, Any]
) -> tuple[list[LayerMaps], list[LayerPasses]]:
    """The maps of every layer of a CSNN, and the passes of the operators they make."""
    with evaluating(network), record_maps(network) as maps:
        network(x, graph, **inputs)
    passes = []
    for conv, (source, target) in zip(network.convs, maps, strict=True):
        assert isinstance(conv, CSNNConv)
        operator = conv.diffusion(graph, source, target, inputs.get("edge_weight"))
        passes.append(read_passes(operator))
    return maps, passes


def _read_csnn(
    network: CSNN, x: Tensor, graph: Graph, threshold: float | None, inputs: dict[str, Any]
) -> ActionReport:
    maps, passes = layer_passes(network, x, graph, inputs)
    threshold = SHARE if threshold is None else threshold
    layers = []
    for (source, target), layer in zip(maps, passes, strict=True):
        strengths = read_strengths(layer)
        layers.append(
            LayerActions(
                source_scale=source.scale.detach().double().cpu(),
                target_scale=target.scale.detach().double().cpu(),
                broadcasting=strengths.broadcasting,
                listening=strengths.listening,
                action=choose_actions(strengths.listening, strengths.broadcasting, threshold),
                flow=layer.flow,
                from_identity=_from_identity(source.orthogonal, target.orthogonal, layer.graph),
                typical_flow=strengths.typical_flow,
            )
        )
    backwards = network.semantics == "released"
    direction = "target_to_source" if backwards else "source_to_target"
    return ActionReport("csnn", threshold, tuple(layers), direction)


def _from_identity(source: Tensor, target: Tensor, across: Graph) -> Tensor:
    # ‖RᵀQ ∓ I‖ = ‖Q ∓ R‖: no product per edge, and nothing cancels near the identity.
    q, r = (maps.detach().double().cpu().flatten(1) for maps in (source, target))  # (n, d²)
    parts = []
    for edges in torch.arange(across.num_edges).split(_EDGES_TOGETHER):
        sent, heard = q[across.source[edges]], r[across.target[edges]]
        apart = torch.minimum((sent - heard).square().sum(1), (sent + heard).square().sum(1))
        parts.append((apart / (2 * source.shape[-1])).clamp(max=1).sqrt())
    return torch.cat(parts) if parts else q.new_zeros(0)


def _read_cognn(
    network: CoGNN,
    x: Tensor,
    graph: Graph,
    threshold: float | None,
    draws: int,
    seed: int,
    inputs: dict[str, Any],
) -> ActionReport:
    counts, flow = draw_actions(network, x, graph, draws, seed, inputs)
    here = graph.to("cpu")
    others = (here.source != here.target).double()
    hears = sum_at(here.target, others, here.num_nodes) > 0
    heard = sum_at(here.source, others, here.num_nodes) > 0
    layers = []
    for count, carried in zip(counts, flow, strict=True):
        # In the order of ACTIONS: standard and listen listen, standard and propagate broadcast.
        listens, broadcasts = (count[:, both].sum(1) / draws for both in ([0, 1], [0, 2]))
        listening, broadcasting = listens * hears, broadcasts * heard
        if threshold is None:
            action = most_frequent(count, hears, heard)
        else:
            action = choose_actions(listening, broadcasting, threshold)
        layers.append(
            LayerActions(
                source_scale=broadcasts,
                target_scale=listens,
                broadcasting=broadcasting,
                listening=listening,
                action=action,
                flow=carried / draws,
                from_identity=None,
            )
        )
    return ActionReport("cognn", HALF if threshold is None else threshold, tuple(layers))


def _check_threshold(argument: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"`{argument}` must be finite and positive; got {value!r}")
    return float(value)
