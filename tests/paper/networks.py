"""Networks for the tests of the paper's statements, and what influences what in them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from coopsheaf import CSNN


class Table(nn.Module):
    """A learner that ignores its input: what it returns is a parameter."""

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(num_nodes, width))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.raw


def set_maps(learner: nn.Module, scale: Tensor, parameters: Tensor) -> None:
    """Give the nodes of a table behind a rectified scale these scales."""
    with torch.no_grad():
        learner.learner.raw.copy_(torch.cat([parameters, scale[:, None] - 1], dim=1))


def bare_csnn(n: int, d: int, h: int, num_layers: int, **options: object) -> CSNN:
    """A CSNN that is its layers alone: identity encoder and readout, maps from tables."""
    options = {"orthogonal": "cayley", "scale": "rectified", "act": None} | options
    table = Table(n, d * (d - 1) // 2 + 1)
    model = CSNN(d * h, h, num_layers, d * h, stalk_dim=d, learner=table, **options).double()
    model.encoder, model.readout = nn.Identity(), nn.Identity()
    return model


def seeded(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Build a module with its own random numbers; double precision, no dropout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build().double().eval()


def influence(model: nn.Module, x: Tensor, edge_index: Tensor, node: int = 0) -> Tensor:
    """max |∂ out[node] / ∂ x[u]| for every u, ``(n,)``."""
    x = x.clone().requires_grad_()
    out = model(x, edge_index)[node]
    rows = [torch.autograd.grad(value, x, retain_graph=True)[0] for value in out]
    return torch.stack(rows).abs().amax((0, 2))


def network(learner: object, num_layers: int, **options: object) -> nn.Module:
    """A CSNN of 3 input and 2 output channels, learners twice as steep as they start."""

    def build() -> CSNN:
        return CSNN(3, 2, num_layers, 2, stalk_dim=2, learner=learner, **options)

    model = seeded(build, seed=11)
    with torch.no_grad():
        for conv in model.convs:
            for maps in (conv.source_learner, conv.target_learner):
                for parameter in maps.parameters():
                    parameter *= 2
    return model
