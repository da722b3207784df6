"""MixHop, as its authors have it and as the LINKX benchmark has it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_linear, reset_children
from coopsheaf.nn.sparse_inputs import SparseInputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.mixhop.conv import MixHopConv, split_width
from coopsheaf.zoo.pairnorm.network import graph_mean
from coopsheaf.zoo.plain.propagation import Propagation


class CentredNorm(nn.Module):
    r"""Batch norm without a scale, with the statistics at hand in training and evaluation alike.

    .. math:: y_i = (x_i - \bar x) / \sqrt{\operatorname{var}(x) + 10^{-3}} + \beta

    Means and variances are those of the nodes of a graph.

    Args:
        channels: number of channels.

    Shapes:
        x ``(n, channels)``; batch ``(n,)``, the graph of each node. Returns ``(n, channels)``.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, batch: Tensor | None = None) -> Tensor:
        centred = x - graph_mean(x, batch)
        return centred * (graph_mean(centred.square(), batch) + 1e-3).rsqrt() + self.bias

    def __repr__(self) -> str:
        return f"CentredNorm({self.bias.numel()})"


class MixHop(Network):
    r"""MixHop of Abu-El-Haija et al. (ICML 2019), with its learned mixture of outputs.

    .. math::
        H_0 = \operatorname{rows}(\operatorname{dropout}(X)), \qquad
        H_{t+1} = \operatorname{ReLU}(\operatorname{norm}(\operatorname{conv}_t(H_t))), \qquad
        Z = \sum_p \operatorname{softmax}(q)_p\, Z_p, \quad
        [Z_0 \Vert \dots \Vert Z_P] = \operatorname{conv}_L(\operatorname{dropout}(H_{L-1}))

    with rows divided by their norms, :class:`MixHopConv` without biases, and the norm of the
    authors' code: no scale, and the statistics of the graph at hand, also in evaluation. The
    penalty :math:`c \cdot \operatorname{mean}(q^2)` of the authors is a weight decay of q here,
    which for Adam and SGD is the same; weight decay spares the biases of the norms.

    Args:
        in_channels: size of the input features.
        hidden_channels: width of a layer, all powers together.
        num_layers: number L of convolutions.
        out_channels: size of the output; ``None`` for ``hidden_channels``.
        num_hops: highest power P.
        input_dropout: dropout probability of the input features.
        dropout: dropout probability before every other convolution.
        mix_penalty: c.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``; batch ``(n,)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_hops: int = 2,
        input_dropout: float = 0.7,
        dropout: float = 0.9,
        mix_penalty: float = 1e-3,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_hops = check_int("num_hops", num_hops, minimum=0)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        if not 0 <= mix_penalty < float("inf"):
            raise ValueError(f"`mix_penalty` must be finite and not negative; got {mix_penalty}")
        self.mix_penalty = mix_penalty
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        inner = num_layers - 1
        blocks = [split_width(hidden_channels, num_hops)] * inner + [[width] * (num_hops + 1)]
        sizes = [in_channels, *[hidden_channels] * inner]
        self.convs = nn.ModuleList(
            MixHopConv(size, widths) for size, widths in zip(sizes, blocks, strict=True)
        )
        self.norms = nn.ModuleList(CentredNorm(hidden_channels) for _ in range(inner))
        self.mixture = nn.Parameter(torch.empty(num_hops + 1))
        self.readout = nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        reset_children(self)
        nn.init.zeros_(self.mixture)

    def parameter_groups(self) -> list[dict[str, Any]]:
        biases = [parameter for norm in self.norms for parameter in norm.parameters()]
        # The derivative of c·mean(q²) is that of a weight decay of 2c / (P + 1).
        decay = 2 * self.mix_penalty / (self.num_hops + 1)
        groups: list[dict[str, Any]] = [{"params": [self.mixture], "weight_decay": decay}]
        return [*groups, {"params": biases, "weight_decay": 0.0}] if biases else groups

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
        inputs = take_inputs(x, self.input_dropout, self.training)
        if isinstance(inputs, SparseInputs):
            inputs = inputs.normalize()
        else:
            inputs = F.normalize(inputs, dim=1)
        *inner, last = self.convs
        for conv, norm in zip(inner, self.norms, strict=True):
            x = F.relu(norm(conv(inputs, propagate), batch))
            inputs = F.dropout(x, self.dropout, self.training)
        powers = last(inputs, propagate).unflatten(1, (self.num_hops + 1, -1))  # (n, P + 1, out)
        return (self.mixture.softmax(0).unsqueeze(1) * powers).sum(1)

    def __repr__(self) -> str:
        return (
            f"MixHop({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_hops={self.num_hops})"
        )


class MixHopLINKX(Network):
    r"""MixHop in the form of the LINKX benchmark (Lim et al., NeurIPS 2021).

    .. math:: H_{t+1} = \operatorname{dropout}(\operatorname{ReLU}(\operatorname{BN}(
              \operatorname{conv}_t(H_t)))), \qquad Z = \operatorname{conv}_L(H_{L-1}) W + b

    with :class:`MixHopConv` with biases. Its rows of the tables on Penn94 are this network.

    Args:
        in_channels: size of the input features.
        hidden_channels: width of every power; a layer is P + 1 times as wide.
        num_layers: number L of convolutions.
        out_channels: size of the output; ``None`` for the features of the last convolution.
        num_hops: highest power P.
        dropout: dropout probability between the convolutions.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_hops: int = 2,
        dropout: float = 0.5,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_hops = check_int("num_hops", num_hops, minimum=0)
        self.dropout = check_probability("dropout", dropout)
        powers, last = num_hops + 1, hidden_channels if out_channels is None else out_channels
        wide, inner = powers * hidden_channels, num_layers - 1
        sizes, blocks = [in_channels, *[wide] * inner], [*[hidden_channels] * inner, last]
        self.convs = nn.ModuleList(
            MixHopConv(size, [block] * powers, bias=True)
            for size, block in zip(sizes, blocks, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(wide) for _ in range(inner))
        self.readout = make_linear(self._end_layers(powers * last), out_channels)
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
        inputs = take_inputs(x)
        *inner, last = self.convs
        for conv, norm in zip(inner, self.norms, strict=True):
            x = F.relu(norm(conv(inputs, propagate)))
            inputs = F.dropout(x, self.dropout, self.training)
        return last(inputs, propagate)

    def __repr__(self) -> str:
        return (
            f"MixHopLINKX({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"num_hops={self.num_hops})"
        )
