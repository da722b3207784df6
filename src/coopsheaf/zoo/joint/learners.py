"""What moves maps along with features, and what learns them from products of features."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import edge_products
from coopsheaf.zoo.nsd.edge_maps import at_reverse


def pulls(maps: Tensor, x: Tensor, graph: Graph) -> Tensor:
    r"""How the maps at the ends of edges are pulled by what the ends differ in.

    .. math:: G_e = (F_e x_i - F_{\bar e} x_j)\, x_i^\top
                  = F_e (x_i x_i^\top) - F_{\bar e} (x_j x_i^\top), \qquad e = j \to i

    the derivative of :math:`\tfrac12 \|F_e x_i - F_{\bar e} x_j\|^2` by :math:`F_e`. Computed as on
    the right: nothing has the size edges × stalk × channels. It does not change where x becomes xQ
    with an orthogonal Q.

    Args:
        maps: ``(m, d, d)``, at the targets.
        x: ``(n, d, h)``.
        graph: n nodes, m edges, every edge both ways.

    Returns:
        ``(m, d, d)``.
    """
    own = (x @ x.mT).index_select(0, graph.target)  # x_i x_iᵀ
    other = edge_products(x, x, graph).mT  # x_j x_iᵀ
    found = maps @ own.to(maps.dtype) - at_reverse(maps, graph) @ other.to(maps.dtype)
    # Maps are kept in single precision at least: autocast multiplies in half.
    return found.float() if found.dtype in (torch.bfloat16, torch.float16) else found


class MapMixing(nn.Module):
    r"""Maps between two matrices of weights, :math:`F'_e = V_1 F_e V_2`; both start as identities.

    Args:
        stalk_dim: dimension d of the stalks.

    Shapes:
        maps ``(m, d, d)``; returns ``(m, d, d)``.
    """

    def __init__(self, stalk_dim: int) -> None:
        super().__init__()
        d = check_int("stalk_dim", stalk_dim, minimum=1)
        # A Linear keeps its weight transposed: that of `left` is V₁, that of `right` V₂ᵀ.
        self.left = nn.Linear(d, d, bias=False)
        self.right = nn.Linear(d, d, bias=False)

    def reset_parameters(self) -> None:
        nn.init.eye_(self.left.weight)
        nn.init.eye_(self.right.weight)

    def forward(self, maps: Tensor) -> Tensor:
        return self.left.weight @ self.right(maps)


class InvariantLearner(nn.Module):
    r"""Numbers for every map from a d×d matrix: :math:`z = B_2 \operatorname{ELU}(B_1 g + b)`.

    g are the d² entries of the matrix. How many channels there are, it does not see.

    Args:
        stalk_dim: dimension d of the stalks.
        out_channels: numbers per map.

    Shapes:
        matrices ``(m, d, d)``; returns ``(m, out_channels)``.
    """

    def __init__(self, stalk_dim: int, out_channels: int) -> None:
        super().__init__()
        width = check_int("stalk_dim", stalk_dim, minimum=1) ** 2
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, out_channels)

    def reset_parameters(self) -> None:
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, matrices: Tensor) -> Tensor:
        z = self.second(F.elu(self.first(matrices.flatten(1))))
        return z.float() if z.dtype in (torch.bfloat16, torch.float16) else z
