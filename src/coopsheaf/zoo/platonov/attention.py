"""Attention along edges, head by head, without a message per edge and channel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.utils import softmax

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import edge_products, sparse_product


def edge_softmax(scores: Tensor, graph: Graph) -> Tensor:
    r"""Softmax over the edges into each target, for every head by itself.

    .. math:: a_e = e^{s_e} \Big/ \sum_{e' \to i} e^{s_{e'}}, \qquad e = (j \to i)

    Args:
        scores: ``(m, heads)``.
        graph: the graph of m edges.

    Returns:
        ``(m, heads)``; the weights into a node sum to one, and there are none where no edge ends.
    """
    return softmax(scores, graph.target, num_nodes=graph.num_nodes)


def edge_scores(at_target: Tensor, at_source: Tensor, graph: Graph) -> Tensor:
    r"""The dot products :math:`s_e = \langle k_i, q_j \rangle` of every edge e = (j→i) and head.

    Args:
        at_target: ``(n, heads, c)``, k.
        at_source: ``(n, heads, c)``, q.
        graph: the graph of n nodes and m edges.

    Returns:
        ``(m, heads)``.
    """
    heads = zip(at_target.split(1, 1), at_source.split(1, 1), strict=True)
    return torch.cat([edge_products(k, q, graph).flatten(1) for k, q in heads], dim=1)


def attend(values: Tensor, weights: Tensor, graph: Graph) -> Tensor:
    r"""The weighted sums :math:`y_i = \sum_{e = (j \to i)} a_e v_j` of every head.

    One sparse product per head: nothing of size edges × channels is made, forward or backward.

    Args:
        values: ``(n, heads, c)``, v.
        weights: ``(m, heads)``, a.
        graph: the graph of n nodes and m edges.

    Returns:
        ``(n, heads, c)``; zeros at nodes where no edge ends.
    """
    heads = zip(values.split(1, 1), weights.split(1, 1), strict=True)
    return torch.cat([sparse_product(v, graph, a.unsqueeze(-1)) for v, a in heads], dim=1)
