"""Linear layers with ReLU, norm and dropout between them, as parts of other networks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_probability
from coopsheaf.models.network import make_norm
from coopsheaf.nn.sparse_inputs import SparseInputs, apply_to_inputs


class Perceptron(nn.Module):
    r"""A multi-layer perceptron with the norm after the activation.

    .. math:: H_{t+1} = \operatorname{dropout}(\operatorname{norm}(\operatorname{ReLU}(
              H_t W_t + b_t))), \qquad Z = H_{L-1} W_L + b_L

    Args:
        sizes: of the input, between the layers, and of the output.
        norm: ``None``, ``"layer"`` or ``"batch"``.
        dropout: dropout probability between the layers.

    Shapes:
        x ``(n, sizes[0])``; returns ``(n, sizes[-1])``.
    """

    def __init__(
        self, sizes: Sequence[int], *, norm: str | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = check_probability("dropout", dropout)
        self.lins = nn.ModuleList(nn.Linear(before, after) for before, after in pairwise(sizes))
        self.norms = nn.ModuleList(make_norm(norm, size) for size in sizes[1:-1])

    def forward(self, x: Tensor | SparseInputs) -> Tensor:
        for lin, norm in zip(self.lins, self.norms, strict=False):
            hidden = norm(F.relu(apply_to_inputs(lin, x)))
            x = F.dropout(hidden, self.dropout, self.training)
        return apply_to_inputs(self.lins[-1], x)

    def __repr__(self) -> str:
        sizes = [self.lins[0].in_features, *(lin.out_features for lin in self.lins)]
        return f"Perceptron({sizes})"
