"""CSNNs whose maps are written down by hand, for the tests of actions and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from analysis.networks import csnn
from graphs import random_orthogonal
from torch import Tensor, nn

from coopsheaf import CSNN, ConformalMaps, Graph
from coopsheaf.sheaves.operator import Operator


class FixedMaps(nn.Module):
    """In the place of a map learner: the same maps whatever the features are."""

    learner = None

    def __init__(self, maps: ConformalMaps) -> None:
        super().__init__()
        self.given = maps

    def forward(self, x: Tensor, graph: Graph, raw: Tensor | None = None) -> ConformalMaps:
        return self.given


def maps_of(scale: Sequence[float] | Tensor, d: int = 2, seed: int = 0) -> ConformalMaps:
    """Maps with these scales and random orthogonal parts."""
    scale = torch.as_tensor(scale, dtype=torch.float64)
    return ConformalMaps(scale, random_orthogonal(len(scale), d, seed))


def fixed(layers: Sequence[tuple[ConformalMaps, ConformalMaps]], **options: Any) -> CSNN:
    """A CSNN of 5 inputs that diffuses with the given (source, target) maps, layer by layer."""
    d = layers[0][0].orthogonal.shape[-1]
    model = csnn(num_layers=len(layers), stalk_dim=d, **options)
    for conv, (source, target) in zip(model.convs, layers, strict=True):
        conv.source_learner, conv.target_learner = FixedMaps(source), FixedMaps(target)
    return model


def scaled(
    source: Sequence[float] | Tensor, target: Sequence[float] | Tensor, **options: Any
) -> CSNN:
    """One layer with these scales."""
    return fixed([(maps_of(source, seed=1), maps_of(target, seed=2))], **options)


def operator_of(
    model: CSNN, graph: Graph, layer: int = 0, weight: Tensor | None = None
) -> Operator:
    """The operator with which a layer of fixed maps diffuses."""
    conv = model.convs[layer]
    return conv.diffusion(graph, conv.source_learner.given, conv.target_learner.given, weight)


def blocks(matrix: Tensor, n: int) -> Tensor:
    """``(n, n, d, d)``: block (i, j) is what carries x_j to i."""
    d = matrix.shape[0] // n
    return matrix.reshape(n, d, n, d).transpose(1, 2)


def block_norms(matrix: Tensor, n: int) -> Tensor:
    """Spectral norms of the blocks, ``(n, n)``."""
    return torch.linalg.matrix_norm(blocks(matrix, n), ord=2)
