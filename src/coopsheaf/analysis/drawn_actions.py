"""The actions of a CO-GNN, drawn many times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.probing import evaluating
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.cognn.actions import ActionSampler, record_actions
from coopsheaf.zoo.cognn.layers import Actions, GCNConv, MeanConv
from coopsheaf.zoo.cognn.network import CoGNN

# Listen and broadcast, listen, broadcast, neither: the codes of `Actions`.
_CODES = 4


@torch.no_grad()
def draw_actions(
    network: CoGNN, x: Tensor, graph: Graph, draws: int, seed: int, inputs: dict[str, Any]
) -> tuple[Tensor, Tensor]:
    """Draw the actions of all layers, from seeds of their own that one seed gives.

    What the network does at evaluation does not change.

    Returns:
        How often each node did what, ``(layers, n, 4)``, and the sum over draws of what each edge
        carried, ``(layers, m)``.
    """
    here = graph.to("cpu")
    n, m, depth = here.num_nodes, here.num_edges, len(network.convs)
    counts = torch.zeros(depth, n, _CODES, dtype=torch.float64)
    flow = torch.zeros(depth, m, dtype=torch.float64)
    weight = inputs.get("edge_weight")
    weight = torch.ones(m, dtype=torch.float64) if weight is None else weight.double().cpu()
    seeds = torch.randint(2**62, (draws,), generator=torch.Generator().manual_seed(seed))
    with evaluating(network):
        for number in seeds.tolist():
            with drawing(network.sampler, number), record_actions(network) as actions:
                network(x, graph, **inputs)
            for layer, (conv, chosen) in enumerate(zip(network.convs, actions, strict=True)):
                chosen = Actions(*(part.double().cpu() for part in chosen))
                counts[layer, torch.arange(n), chosen.codes()] += 1
                flow[layer] += coefficient(conv, here, chosen, weight)
    return counts, flow


def most_frequent(counts: Tensor, hears: Tensor, heard: Tensor) -> Tensor:
    """The action with the highest count, ``(n,)``; the first of equals.

    Args:
        counts: ``(n, 4)``.
        hears: ``(n,)``, whether there is anybody to listen to; without, nobody listens, whatever
            was drawn.
        heard: ``(n,)``, whether there is anybody to broadcast to.
    """
    counts = counts.clone()
    for possible, moves in ((hears, ((0, 2), (1, 3))), (heard, ((0, 1), (2, 3)))):
        for lost, kept in moves:
            counts[:, kept] += counts[:, lost] * ~possible
            counts[:, lost] *= possible
    first = torch.arange(_CODES, 0, -1) / (2 * _CODES)
    return (counts + first).argmax(1)


@contextmanager
def drawing(sampler: ActionSampler, seed: int) -> Iterator[None]:
    """Let a sampler draw from a seed, and then do again what it did."""
    before = sampler.evaluation, sampler.evaluation_seed
    sampler.evaluation, sampler.evaluation_seed = "seeded", seed
    try:
        yield
    finally:
        sampler.evaluation, sampler.evaluation_seed = before


def coefficient(conv: nn.Module, graph: Graph, actions: Actions, weight: Tensor) -> Tensor:
    """What multiplies x_j on the way to i in one draw, ``(m,)``."""
    carried = weight * actions.listens[graph.target] * actions.broadcasts[graph.source]
    if isinstance(conv, MeanConv):
        return carried / graph.in_degree.clamp(min=1)[graph.target]
    if isinstance(conv, GCNConv):
        degree = carried.new_ones(graph.num_nodes).index_add(0, graph.target, carried)
        root = degree.rsqrt()
        return carried * root[graph.target] * root[graph.source]
    return carried
