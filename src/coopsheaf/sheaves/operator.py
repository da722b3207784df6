"""Linear operators on node features, as objects: ``mv``, ``to_dense``, ``.T``, ``@``, ``+``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import overload

import torch
from torch import Tensor

from coopsheaf.sheaves.kernels.diagonal import apply_diagonal
from coopsheaf.tensor_checks import check_floating


class Operator(ABC):
    """A linear map between features on k cells and features on l cells.

    Features have shape ``(cells, d, h)``: an operator acts on the first two axes and treats the
    h channels alike. As a matrix it is ``(l·d, k·d)``.
    """

    @property
    @abstractmethod
    def domain(self) -> tuple[int, int]:
        """Number of cells and stalk dimension of what goes in."""

    @property
    @abstractmethod
    def codomain(self) -> tuple[int, int]:
        """Number of cells and stalk dimension of what comes out."""

    @abstractmethod
    def _mv(self, x: Tensor) -> Tensor:
        """The product, arguments checked."""

    @abstractmethod
    def to_dense(self) -> Tensor:
        """The operator as a matrix, ``(l·d, k·d)``. For small graphs."""

    @property
    @abstractmethod
    def T(self) -> Operator:
        """The transpose."""

    def mv(self, x: Tensor) -> Tensor:
        """Apply the operator to x of shape ``(cells, d, h)``."""
        check_floating("x", x)
        cells, d = self.domain
        if x.dim() != 3 or x.shape[0] != cells or x.shape[1] != d:
            raise ValueError(f"`x` must have shape ({cells}, {d}, h); got {tuple(x.shape)}")
        return self._mv(x)

    @overload
    def __matmul__(self, other: Operator) -> Operator: ...

    @overload
    def __matmul__(self, other: Tensor) -> Tensor: ...

    def __matmul__(self, other: Operator | Tensor) -> Operator | Tensor:
        """Composition with an operator, application to features.

        Compiled code has to say ``Product(a, b)`` and ``a.mv(x)``: compilers do not trace ``@``.
        """
        if isinstance(other, Tensor):
            return self.mv(other)
        if isinstance(other, Operator):
            return Product(self, other)
        return NotImplemented

    def __add__(self, other: Operator) -> Operator:
        if not isinstance(other, Operator):
            return NotImplemented
        return Sum(self, other)

    def __radd__(self, other: object) -> Operator:
        if other == 0:  # the start of sum(...)
            return self
        return NotImplemented

    def __mul__(self, factor: float | Tensor) -> Operator:
        if not isinstance(factor, int | float | Tensor):
            return NotImplemented
        return Multiple(factor, self)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float | Tensor) -> Operator:
        return self * (1 / divisor)

    def __neg__(self) -> Operator:
        return self * -1.0

    def __sub__(self, other: Operator) -> Operator:
        if not isinstance(other, Operator):
            return NotImplemented
        return self + -other

    def __repr__(self) -> str:
        (k, d), (rows, e) = self.domain, self.codomain
        return f"{type(self).__name__}({k}x{d} -> {rows}x{e})"


class Identity(Operator):
    """The identity on n nodes with stalks of dimension d."""

    def __init__(
        self,
        num_nodes: int,
        stalk_dim: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.num_nodes, self.stalk_dim = num_nodes, stalk_dim
        self.dtype, self.device = dtype, device

    @property
    def domain(self) -> tuple[int, int]:
        return self.num_nodes, self.stalk_dim

    codomain = domain

    def _mv(self, x: Tensor) -> Tensor:
        return x

    def to_dense(self) -> Tensor:
        size = self.num_nodes * self.stalk_dim
        return torch.eye(size, dtype=self.dtype, device=self.device)

    @property
    def T(self) -> Operator:
        return self


class Sum(Operator):
    """A + B."""

    def __init__(self, a: Operator, b: Operator) -> None:
        if a.domain != b.domain or a.codomain != b.codomain:
            raise ValueError(f"operators must have the same shape to be added; got {a} and {b}")
        self.a, self.b = a, b

    @property
    def domain(self) -> tuple[int, int]:
        return self.a.domain

    @property
    def codomain(self) -> tuple[int, int]:
        return self.a.codomain

    def _mv(self, x: Tensor) -> Tensor:
        return self.a._mv(x) + self.b._mv(x)

    def to_dense(self) -> Tensor:
        return self.a.to_dense() + self.b.to_dense()

    @property
    def T(self) -> Operator:
        return Sum(self.a.T, self.b.T)


class Product(Operator):
    """A B: first B, then A."""

    def __init__(self, a: Operator, b: Operator) -> None:
        if a.domain != b.codomain:
            raise ValueError(
                f"the right operator must end where the left one begins; got {a} after {b}"
            )
        self.a, self.b = a, b

    @property
    def domain(self) -> tuple[int, int]:
        return self.b.domain

    @property
    def codomain(self) -> tuple[int, int]:
        return self.a.codomain

    def _mv(self, x: Tensor) -> Tensor:
        return self.a._mv(self.b._mv(x))

    def to_dense(self) -> Tensor:
        return self.a.to_dense() @ self.b.to_dense()

    @property
    def T(self) -> Operator:
        return Product(self.b.T, self.a.T)


class Multiple(Operator):
    """A number (or a tensor without axes) times A."""

    def __init__(self, factor: float | Tensor, a: Operator) -> None:
        if isinstance(factor, Tensor) and factor.dim() != 0:
            raise ValueError(
                "an operator takes a number as factor, and features with `mv`; "
                f"got a tensor of shape {tuple(factor.shape)}"
            )
        self.factor, self.a = factor, a

    @property
    def domain(self) -> tuple[int, int]:
        return self.a.domain

    @property
    def codomain(self) -> tuple[int, int]:
        return self.a.codomain

    def _mv(self, x: Tensor) -> Tensor:
        return self.factor * self.a._mv(x)

    def to_dense(self) -> Tensor:
        return self.factor * self.a.to_dense()

    @property
    def T(self) -> Operator:
        return Multiple(self.factor, self.a.T)


class BlockDiagonal(Operator):
    """B_i x_i: what every node does to its own stalk.

    Args:
        blocks: ``(n,)``, a multiple of the identity per node; ``(n, d)``, a diagonal matrix per
            node; or ``(n, d, d)``, any matrix per node.
        stalk_dim: d, for blocks of shape ``(n,)``.
    """

    def __init__(self, blocks: Tensor, stalk_dim: int | None = None) -> None:
        if blocks.dim() == 1 and stalk_dim is None:
            raise ValueError("`stalk_dim` must be given with blocks of shape (n,); got None")
        self.blocks = blocks
        self.stalk_dim = blocks.shape[-1] if stalk_dim is None else stalk_dim

    @property
    def domain(self) -> tuple[int, int]:
        return self.blocks.shape[0], self.stalk_dim

    codomain = domain

    def _mv(self, x: Tensor) -> Tensor:
        blocks = self.blocks.to(x.dtype)
        if blocks.dim() == 2:
            return blocks.unsqueeze(-1) * x
        return apply_diagonal(blocks, x)

    def to_dense(self) -> Tensor:
        n, d = self.domain
        eye = torch.eye(d, dtype=self.blocks.dtype, device=self.blocks.device)
        return torch.block_diag(*self._mv(eye.expand(n, d, d)))

    @property
    def T(self) -> Operator:
        return BlockDiagonal(self.blocks.mT, None) if self.blocks.dim() == 3 else self


class DirectSum(Operator):
    """A ⊕ B ⊕ …: each operator acts on its own slice of the stalks, one after the other.

    Args:
        parts: operators on the same cells; their stalk dimensions add up.
    """

    def __init__(self, parts: Sequence[Operator]) -> None:
        # Compared, not hashed: compilers would take sizes that are hashed for constants.
        if not parts or not all(
            part.domain[0] == parts[0].domain[0] and part.codomain[0] == parts[0].codomain[0]
            for part in parts
        ):
            raise ValueError(
                f"`parts` must be operators, at least one, on the same cells; got {list(parts)}"
            )
        self.parts = tuple(parts)

    @property
    def domain(self) -> tuple[int, int]:
        return self.parts[0].domain[0], sum(part.domain[1] for part in self.parts)

    @property
    def codomain(self) -> tuple[int, int]:
        return self.parts[0].codomain[0], sum(part.codomain[1] for part in self.parts)

    def _mv(self, x: Tensor) -> Tensor:
        slices = x.split([part.domain[1] for part in self.parts], dim=1)
        pairs = zip(self.parts, slices, strict=True)
        return torch.cat([part._mv(piece) for part, piece in pairs], dim=1)

    def to_dense(self) -> Tensor:
        (k, d), (rows, e) = self.domain, self.codomain
        first = self.parts[0].to_dense()
        matrix = first.new_zeros(rows, e, k, d)
        row = column = 0
        for part in self.parts:
            height, width = part.codomain[1], part.domain[1]
            block = part.to_dense().view(rows, height, k, width)
            matrix[:, row : row + height, :, column : column + width] = block
            row, column = row + height, column + width
        return matrix.view(rows * e, k * d)

    @property
    def T(self) -> Operator:
        return DirectSum([part.T for part in self.parts])


class Complex(Operator):
    """A + iB in real numbers: on stalks that hold real parts before imaginary parts.

    On x + iy it gives (A x - B y) + i (B x + A y): the matrix is [[A, -B], [B, A]], and its
    transpose the adjoint Aᵀ - iBᵀ. Symmetric with A symmetric and B antisymmetric: Hermitian; then
    every eigenvalue occurs twice.

    Args:
        real: A.
        imaginary: B, of the same shape.
    """

    def __init__(self, real: Operator, imaginary: Operator) -> None:
        if real.domain != imaginary.domain or real.codomain != imaginary.codomain:
            raise ValueError(
                f"`real` and `imaginary` must have the same shape; got {real} and {imaginary}"
            )
        self.real, self.imaginary = real, imaginary

    @property
    def domain(self) -> tuple[int, int]:
        cells, d = self.real.domain
        return cells, 2 * d

    @property
    def codomain(self) -> tuple[int, int]:
        cells, d = self.real.codomain
        return cells, 2 * d

    def _mv(self, x: Tensor) -> Tensor:
        both = torch.cat(x.chunk(2, dim=1), dim=2)  # (cells, d, 2h): channels are treated alike
        a, b = self.real._mv(both), self.imaginary._mv(both)
        (a_re, a_im), (b_re, b_im) = a.chunk(2, dim=2), b.chunk(2, dim=2)
        return torch.cat([a_re - b_im, b_re + a_im], dim=1)

    def to_dense(self) -> Tensor:
        (k, d), (rows, e) = self.real.domain, self.real.codomain
        a, b = (
            self.real.to_dense().view(rows, e, k, d),
            self.imaginary.to_dense().view(rows, e, k, d),
        )
        matrix = torch.cat([torch.cat([a, -b], dim=3), torch.cat([b, a], dim=3)], dim=1)
        return matrix.view(rows * 2 * e, k * 2 * d)

    @property
    def T(self) -> Operator:
        return Complex(self.real.T, Multiple(-1.0, self.imaginary.T))
