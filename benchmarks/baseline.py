"""CSNN the ordinary way: what ``train_step.py`` measures the library against.

Written from the equations with PyTorch and PyTorch Geometric alone, and frozen: nothing here is
imported from the parts of ``coopsheaf`` that are meant to be fast, so that a change to those cannot
change the yardstick. One message per edge, GraphSAGE learners from PyG, ``F.dropout``,
``torch.linalg.householder_product``, an ordinary residual. Parameters have the names of
``coopsheaf.CSNN``, so that one can be loaded into the other; with the same parameters and without
dropout both compute the same function.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GraphSAGE
from torch_geometric.utils import degree


class MLP(nn.Module):
    """Linear, ReLU, Linear."""

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(in_channels, hidden_channels),
            nn.ReLU(),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layers(x)


class MapLearner(nn.Module):
    """A learner, and its output as scales and Householder matrices.

    Args:
        width: size of the input.
        stalk_dim: d.
        learner: ``{"hidden": g}`` for an MLP; with ``"layers"`` a projected GraphSAGE.
    """

    def __init__(self, width: int, stalk_dim: int, learner: dict[str, int]) -> None:
        super().__init__()
        self.stalk_dim = stalk_dim
        out = stalk_dim * (stalk_dim - 1) // 2 + 1
        self.learner: nn.Module
        if "layers" in learner:
            sizes = (width, learner["hidden"], learner["layers"], out)
            self.learner = GraphSAGE(*sizes, act="gelu", dropout=0.2, project=True)
        else:
            self.learner = MLP(width, learner["hidden"], out)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        raw, d = self.learner(x, edge_index), self.stalk_dim
        scale = raw[:, -1].clamp(max=math.log(10.0)).exp()
        rows, columns = torch.tril_indices(d, d, -1)
        vectors = torch.eye(d).expand(x.shape[0], d, d).clone()
        vectors[:, rows, columns] = torch.tanh(raw[:, :-1])
        factors = 2 / vectors.square().sum(-2)  # (n, d)
        return scale, torch.linalg.householder_product(vectors, factors)


class Conv(nn.Module):
    """The diffusion of a layer: the paper's two Laplacians, one message per edge."""

    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        learner: dict[str, int],
        *,
        left: bool = True,
        right: bool = True,
    ) -> None:
        super().__init__()
        width = channels * stalk_dim
        self.source_learner = MapLearner(width, stalk_dim, learner)
        self.target_learner = MapLearner(width, stalk_dim, learner)
        self.left = nn.Linear(stalk_dim, stalk_dim, bias=False) if left else None
        self.right = nn.Linear(channels, channels, bias=False) if right else None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        n, features = x.shape[0], x.flatten(1)
        s, q = self.source_learner(features, edge_index)
        t, r = self.target_learner(features, edge_index)
        if self.left is not None:
            x = self.left.weight @ x
        if self.right is not None:
            x = self.right(x)
        source_maps, target_maps = s[:, None, None] * q, t[:, None, None] * r
        out_degree = degree(edge_index[0], n, x.dtype) * s.square()
        in_degree = degree(edge_index[1], n, x.dtype) * t.square()
        x = self.pass_messages(x, edge_index, out_degree, source_maps, target_maps)
        return self.pass_messages(x, edge_index, in_degree, source_maps, target_maps)

    def pass_messages(
        self,
        x: Tensor,
        edge_index: Tensor,
        weight: Tensor,
        source_maps: Tensor,
        target_maps: Tensor,
    ) -> Tensor:
        source, target = edge_index
        root = (weight + 1).rsqrt()[:, None, None]
        sent = ((root * source_maps) @ x)[source]  # (m, d, h)
        received = (root * target_maps)[target].mT @ sent
        own = (weight / (weight + 1))[:, None, None] * x
        # The diagonal term rides on the messages, where there are any.
        count = degree(target, x.shape[0], x.dtype)[:, None, None]
        message = (own / count.clamp(min=1))[target] - received
        start = torch.where(count == 0, own, 0.0)
        return start.index_add(0, target, message)


class BaselineCSNN(nn.Module):
    """The network; arguments as those of ``coopsheaf.CSNN`` where they have the same name."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        stalk_dim: int,
        learner: dict[str, int],
        left_weights: bool = True,
        right_weights: bool = True,
        norm: str | None = None,
        input_dropout: float = 0.2,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.shape = (stalk_dim, hidden_channels)
        self.input_dropout, self.dropout = input_dropout, dropout
        width = stalk_dim * hidden_channels
        self.encoder = nn.Linear(in_channels, width)
        self.convs = nn.ModuleList(
            Conv(hidden_channels, stalk_dim, learner, left=left_weights, right=right_weights)
            for _ in range(num_layers)
        )
        self.epsilons = nn.ParameterList(torch.zeros(stalk_dim, 1) for _ in range(num_layers))
        self.norms = nn.ModuleList(
            nn.Identity() if norm is None else nn.LayerNorm(width) for _ in range(num_layers)
        )
        self.readout = nn.Sequential(nn.Linear(width, out_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.input_dropout, self.training)
        x = F.gelu(self.encoder(x)).unflatten(1, self.shape)
        for conv, epsilon, norm in zip(self.convs, self.epsilons, self.norms, strict=True):
            x = F.dropout(x, self.dropout, self.training)
            y = F.dropout(conv(x, edge_index), self.dropout, self.training)
            x = (1 + torch.tanh(epsilon)) * x - F.gelu(y)
            x = norm(x.flatten(1)).view_as(x)
        return self.readout(x.flatten(1))

    def load(self, state: dict[str, Any]) -> BaselineCSNN:
        """Take over the parameters of a ``coopsheaf.CSNN``."""
        self.load_state_dict(state)
        return self
