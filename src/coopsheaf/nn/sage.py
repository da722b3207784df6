"""GraphSAGE with mean aggregation by one sparse product."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.graph import Graph, as_graph
from coopsheaf.kernels.sparse import sparse_product


class SAGEConv(nn.Module):
    r"""The mean GraphSAGE layer of Hamilton et al. (2017).

    .. math:: y_i = W_l \operatorname{mean}_{j \to i} p(x_j) + b + W_r x_i

    with p the identity, or :math:`p(x) = \operatorname{relu}(W x + b')` with ``project=True``. The
    same function and parameter names as PyG's ``SAGEConv``, which gathers one message per edge;
    here W_l is applied before or after the mean, wherever rows are shorter.

    Args:
        in_channels: size of the input features.
        out_channels: size of the output features.
        project: apply a linear layer and ReLU to what neighbours send.

    Shapes:
        x ``(n, in_channels)``, edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; returns
        ``(n, out_channels)``.
    """

    def __init__(self, in_channels: int, out_channels: int, *, project: bool = False) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = nn.Linear(in_channels, in_channels) if project else None
        self.lin_l = nn.Linear(in_channels, out_channels)
        self.lin_r = nn.Linear(in_channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        for linear in self.children():
            linear.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        graph = as_graph(edge_index, x.shape[0])
        sent = x if self.lin is None else F.relu(self.lin(x))
        if self.out_channels < self.in_channels:
            heard = _mean(F.linear(sent, self.lin_l.weight), graph) + self.lin_l.bias
        else:
            heard = self.lin_l(_mean(sent, graph))
        return heard + self.lin_r(x)

    def __repr__(self) -> str:
        project = ", project=True" if self.lin is not None else ""
        return f"SAGEConv({self.in_channels}, {self.out_channels}{project})"


class SAGE(nn.Module):
    """A stack of :class:`SAGEConv` layers, with norm, activation and dropout between them.

    The same function and parameter names as PyG's ``GraphSAGE``.

    Args:
        in_channels: size of the input features.
        hidden_channels: size between the layers.
        num_layers: number of layers, at least 1.
        out_channels: size of the output features.
        norm: makes the norm of a size, called once per gap between layers.
        act: the activation.
        dropout: the dropout probability.
        project: see :class:`SAGEConv`.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        norm: Callable[[int], nn.Module] | None = None,
        act: Callable[[Tensor], Tensor] = F.relu,
        dropout: float = 0.0,
        project: bool = False,
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(SAGEConv(a, b, project=project) for a, b in pairwise(sizes))
        self.norms = nn.ModuleList(
            nn.Identity() if norm is None else norm(size) for size in sizes[1:-1]
        )
        self.act = act
        self.dropout = dropout

    def reset_parameters(self) -> None:
        for module in (*self.convs, *self.norms):
            if not isinstance(module, nn.Identity):
                module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        graph = as_graph(edge_index, x.shape[0])
        for conv, norm in zip(self.convs, self.norms, strict=False):
            x = self.act(norm(conv(x, graph)))
            x = F.dropout(x, self.dropout, self.training)
        return self.convs[-1](x, graph)


def _mean(x: Tensor, graph: Graph) -> Tensor:
    total = sparse_product(x.unsqueeze(1), graph).squeeze(1)  # (n, c)
    return total / graph.in_degree.clamp(min=1).to(total.dtype).unsqueeze(-1)
