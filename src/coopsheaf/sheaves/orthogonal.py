r"""From free parameters to conformal maps: orthogonal matrices and scales.

An orthogonal parametrisation turns ``(..., k)`` parameters p into ``(..., d, d)`` orthogonal
matrices, with k = d(d - 1)/2 the dimension of the orthogonal group (0 for the fixed identity): none
of the parameters is dead. A scale turns one free number per node into a factor. Learners bound p to
(-1, 1) with tanh, so that "reachable" below means reachable for such p.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.kernels import is_fused, native
from coopsheaf.sheaves.kernels.library import LARGEST_STALK
from coopsheaf.sheaves.maps import ConformalMaps


class Orthogonal(ABC):
    """A parametrisation of orthogonal d×d matrices.

    Args:
        stalk_dim: d, at least 1.
    """

    def __init__(self, stalk_dim: int) -> None:
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)

    @property
    def num_parameters(self) -> int:
        """k = d(d - 1)/2."""
        return self.stalk_dim * (self.stalk_dim - 1) // 2

    def __call__(self, parameters: Tensor) -> Tensor:
        """``(..., k)`` parameters to ``(..., d, d)`` orthogonal matrices."""
        if parameters.dim() == 0 or parameters.shape[-1] != self.num_parameters:
            raise ValueError(
                f"`parameters` must have shape (..., {self.num_parameters}) for stalk dimension "
                f"{self.stalk_dim}; got {tuple(parameters.shape)}"
            )
        # Half precision would not be orthogonal enough, and has no solvers.
        half = parameters.dtype in (torch.bfloat16, torch.float16)
        return self._matrices(parameters.float() if half else parameters)

    @abstractmethod
    def _matrices(self, parameters: Tensor) -> Tensor: ...

    def _lower(self, parameters: Tensor) -> Tensor:
        """Place the parameters row by row below the diagonal, ``(..., d, d)``."""
        d = self.stalk_dim
        rows, columns = torch.tril_indices(d, d, -1, device=parameters.device)
        lower = parameters.new_zeros(*parameters.shape[:-1], d * d)
        lower = lower.index_copy(-1, rows * d + columns, parameters)
        return lower.unflatten(-1, (d, d))

    def _eye(self, like: Tensor) -> Tensor:
        return torch.eye(self.stalk_dim, dtype=like.dtype, device=like.device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stalk_dim})"


class Householder(Orthogonal):
    r"""A product of d Householder reflections, the parametrisation of the paper.

    .. math:: Q = H_1 H_2 \cdots H_d, \qquad H_k = I - 2 \frac{v_k v_k^\top}{v_k^\top v_k},

    with :math:`v_k` the k-th column of the unit lower triangular matrix that has p below its
    diagonal. The last reflection is always that of the last coordinate.

    Determinant: :math:`(-1)^d`. Reachable: a neighbourhood of :math:`-I` (p = 0); with unbounded
    p all of that component but a set of measure zero. For d = 2 and p in (-1, 1), the rotations
    with negative cosine.
    """

    def _matrices(self, parameters: Tensor) -> Tensor:
        # Reflection by reflection, from the last one outwards; H_k leaves the first k - 1
        # coordinates alone, so Q grows by a row and a column each time. The nodes come last until
        # the end: products of many tiny matrices are slow, sums of long rows are not.
        # (torch.linalg.householder_product gives the same, but its derivative is slower and
        # unrolls into hundreds of operations when compiled.)
        d, p = self.stalk_dim, parameters.unbind(-1)
        q = parameters.new_full((1, 1, *parameters.shape[:-1]), -1.0)
        for k in reversed(range(d - 1)):
            v = torch.stack([p[i * (i - 1) // 2 + k] for i in range(k + 1, d)])  # below the 1
            factor = 2 / (1 + v.square().sum(0))
            w = (v.unsqueeze(1) * q).sum(0)  # vᵀ q
            scaled = factor * v
            top = torch.cat([(1 - factor).unsqueeze(0), -factor * w])
            body = torch.cat([-scaled.unsqueeze(1), q - scaled.unsqueeze(1) * w], dim=1)
            q = torch.cat([top.unsqueeze(0), body])  # (d - k, d - k, ...)
        # Taken apart and stacked rather than permuted: so the gradient comes back in long rows too.
        return torch.stack(q.flatten(0, 1).unbind(0), -1).unflatten(-1, (d, d))


class Cayley(Orthogonal):
    r"""The Cayley transform :math:`Q = (I - A/2)^{-1} (I + A/2)` of a skew-symmetric A.

    A has p below its diagonal and -p above. Determinant: 1. Reachable: a neighbourhood of
    I (p = 0); with unbounded p every rotation without the eigenvalue -1. For d = 2 and p in
    (-1, 1), the angles below 2 arctan(1/2) = 53°.
    """

    def _matrices(self, parameters: Tensor) -> Tensor:
        lower, eye = self._lower(parameters), self._eye(parameters)
        half = (lower - lower.mT) / 2
        return torch.linalg.solve(eye - half, eye + half)


class MatrixExponential(Orthogonal):
    r"""The exponential :math:`Q = e^A` of a skew-symmetric A.

    A has p below its diagonal and -p above. Determinant: 1. Reachable: a neighbourhood of
    I (p = 0); with unbounded p every rotation. For d = 2 and p in (-1, 1), the angles below one
    radian = 57°.
    """

    def _matrices(self, parameters: Tensor) -> Tensor:
        lower = self._lower(parameters)
        return torch.linalg.matrix_exp(lower - lower.mT)


class Euler(Orthogonal):
    r"""Rotations by Euler angles :math:`2 \pi p`, for d = 2 and d = 3.

    d = 2: the rotation by :math:`2 \pi p_1`. d = 3:
    :math:`Q = R_z(2 \pi p_1) R_y(2 \pi p_2) R_x(2 \pi p_3)`. Determinant: 1. Reachable: every
    rotation, most of them more than once; p = 0 gives the identity.
    """

    def __init__(self, stalk_dim: int) -> None:
        super().__init__(stalk_dim)
        if stalk_dim not in (2, 3):
            raise ValueError(f"`stalk_dim` must be 2 or 3 for Euler angles; got {stalk_dim}")

    def _matrices(self, parameters: Tensor) -> Tensor:
        angles = 2 * math.pi * parameters
        c, s = angles.cos().unbind(-1), angles.sin().unbind(-1)
        if self.stalk_dim == 2:
            entries = [c[0], -s[0], s[0], c[0]]
        else:
            entries = [
                c[0] * c[1],
                c[0] * s[1] * s[2] - s[0] * c[2],
                c[0] * s[1] * c[2] + s[0] * s[2],
                s[0] * c[1],
                s[0] * s[1] * s[2] + c[0] * c[2],
                s[0] * s[1] * c[2] - c[0] * s[2],
                -s[1],
                c[1] * s[2],
                c[1] * c[2],
            ]
        return torch.stack(entries, -1).unflatten(-1, (self.stalk_dim, self.stalk_dim))


class FixedIdentity(Orthogonal):
    """The identity, for ablations: nothing is turned, and nothing is learned."""

    @property
    def num_parameters(self) -> int:
        return 0

    def _matrices(self, parameters: Tensor) -> Tensor:
        return self._eye(parameters).expand(*parameters.shape[:-1], -1, -1)


class Scale(ABC):
    """Turns free numbers into the scales of conformal maps."""

    num_parameters = 1

    @abstractmethod
    def __call__(self, raw: Tensor) -> Tensor:
        """``(n, num_parameters)`` free numbers to ``(n,)`` scales."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ExpScale(Scale):
    """exp(raw), at most 10: the scale of the released implementation, in (0, 10].

    Never exactly zero, down to where the exponential underflows, and without gradient above the
    bound.
    """

    def __call__(self, raw: Tensor) -> Tensor:
        return raw[:, 0].clamp(max=math.log(10.0)).exp()


class SoftplusScale(Scale):
    """log(1 + exp(raw)), shifted to be 1 at raw = 0; positive, grows linearly, never bounded."""

    def __call__(self, raw: Tensor) -> Tensor:
        return F.softplus(raw[:, 0] + math.log(math.e - 1))


class RectifiedScale(Scale):
    r"""max(0, 1 + raw): exactly zero for raw ≤ -1, and can be trained out of it.

    A node whose target scale is zero does not listen at all and one whose source scale is zero is
    not heard at all: the actions LISTEN, PROPAGATE and ISOLATE become exact, which no positive
    scale can offer. The gradient passes as if the maximum were not there (straight-through), so
    a silent node still learns from what the loss would gain if its scale rose from zero. (For
    the same reason raw goes on sinking while the loss prefers silence, and takes as long to
    return; weight decay bounds that.)

    What reaches it is a product: :math:`\partial / \partial t_i` has a factor :math:`s_j` for some
    neighbour j and the other way round. In a layer in which *every* source scale and *every* target
    scale is zero nothing can wake up; at raw = 0, where learners start, every scale is 1.
    """

    def __call__(self, raw: Tensor) -> Tensor:
        value = 1 + raw[:, 0].clamp(min=torch.finfo(raw.dtype).min)
        # value - value.detach() is exactly zero and has the derivative 1.
        return torch.where(value > 0, value, value - value.detach())


class UnitScale(Scale):
    """Always 1: orthogonal maps; takes no parameter."""

    num_parameters = 0

    def __call__(self, raw: Tensor) -> Tensor:
        return raw.new_ones(raw.shape[0])


def conformal_maps(raw: Tensor, scale: Scale, orthogonal: Orthogonal) -> ConformalMaps:
    r"""The maps :math:`\operatorname{scale}(r_i) \cdot \operatorname{orthogonal}(\tanh p_i)`.

    Args:
        raw: free numbers ``(n, k + 1)``: p, and r if the scale has a parameter.
        scale: turns r into scales.
        orthogonal: turns tanh p into matrices.
    """
    k, d = orthogonal.num_parameters, orthogonal.stalk_dim

    def compose(raw: Tensor) -> tuple[Tensor, Tensor]:
        return scale(raw[:, k:]), orthogonal(torch.tanh(raw[:, :k]))

    compiled = type(orthogonal) is Householder and type(scale) is ExpScale
    if compiled and d <= LARGEST_STALK and raw.numel() > 0 and is_fused(raw):
        return ConformalMaps(*native.householder_maps(raw, d, compose))
    return ConformalMaps(*compose(raw))


ORTHOGONAL: dict[str, type[Orthogonal]] = {
    "householder": Householder,
    "cayley": Cayley,
    "matrix-exponential": MatrixExponential,
    "euler": Euler,
    "identity": FixedIdentity,
}

SCALES: dict[str, type[Scale]] = {
    "exp": ExpScale,
    "softplus": SoftplusScale,
    "rectified": RectifiedScale,
    "unit": UnitScale,
}


def make_orthogonal(orthogonal: str | Orthogonal, stalk_dim: int) -> Orthogonal:
    """A parametrisation from its name; an object is passed through."""
    if not isinstance(orthogonal, Orthogonal):
        return check_choice("orthogonal", orthogonal, ORTHOGONAL)(stalk_dim)
    if orthogonal.stalk_dim != stalk_dim:
        raise ValueError(
            f"`orthogonal` must be made for stalk dimension {stalk_dim}; got {orthogonal}"
        )
    return orthogonal


def make_scale(scale: str | Scale) -> Scale:
    """A scale from its name; an object is passed through."""
    return scale if isinstance(scale, Scale) else check_choice("scale", scale, SCALES)()
