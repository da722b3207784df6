"""The spectra of the operators of a CSNN's layers, before they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.actions import cooperative_network
from coopsheaf.analysis.hops import check_nodes, hop_distances
from coopsheaf.analysis.probing import evaluating
from coopsheaf.checks import check_int
from coopsheaf.models.csnn import CSNN
from coopsheaf.nn.csnn_conv import CSNNConv, record_maps
from coopsheaf.sheaves.diffusion import split_passes
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.spectral import spectrum

if TYPE_CHECKING:
    pass

SIZE = 600
"""Rows of the matrices of :func:`layer_spectra`: all of them take well below a minute."""


@dataclass(frozen=True)
class LayerSpectra:
    """Eigenvalues of the operators of one layer, each ``(k·d,)``, complex.

    Args:
        first: of the pass that is applied first: Δ_out in the paper's semantics.
        second: of the pass that is applied to its result: (Δ_in)ᵀ in the paper's semantics;
            ``None`` if there is one pass, as for ``"messages"``.
        composed: of the two together.
    """

    first: Tensor
    second: Tensor | None
    composed: Tensor


@dataclass(frozen=True)
class Spectra:
    """The spectra of all layers of a CSNN, on k of its graph's n nodes.

    Args:
        layers: one entry per layer.
        nodes: ``(k,)``, the nodes that were looked at.
        num_nodes: n.
        semantics: ``"paper"``, ``"released"`` or ``"messages"``.
    """

    layers: tuple[LayerSpectra, ...]
    nodes: Tensor
    num_nodes: int
    semantics: str


@torch.no_grad()
def layer_spectra(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    centre: int | None = None,
    size: int = SIZE,
    **inputs: Any,
) -> Spectra:
    """The eigenvalues of every layer's operators, with the maps that the network has on x.

    A graph of more than ``size / d`` nodes is too large to be made a dense matrix. Then the
    operators are those of the subgraph of the nodes nearest to ``centre``, normalised with its own
    degrees; the maps are still those of the whole graph.

    Args:
        model: a :class:`~coopsheaf.CSNN`.
        x: ``(n, in_channels)``.
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        centre: of the nodes to look at; by default the one with the most edges.
        size: rows of the matrices, at least d.
        inputs: ``pe``, ``edge_weight`` or ``edge_attr``, as the network takes them.
    """
    network = cooperative_network(model)
    if not isinstance(network, CSNN):
        raise ValueError(
            f"`model` must be a CSNN to have spectra of maps; got {type(network).__name__}"
        )
    graph = as_graph(edge_index, x.shape[0])
    d = network.stalk_dim
    check_int("size", size, minimum=d)
    with evaluating(network), record_maps(network) as maps:
        network(x, graph, **inputs)
    nodes = _nearest(graph.to("cpu"), centre, size // d)
    part, kept = _induced(graph.to("cpu"), nodes)
    weight = inputs.get("edge_weight")
    weight = None if weight is None else weight.double().cpu()[kept]
    layers = []
    for conv, pair in zip(network.convs, maps, strict=True):
        assert isinstance(conv, CSNNConv)
        source, target = (
            ConformalMaps(m.scale.double().cpu()[nodes], m.orthogonal.double().cpu()[nodes])
            for m in pair
        )
        operator = conv.diffusion(part, source, target, weight)
        first, second = split_passes(operator)
        before, after = _spectrum(first), None if second is None else _spectrum(second)
        composed = before if second is None else _spectrum(operator)
        layers.append(LayerSpectra(before, after, composed))
    return Spectra(tuple(layers), nodes, graph.num_nodes, network.semantics)


def _spectrum(operator: Operator) -> Tensor:
    return spectrum(operator).to(torch.complex128)


def _nearest(graph: Graph, centre: int | None, count: int) -> Tensor:
    """The ``count`` nodes nearest to one, whatever the direction of the edges; sorted."""
    n = graph.num_nodes
    if n == 0:
        raise ValueError("`x` must have at least one node; got none")
    if centre is None:
        centre = int((graph.in_degree + graph.out_degree).argmax())
    (start,) = check_nodes("centre", check_int("centre", centre, minimum=0), n).tolist()
    if count >= n:
        return torch.arange(n)
    both = Graph(torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1), n)
    distance = hop_distances(both, [start])[0]
    distance = distance.where(distance >= 0, n)  # what cannot be reached comes last
    return distance.argsort(stable=True)[:count].sort().values


def _induced(graph: Graph, nodes: Tensor) -> tuple[Graph, Tensor]:
    """The subgraph of some nodes, and which of the edges it keeps."""
    number = torch.full((graph.num_nodes,), -1)
    number[nodes] = torch.arange(len(nodes))
    source, target = number[graph.source], number[graph.target]
    kept = (source >= 0) & (target >= 0)
    return Graph(torch.stack([source[kept], target[kept]]), len(nodes)), kept
