"""The layers of CO-GNN: message passing in which nodes open and close their ends of edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product

# What a node does with its edges, in the order of the codes of :meth:`Actions.codes`.
ACTION_NAMES = ("STANDARD", "LISTEN", "BROADCAST", "ISOLATE")


class Actions(NamedTuple):
    """What every node does in one layer: 1 or 0 for each of its two ends of edges.

    A node that listens takes what comes in; one that broadcasts is heard by those who listen.
    """

    listens: Tensor  # (n,)
    broadcasts: Tensor  # (n,)

    def codes(self) -> Tensor:
        """The action of every node, ``(n,)``: an index into :data:`ACTION_NAMES`."""
        return (2 * (1 - self.listens) + (1 - self.broadcasts)).round().long()


class CooperativeConv(nn.Module):
    r"""A layer of message passing over weighted edges, as CO-GNN uses it.

    The weight of an edge u→v is :math:`w_{uv} = b_u a_v`: 1 where u broadcasts and v listens, else
    0 (times :math:`e_{uv}`, the user's own edge weight, if there is one). It factors,

    .. math:: \sum_{u \to v} e_{uv} w_{uv} x_u = a_v \sum_{u \to v} e_{uv} b_u x_u,

    so that a weighted sum is two node-wise products around one sparse product, and no tensor has
    the size edges × channels. Without actions every edge is open.

    Args:
        in_channels: size of the input features.
        out_channels: size of the output features.

    Shapes:
        x ``(n, in_channels)``; graph of n nodes and m edges; listens, broadcasts ``(n,)``;
        edge_weight ``(m,)``. Returns ``(n, out_channels)``.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        raise NotImplementedError

    def forward(
        self,
        x: Tensor,
        graph: Graph,
        actions: Actions | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels})"


class SumConv(CooperativeConv):
    r"""Concatenate a node with the sum of what it hears (Finkelshtein et al., ICML 2024).

    .. math:: y_v = W \Bigl[x_v \,\Big\|\, \sum_{u \to v} w_{uv} x_u\Bigr] + b

    with W of size out × 2·in. As a matrix, :math:`Y = X W_1^\top + \tilde A X W_2^\top + b` with
    :math:`W = [W_1 \| W_2]` and :math:`\tilde A = \operatorname{diag}(a) A \operatorname{diag}(b)`.
    Nothing is concatenated here: the neighbours' half of W acts before or after the sum, wherever
    rows are shorter. Arguments and shapes are those of :class:`CooperativeConv`.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = nn.Linear(2 * in_channels, out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(
        self,
        x: Tensor,
        graph: Graph,
        actions: Actions | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        own, others = self.lin.weight.split(self.in_channels, dim=1)  # (out, in) each
        if self.out_channels < self.in_channels:
            heard = self._hear(F.linear(x, others), graph, actions, edge_weight)
        else:
            heard = F.linear(self._hear(x, graph, actions, edge_weight), others)
        return F.linear(x, own, self.lin.bias) + heard

    def _hear(
        self, x: Tensor, graph: Graph, actions: Actions | None, edge_weight: Tensor | None
    ) -> Tensor:
        return gated_sum(x, graph, actions, edge_weight)


class MeanConv(SumConv):
    r"""Concatenate a node with the mean of what it hears (Finkelshtein et al., ICML 2024).

    .. math:: y_v = W \Bigl[x_v \,\Big\|\, \frac{1}{|N(v)|} \sum_{u \to v} w_{uv} x_u\Bigr] + b

    :math:`|N(v)|` counts all edges into v, also those that are closed or light: a node that hears
    one of four neighbours hears a quarter of it. Arguments and shapes are those of
    :class:`CooperativeConv`.
    """

    def _hear(
        self, x: Tensor, graph: Graph, actions: Actions | None, edge_weight: Tensor | None
    ) -> Tensor:
        total = gated_sum(x, graph, actions, edge_weight)
        return total / graph.in_degree.clamp(min=1).to(total.dtype).unsqueeze(1)


class GCNConv(CooperativeConv):
    r"""A graph convolution normalised by the open edges (Kipf & Welling, ICLR 2017).

    .. math::
        y_v = W \Bigl(\frac{x_v}{d_v} + \sum_{u \to v} \frac{w_{uv}}{\sqrt{d_u d_v}} x_u\Bigr) + b,
        \qquad d_v = 1 + a_v \sum_{u \to v} b_u

    which is :math:`D^{-1/2} (I + \tilde A) D^{-1/2} X W^\top + b`. The degree costs a sparse
    product of one column. The loop of weight 1 that every node gets comes on top of loops in the
    list, which are edges like others; PyG's ``gcn_norm`` would keep those and add none. Arguments
    and shapes are those of :class:`CooperativeConv`.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = nn.Linear(in_channels, out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(
        self,
        x: Tensor,
        graph: Graph,
        actions: Actions | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        if actions is None and edge_weight is None:
            degree = 1 + graph.in_degree.to(x.dtype).unsqueeze(1)  # (n, 1)
        else:
            degree = 1 + gated_sum(x.new_ones(x.shape[0], 1), graph, actions, edge_weight)
        root = degree.rsqrt()
        narrow = self.out_channels < self.in_channels
        sent = root * (F.linear(x, self.lin.weight) if narrow else x)
        heard = root * (sent + gated_sum(sent, graph, actions, edge_weight))
        return heard + self.lin.bias if narrow else self.lin(heard)


class GINConv(CooperativeConv):
    r"""The isomorphism layer on open edges (Xu et al., ICLR 2019).

    .. math:: y_v = \operatorname{MLP}\Bigl((1 + \varepsilon) x_v + \sum_{u \to v} w_{uv} x_u\Bigr)

    with a learned ε that starts at 0 and an MLP of two linear layers with ReLU between them, as
    wide inside as its input. Arguments and shapes are those of :class:`CooperativeConv`.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.epsilon = nn.Parameter(torch.empty(1))
        self.lin_in = nn.Linear(in_channels, in_channels)
        self.lin_out = nn.Linear(in_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.epsilon)
        self.lin_in.reset_parameters()
        self.lin_out.reset_parameters()

    def forward(
        self,
        x: Tensor,
        graph: Graph,
        actions: Actions | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        heard = gated_sum(x, graph, actions, edge_weight)
        return self.lin_out(F.relu(self.lin_in((1 + self.epsilon) * x + heard)))


class LinearConv(CooperativeConv):
    r"""No messages at all: :math:`y_v = W x_v + b`. For action networks."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = nn.Linear(in_channels, out_channels)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(
        self,
        x: Tensor,
        graph: Graph,
        actions: Actions | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        return self.lin(x)


Kind = Callable[[int, int], CooperativeConv]

ENVIRONMENTS: dict[str, Kind] = {"mean": MeanConv, "sum": SumConv, "gcn": GCNConv, "gin": GINConv}
ACTION_LAYERS: dict[str, Kind] = {**ENVIRONMENTS, "linear": LinearConv}


def gated_sum(
    x: Tensor, graph: Graph, actions: Actions | None = None, edge_weight: Tensor | None = None
) -> Tensor:
    r"""What every node hears: :math:`a_v \sum_{u \to v} e_{uv} b_u x_u`.

    Args:
        x: ``(n, c)``.
        graph: the graph of n nodes and m edges.
        actions: a (listens) and b (broadcasts); all ones if not given.
        edge_weight: e, ``(m,)``; ones if not given.

    Returns:
        ``(n, c)``.
    """
    sent = x if actions is None else actions.broadcasts.unsqueeze(1) * x
    blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
    heard = sparse_product(sent.unsqueeze(1), graph, blocks).squeeze(1)
    return heard if actions is None else actions.listens.unsqueeze(1) * heard
