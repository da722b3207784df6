"""Receptive fields: who has any influence at all, and how that grows with depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.analysis.hops import Nodes, check_nodes, hop_distances
from coopsheaf.analysis.probing import row_products, trace, trace_all
from coopsheaf.models.network import Network
from coopsheaf.sheaves.graph import Graph, as_graph


def receptive_field(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    targets: Nodes = None,
    at: str | int = "output",
    wrt: str = "input",
    seed: int = 0,
    **inputs: Any,
) -> Tensor:
    """Whether anything at all comes from j to target i, ``(t, n)``: where the Jacobian is not zero.

    One product with a Gaussian vector per target: where the Jacobian is zero so is the product,
    exactly, and where it is not the product is zero with probability 0. It is the Jacobian at the
    given x; a unit of a ReLU that rests there hides what it would pass on for another x. Arguments
    are those of :func:`~coopsheaf.analysis.influence`.
    """
    graph = as_graph(edge_index, x.shape[0])
    leaf, out = trace(model, x, graph, at=at, wrt=wrt, inputs=inputs)
    rows = check_nodes("targets", targets, out.shape[0], things="rows of what is differentiated")
    return _touched(out, leaf, rows, torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class ReceptiveGrowth:
    """Receptive fields after 0, 1, ..., T layers.

    Args:
        fields: ``(T + 1, t, n)``, whether node j has influence on target i.
        distances: ``(t, n)``, hops from j to i; -1 without a path.
    """

    fields: Tensor
    distances: Tensor

    @property
    def sizes(self) -> Tensor:
        """Number of nodes in each field, ``(T + 1, t)``."""
        return self.fields.sum(-1)

    @property
    def reach(self) -> Tensor:
        """Distance of the furthest node in each field, ``(T + 1, t)``."""
        return torch.where(self.fields, self.distances, -1).amax(-1)


def receptive_growth(
    model: Network,
    x: Tensor,
    edge_index: Tensor | Graph,
    *,
    targets: Nodes = None,
    wrt: str = "input",
    seed: int = 0,
    flow: str = "source_to_target",
    **inputs: Any,
) -> ReceptiveGrowth:
    """The receptive field after every layer.

    Arguments are those of :func:`~coopsheaf.analysis.influence`.
    """
    graph = as_graph(edge_index, x.shape[0])
    leaf, states = trace_all(model, x, graph, wrt=wrt, output=False, inputs=inputs)
    rows = check_nodes("targets", targets, graph.num_nodes)
    generator = torch.Generator().manual_seed(seed)
    fields = torch.stack([_touched(state, leaf, rows, generator) for state in states])
    return ReceptiveGrowth(fields, hop_distances(graph, rows, flow=flow).cpu())


def _touched(out: Tensor, leaf: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    fields = []
    for row in rows.tolist():
        vector = torch.randn(1, out.shape[1], generator=generator)
        (product,) = row_products(out, leaf, row, vector)
        fields.append((product.flatten(1) != 0).any(1).cpu())
    return torch.stack(fields)
