"""What a network learns of every node of one graph by itself: its row of the adjacency matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product

STRUCTURES = {"rows": "a node's row of the adjacency matrix"}


class AdjacencyLinear(nn.Module):
    r"""A linear layer whose input is a node's row of the adjacency matrix.

    .. math:: Y = A W + b, \qquad y_i = \sum_{j \to i} w_{ji} W_j + b

    One row :math:`W_j` per node of one graph: the layer knows every node by its place. The matrix
    is never formed; this is one sparse product. The same as PyG's ``SparseLinear``.

    Args:
        num_nodes: number n of nodes.
        out_channels: size of the output.
        bias: learn b.

    Shapes:
        graph of n nodes; edge_weight ``(m,)``. Returns ``(n, out_channels)``.
    """

    def __init__(self, num_nodes: int, out_channels: int, *, bias: bool = True) -> None:
        super().__init__()
        self.num_nodes = check_int("num_nodes", num_nodes, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.weight = nn.Parameter(torch.empty(num_nodes, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As a linear layer of n inputs starts."""
        bound = self.num_nodes**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
        y = sparse_product(self.weight.unsqueeze(1), graph, blocks).squeeze(1)
        return y if self.bias is None else y + self.bias

    def __repr__(self) -> str:
        bias = "" if self.bias is not None else ", bias=False"
        return f"AdjacencyLinear({self.num_nodes}, {self.out_channels}{bias})"


def check_rows(x: Tensor, num_nodes: int, name: str) -> None:
    """Refuse another graph than the one that a network was built for, or a part of it."""
    if x.shape[0] != num_nodes:
        raise ValueError(
            f"`x` must have {num_nodes} rows, the nodes of the one graph that this {name} knows: "
            f"it cannot be used on another graph or a part of one; got {x.shape[0]}"
        )


def make_rows(
    structure: str | None, num_nodes: int | None, width: int, *, pool: str | None
) -> AdjacencyLinear | None:
    """What an encoder with a bias of its own learns of rows of the adjacency matrix, if anything.

    Args:
        structure: ``"rows"``, or ``None`` for nothing.
        num_nodes: number of nodes of the one graph that is known.
        width: size of the output.
        pool: that of the network, which must have none.
    """
    if structure is None:
        if num_nodes is not None:
            raise ValueError(f"`num_nodes` goes with `structure`; got {num_nodes} alone")
        return None
    check_choice("structure", structure, STRUCTURES)
    if num_nodes is None:
        raise ValueError(
            f"`num_nodes` must be given beside `structure` {structure!r}: the number of nodes "
            "of the one graph that it knows"
        )
    if pool is not None:
        raise ValueError(
            f"`structure` must be None for whole graphs: {structure!r} knows every node of one "
            "graph"
        )
    return AdjacencyLinear(num_nodes, width, bias=False)
