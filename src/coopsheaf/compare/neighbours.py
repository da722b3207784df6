"""What trees see of a graph: columns, degrees, and means of the neighbours' columns.

No target is looked at. Neighbours may be of any part of the split, as they are for networks: what
is known of a node at prediction is its columns and its edges.
"""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.nn.edge_features import edge_means
from coopsheaf.sheaves.graph import CSR, Graph
from coopsheaf.sheaves.kernels.sparse import neighbour_sums


def plain_columns(dataset: NodeDataset | GraphDataset) -> Tensor:
    """``(n, F)``: the columns of a node; of a graph the means over its nodes."""
    if isinstance(dataset, NodeDataset):
        return dataset.x
    return torch.stack([_mean_row(graph.x) for graph in dataset.graphs])


def neighbour_columns(dataset: NodeDataset | GraphDataset) -> Tensor:
    r"""The columns, then the degrees and means of the neighbours' columns, ``(n, more)``:

    .. math::
        z_i = \bigl[\, x_i,\; |N_i|,\; \tfrac{1}{w_i} \sum_{j \in N_i} w_{ji} x_j \,\bigr],
        \qquad w_i = \sum_{j \in N_i} w_{ji}.

    On a graph with directed edges there are two such pairs, over the sources of edges into a node
    and over the targets of those out of it. A self-loop makes no neighbour, parallel edges count
    one by one, and where there is no neighbour the mean is missing (NaN). Where edges have weights,
    means are weighted and :math:`w_i` is a column more; where edges have features, their means at
    the node are, too. Rows of graphs are means over their nodes, with the numbers of nodes and
    edges.
    """
    if isinstance(dataset, NodeDataset):
        both = dataset.reciprocated < 1
        return _of_nodes(
            dataset.x, dataset.edge_index, dataset.edge_weight, dataset.edge_attr, both
        )
    graphs = dataset.graphs
    both = any(_is_directed(graph.edge_index, graph.num_nodes) for graph in graphs)
    rows = []
    for graph in graphs:
        attr = graph.edge_attr if dataset.edge_channels else None
        nodes = _of_nodes(graph.x, graph.edge_index, None, attr, both)
        size = nodes.new_tensor([graph.x.shape[0], graph.edge_index.shape[1]])
        rows.append(torch.cat([nodes.nanmean(0), size]))
    return torch.stack(rows)


def _of_nodes(
    x: Tensor, edge_index: Tensor, weight: Tensor | None, attr: Tensor | None, both: bool
) -> Tensor:
    """As :func:`neighbour_columns`; ``both`` says whether the two directions differ."""
    others = edge_index[0] != edge_index[1]
    graph = Graph(edge_index[:, others], x.shape[0])
    weight = None if weight is None else weight[others]
    sides = (graph.by_target, graph.by_source) if both else (graph.by_target,)
    found = [x, *(part for csr in sides for part in _of_side(x, csr, weight))]
    if attr is not None:
        means = edge_means(Graph(edge_index, x.shape[0]), attr)
        found += [means.into, means.out] if both else [means.into]
    return torch.cat(found, dim=1)


def _of_side(x: Tensor, csr: CSR, weight: Tensor | None) -> list[Tensor]:
    """Degrees ``(n, 1)``, sums of weights if there are any, and means ``(n, F)``."""
    degree = csr.ptr.diff().to(x.dtype).unsqueeze(1)
    mass = degree
    if weight is not None:
        weight = weight.to(x.dtype)
        mass = neighbour_sums(x.new_ones(x.shape[0], 1), csr, weight)
    means = neighbour_sums(x, csr, weight) / mass
    means[(mass == 0).squeeze(1)] = torch.nan
    return [degree, *([] if weight is None else [mass]), means]


def _mean_row(x: Tensor) -> Tensor:
    return x.mean(0) if x.shape[0] else torch.full((x.shape[1],), torch.nan)


def _is_directed(edge_index: Tensor, num_nodes: int) -> bool:
    """Whether some edge between different nodes has no reverse."""
    source, target = edge_index
    forward, backward = source * num_nodes + target, target * num_nodes + source
    return not bool(torch.isin(forward, backward).all())
