"""What learns numbers for every edge from the features of its two ends."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph

# What a sparse learner sees of the stalk coordinates.
SPARSE_READINGS = {
    "summed": "their sum at each end, as the option was meant",
    "released": "sums that mix coordinates and ends, as the authors' code computes",
}


class EdgeLearner(nn.Module):
    r"""Numbers for every edge from the features of its two ends, the target's first.

    .. math:: z_e = V [x_i \,\Vert\, x_j] = V_1 x_i + V_2 x_j, \qquad e = j \to i

    computed as on the right: two products at the nodes, then ``out_channels`` numbers per edge are
    gathered, never the features.

    Args:
        in_channels: size of the node features.
        out_channels: numbers per edge.

    Shapes:
        x ``(n, in_channels)``; returns ``(m, out_channels)``.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.lin = nn.Linear(2 * in_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        at_target, at_source = self.lin.weight.split(self.in_channels, dim=1)
        z = F.linear(x, at_target).index_select(0, graph.target)
        z = z + F.linear(x, at_source).index_select(0, graph.source)
        # Maps are kept in single precision at least: half is not orthogonal enough.
        return z.float() if z.dtype in (torch.bfloat16, torch.float16) else z

    def __repr__(self) -> str:
        return f"EdgeLearner({self.in_channels}, {self.out_channels})"


class MixedLearner(EdgeLearner):
    r"""Numbers for every edge as the sparse learner of the authors' code computes them.

    There the 2d blocks :math:`x_i^1, \dots, x_i^d, x_j^1, \dots, x_j^d` of h numbers are read as d
    rows of two blocks before the rows are summed. So the even and the odd blocks are summed, of
    both ends together:

    .. math:: z_e = V [\textstyle\sum_{k\ \text{even}} c_k \,\Vert\, \sum_{k\ \text{odd}} c_k],
              \qquad c = (x_i^1, \dots, x_i^d, x_j^1, \dots, x_j^d),\ k = 0, \dots, 2d - 1

    which for even d is symmetric in the two ends. The same parameters as of an
    :class:`EdgeLearner` of the summed coordinates, and for d = 1 the same numbers.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        out_channels: numbers per edge.

    Shapes:
        x ``(n, d, h)``; returns ``(m, out_channels)``.
    """

    def __init__(self, channels: int, stalk_dim: int, out_channels: int) -> None:
        super().__init__(channels, out_channels)
        self.odd = stalk_dim % 2 == 1

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        even, odd = x[:, 0::2].sum(1), x[:, 1::2].sum(1)  # (n, h)
        at_target = torch.cat([even, odd], 1)
        # After d blocks of the target, those of the source begin with an even or an odd number.
        at_source = torch.cat([odd, even], 1) if self.odd else at_target
        z = F.linear(at_target, self.lin.weight).index_select(0, graph.target)
        z = z + F.linear(at_source, self.lin.weight).index_select(0, graph.source)
        return z.float() if z.dtype in (torch.bfloat16, torch.float16) else z
