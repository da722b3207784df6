"""A copresheaf network on graphs."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_linear
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.copresheaf.attention import CopresheafAttention
from coopsheaf.zoo.copresheaf.maps import ArcMaps
from coopsheaf.zoo.platonov.layers import FeedForward


class Copresheaf(Network):
    r"""Copresheaf network (Hajij et al., NeurIPS 2025) on graphs: from nodes to nodes.

    .. math:: X_{t+1} = \operatorname{LayerNorm}\bigl(X_t
              + \operatorname{MLP}_t(\operatorname{attention}_t(X_t))\bigr)

    with :class:`~coopsheaf.zoo.copresheaf.CopresheafAttention`. The general frame, a map
    :math:`\rho_{j \to i}` per arc and no stalk at the edge, has the networks of sheaves in it:
    NSD's :math:`\rho = F_i^\top F_j`, and one step of a CSNN with :math:`\rho = T_i^\top S_j`,
    which factors. Here maps depend on both ends and nothing factors.

    Encoder (linear, GELU), dropout and readout are our own choice.

    Args:
        in_channels: size of the input features.
        hidden_channels: number c of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_heads: number of heads; divides ``hidden_channels``.
        maps: ``"fc"``, ``"spd"`` or ``"diagonal"``.
        dropout: dropout probability, of the encoder's output and inside the MLPs.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node. Returns ``(n, out_channels)``, or
        ``(graphs, out_channels)``.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_heads: int = 4,
        maps: str = "fc",
        dropout: float = 0.0,
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        self.num_heads, self.maps = num_heads, maps
        c = hidden_channels
        self.encoder = nn.Linear(in_channels, c)
        self.convs = nn.ModuleList(
            CopresheafAttention(c, num_heads=num_heads, maps=maps) for _ in range(num_layers)
        )
        self.mlps = nn.ModuleList(FeedForward(c, c, c, dropout=dropout) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(c) for _ in range(num_layers))
        self.readout = make_linear(self._end_layers(c, jk, num_layers), out_channels)
        self.reset_parameters()

    def map_learners(self) -> list[nn.Module]:
        return [part for part in self.modules() if isinstance(part, ArcMaps)]

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = F.dropout(F.gelu(self.encoder(x)), self.dropout, self.training)
        for conv, mlp, norm in zip(self.convs, self.mlps, self.norms, strict=True):
            x = norm(x + mlp(conv(x, graph)))
            yield x

    def __repr__(self) -> str:
        return (
            f"Copresheaf({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_heads={self.num_heads}, maps={self.maps!r})"
        )
