"""GraphSAGE with mean aggregation by one sparse product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.graph import Graph, as_graph
from coopsheaf.kernels.eager import differentiable_backward, is_plain_eager
from coopsheaf.kernels.sparse import add_up, sparse_product
from coopsheaf.nn.dropout import dropout


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
        return apply_convs([self], x, as_graph(edge_index, x.shape[0]))

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
            x = dropout(x, self.dropout, self.training)
        return self.convs[-1](x, graph)


def apply_stacks(stacks: Sequence[SAGE], x: Tensor, graph: Graph) -> Tensor:
    """What stacks of the same sizes make of one input, side by side: ``(n, stacks · out)``.

    The same as calling them one by one, in fewer and wider products.
    """
    first = stacks[0]
    x = apply_convs([_conv(stack, 0) for stack in stacks], x, graph)
    for level in range(1, len(first.convs)):
        norms = [stack.norms[level - 1] for stack in stacks]
        if not all(type(norm) is nn.Identity for norm in norms):
            parts = x.chunk(len(stacks), dim=1)
            x = torch.cat([norm(part) for norm, part in zip(norms, parts, strict=True)], dim=1)
        x = dropout(first.act(x), first.dropout, first.training)
        x = apply_convs([_conv(stack, level) for stack in stacks], x, graph)
    return x


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


def apply_convs(convs: Sequence[SAGEConv], x: Tensor, graph: Graph) -> Tensor:
    """Layers of the same sizes side by side, ``(n, convs · out)``.

    x is what all of them see, ``(n, in)``, or what each sees side by side, ``(n, convs · in)``.
    """
    parameters: list[Tensor | None] = []
    for conv in convs:
        project = (None, None) if conv.lin is None else (conv.lin.weight, conv.lin.bias)
        parameters += [*project, conv.lin_l.weight, conv.lin_l.bias, conv.lin_r.weight]
    narrows = convs[0].out_channels <= convs[0].in_channels
    if narrows and is_plain_eager(x, *parameters):
        return _Convs.apply(x, graph, *parameters)
    return _compose(x, graph, *parameters)


# What follows sees the parameters of K layers as one list: for each layer W, b' (None without
# projection), W_l, b, W_r.


def _columns(parameters: Sequence[Any]) -> list[list[Any]]:
    return [list(parameters[k::5]) for k in range(5)]


def _compose(x: Tensor, graph: Graph, *parameters: Tensor | None) -> Tensor:
    project, project_bias, left, bias, right = _columns(parameters)
    shared = x.shape[1] == left[0].shape[1]
    sent = x
    if project[0] is not None:
        sent = F.relu(_linear(x, project, project_bias, shared))
        shared_sent = False
    else:
        shared_sent = shared
    if left[0].shape[0] <= left[0].shape[1]:
        heard = _mean(_linear(sent, left, None, shared_sent), graph) + torch.cat(bias)
    else:
        heard = _linear(_mean(sent, graph), left, bias, shared_sent)
    return heard + _linear(x, right, None, shared)


def _linear(x: Tensor, weights: list[Tensor], biases: list[Tensor] | None, shared: bool) -> Tensor:
    """Linear layers side by side, on one input or on inputs side by side."""
    bias = None if biases is None else torch.cat(biases)
    if shared:
        return F.linear(x, torch.cat(weights), bias)
    parts = zip(x.chunk(len(weights), dim=1), weights, strict=True)
    y = torch.cat([F.linear(part, weight) for part, weight in parts], dim=1)
    return y if bias is None else y + bias


def _mean(x: Tensor, graph: Graph) -> Tensor:
    total = sparse_product(x.unsqueeze(1), graph).squeeze(1)  # (n, c)
    return total * _inverse_degree(graph, total)


def _inverse_degree(graph: Graph, like: Tensor) -> Tensor:
    """One over the number of edges into each node, or over 1, ``(n, 1)``."""

    def make(graph: Graph) -> Tensor:
        return graph.in_degree.clamp(min=1).to(like.dtype).reciprocal().unsqueeze(1)

    return graph.remember(f"inverse in-degree, {like.dtype}", make)


class _Convs(torch.autograd.Function):
    """``_compose`` for layers that do not widen: few passes, and nothing kept but x and p(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Graph, *parameters: Tensor | None) -> Tensor:
        project, project_bias, left, bias, right = _columns(parameters)
        sent = x
        if project[0] is not None:
            sent = _products(x, project, project_bias).relu_()
        y = add_up(_products(sent, left), graph.by_target).mul_(_inverse_degree(graph, x))
        y.add_(torch.cat(bias))
        _add_products(y, x, right)
        ctx.graph = graph
        ctx.save_for_backward(x, *parameters, None if sent is x else sent)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, *parameters, sent = ctx.saved_tensors
        graph, needed = ctx.graph, ctx.needs_input_grad
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, graph, *parameters)
            return differentiable_backward(_compose, inputs, needed, grad)
        project, _, left, bias, right = _columns(parameters)
        grad = grad.contiguous()
        spread = add_up(grad * _inverse_degree(graph, grad), graph.by_source)  # (n, K · out)
        grad_bias = grad.sum(0).chunk(len(bias))
        grad_right = _weight_gradients(grad, x, right)
        if project[0] is None:
            grad_left = _weight_gradients(spread, x, left)
            grad_x = _input_gradient(spread, x, left) if needed[0] else None
            grad_project: Sequence[Tensor | None] = [None] * len(left)
            grad_project_bias: Sequence[Tensor | None] = grad_project
        else:
            grad_left = _weight_gradients(spread, sent, left)
            inner = _input_gradient(spread, sent, left)
            torch.ops.aten.threshold_backward.grad_input(inner, sent, 0, grad_input=inner)
            grad_project = _weight_gradients(inner, x, project)
            grad_project_bias = inner.sum(0).chunk(len(left))
            grad_x = _input_gradient(inner, x, project) if needed[0] else None
        if grad_x is not None:
            _add_input_gradient(grad_x, grad, right)
        columns = (grad_project, grad_project_bias, grad_left, grad_bias, grad_right)
        gradients = [g for layer in zip(*columns, strict=True) for g in layer]
        return grad_x, None, *gradients


def _split(y: Tensor, weights: list[Tensor]) -> Sequence[Tensor]:
    return y.chunk(len(weights), dim=1)


def _is_shared(x: Tensor, weights: list[Tensor]) -> bool:
    return x.shape[1] == weights[0].shape[1]


def _pairs(x: Tensor, weights: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Each weight with what it multiplies."""
    inputs = [x] * len(weights) if _is_shared(x, weights) else _split(x, weights)
    return list(zip(inputs, weights, strict=True))


def _products(x: Tensor, weights: list[Tensor], biases: list[Tensor] | None = None) -> Tensor:
    """x Wᵀ + b side by side, as one product if all see the same x."""
    if _is_shared(x, weights):
        weight = torch.cat(weights)
        return x @ weight.T if biases is None else torch.addmm(torch.cat(biases), x, weight.T)
    y = x.new_empty(x.shape[0], len(weights) * weights[0].shape[0])
    for k, (part, (inputs, weight)) in enumerate(
        zip(_split(y, weights), _pairs(x, weights), strict=True)
    ):
        if biases is None:
            torch.mm(inputs, weight.T, out=part)
        else:
            torch.addmm(biases[k], inputs, weight.T, out=part)
    return y


def _add_products(y: Tensor, x: Tensor, weights: list[Tensor]) -> None:
    """Add x Wᵀ side by side to y, as one product if all see the same x."""
    if _is_shared(x, weights):
        y.addmm_(x, torch.cat(weights).T)
        return
    for part, (inputs, weight) in zip(_split(y, weights), _pairs(x, weights), strict=True):
        part.addmm_(inputs, weight.T)


def _weight_gradients(grad: Tensor, x: Tensor, weights: list[Tensor]) -> Sequence[Tensor]:
    if _is_shared(x, weights):
        return (grad.T @ x).chunk(len(weights))
    parts = zip(_split(grad, weights), _split(x, weights), strict=True)
    return [part.T @ inputs for part, inputs in parts]


def _input_gradient(grad: Tensor, x: Tensor, weights: list[Tensor]) -> Tensor:
    if _is_shared(x, weights):
        return grad @ torch.cat(weights)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    parts = zip(_split(out, weights), _split(grad, weights), weights, strict=True)
    for part, grad_part, weight in parts:
        torch.mm(grad_part, weight, out=part)
    return out


def _add_input_gradient(out: Tensor, grad: Tensor, weights: list[Tensor]) -> None:
    if _is_shared(out, weights):
        out.addmm_(grad, torch.cat(weights))
        return
    parts = zip(_split(out, weights), _split(grad, weights), weights, strict=True)
    for part, grad_part, weight in parts:
        part.addmm_(grad_part, weight)
