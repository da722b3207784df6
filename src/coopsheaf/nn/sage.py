"""GraphSAGE with mean aggregation by one sparse product.

A layer is written down twice:

* as its equation, in two steps, what a node tells (:func:`_tell`) and what it makes of the mean of
  what it hears (:func:`_hear`). :func:`compose_convs` puts a sparse product between them, for
  whatever needs to look inside; :mod:`coopsheaf.scale` puts sums over one chunk of nodes after the
  other;
* by hand, forward and back (:func:`_go_forward`, :func:`_go_back`), for training on the CPU: fewer
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
from coopsheaf.nn.products import are_halved, multiply
from coopsheaf.sheaves.graph import CSR, Graph, as_graph
from coopsheaf.sheaves.kernels import is_fused, on_cuda
from coopsheaf.sheaves.kernels.eager import (
    differentiable_backward,
    is_plain_compiled,
    is_plain_eager,
)
from coopsheaf.sheaves.kernels.sparse import neighbour_sums, sparse_product

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
            return _convs(x, arrays, parameters, count)[0]
    return compose_convs(x, graph, count, *parameters)


# What follows sees the parameters of several layers as one list: for each layer W_l, b, W_r, and
# W, b' if it projects.


def _parameters(conv: SAGEConv) -> list[Tensor]:
    own = [conv.lin_l.weight, conv.lin_l.bias, conv.lin_r.weight]
    return own if conv.lin is None else [*own, conv.lin.weight, conv.lin.bias]


def _layers(parameters: Sequence[Tensor], count: int) -> list[Sequence[Tensor]]:
    size = len(parameters) // count
    return [parameters[k * size : (k + 1) * size] for k in range(count)]


def _columns(parameters: Sequence[Tensor], count: int) -> list[Tensor]:
    """Each parameter, stacked over the layers."""
    return [torch.stack(column) for column in zip(*_layers(parameters, count), strict=True)]


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
        layers = _layers(parameters, count)
        halved = are_halved(x)
        y, sent = _go_forward(x, graph.by_target, _inverse_degree(graph, x), layers, halved)
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
        layers, inverse_degree = _layers(parameters, ctx.count), _inverse_degree(graph, grad)
        spread = graph.by_source, inverse_degree
        how = {"for_x": needed[0], "halved": ctx.halved}
        grad_x, gradients = _go_back(grad, x, sent, *spread, layers, **how)
        return grad_x, None, None, *gradients


def _go_forward(
    x: Tensor,
    into: CSR,
    inverse_degree: Tensor,
    layers: Sequence[Sequence[Tensor]],
    halved: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What the layers make of x, and p(x) if they project.

    One product at a time on rows that lie together: side by side, the layers' products on shared
    inputs would be wider, but all others would jump from row to row and lose more than that.
    """
    count, (n, channels) = len(layers), x.shape[-2:]
    y = x.new_empty(count, n, layers[0][0].shape[0])
    sent = x.new_empty(count, n, channels) if len(layers[0]) > 3 else None
    for k, (left, bias, right, *projection) in enumerate(layers):
        own = told = _part(x, k)
        if sent is not None:
            weight, offset = projection
            told = _add_product(sent[k].copy_(offset), own, weight.T, halved).relu_()
        heard = neighbour_sums(multiply(told, left.T, halved), into)
        torch.mul(heard, inverse_degree, out=y[k]).add_(bias)
        _add_product(y[k], own, right.T, halved)
    return y, sent


def _add_product(out: Tensor, a: Tensor, b: Tensor, halved: bool) -> Tensor:
    return out.add_(multiply(a, b, True)) if halved else out.addmm_(a, b)


def _go_back(
    grad: Tensor,
    x: Tensor,
    sent: Tensor | None,
    out_of: CSR,
    inverse_degree: Tensor,
    layers: Sequence[Sequence[Tensor]],
    *,
    for_x: bool,
    halved: bool = False,
) -> tuple[Tensor | None, list[Tensor]]:
    """The gradient of x, if it is asked for, and those of the parameters."""
    grad, gradients = grad.contiguous(), []
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format) if for_x else None
    for k, (left, _, right, *projection) in enumerate(layers):
        own, own_grad = _part(x, k), grad[k]
        inner, outer = neighbour_sums(own_grad * inverse_degree, out_of), left
        told = own if sent is None else sent[k]
        gradients += [multiply(inner.T, told, halved), own_grad.sum(0)]
        gradients += [multiply(own_grad.T, own, halved)]
        if projection:
            inner, outer = multiply(inner, left, halved), projection[0]
            torch.ops.aten.threshold_backward.grad_input(inner, told, 0, grad_input=inner)
            gradients += [multiply(inner.T, own, halved), inner.sum(0)]
        if grad_x is not None:
            part = _part(grad_x, k)
            if x.dim() == 2 and k > 0:  # all layers saw the same x
                _add_product(part, inner, outer, halved)
            elif halved:
                part.copy_(multiply(inner, outer, True))
            else:
                torch.mm(inner, outer, out=part)
            _add_product(part, own_grad, right, halved)
    return grad_x, gradients


def _part(x: Tensor, k: int) -> Tensor:
    return x if x.dim() == 2 else x[k]


# The same for compilers, which make slower products of the plain composition. The arrays are those
# of the edges by target, of the edges by source, and the inverse degrees.


@torch.library.custom_op("coopsheaf::sage_convs", mutates_args=())
def _convs(
    x: Tensor, arrays: Sequence[Tensor], parameters: Sequence[Tensor], count: int
) -> tuple[Tensor, Tensor]:
    y, sent = _go_forward(x, CSR(*arrays[:3]), arrays[6], _layers(parameters, count))
    return y, x.new_empty(0) if sent is None else sent


@torch.library.custom_op("coopsheaf::sage_convs_backward", mutates_args=())
def _convs_backward(
    grad: Tensor,
    x: Tensor,
    sent: Tensor,
    arrays: Sequence[Tensor],
    parameters: Sequence[Tensor],
    count: int,
    for_x: bool,
) -> list[Tensor]:
    layers = _layers(parameters, count)
    told = sent if len(layers[0]) > 3 else None
    spread = CSR(*arrays[3:6]), arrays[6]
    grad_x, gradients = _go_back(grad, x, told, *spread, layers, for_x=for_x)
    return gradients if grad_x is None else [*gradients, grad_x]


@_convs.register_fake
def _(
    x: Tensor, arrays: Sequence[Tensor], parameters: Sequence[Tensor], count: int
) -> tuple[Tensor, Tensor]:
    layers, (n, channels) = _layers(parameters, count), x.shape[-2:]
    sent = (count, n, channels) if len(layers[0]) > 3 else (0,)
    return x.new_empty(count, n, layers[0][0].shape[0]), x.new_empty(sent)


@_convs_backward.register_fake
def _(grad: Tensor, x: Tensor, *others: Any) -> list[Tensor]:
    _, _, parameters, _, for_x = others
    alike = [*parameters, x] if for_x else parameters
    return [torch.empty_like(p, memory_format=torch.contiguous_format) for p in alike]


def _save_convs(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, arrays, parameters, ctx.count = inputs
    ctx.save_for_backward(x, output[1], *arrays, *parameters)


def _differentiate_convs(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Any, ...]:
    x, sent, *rest = ctx.saved_tensors
    arrays, parameters, for_x = rest[:7], rest[7:], ctx.needs_input_grad[0]
    found = _convs_backward(grad, x, sent, arrays, parameters, ctx.count, for_x)
    return found[-1] if for_x else None, [None] * 7, found[: len(parameters)], None


_convs.register_autograd(_differentiate_convs, setup_context=_save_convs)
