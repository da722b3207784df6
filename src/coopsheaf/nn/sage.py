"""GraphSAGE with mean aggregation by one sparse product.

A layer is written down twice:

* as its equation, in two steps, what a node tells (:func:`_tell`) and what it makes of the mean of
  what it hears (:func:`_hear`). :func:`compose_convs` puts a sparse product between them, for
  whatever needs to look inside; :mod:`coopsheaf.scale` puts sums over one chunk of nodes after the
  other;
* by hand, forward and back (:mod:`coopsheaf.nn.sage_steps`), for training on the CPU: fewer
  passes, and nothing kept but x and p(x). An autograd function calls it in eager mode, a custom
  operator where code is compiled to be run. Where compiled kernels are installed, these do it
  (:func:`coopsheaf.nn.fused.sage_level`), activation and dropout included.

Either takes several layers of the same sizes at once, as the two learners of a CSNN layer are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.nn import fused
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.products import are_halved
from coopsheaf.nn.sage_steps import by_layer, convs_operator, go_back, go_forward
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.kernels import is_fused, on_cuda
from coopsheaf.sheaves.kernels.eager import (
    differentiable_backward,
    is_plain_compiled,
    is_plain_eager,
)
from coopsheaf.sheaves.kernels.sparse import sparse_product

Act = Callable[[Tensor], Tensor]


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
        return apply_convs([self], x, as_graph(edge_index, x.shape[0])).squeeze(0)

    def tell(self, x: Tensor) -> Tensor:
        """What each node tells its neighbours, ``(n, told)``: the smaller of the two sizes wide."""
        left, _, _, *projection = _parameters(self)
        return _tell(x, left, projection)

    def hear(self, mean: Tensor, x: Tensor) -> Tensor:
        """The output of nodes with features x that were told ``mean`` on average."""
        left, bias, right, *_ = _parameters(self)
        return _hear(mean, x, left, bias, right)

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

    def start_at_zero(self) -> None:
        """Let the output be zero, whatever x is."""
        last = _conv(self, -1)
        for parameter in (*last.lin_l.parameters(), *last.lin_r.parameters()):
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        graph = as_graph(edge_index, x.shape[0])
        for conv, norm in zip(self.convs, self.norms, strict=False):
            x = self.act(norm(conv(x, graph)))
            x = dropout(x, self.dropout, self.training)
        return self.convs[-1](x, graph)


def apply_stacks(stacks: Sequence[SAGE], x: Tensor, graph: Graph) -> Tensor:
    """What stacks of the same sizes make of one input, one above the other: ``(stacks, n, out)``.

    The same as calling them one by one, in fewer passes.
    """
    first = stacks[0]
    p = first.dropout if first.training else 0.0
    for level in range(len(first.convs) - 1):
        convs, norms = [_conv(s, level) for s in stacks], [s.norms[level] for s in stacks]
        if all(type(norm) is nn.Identity for norm in norms):
            x = apply_convs(convs, x, graph, first.act, p)
        else:
            x = apply_convs(convs, x, graph)
            x = torch.stack([norm(part) for norm, part in zip(norms, x, strict=True)])
            x = dropout(first.act(x), p)
    return apply_convs([_conv(stack, -1) for stack in stacks], x, graph)


def go_together(stacks: Sequence[SAGE]) -> bool:
    """Whether :func:`apply_stacks` does what calling the stacks one by one would do."""
    first = stacks[0]
    return first.act in (F.relu, F.gelu) and all(  # entry by entry: blind to what stands beside
        stack.act is first.act
        and stack.dropout == first.dropout
        and stack.training == first.training
        and [repr(conv) for conv in stack.convs] == [repr(conv) for conv in first.convs]
        for stack in stacks
    )


def _conv(stack: SAGE, level: int) -> SAGEConv:
    conv = stack.convs[level]
    assert isinstance(conv, SAGEConv)
    return conv


def apply_convs(
    convs: Sequence[SAGEConv], x: Tensor, graph: Graph, act: Act | None = None, p: float = 0.0
) -> Tensor:
    """Layers of the same sizes, one above the other: ``(convs, n, out)``.

    x is what all of them see, ``(n, in)``, or what each sees, ``(convs, n, in)``. What comes out
    goes through the activation and dropout with probability p, if an activation is given.
    """
    count, parameters = len(convs), [p for conv in convs for p in _parameters(conv)]
    code = fused.IDENTITY if act is None else fused.activation_code(act)
    if code is not None and is_fused(x, *parameters):
        return fused.sage_level(x, graph, _inverse_degree(graph, x), count, parameters, code, p)
    if _narrows(parameters[0]) and on_cuda.takes_sage(x, parameters, act):
        columns, inverse = _columns(parameters, count), _inverse_degree(graph, x)
        compose = partial(_compose_columns, graph)
        return on_cuda.sage_level(x, graph, inverse, columns, act, p, compose)
    if act is not None:
        return dropout(act(apply_convs(convs, x, graph)), p)
    if convs[0].out_channels <= convs[0].in_channels:
        if is_plain_eager(x, *parameters):
            return _Convs.apply(x, graph, count, *parameters)
        if is_plain_compiled(x, *parameters):
            arrays = [*graph.by_target, *graph.by_source, _inverse_degree(graph, x)]
            return convs_operator(x, arrays, parameters, count)[0]
    return compose_convs(x, graph, count, *parameters)


# What follows sees the parameters of several layers as one list: for each layer W_l, b, W_r, and
# W, b' if it projects.


def _parameters(conv: SAGEConv) -> list[Tensor]:
    own = [conv.lin_l.weight, conv.lin_l.bias, conv.lin_r.weight]
    return own if conv.lin is None else [*own, conv.lin.weight, conv.lin.bias]


def _columns(parameters: Sequence[Tensor], count: int) -> list[Tensor]:
    """Each parameter, stacked over the layers."""
    return [torch.stack(column) for column in zip(*by_layer(parameters, count), strict=True)]


def compose_convs(x: Tensor, graph: Graph, count: int, *parameters: Tensor) -> Tensor:
    """The layers with ordinary operations."""
    return _compose_columns(graph, x, *_columns(parameters, count))


def _compose_columns(
    graph: Graph, x: Tensor, left: Tensor, bias: Tensor, right: Tensor, *projection: Tensor
) -> Tensor:
    sent = _tell(x if x.dim() == 3 else x.expand(len(left), -1, -1), left, projection)
    return _hear(_mean(sent, graph), x, left, bias, right)


# The two steps of one layer, with matrices, or of several, with stacks of them.


def _tell(x: Tensor, left: Tensor, projection: Sequence[Tensor]) -> Tensor:
    """p(x), times W_l where that makes it shorter."""
    if projection:
        weight, offset = projection
        x = F.relu(x @ weight.mT + offset.unsqueeze(-2))
    return x @ left.mT if _narrows(left) else x


def _hear(mean: Tensor, x: Tensor, left: Tensor, bias: Tensor, right: Tensor) -> Tensor:
    """W_l mean + b + W_r x."""
    heard = mean if _narrows(left) else mean @ left.mT
    return heard + bias.unsqueeze(-2) + x @ right.mT


def _narrows(left: Tensor) -> bool:
    return left.shape[-2] <= left.shape[-1]


def _mean(x: Tensor, graph: Graph) -> Tensor:
    total = torch.stack([sparse_product(part.unsqueeze(1), graph).squeeze(1) for part in x])
    return total * _inverse_degree(graph, total)


def _inverse_degree(graph: Graph, like: Tensor) -> Tensor:
    """One over the number of edges into each node, or over 1, ``(n, 1)``."""

    def make(graph: Graph) -> Tensor:
        return graph.in_degree.clamp(min=1).to(like.dtype).reciprocal().unsqueeze(1)

    return graph.remember(f"inverse in-degree, {like.dtype}", make)


class _Convs(torch.autograd.Function):
    """Layers that do not widen: few passes, and nothing kept but x and p(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Graph, count: int, *parameters: Tensor) -> Tensor:
        layers = by_layer(parameters, count)
        halved = are_halved(x)
        y, sent = go_forward(x, graph.by_target, _inverse_degree(graph, x), layers, halved)
        ctx.graph, ctx.count, ctx.halved = graph, count, halved
        ctx.save_for_backward(x, sent, *parameters)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, sent, *parameters = ctx.saved_tensors
        graph, needed = ctx.graph, ctx.needs_input_grad
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, graph, ctx.count, *parameters)
            return differentiable_backward(compose_convs, inputs, needed, grad)
        layers, inverse_degree = by_layer(parameters, ctx.count), _inverse_degree(graph, grad)
        spread = graph.by_source, inverse_degree
        for_x, halved = needed[0], ctx.halved
        grad_x, gradients = go_back(grad, x, sent, *spread, layers, for_x=for_x, halved=halved)
        return grad_x, None, None, *gradients
