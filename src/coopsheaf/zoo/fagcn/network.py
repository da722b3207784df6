"""FAGCN: every edge has a gate between -1 and 1, made of the features at its ends."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_linear
from coopsheaf.nn.sparse_inputs import apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.propagation import Propagation


class FAGCNConv(nn.Module):
    r"""The convolution of FAGCN (Bo et al., AAAI 2021).

    .. math::
        h_i' = \epsilon\, h_i^0 + \sum_{j \to i} \operatorname{dropout}\Bigl(
               \frac{g_{ij}}{\sqrt{d_i d_j}}\Bigr) h_j, \qquad
        g_{ij} = \tanh\bigl(w^\top [\, h_i \,\Vert\, h_j \,] + b\bigr)

    with d the in-degree, at least 1. That is :math:`H' = \epsilon H_0 + (G \circ D^{-1/2} A
    D^{-1/2}) H`. The gate is a sum of a number at either end, so that beside the features there is
    only one number per edge. PyG's ``FAConv`` has no b and by default adds loops.

    Args:
        channels: number of channels that come in and go out.
        eps: share ε of the initial features.
        dropout: dropout probability of the coefficients.

    Shapes:
        x ``(n, channels)``; initial ``(n, channels)``; propagate, :math:`D^{-1/2} A D^{-1/2}` on n
        nodes. Returns ``(n, channels)``.
    """

    def __init__(self, channels: int, *, eps: float = 0.3, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.eps, self.dropout = eps, check_probability("dropout", dropout)
        self.gate = nn.Linear(2 * channels, 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        draw(self.gate)

    def gates(self, x: Tensor, graph: Graph) -> Tensor:
        """g of every edge, ``(m,)``."""
        at_target, at_source = self.gate.weight.view(2, -1)  # (channels,) each
        target, source = x @ at_target + self.gate.bias, x @ at_source  # (n,)
        return (target.index_select(0, graph.target) + source.index_select(0, graph.source)).tanh()

    def forward(self, x: Tensor, initial: Tensor, propagate: Propagation) -> Tensor:
        # Dropout of the gate is dropout of the coefficient: the degrees are a factor.
        gates = F.dropout(self.gates(x, propagate.graph), self.dropout, self.training)
        return self.eps * initial + propagate.with_weights(x, gates)

    def __repr__(self) -> str:
        return f"FAGCNConv({self.channels}, eps={self.eps})"


class FAGCN(Network):
    r"""FAGCN of Bo et al. (AAAI 2021).

    .. math:: H_0 = \operatorname{dropout}(\operatorname{ReLU}(\operatorname{dropout}(X) W + b)),
              \qquad H_{l+1} = \epsilon H_0 + (G_l \circ D^{-1/2} A D^{-1/2}) H_l

    and a linear layer, with the gates of :class:`FAGCNConv`. Neither loops nor weights between the
    layers are added. The authors run it on undirected graphs without loops, with
    features divided by their row sums.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of every layer.
        num_layers: number of convolutions.
        out_channels: size of the output; ``None`` for the features of the last layer.
        eps: share ε of the initial features in every layer.
        dropout: dropout probability of the input, of what follows it and of the coefficients.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        eps: float = 0.3,
        dropout: float = 0.5,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        if not math.isfinite(eps):
            raise ValueError(f"`eps` must be a finite number; got {eps}")
        self.eps, self.dropout = eps, check_probability("dropout", dropout)
        self.encoder = nn.Linear(in_channels, hidden_channels)
        self.convs = nn.ModuleList(
            FAGCNConv(hidden_channels, eps=eps, dropout=dropout) for _ in range(num_layers)
        )
        self.readout = make_linear(self._end_layers(hidden_channels), out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for linear in (self.encoder, self.readout):
            if isinstance(linear, nn.Linear):
                draw(linear)

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        propagate = Propagation(graph, x, loops=False, least=1.0)
        inputs = take_inputs(x, self.dropout, self.training)
        x = F.relu(apply_to_inputs(self.encoder, inputs))
        x = initial = F.dropout(x, self.dropout, self.training)
        for conv in self.convs:
            x = conv(x, initial, propagate)
        return x

    def __repr__(self) -> str:
        return (
            f"FAGCN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, eps={self.eps})"
        )


def draw(linear: nn.Linear) -> None:
    """Parameters as the authors start them: Xavier-normal weights with gain 1.414."""
    linear.reset_parameters()
    nn.init.xavier_normal_(linear.weight, gain=1.414)
