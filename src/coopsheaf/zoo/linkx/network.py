"""LINKX: perceptrons of the adjacency matrix and of the features, joined."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.sparse_inputs import apply_to_inputs, take_inputs
from coopsheaf.nn.structure import AdjacencyLinear, check_rows
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.perceptron import Perceptron


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
