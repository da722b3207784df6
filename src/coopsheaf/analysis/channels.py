"""Channels that a CSNN closes: which edges carry nothing because one of their ends does not.

An edge j → i is a *channel*. It is **closed** in a layer if j does not broadcast there or i does
not listen (:mod:`coopsheaf.analysis.actions`). What it *would carry* is the flow of an edge in its
place between two nodes of the layer's root mean square strength
(:mod:`coopsheaf.analysis.strengths`); what it *carries* is its flow. Loops are no channels.

Scales are positive, so that hardly anything is closed to the last bit. :func:`silenced` closes to
the last bit what is called closed, and shows whether the network can tell the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.actions import ActionReport, LayerActions, cooperative_network, flow_edges
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.maps import ConformalMaps

# A channel that carries less than this share of what it would is shut, whatever its ends do.
SHUT = 0.01


@dataclass(frozen=True)
class LayerChannels:
    """The channels of one layer; all but their number are shares in [0, 1].

    Args:
        channels: edges that are no loops.
        closed: of them are closed.
        would_carry: of all flow these would carry, if every end were of the typical strength.
        carry: of all flow these do carry.
        shut: of the channels carry less than 1 % of what they would, called closed or not.
        deaf: of the nodes with edges into them do not listen.
        mute: of the nodes with edges out of them do not broadcast.
    """

    channels: int
    closed: float
    would_carry: float
    carry: float
    shut: float
    deaf: float
    mute: float


def closed_channels(report: ActionReport, edge_index: Tensor | Graph) -> tuple[LayerChannels, ...]:
    """What is closed in each layer, and what it would carry.

    Args:
        report: what :func:`~coopsheaf.analysis.read_actions` found of a CSNN.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`: the edges of the report.
    """
    if report.family != "csnn":
        raise ValueError(
            "`report` must be of a CSNN: a CO-GNN opens and closes by drawing; "
            f"got one of {report.family!r}"
        )
    edges = flow_edges(report, edge_index).cpu()
    for layer in report.layers:
        if layer.flow.shape != edges.shape[1:]:
            raise ValueError(
                f"`edge_index` must hold the {len(layer.flow)} edges of the report; got "
                f"{edges.shape[1]}"
            )
    return tuple(_read_layer(layer, edges) for layer in report.layers)


def _read_layer(layer: LayerActions, edges: Tensor) -> LayerChannels:
    assert layer.typical_flow is not None
    others = edges[0] != edges[1]
    start, end = edges[:, others]
    flow, typical = layer.flow[others], layer.typical_flow[others]
    listens, broadcasts = open_ends(layer)
    closed = ~(broadcasts[start] & listens[end])
    return LayerChannels(
        channels=len(start),
        closed=_share(closed),
        would_carry=_share(closed, typical),
        carry=_share(closed, flow),
        shut=_share(flow < SHUT * typical),
        deaf=_share(~listens[end.unique()]),
        mute=_share(~broadcasts[start.unique()]),
    )


def open_ends(layer: LayerActions) -> tuple[Tensor, Tensor]:
    """Who listens and who broadcasts, ``(n,)`` each."""
    return layer.action <= 1, layer.action % 2 == 0


def _share(mask: Tensor, weight: Tensor | None = None) -> float:
    weight = torch.ones(len(mask), dtype=torch.float64) if weight is None else weight
    whole = float(weight.sum())
    return float(weight[mask].sum()) / whole if whole > 0 else 0.0


@contextmanager
def silenced(model: nn.Module, report: ActionReport) -> Iterator[None]:
    """Make maps exactly zero wherever a report says that they are all but that.

    Inside the ``with`` block the source map of a node that does not broadcast in a layer, and the
    target map of one that does not listen, are zero there; everything else is computed as ever,
    from features that may have changed by then::

        with silenced(model, report):
            without = model(x, edge_index)

    Args:
        model: the CSNN that the report is of.
        report: what :func:`~coopsheaf.analysis.read_actions` found.
    """
    network = cooperative_network(model)
    if not isinstance(network, CSNN) or len(network.convs) != len(report.layers):
        raise ValueError("`report` must be of `model`, a CSNN with as many layers")
    handles = []
    for conv, layer in zip(network.convs, report.layers, strict=True):
        assert isinstance(conv, CSNNConv)
        listens, broadcasts = open_ends(layer)
        for learner, keep in ((conv.source_learner, broadcasts), (conv.target_learner, listens)):
            handles.append(learner.register_forward_hook(_only(keep)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _only(keep: Tensor) -> Any:
    def hook(module: nn.Module, inputs: Any, maps: ConformalMaps) -> ConformalMaps:
        return ConformalMaps(maps.scale * keep.to(maps.scale), maps.orthogonal)

    return hook
