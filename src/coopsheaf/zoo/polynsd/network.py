"""Polynomial Neural Sheaf Diffusion."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.polynomials import Chebyshev, norm_bound
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps
from coopsheaf.zoo.nsd.network import NSD


class PolyNSD(NSD):
    r"""Polynomial Neural Sheaf Diffusion (Borgi, Silvestri & Liò, ICML 2026).

    Neural Sheaf Diffusion whose layers apply a polynomial of their Laplacian, K hops at once:

    .. math::
        X_{t+1} &= (1 + \tanh \varepsilon_t) \odot X_t - \sigma(Z_t), \\
        Z_t &= \sum_{k=0}^{K} \operatorname{softmax}(\eta)_k\, T_k(\hat\Delta_t) X_t
               + \alpha \bigl(X_t - \Delta_t X_t / \lambda\bigr), \qquad
        \hat\Delta = \tfrac{2}{\lambda} \Delta - I,

    with Chebyshev's polynomials :math:`T_k`, one learned η (equal shares at the start) and one α
    (0 at the start) for all layers. λ bounds the spectrum: 2 for the augmented Laplacian, whatever
    the maps are, else :func:`~coopsheaf.sheaves.norm_bound`, which depends on the maps of the step;
    so :math:`\|\sum_k \operatorname{softmax}(\eta)_k T_k(\hat\Delta)\| \le 1`. The sum with α is
    one polynomial, since :math:`X - \Delta X / \lambda = (T_0 - T_1)(\hat\Delta) X / 2`: a layer
    takes K sparse products.

    As the published implementations that we know of, which create :math:`W_1` and :math:`W_2` and
    never apply them: both are off here and can be switched on. There λ of a Laplacian that is not
    normalised is twice the largest degree, which general maps exceed.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_hops: degree K of the polynomial, at least 1.
        maps: ``"diagonal"``, ``"orthogonal"``, ``"general"`` or ``"identity"``.
        left_weights: learn :math:`W_1`, before the polynomial.
        right_weights: learn :math:`W_2`, likewise.
        dropout: dropout probability of Z, of what the learners see, and of the encoder's output.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; batch ``(n,)``, the graph of each node; edge_weight ``(m,)``,
        the same both ways. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    @arguments_of(NSD)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_hops: int = 15,
        maps: str | EdgeMaps = "diagonal",
        left_weights: bool = False,
        right_weights: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            maps=maps,
            left_weights=left_weights,
            right_weights=right_weights,
            **settings,
        )
        self.num_hops = check_int("num_hops", num_hops, minimum=1)
        self.eta = nn.Parameter(torch.empty(num_hops + 1))
        self.alpha = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew; every hop has the same share, and α and every ε are 0."""
        super().reset_parameters()
        if hasattr(self, "eta"):  # else the base is being built
            nn.init.zeros_(self.eta)
            nn.init.zeros_(self.alpha)

    def coefficients(self) -> Tensor:
        """What multiplies each Chebyshev polynomial, ``(K + 1,)``."""
        first, second, *others = torch.softmax(self.eta, dim=0).unbind()
        return torch.stack([first + self.alpha / 2, second - self.alpha / 2, *others])

    def filter(self, laplacian: Operator) -> Operator:
        """The polynomial of a Laplacian."""
        if cast(NSDConv, self.convs[0]).normalization == "augmented":
            return Chebyshev(laplacian, self.coefficients(), (0.0, 2.0))
        bound = norm_bound(laplacian)
        # Without edges there is nothing to bound, and any interval will do.
        return Chebyshev(laplacian, self.coefficients(), (0.0, bound.clamp(min=1e-6)))

    def diffuse(self, t: int, x: Tensor, graph: Graph, laplacian: Operator) -> Tensor:
        y = self.convs[t](x, graph, laplacian=self.filter(laplacian))
        return F.dropout(y, self.dropout, self.training)
