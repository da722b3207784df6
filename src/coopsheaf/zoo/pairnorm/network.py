"""PairNorm and the deep GCN with it: features are centred and their mean norm is kept."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.sparse_inputs import SparseInputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.propagation import Propagation

MODES = {
    "pn": "centred, then divided by the root of the mean squared norm",
    "si": "centred, then every row divided by its own norm",
    "scs": "every row divided by its own norm, then the mean of the rows as they were taken off",
}


class PairNorm(nn.Module):
    r"""PairNorm of Zhao & Akoglu (ICLR 2020), without parameters.

    .. math::
        \text{pn:}\quad y_i = s\, c_i \Big/ \sqrt{\epsilon + \tfrac1n \textstyle\sum_j \|c_j\|^2},
        \qquad \text{si:}\quad y_i = s\, c_i / \sqrt{\epsilon + \|c_i\|^2}, \qquad
        \text{scs:}\quad y_i = s\, x_i / \sqrt{\epsilon + \|x_i\|^2} - \bar x

    with :math:`c_i = x_i - \bar x` and the mean :math:`\bar x` over the nodes of a graph. PyG's
    ``PairNorm`` has pn with :math:`\epsilon = 10^{-5}` by default, si with ε beside the norm, and
    no scs.

    Args:
        scale: s.
        mode: ``"pn"``, ``"si"`` or ``"scs"``.
        eps: ε.

    Shapes:
        x ``(n, c)``; batch ``(n,)``, the graph of each node. Returns ``(n, c)``.
    """

    def __init__(self, scale: float = 1.0, mode: str = "pn", eps: float = 1e-6) -> None:
        super().__init__()
        check_choice("mode", mode, MODES)
        self.scale, self.mode, self.eps = scale, mode, eps

    def forward(self, x: Tensor, batch: Tensor | None = None) -> Tensor:
        mean = graph_mean(x, batch)
        if self.mode == "scs":
            return self.scale * self._unit(x, x) - mean
        centred = x - mean
        if self.mode == "si":
            return self.scale * self._unit(centred, centred)
        size = graph_mean(centred.square().sum(1, keepdim=True), batch)
        return self.scale * centred * (self.eps + size).rsqrt()

    def _unit(self, x: Tensor, of: Tensor) -> Tensor:
        return x * (self.eps + of.square().sum(1, keepdim=True)).rsqrt()

    def __repr__(self) -> str:
        return f"PairNorm(scale={self.scale}, mode={self.mode!r})"


def graph_mean(x: Tensor, batch: Tensor | None) -> Tensor:
    """The mean over the nodes of each node's graph, ``(n, c)``, or ``(1, c)`` of one graph."""
    if batch is None:
        return x.mean(0, keepdim=True)
    # No more graphs than nodes: nobody has to be asked how many there are.
    total = x.new_zeros(x.shape).index_add(0, batch, x)
    count = x.new_zeros(x.shape[0]).index_add(0, batch, x.new_ones(x.shape[0]))
    return (total / count.clamp(min=1).unsqueeze(1)).index_select(0, batch)


class PropagatedLinear(nn.Linear):
    """A graph convolution S x W + b; weights and bias start uniformly within ±1/√out."""

    def reset_parameters(self) -> None:
        bound = self.out_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(  # type: ignore[override]
        self, x: Tensor | SparseInputs, propagate: Propagation
    ) -> Tensor:
        return propagate(x @ self.weight.mT) + self.bias


class PairNormGCN(Network):
    r"""A deep GCN with PairNorm after every layer but the last (Zhao & Akoglu, ICLR 2020).

    .. math:: H_{t+1} = \operatorname{ReLU}(\operatorname{PN}(S \operatorname{dropout}(H_t) W_t
              + b_t)), \qquad Z = S \operatorname{dropout}(H_{L-1}) W_L + b_L

    with :math:`S = D^{-1/2} (A + I) D^{-1/2}` (:class:`~coopsheaf.zoo.plain.Propagation`), as in
    the tables on small graphs; the authors recommend :math:`D^{-1} (A + I)`. In a batch every graph
    is centred by itself.

    Args:
        in_channels: size of the input features.
        hidden_channels: size between the layers.
        num_layers: number L of layers.
        out_channels: size of the output; ``None`` for ``hidden_channels``.
        scale: s of the norm.
        mode: of the norm: ``"pn"``, ``"si"`` or ``"scs"``.
        dropout: dropout probability before every layer.
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
        scale: float = 1.0,
        mode: str = "pn",
        dropout: float = 0.6,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), width]
        self.convs = nn.ModuleList(
            PropagatedLinear(before, after) for before, after in pairwise(sizes)
        )
        self.norm = PairNorm(scale, mode)
        self.readout = nn.Identity()
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
        *inner, last = self.convs
        for conv in inner:
            x = F.relu(self.norm(conv(inputs, propagate), batch))
            inputs = F.dropout(x, self.dropout, self.training)
        return last(inputs, propagate)

    def __repr__(self) -> str:
        return (
            f"PairNormGCN({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"mode={self.norm.mode!r})"
        )
