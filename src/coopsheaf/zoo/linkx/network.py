"""LINKX: perceptrons of the adjacency matrix and of the features, joined."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.sparse_inputs import apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.zoo.plain.perceptron import Perceptron


class AdjacencyLinear(nn.Module):
    r"""A linear layer whose input is a node's row of the adjacency matrix.

    .. math:: Y = A W + b, \qquad y_i = \sum_{j \to i} w_{ji} W_j + b

    One row :math:`W_j` per node of one graph: the layer knows every node by its place. The matrix
    is never formed; this is one sparse product. The same as PyG's ``SparseLinear``.

    Args:
        num_nodes: number n of nodes.
        out_channels: size of the output.

    Shapes:
        graph of n nodes; edge_weight ``(m,)``. Returns ``(n, out_channels)``.
    """

    def __init__(self, num_nodes: int, out_channels: int) -> None:
        super().__init__()
        self.num_nodes = check_int("num_nodes", num_nodes, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.weight = nn.Parameter(torch.empty(num_nodes, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As a linear layer of n inputs starts."""
        bound = self.num_nodes**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
        return sparse_product(self.weight.unsqueeze(1), graph, blocks).squeeze(1) + self.bias

    def __repr__(self) -> str:
        return f"AdjacencyLinear({self.num_nodes}, {self.out_channels})"


class LINKX(Network):
    r"""LINKX of Lim et al. (NeurIPS 2021).

    .. math::
        H_A = A W_A + b_A, \qquad H_X = X W_X + b_X, \qquad
        Z = \operatorname{MLP}_f\bigl(\operatorname{ReLU}(W [\,H_A \,\Vert\, H_X\,] + b
            + H_A + H_X)\bigr)

    with a row of :math:`W_A` per node, so that it belongs to the graph that it was built for: it is
    not equivariant to renaming nodes, and another graph is refused. Layers of :math:`MLP_f` but the
    last are followed by ReLU, batch norm and dropout
    (:class:`~coopsheaf.zoo.plain.perceptron.Perceptron`). PyG's ``LINKX`` computes the same; the
    authors' code takes rows of A as they are stored, which on undirected graphs is the same.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of H.
        num_layers: number of linear layers of :math:`MLP_f`.
        out_channels: size of the output; ``None`` for what :math:`MLP_f` sees.
        num_nodes: number of nodes of the graph.
        dropout: dropout probability inside :math:`MLP_f`.
        pool: must be ``None``.

    Shapes:
        x ``(num_nodes, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`;
        edge_weight ``(m,)``. Returns ``(num_nodes, out_channels)``.
    """

    takes_edge_weight = True
    exportable = False
    why_not_exportable = "this network knows every node of one graph"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 1,
        out_channels: int | None = None,
        *,
        num_nodes: int,
        dropout: float = 0.5,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        if pool is not None:
            raise ValueError(f"`pool` must be None: LINKX belongs to one graph; got {pool!r}")
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_nodes = check_int("num_nodes", num_nodes, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        width = self._end_layers(hidden_channels)
        self.links = AdjacencyLinear(num_nodes, width)
        self.features = nn.Linear(in_channels, width)
        self.join = nn.Linear(2 * width, width)
        self.readout: nn.Module = nn.Identity()
        if out_channels is not None:
            sizes = [*[width] * num_layers, out_channels]
            self.readout = Perceptron(sizes, norm="batch", dropout=dropout)
        self.reset_parameters()

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        check_rows(x, self.num_nodes, "LINKX")
        links, features = (
            self.links(graph, edge_weight),
            apply_to_inputs(self.features, take_inputs(x)),
        )
        joined = self.join(torch.cat([links, features], dim=1))
        return F.relu(joined + links + features)

    def __repr__(self) -> str:
        return (
            f"LINKX({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_nodes={self.num_nodes})"
        )


def check_rows(x: Tensor, num_nodes: int, name: str) -> None:
    """Refuse another graph than the one that a network was built for, or a part of it."""
    if x.shape[0] != num_nodes:
        raise ValueError(
            f"`x` must have {num_nodes} rows, the nodes of the one graph that this {name} knows: "
            f"it cannot be used on another graph or a part of one; got {x.shape[0]}"
        )
