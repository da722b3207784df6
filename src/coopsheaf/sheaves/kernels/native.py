r"""The compiled path: an operator in two passes over the nodes, all its gradients in two more.

Beside the operator it has what leads to it, from free numbers to maps and from scales to the
factors of a normalised Laplacian: many small operations per node, each in one pass. Every function
here equals a composition of PyTorch's operations, which second derivatives go through and the
tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import CSR, Graph
from coopsheaf.sheaves.kernels import factored
from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt
from coopsheaf.sheaves.kernels.eager import differentiable_backward, is_plain
from coopsheaf.sheaves.kernels.library import LARGEST_STALK, Library, load_library
from coopsheaf.sheaves.kernels.terms import NodeTerms, Terms, dense_terms
from coopsheaf.sheaves.maps import ConformalMaps, NodeMaps


def is_available() -> bool:
    """Whether ``coopsheaf-kernels`` is installed and loads."""
    return load_library() is not None


def describe() -> str:
    """Version and instructions of the library."""
    return repr(load_library())


def uses_threads() -> bool:
    """Whether the library computes in PyTorch's threads; if not, in one."""
    library = load_library()
    return library is not None and library.uses_threads


def call(name: str, *arguments: Any) -> None:
    """Call a function of the library."""
    library = load_library()
    assert isinstance(library, Library)
    library(name, *arguments)


def call_each(name: str, *columns: Iterable[Any]) -> None:
    """Call a function of the library once for each run."""
    library = load_library()
    assert isinstance(library, Library)
    library.each(name, *columns)


def edge_lists(csr: CSR) -> tuple[Tensor, Tensor, bool]:
    """Bounds, nodes, and whether the nodes are in 32 bits, as packs have them."""
    other = csr.other.contiguous()
    return csr.ptr.long().contiguous(), other, other.dtype == torch.int32


def is_plain_single(*tensors: Tensor | None) -> bool:
    """Tensors in single precision on the CPU, and nobody who needs to look inside."""
    return not torch.compiler.is_compiling() and is_plain(tensors, dtypes=(torch.float32,))


def needs_gradient(*tensors: Tensor | None) -> bool:
    """Whether somebody will go back through a function of these tensors."""
    if not torch.is_grad_enabled():
        return False
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def node_maps(x: Tensor, terms: Terms | NodeTerms) -> Tensor:
    if not _has_node_maps(x, terms):
        return factored.node_maps(x, dense_terms(terms))
    inputs = (x, terms.graph, terms.diagonal, *_parts(terms.left), *_parts(terms.right))
    if needs_gradient(x, *inputs[2:]):
        return _NodeMaps.apply(*inputs)
    return _go_forward(*inputs, keep=False)[0]


edge_maps = factored.edge_maps


def _has_node_maps(x: Tensor, terms: Terms | NodeTerms) -> bool:
    """Whether the operator with these maps was compiled."""
    if terms.diagonal.dim() != 1 or terms.edge_weight is not None or x.numel() == 0:
        return False
    fits = x.shape[1] <= LARGEST_STALK
    return fits and is_plain_single(x, terms.diagonal, *_parts(terms.left), *_parts(terms.right))


def _parts(maps: NodeMaps) -> tuple[Tensor | None, Tensor]:
    """Factors and matrices."""
    return (maps.scale, maps.orthogonal) if isinstance(maps, ConformalMaps) else (None, maps)


def _go_forward(
    x: Tensor,
    graph: Graph,
    diagonal: Tensor,
    left_factor: Tensor | None,
    left: Tensor,
    right_factor: Tensor | None,
    right: Tensor,
    *,
    keep: bool,
) -> tuple[Tensor, Tensor | None]:
    """The values, and what each node heard if that is to be kept."""
    n, d, h = x.shape
    x = x.contiguous()
    sent, y = torch.empty_like(x), torch.empty_like(x)
    heard = torch.empty_like(x) if keep else None
    maps = [_contiguous(part) for part in (diagonal, left_factor, left, right_factor, right)]
    edges = edge_lists(graph.by_target)
    call("node_maps", n, d, h, x, *maps, *edges, sent, heard, y)
    return y, heard


def _contiguous(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


class _NodeMaps(torch.autograd.Function):
    """Keeps x and what each node heard."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Graph, *maps: Tensor | None) -> Tensor:
        y, heard = _go_forward(x, graph, *maps, keep=True)  # type: ignore[arg-type]
        ctx.graph = graph
        ctx.save_for_backward(x, heard, *maps)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, heard, *maps = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, ctx.graph, *maps)
            return differentiable_backward(_compose, inputs, ctx.needs_input_grad, grad)
        n, d, h = x.shape
        x, grad = x.contiguous(), grad.contiguous()
        asked, grad_x = torch.empty_like(x), torch.empty_like(x)
        given = [_contiguous(part) for part in maps]
        found = [None if part is None else torch.empty_like(part) for part in given]
        edges = edge_lists(ctx.graph.by_source)
        call("node_maps_back", n, d, h, grad, x, heard, *given, *edges, asked, grad_x, *found)
        return grad_x, None, *found


def _compose(
    x: Tensor,
    graph: Graph,
    diagonal: Tensor,
    left_factor: Tensor | None,
    left: Tensor,
    right_factor: Tensor | None,
    right: Tensor,
) -> Tensor:
    left = left if left_factor is None else left_factor[:, None, None] * left
    right = right if right_factor is None else right_factor[:, None, None] * right
    return factored.compose(x, graph, diagonal, left, right, None)


# From free numbers to maps, and from scales to factors.


Composed = Callable[[Tensor], tuple[Tensor, Tensor]]


def householder_maps(raw: Tensor, stalk_dim: int, compose: Composed) -> tuple[Tensor, Tensor]:
    """Scales ``(n,)`` and orthogonal matrices ``(n, d, d)`` of free numbers ``(n, d(d-1)/2 + 1)``.

    The matrices are Householder's of the tanh of all numbers but the last, the scale is the
    exponential of that one, at most 10. ``compose`` does the same with ordinary operations.
    """
    if needs_gradient(raw):
        return _HouseholderMaps.apply(raw, stalk_dim, compose)
    return _householder_maps(raw.contiguous(), stalk_dim)


def _householder_maps(raw: Tensor, d: int) -> tuple[Tensor, Tensor]:
    n = raw.shape[0]
    scale, matrices = raw.new_empty(n), raw.new_empty(n, d, d)
    call("conformal", n, d, raw, scale, matrices)
    return scale, matrices


class _HouseholderMaps(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, raw: Tensor, stalk_dim: int, compose: Composed) -> Any:
        raw, ctx.stalk_dim, ctx.compose = raw.contiguous(), stalk_dim, compose
        ctx.save_for_backward(raw)
        return _householder_maps(raw, stalk_dim)

    @staticmethod
    def backward(ctx: Any, scale: Tensor, matrices: Tensor) -> tuple[Tensor | None, ...]:
        (raw,), d = ctx.saved_tensors, ctx.stalk_dim
        if torch.is_grad_enabled():  # somebody will differentiate again

            def in_one_row(raw: Tensor) -> Tensor:  # what is differentiated returns one tensor
                return _side_by_side(*ctx.compose(raw))

            both = _side_by_side(scale, matrices)
            return differentiable_backward(in_one_row, (raw,), (True,), both)[0], None, None
        grad = torch.empty_like(raw)
        call("conformal_back", len(raw), d, raw, scale.contiguous(), matrices.contiguous(), grad)
        return grad, None, None


def _side_by_side(scale: Tensor, matrices: Tensor) -> Tensor:
    return torch.cat([scale.unsqueeze(1), matrices.flatten(1)], dim=1)


def augmented_factors(own: Tensor, other: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """See :func:`compose_factors`."""
    if needs_gradient(own, other):
        return _AugmentedFactors.apply(own, other, degree)
    return _augmented_factors(own.contiguous(), other.contiguous(), degree)


def compose_factors(own: Tensor, other: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""What an augmented Laplacian multiplies nodes and maps by, each ``(n,)``.

    With :math:`D = c\, s^2` and :math:`r = (D + 1)^{-1/2}`: :math:`D r^2`, :math:`s r` and
    :math:`t r`, where s is the scale of the maps that D counts, t that of the others and c the
    number of edges that count.
    """
    block = degree * own.square()
    root = inverse_sqrt(block + 1)
    return block * root * root, own * root, other * root


def _augmented_factors(own: Tensor, other: Tensor, degree: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    diagonal, first, second = (torch.empty_like(own) for _ in range(3))
    degree = degree.to(own.dtype).contiguous()
    call("augmented", len(own), own, other, degree, diagonal, first, second)
    return diagonal, first, second


class _AugmentedFactors(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, own: Tensor, other: Tensor, degree: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        own, other, degree = own.contiguous(), other.contiguous(), degree.to(own.dtype)
        ctx.save_for_backward(own, other, degree)
        return _augmented_factors(own, other, degree)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs = own, other, degree = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            needed = ctx.needs_input_grad
            return differentiable_backward(_stack_factors, inputs, needed, torch.stack(grads))
        found = torch.empty_like(own), torch.empty_like(other)
        wanted = [grad.contiguous() for grad in grads]
        call("augmented_back", len(own), own, other, degree.contiguous(), *wanted, *found)
        return *found, None


def _stack_factors(own: Tensor, other: Tensor, degree: Tensor) -> Tensor:
    return torch.stack(compose_factors(own, other, degree))
