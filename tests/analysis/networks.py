"""Networks and graphs that the tests of analysis share."""

from __future__ import annotations

from typing import Any

import torch
from graphs import bidirected
from models.test_all import build
from torch import Tensor, nn

from coopsheaf import CSNN
from coopsheaf.models.network import Network
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.conn.network import ConnNSD
from coopsheaf.zoo.plain.network import PlainGCN

__all__ = ["Diffusion", "binary_tree", "build", "csnn", "gcn", "ring", "with_known_maps"]


def csnn(seed: int = 0, **options: Any) -> CSNN:
    """A small CSNN of 5 inputs and 3 outputs, in double precision."""
    torch.manual_seed(seed)
    options = {"num_layers": 2, "stalk_dim": 2, "out_channels": 3} | options
    return CSNN(5, 4, **options).double().eval()


def gcn(num_layers: int, act: str = "tanh", out_channels: int = 3) -> PlainGCN:
    """A GCN of 5 inputs; tanh has no unit that rests."""
    torch.manual_seed(0)
    return PlainGCN(5, 6, num_layers, out_channels, act=act).double().eval()


def ring(n: int) -> Tensor:
    nodes = torch.arange(n)
    return bidirected(torch.stack([nodes, (nodes + 1) % n]))


def binary_tree(depth: int) -> Tensor:
    """Edges from child to parent; the children of node k are 2k + 1 and 2k + 2."""
    child = torch.arange(1, 2 ** (depth + 1) - 1)
    return torch.stack([child, (child - 1) // 2])


class Average(nn.Module):
    """X ↦ (1 - a) X + a Â X for a graph that is regular with loops."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        total = x + torch.zeros_like(x).index_add(0, graph.target, x[graph.source])
        return (1 - self.share) * x + self.share * total / (graph.in_degree + 1).unsqueeze(1)


class Diffusion(Network):
    """Averages alone: what they do to an eigenvector is known."""

    def __init__(self, channels: int, num_layers: int, share: float) -> None:
        super().__init__(channels, channels)
        self.layers = nn.ModuleList(Average(share) for _ in range(num_layers))
        self.readout = nn.Linear(channels, channels)

    def embed(self, x: Tensor, graph: Graph, **inputs: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, graph)
        return x


def with_known_maps(model: Network, x: Tensor, edges: Tensor) -> Network:
    """A network whose maps are found from features before training has those of x from now on.

    Derivatives take them for constants, and so must whoever compares with differences.
    """
    if isinstance(model, ConnNSD):
        found = model.transports(x, Graph(edges, len(x)))
        model.transports = lambda *_: found
    return model
