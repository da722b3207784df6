"""The convolution of MixHop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.nn.sparse_inputs import SparseInputs, apply_to_inputs
from coopsheaf.zoo.plain.propagation import Propagation


class MixHopConv(nn.Module):
    r"""Powers of the adjacency matrix side by side (Abu-El-Haija et al., ICML 2019).

    .. math::
        Y = [X W_0 + b_0, \; S (X W_1 + b_1), \; \dots, \; S^P (X W_P + b_P)], \qquad
        S = D^{-1/2} (A + I) D^{-1/2}

    The weights act first, where rows are shorter; hop by hop, all powers that are left are
    multiplied together. PyG's ``MixHopConv`` is the same but for one bias, which it adds after the
    powers; the original has none, the LINKX benchmark has these.

    Args:
        in_channels: size of the input.
        widths: sizes of the blocks of the output, power by power.
        bias: learn b.

    Shapes:
        x ``(n, in_channels)``; propagate, the matrix S on n nodes. Returns ``(n, sum(widths))``.
    """

    def __init__(self, in_channels: int, widths: Sequence[int], *, bias: bool = False) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.widths = tuple(widths)
        for width in self.widths:
            check_int("width of a power", width, minimum=1)
        self.has_bias = bias
        self.lin = nn.Linear(in_channels, sum(self.widths), bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As linear layers with biases start; without, each as Glorot & Bengio (2010) draw it."""
        self.lin.reset_parameters()
        if not self.has_bias:
            for weight in self.lin.weight.split(self.widths):
                nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor | SparseInputs, propagate: Propagation) -> Tensor:
        rest, done = apply_to_inputs(self.lin, x), []
        for power, width in enumerate(self.widths):
            rest = propagate(rest) if power else rest
            done.append(rest[:, :width])
            rest = rest[:, width:]
        return torch.cat(done, dim=1)

    def __repr__(self) -> str:
        return f"MixHopConv({self.in_channels}, {list(self.widths)})"


def split_width(total: int, num_hops: int) -> list[int]:
    """A width cut into blocks for the powers 0, ..., P: equal ones, the rest to the last."""
    each = round(total / (num_hops + 1))
    widths = [*[each] * num_hops, total - each * num_hops]
    if min(widths) < 1:
        raise ValueError(f"`hidden_channels` must be enough for {num_hops + 1} powers; got {total}")
    return widths
