"""PyG's basic models behind the calls that all models here answer."""

from __future__ import annotations

from typing import Any

import torch_geometric.nn
from torch import Tensor, nn

from coopsheaf.checks import check_choice
from coopsheaf.graph import Graph
from coopsheaf.models.csnn import POOLS


class BasicModel(nn.Module):
    """One of PyG's ``GCN`` or ``MLP``, for nodes or, with a pool, for graphs.

    Args:
        kind: ``"GCN"`` or ``"MLP"``.
        in_channels, hidden_channels, num_layers, out_channels: as PyG has them.
        dropout, act, norm: as PyG has them.
        pool: ``None``, ``"mean"``, ``"sum"`` or ``"max"``.
    """

    def __init__(
        self,
        kind: str,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        dropout: float = 0.0,
        act: str = "relu",
        norm: str | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.pool = None if pool is None else check_choice("pool", pool, POOLS)
        make: Any = check_choice(
            "kind", kind, {name: getattr(torch_geometric.nn, name) for name in ("GCN", "MLP")}
        )
        self.network = make(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            out_channels=out_channels,
            dropout=dropout,
            act=act,
            norm=norm,
        )

    def reset_parameters(self) -> None:
        self.network.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        if self.kind == "MLP":
            x = self.network(x)
        else:
            edges = edge_index.edge_index if isinstance(edge_index, Graph) else edge_index
            x = self.network(x, edges, edge_weight=edge_weight)
        return x if self.pool is None else self.pool(x, batch, batch_size)

    def __repr__(self) -> str:
        return f"BasicModel({self.network!r})"
