"""Geom-GCN: every relation between neighbours has weights of its own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.sparse_inputs import SparseInputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product


class GeomGCNConv(nn.Module):
    r"""The layer of Geom-GCN (Pei et al., ICLR 2020).

    With a weight :math:`a_e^r` of every edge in every division r = 1, ..., R, and the node itself
    as division R + 1,

    .. math::
        m_i^r = \frac{1}{\sqrt{d_i}} \sum_{e = (j \to i)} a_e^r \frac{W_r^\top h_j}{\sqrt{d_j}},
        \qquad m_i^{R+1} = \frac{1}{d_i} W_{R+1}^\top h_i,

    that is :math:`M^r = D^{-1/2} A_r D^{-1/2} H W_r`. The divisions stand side by side, or their
    mean is taken. :math:`d_i` is one more than the number of edges into i, of all divisions; loops
    of the graph are left out, since the node itself is a division. There is no bias.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels of a division.
        divisions: number R of divisions of edges.
        mean: take the mean over the divisions; otherwise they are side by side.

    Shapes:
        x ``(n, in_channels)``; edge_attr ``(m, divisions)``, without loops. Returns
        ``(n, (divisions + 1) * out_channels)``, or ``(n, out_channels)`` with the mean.
    """

    def __init__(
        self, in_channels: int, out_channels: int, divisions: int, *, mean: bool = False
    ) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.divisions = check_int("divisions", divisions, minimum=1)
        self.mean = mean
        self.weight = nn.Parameter(torch.empty(divisions + 1, in_channels, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every division as Glorot & Bengio (2010) draw a matrix."""
        for weight in self.weight:
            nn.init.xavier_uniform_(weight)

    def forward(
        self, x: Tensor | SparseInputs, graph: Graph, edge_attr: Tensor, root: Tensor
    ) -> Tensor:
        """``root`` is :math:`1 / \\sqrt{d}`, ``(n, 1)``."""
        # All divisions in one product: (n, in) @ (in, (R + 1)·out)
        wide = self.weight.transpose(0, 1).flatten(1)
        sent = (root * (x @ wide)).unflatten(1, (self.divisions + 1, self.out_channels))
        *others, own = sent.unbind(1)  # (n, out) each
        heard = [
            sparse_product(part.unsqueeze(1), graph, edge_attr[:, r].view(-1, 1, 1)).squeeze(1)
            for r, part in enumerate(others)
        ]
        heard.append(own)
        if self.mean:
            return root * torch.stack(heard).mean(0)
        return root * torch.cat(heard, 1)

    def __repr__(self) -> str:
        return f"GeomGCNConv({self.in_channels}, {self.out_channels}, divisions={self.divisions})"


class GeomGCN(Network):
    r"""Geom-GCN of Pei et al. (ICLR 2020).

    .. math:: H_{t+1} = \operatorname{ReLU}\bigl(\operatorname{concat}_r
              M^r(\operatorname{dropout}(H_t))\bigr)

    with the layers of :class:`GeomGCNConv`; the last one takes the mean over the divisions and has
    no activation.

    The relations are features of edges, one column for each: what ``data.relations`` of Texas,
    Wisconsin, Cornell and Film gives (neighbours in the graph and in an embedding of it, in one of
    four directions each: eight columns, nine divisions with the node itself). The authors' virtual
    nodes come down to these sums. Without features of edges there are two divisions, the neighbours
    and the node.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a division in every layer but the last.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for ``hidden_channels`` features.
        dropout: dropout probability of what enters a layer.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        edge_channels: number of features of an edge, its weights in the divisions.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_attr
        ``(m, edge_channels)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a
        pool.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        dropout: float = 0.5,
        pool: str | None = None,
        edge_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        self.edge_channels = check_int("edge_channels", edge_channels, minimum=0)
        divisions = max(1, edge_channels)
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        wide = (divisions + 1) * hidden_channels
        sizes = [in_channels, *[wide] * (num_layers - 1)]
        self.convs = nn.ModuleList(
            GeomGCNConv(
                size, width if t == num_layers - 1 else hidden_channels, divisions,
                mean=t == num_layers - 1,
            )
            for t, size in enumerate(sizes)
        )  # fmt: skip
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
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        if edge_attr is None:
            edge_attr = x.new_ones(graph.num_edges, 1)
        between = (graph.source != graph.target).to(x.dtype)  # (m,)
        edge_attr = edge_attr * between.unsqueeze(1)
        degree = x.new_ones(graph.num_nodes).index_add(0, graph.target, between)
        root = degree.rsqrt().unsqueeze(1)
        inputs = take_inputs(x, self.dropout, self.training)
        *inner, last = self.convs
        for conv in inner:
            x = F.relu(conv(inputs, graph, edge_attr, root))
            inputs = F.dropout(x, self.dropout, self.training)
        return last(inputs, graph, edge_attr, root)

    def __repr__(self) -> str:
        return (
            f"GeomGCN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, edge_channels={self.edge_channels})"
        )
