"""Restriction maps that are given or drawn: what sheaves without learned maps are made of."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from coopsheaf.checks import check_choice, check_int


class Draw:
    """Makes maps of one kind: ``draw(m, 2)`` gives ``(m, 2, d, d)``.

    They are drawn on the CPU, one call after the other, so that a seed means the same on all
    devices.

    Args:
        stalk_dim: d.
        kind: ``"orthogonal"``, ``"general"`` or ``"diagonal"``; without a seed, ``"identity"``.
        seed: of the maps; ``None`` where nothing is drawn.
        dtype: of the maps; PyTorch's default if ``None``.
        device: of the maps.
    """

    def __init__(
        self,
        stalk_dim: int,
        kind: str,
        seed: int | None,
        dtype: torch.dtype | None,
        device: torch.device,
    ) -> None:
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.make = _identity if seed is None else check_choice("kind", kind, KINDS)
        self.generator = torch.Generator().manual_seed(0 if seed is None else seed)
        self.dtype, self.device = dtype or torch.get_default_dtype(), device

    @property
    def is_orthogonal(self) -> bool:
        return self.make in (_identity, _orthogonal)

    def __call__(self, *shape: int) -> Tensor:
        square = (*shape, self.stalk_dim, self.stalk_dim)
        return self.make(square, self.generator, self.dtype).to(self.device)


Size = tuple[int, ...]


def _identity(shape: Size, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Stored once, however often it is there."""
    return torch.eye(shape[-1], dtype=dtype).expand(shape)


def _orthogonal(shape: Size, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Uniform on O(d): QR of normal entries, signs fixed by the diagonal of R."""
    q, r = torch.linalg.qr(torch.randn(shape, generator=generator, dtype=dtype))
    return q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def _general(shape: Size, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Normal entries of variance 1/d: lengths are kept on average."""
    return torch.randn(shape, generator=generator, dtype=dtype) / shape[-1] ** 0.5


def _diagonal(shape: Size, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Normal entries of variance 1 on the diagonal."""
    return torch.randn(shape[:-1], generator=generator, dtype=dtype).diag_embed()


KINDS: dict[str, Callable[[Size, torch.Generator, torch.dtype], Tensor]] = {
    "orthogonal": _orthogonal,
    "general": _general,
    "diagonal": _diagonal,
}
