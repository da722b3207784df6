"""PyG's basic networks behind the calls that all networks here answer.

Their last layer already maps to the outputs, so the readout is nothing (graph outputs are pooled
node outputs).
"""

from __future__ import annotations

import torch.nn.functional as F
import torch_geometric.nn
from torch import Tensor, nn

from coopsheaf.checks import check_probability
from coopsheaf.graph import Graph
from coopsheaf.models.network import Network


class PlainMLP(Network):
    """Input dropout, then PyG's ``MLP``: features only, no edges."""

    sees_edges = False

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.5,
        act: str = "relu",
        norm: str | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.network = torch_geometric.nn.MLP(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            out_channels=out_channels,
            dropout=check_probability("dropout", dropout),
            act=act,
            norm=norm,
        )
        self.readout = nn.Identity()

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        return self.network(F.dropout(x, self.input_dropout, self.training))


class PlainGCN(Network):
    """Input dropout, then PyG's ``GCN``: convolutions with activation and dropout between them."""

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        input_dropout: float = 0.0,
        dropout: float = 0.5,
        act: str = "relu",
        norm: str | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.network = torch_geometric.nn.GCN(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            out_channels=out_channels,
            dropout=check_probability("dropout", dropout),
            act=act,
            norm=norm,
        )
        self.readout = nn.Identity()

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        x = F.dropout(x, self.input_dropout, self.training)
        return self.network(x, graph.edge_index, edge_weight=edge_weight)
