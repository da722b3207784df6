"""GCNII and GCNII*: graph convolutions that stay different however deep they are."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_linear, make_norm
from coopsheaf.nn.sparse_inputs import apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.propagation import Propagation


class GCNIIConv(nn.Module):
    r"""The convolution of GCNII (Chen et al., ICML 2020).

    .. math:: Y = R \bigl((1 - \beta) I + \beta W\bigr), \qquad R = (1 - \alpha) S H + \alpha H_0

    Node by node :math:`y_i = ((1 - \beta) I + \beta W)^\top ((1 - \alpha) \sum_j S_{ij} h_j +
    \alpha h_{0,i})`. PyG's ``GCN2Conv`` computes the same on graphs without loops; its weights
    start as Glorot & Bengio (2010) draw them, these uniformly within ±1/√channels.

    Args:
        channels: number of channels that come in and go out.
        alpha: share of the initial features.
        beta: share of the weights; the rest is the identity.

    Shapes:
        x ``(n, channels)``; initial ``(n, channels)``; propagate, the matrix S on n nodes. Returns
        ``(n, channels)``.
    """

    rows = 1  # of the weights, in multiples of the channels

    def __init__(self, channels: int, *, alpha: float, beta: float) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.alpha, self.beta = alpha, beta
        self.weight = nn.Parameter(torch.empty(self.rows * channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.channels**-0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, initial: Tensor, propagate: Propagation) -> Tensor:
        mixed = (1 - self.alpha) * propagate(x) + self.alpha * initial
        return torch.addmm(mixed, mixed, self.weight, beta=1 - self.beta, alpha=self.beta)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels}, alpha={self.alpha}, beta={self.beta:.4g})"


class GCNIIStarConv(GCNIIConv):
    r"""The convolution of GCNII*, with weights of its own for the initial features.

    .. math:: Y = (1 - \beta) \bigl((1 - \alpha) S H + \alpha H_0\bigr)
              + \beta\, [\, S H \,\Vert\, H_0 \,]\, W, \qquad W \in \mathbb{R}^{2h \times h}

    As in the authors' code neither half of the product is scaled by α; PyG's
    ``GCN2Conv(shared_weights=False)`` is the same with the factors :math:`1 - \alpha` and
    :math:`\alpha` in its two weights.
    """

    rows = 2

    def forward(self, x: Tensor, initial: Tensor, propagate: Propagation) -> Tensor:
        heard = propagate(x)
        own, other = self.weight.split(self.channels)
        mixed = (1 - self.alpha) * heard + self.alpha * initial
        out = torch.addmm(mixed, heard, own, beta=1 - self.beta, alpha=self.beta)
        return torch.addmm(out, initial, other, alpha=self.beta)


class GCNII(Network):
    r"""GCNII of Chen et al. (ICML 2020).

    .. math::
        H_0 &= \operatorname{ReLU}(X W_{in} + b), \qquad S = D^{-1/2} (A + I) D^{-1/2} \\
        H_{l} &= \operatorname{ReLU}\bigl([(1 - \alpha) S H_{l-1} + \alpha H_0]
                 [(1 - \beta_l) I + \beta_l W_l]\bigr), \qquad \beta_l = \ln(\theta / l + 1)

    for l = 1, ..., L, then a linear layer; dropout before every layer. With α = 1 no edge matters.
    S is :class:`~coopsheaf.zoo.plain.Propagation`, where a stored loop counts beside the
    one that is added, as in the tables on Texas, Wisconsin, Cornell and Film; there the first
    node of a line of the edge list is the receiver, which ``direction`` of the data decides here.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of every layer.
        num_layers: number L of convolutions.
        out_channels: size of the output; ``None`` for the features of the last layer.
        alpha: share α of the initial features in every layer.
        theta: θ, the paper's λ: how much the weights of layer l count.
        dropout: dropout probability of the input and before every layer.
        norm: ``None``, ``"layer"`` or ``"batch"``, before the activation of every convolution.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    takes_edge_weight = True

    conv: ClassVar[type[GCNIIConv]] = GCNIIConv

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 8,
        out_channels: int | None = None,
        *,
        alpha: float = 0.5,
        theta: float = 0.5,
        dropout: float = 0.5,
        norm: str | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` must be between 0 and 1; got {alpha}")
        if not 0 <= theta < math.inf:
            raise ValueError(f"`theta` must be finite and not negative; got {theta}")
        self.alpha, self.theta = alpha, theta
        self.dropout = check_probability("dropout", dropout)
        self.encoder = nn.Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList(
            self.conv(hidden_channels, alpha=alpha, beta=math.log(theta / layer + 1))
            for layer in range(1, num_layers + 1)
        )
        self.norms = nn.ModuleList(make_norm(norm, hidden_channels) for _ in range(num_layers))
        self.readout = make_linear(self._end_layers(hidden_channels), out_channels)
        self.reset_parameters()

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        propagate = Propagation(graph, x, edge_weight)
        inputs = take_inputs(x, self.dropout, self.training)
        x = initial = F.relu(apply_to_inputs(self.encoder, inputs))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.dropout(x, self.dropout, self.training)
            x = F.relu(norm(conv(x, initial, propagate)))
        return F.dropout(x, self.dropout, self.training)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"alpha={self.alpha}, theta={self.theta})"
        )


class GCNIIStar(GCNII):
    """GCNII*: :class:`GCNII` with the convolutions :class:`GCNIIStarConv`."""

    conv = GCNIIStarConv
