"""What is done to a stored graph before a model sees it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops, coalesce

from coopsheaf.checks import check_choice

DIRECTIONS = {
    "stored": "the edges as the file lists them",
    "reversed": "every edge turned round",
    "undirected": "every edge both ways, each once",
    "rows": "every edge turned round, each once: rows of the 0/1 matrix of the list hear columns",
}
SELF_LOOPS = {
    "keep": "as they are",
    "remove": "taken out",
    "add": "one at every node",
    # For networks that give a loop only to nodes without one, as if they had added the identity.
    "double": "those that there are of weight 2, all other edges of weight 1",
}
FEATURES = {
    "raw": "as they are",
    "row-normalized": "each node's features divided by their sum",
    "standardized": "zero mean and unit variance per feature, over all nodes",
}
RELATIONS = {
    "poincare": "embedded in a hyperbolic disk",
    "mds": "embedded by Isomap",
    "struc2vec": "embedded by struc2vec",
}
POSITIONS = {
    "rwse": "how likely random walks of 1 to 20 steps return",
    "lappe": "ten smallest eigenpairs of the Laplacian",
}
BONDS = {
    "codes": "their integer codes as they are, for networks that learn a vector of each",
    "one-hot": "a column for each code, of which means can be taken",
}


@dataclass(frozen=True)
class Processing:
    """How a stored graph becomes the graph a model sees.

    Args:
        direction: a key of ``DIRECTIONS``.
        self_loops: a key of ``SELF_LOOPS``.
        features: a key of ``FEATURES``.
        relations: a key of ``RELATIONS``: the edges of a published file of relations in place of
            the graph's own, each with its relation as a feature.
        pe: a key of ``POSITIONS``: what networks are told of the places of nodes; many graphs only.
        bonds: a key of ``BONDS``: how codes of bonds become features of edges; molecules only.
    """

    direction: str = "stored"
    self_loops: str = "keep"
    features: str = "raw"
    relations: str | None = None
    pe: str | None = None
    bonds: str | None = None

    def __post_init__(self) -> None:
        check_choice("direction", self.direction, DIRECTIONS)
        check_choice("self_loops", self.self_loops, SELF_LOOPS)
        check_choice("features", self.features, FEATURES)
        if self.pe is not None:
            check_choice("pe", self.pe, POSITIONS)
        if self.bonds is not None:
            check_choice("bonds", self.bonds, BONDS)
        if self.relations is None:
            return
        check_choice("relations", self.relations, RELATIONS)
        if self.direction == "undirected":
            raise ValueError(
                "`direction` must be 'stored', 'reversed' or 'rows' beside `relations`, whose file "
                "lists pairs both ways with a relation each; got 'undirected'"
            )

    def to_json(self) -> dict[str, str]:
        """Plain values; what is not set is as it was before there was any such thing."""
        return {key: value for key, value in asdict(self).items() if value is not None}


_EdgeTensors = tuple[Tensor, Tensor | None, Tensor | None]  # edge_index, edge_weight, edge_attr


def process_edges(edges: _EdgeTensors, processing: Processing, num_nodes: int) -> _EdgeTensors:
    """Edges, weights and features of the graph that a model sees."""
    edge_index, weight, attr = edges
    if processing.direction == "reversed":
        edge_index = edge_index.flip(0)
    elif processing.direction == "rows":
        edge_index, weight, attr = _merge(edge_index.flip(0), weight, attr, num_nodes)
    elif processing.direction == "undirected":
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
        weight = None if weight is None else weight.repeat(2)
        attr = None if attr is None else attr.repeat(2, 1)
        edge_index, weight, attr = _merge(edge_index, weight, attr, num_nodes)
    if processing.self_loops == "remove":
        keep = edge_index[0] != edge_index[1]
        weight, attr = (None if part is None else part[keep] for part in (weight, attr))
        edge_index = edge_index[:, keep]
    elif processing.self_loops == "add":
        if attr is not None:  # the order of the edges is the same in both calls
            _, attr = add_remaining_self_loops(edge_index, attr, 0.0, num_nodes)
        edge_index, weight = add_remaining_self_loops(edge_index, weight, num_nodes=num_nodes)
    elif processing.self_loops == "double":
        is_loop = (edge_index[0] == edge_index[1]).to(torch.get_default_dtype())
        weight = (1 + is_loop) if weight is None else weight * (1 + is_loop).to(weight.dtype)
    return edge_index, weight, attr


def _merge(
    edge_index: Tensor, weight: Tensor | None, attr: Tensor | None, num_nodes: int
) -> _EdgeTensors:
    """Each edge once; the larger of two weights, the mean of features."""
    once: Tensor = coalesce(edge_index, num_nodes=num_nodes)
    if weight is not None:
        weight = coalesce(edge_index, weight, num_nodes=num_nodes, reduce="max")[1]
    if attr is not None:
        attr = coalesce(edge_index, attr, num_nodes=num_nodes, reduce="mean")[1]
    return once, weight, attr


def process_features(x: Tensor, kind: str) -> Tensor:
    """Features of the nodes as a key of ``FEATURES`` says."""
    if kind == "row-normalized":
        total = x.sum(-1, keepdim=True)
        return x / torch.where(total == 0, 1.0, total)
    if kind == "standardized":
        return (x - x.mean(0)) / x.std(0, unbiased=False).clamp(min=1e-12)
    return x
