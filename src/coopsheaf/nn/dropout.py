"""Dropout from raw random bits: what it costs on the CPU is mostly drawing the mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.nn import fused, fused_runs
from coopsheaf.sheaves.kernels import active_kernel, is_fused
from coopsheaf.sheaves.kernels.runs import Runs, active_runs, over_runs

# A mask entry is kept if 16 random bits, read as a signed integer, reach a threshold.
_VALUES, _LOWEST = 1 << 16, -(1 << 15)


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    r"""Set entries to zero with probability p and divide the others by 1 - p.

    .. math:: y = \frac{m}{1 - p} \odot x, \qquad m \sim \operatorname{Bernoulli}(1 - p)

    On the CPU one draw from PyTorch's generator seeds NumPy's SFC64, 64 bits of which decide over
    four entries: many times faster than ``F.dropout``, which draws a double per entry from a slower
    generator. The masks differ from those of ``F.dropout`` under the same seed; their law differs
    in that p is rounded to a multiple of 2⁻¹⁶ (0.2 becomes 0.199997). Entries are divided by one
    minus the rounded p, so that the mean stays exactly x. Where compiled kernels are installed the
    bits are Philox's, and masks are drawn again on the way back instead of kept. Compiled code
    draws the same masks. On other devices, in half precision, in exported programs and under
    transforms such as ``torch.func.grad`` it is ``F.dropout``.

    Args:
        x: any shape.
        p: the probability, in [0, 1).
        training: if not, x itself comes back.
    """
    if not training or p == 0.0:
        return x
    if (runs := active_runs()) is not None:
        # What is no plain tensor (`coopsheaf.nn.sparse_runs`) knows what to do.
        return _drop_in_runs(x, p, runs) if type(x) is Tensor else F.dropout(x, p)
    if not _draws_bits(x):
        return F.dropout(x, p)
    if is_fused(x):
        return fused.drop(x, p)
    dropped = min(round(p * _VALUES), _VALUES - 1)
    factor = _VALUES / (_VALUES - dropped)
    keep = _draw(x, dropped)
    if torch.compiler.is_compiling():  # compilers fuse the product with what is around it
        return x * keep.to(x.dtype) * factor
    return _Masked.apply(x, keep, factor)


def _draws_bits(x: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and not torch.compiler.is_exporting()
        and not torch._C._are_functorch_transforms_active()
    )


@torch.library.custom_op(
    "coopsheaf::draw_mask", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,)
)
def _draw_mask(shape: Sequence[int], dropped: int, token: Tensor) -> Tensor:
    # One draw from PyTorch's generator seeds a faster one: what it draws, it draws again.
    return _mask_of(shape, dropped, fused.draw_seed())


def _mask_of(shape: Sequence[int], dropped: int, seed: int) -> Tensor:
    """One where an entry is kept, zero where it is dropped: int8."""
    count = math.prod(shape)
    if active_kernel() == "native":  # the masks of the compiled kernels
        kept = fused.draw_factors(torch.empty(shape, dtype=torch.float32), seed, dropped)
        return kept.ne(0).to(torch.int8)
    words = np.random.SFC64(seed).random_raw((count + 3) // 4)
    bits = torch.from_numpy(words.view(np.int16))[:count].view(shape)
    keep = torch.empty(shape, dtype=torch.int8)  # a quarter of the memory of a float mask
    return torch.ge(bits, _LOWEST + dropped, out=keep)


@_draw_mask.register_fake
def _(shape: Sequence[int], dropped: int, token: Tensor) -> Tensor:
    return torch.empty(shape, dtype=torch.int8)


def _draw(x: Tensor, dropped: int) -> Tensor:
    """One where an entry of x is kept, zero where it is dropped: int8 of the shape of x."""
    # Compilers compute equal expressions once, random or not, unless fresh memory goes in. Given x
    # itself, they would have to write it down before they could multiply it by the mask.
    return _draw_mask(x.shape, dropped, torch.empty(0))


def _drop_in_runs(x: Tensor, p: float, runs: Runs) -> Tensor:
    """Dropout in many runs at once, in each with the mask that it would draw alone."""
    dropped = min(round(p * _VALUES), _VALUES - 1)

    def apply(count: int, shared: list[bool], x: Tensor) -> Tensor:
        stacked, seeds = x.expand(count, *x.shape) if shared[0] else x, runs.draw_seeds()
        if is_fused(x):
            return fused_runs.drop(stacked, seeds, dropped)
        keep = torch.stack([_mask_of(stacked.shape[1:], dropped, seed) for seed in seeds])
        return _Masked.apply(stacked, keep, _VALUES / (_VALUES - dropped))

    out: Tensor = over_runs(apply, x)
    return out


class _Masked(torch.autograd.Function):
    """factor · keep ⊙ x. Linear in x, so it is its own derivative, to any order."""

    @staticmethod
    def forward(x: Tensor, keep: Tensor, factor: float) -> Tensor:
        out = keep.to(x.dtype)  # PyTorch has no fast product of floats with integers
        return torch.mul(x, out, out=out).mul_(factor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
        _, keep, ctx.factor = inputs
        ctx.save_for_backward(keep)
        ctx.save_for_forward(keep)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return _Masked.apply(grad, keep, ctx.factor), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        (keep,) = ctx.saved_tensors
        return _Masked.apply(tangent, keep, ctx.factor)
