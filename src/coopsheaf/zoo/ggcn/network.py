"""GGCN: messages with a sign, from the cosine of two nodes, corrected by their degrees."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.sparse_inputs import SparseInputs, apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import edge_products, sparse_product

LEAST_NORM = 1e-9  # of the product of two norms


class GGCNConv(nn.Module):
    r"""The layer of GGCN (Yan et al., ICDM 2022).

    With :math:`Y = H W + b`, the matrix :math:`S = D^{-1/2} (A + I) D^{-1/2}` and
    :math:`e_{ij} = \cos(y_i, y_j)`, 0 for i = j,

    .. math::
        \rho_{ij} &= e_{ij}\, S_{ij}\,
            \operatorname{softplus}\bigl(a\,(S_{ii} / S_{ij} - 1) + c\bigr) \\
        H' &= \operatorname{softplus}(s)\,
            \bigl(w_0 \max(\rho, 0)\, Y + w_1 \min(\rho, 0)\, Y + w_2\, Y\bigr),
            \qquad w = \operatorname{softmax}(v).

    Node by node :math:`h_i' = \operatorname{softplus}(s) (w_2 y_i + \sum_{j \to i} (w_0
    \rho_{ij}^+ + w_1 \rho_{ij}^-) y_j)`. The cosine is taken on edges alone, one number each; the
    authors' code makes all n² of them. Loops are heard by nobody and count in the degrees
    :math:`d_i = 1 + \sum_{j \to i} w_{ji}`, so that :math:`S_{ii} / S_{ij} = (A + I)_{ii} / A_{ij}
    \cdot \sqrt{d_j / d_i}`. Parallel edges are edges of their own.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        degrees: correct by degrees; without, the softplus is 1.
        scale: s at the start.

    Shapes:
        x ``(n, in_channels)``; edges, what :func:`edge_numbers` makes of the graph. Returns
        ``(n, out_channels)``.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, degrees: bool = True, scale: float = 2.0
    ) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.start = scale
        self.lin = nn.Linear(in_channels, out_channels)
        self.degree_weight = nn.Parameter(torch.empty(2)) if degrees else None  # a, c
        self.mix = nn.Parameter(torch.empty(3))  # v
        self.scale = nn.Parameter(torch.empty(1))  # s
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        with torch.no_grad():
            if self.degree_weight is not None:
                self.degree_weight.copy_(torch.tensor([0.5, 0.0]))
            self.mix.zero_()
            self.scale.fill_(self.start)

    def forward(self, x: Tensor | SparseInputs, graph: Graph, edges: Tensor) -> Tensor:
        y = apply_to_inputs(self.lin, x)
        weight, ratio = edges  # (m,) each
        rho = cosines(y, graph) * weight
        if self.degree_weight is not None:
            slope, offset = self.degree_weight
            rho = rho * F.softplus(slope * ratio + offset)
        added, subtracted, kept = torch.softmax(self.mix, 0)
        rho = torch.where(rho > 0, added * rho, subtracted * rho)
        heard = sparse_product(y.unsqueeze(1), graph, rho.view(-1, 1, 1)).squeeze(1)
        return F.softplus(self.scale) * (heard + kept * y)

    def __repr__(self) -> str:
        return f"GGCNConv({self.in_channels}, {self.out_channels})"


def cosines(y: Tensor, graph: Graph) -> Tensor:
    """The cosine of the features ``(n, c)`` at the two ends of every edge, ``(m,)``."""
    square = y.square().sum(1)
    some = square > 0
    norm = torch.where(some, square, torch.ones_like(square)).sqrt() * some  # (n,)
    product = (norm[graph.target] * norm[graph.source]).clamp(min=LEAST_NORM)
    return edge_products(y.unsqueeze(1), y.unsqueeze(1), graph).view(-1).to(y.dtype) / product


def edge_numbers(graph: Graph, like: Tensor, edge_weight: Tensor | None = None) -> Tensor:
    r"""What a layer has to know of every edge j→i: :math:`S_{ij}` and :math:`S_{ii} / S_{ij} - 1`.

    Both are 0 for loops and for edges of weight 0.

    Args:
        graph: the graph of n nodes and m edges.
        like: a tensor of the wanted dtype.
        edge_weight: ``(m,)``; ones if not given.

    Returns:
        Both, ``(2, m)``.
    """
    if edge_weight is None:  # the same in every pass
        ones = like.new_ones(graph.num_edges)
        return graph.remember(f"ggcn {like.dtype}", lambda graph: _edge_numbers(graph, ones))
    return _edge_numbers(graph, edge_weight)


def _edge_numbers(graph: Graph, weight: Tensor) -> Tensor:
    source, target = graph.source, graph.target
    is_loop = (source == target).to(weight.dtype)
    ones = weight.new_ones(graph.num_nodes)
    degree = ones.index_add(0, target, weight)  # (n,)
    own = ones.index_add(0, target, weight * is_loop)  # (A + I)_ii
    carries = (is_loop == 0) & (weight > 0)
    safe = torch.where(carries, weight, torch.ones_like(weight))
    ratio = own[target] / safe * (degree[source] / degree[target]).sqrt() - 1
    entry = weight * (degree[source] * degree[target]).rsqrt()
    zero = torch.zeros_like(weight)
    return torch.stack([torch.where(carries, entry, zero), torch.where(carries, ratio, zero)])


class GGCN(Network):
    r"""GGCN, "Two Sides of the Same Coin" (Yan et al., ICDM 2022).

    .. math::
        P_0 &= \operatorname{ELU}(X W + b), \qquad H_1 = \operatorname{conv}_1(X) \\
        P_l &= P_{l-1} + g_l \operatorname{dropout}(\operatorname{ELU}(H_l)), \qquad
        H_{l+1} = \operatorname{conv}_{l+1}(P_l)

    for l = 1, ..., L − 1, with :math:`g_1 = 1` and then :math:`g_l = \ln(\eta / (l + 1)^k + 1)`.
    The layers are :class:`GGCNConv`, and the last one gives the outputs.

    The tables on Texas, Wisconsin, Cornell and Film were made with ``direction="rows"`` and
    ``self_loops="keep"`` of the data.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of every layer but the last.
        num_layers: number L of layers.
        out_channels: size of the output; ``None`` for ``hidden_channels`` features.
        dropout: dropout probability of the input and between the layers.
        decay: η, how fast later layers count less; ``None`` lets all count the same, and starts
            with a smaller scale.
        exponent: k.
        degrees: correct messages by the degrees of their ends.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 16,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        dropout: float = 0.5,
        decay: float | None = 1.0,
        exponent: float = 3.0,
        degrees: bool = True,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        for name, value in (("decay", decay), ("exponent", exponent)):
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"`{name}` must be finite and not negative; got {value}")
        self.decay, self.exponent = decay, exponent
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        # With one layer nothing is added up.
        self.encoder = nn.Linear(in_channels, hidden_channels) if num_layers > 1 else None
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), width]
        self.convs = nn.ModuleList(
            GGCNConv(sizes[t], sizes[t + 1], degrees=degrees, scale=0.5 if decay is None else 2.0)
            for t in range(num_layers)
        )
        self.readout = nn.Identity()
        self.reset_parameters()

    def share(self, layer: int) -> float:
        """How much the outputs of a layer, counted from 1, count in what the next one sees."""
        if self.decay is None or layer == 1:
            return 1.0
        return math.log(self.decay / (layer + 1) ** self.exponent + 1)

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        edges = edge_numbers(graph, x, edge_weight)
        inputs = take_inputs(x, self.dropout, self.training)
        h = self.convs[0](inputs, graph, edges)
        if self.encoder is None:
            return h
        total = F.elu(apply_to_inputs(self.encoder, inputs))
        for layer, conv in enumerate(list(self.convs)[1:], start=1):
            h = F.dropout(F.elu(h), self.dropout, self.training)
            total = total + self.share(layer) * h
            h = conv(total, graph, edges)
        return h

    def __repr__(self) -> str:
        return (
            f"GGCN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels})"
        )
