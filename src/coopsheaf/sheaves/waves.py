r"""Second order: features that swing, :math:`X'' = -A X - r X'`, instead of those that settle."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.polynomials import check_square, norm_bound


class Wave(NamedTuple):
    """Where features are, and where they are going."""

    x: Tensor  # (n, d, h)
    velocity: Tensor  # (n, d, h)


def propagate(
    operator: Operator,
    x: Tensor,
    steps: int,
    step_size: float,
    *,
    velocity: Tensor | None = None,
    damping: float = 0.0,
) -> Wave:
    r"""Steps of the wave equation, velocity first,

    .. math::
        V \leftarrow (1 - s r) V - s A X, \qquad X \leftarrow X + s V.

    Undamped this is leapfrog: X_{t+1} = 2 X_t - X_{t-1} - s² A X_t, which can be turned round in
    time. Where A is symmetric with a spectrum in [0, λ], steps with s² λ < 4 keep
    :math:`\|V\|^2 + \langle X, A X \rangle - s \langle V, A X \rangle` to the last bit that sums
    keep, so that nothing decays: :func:`stable_step` gives s.

    **For operators that are not symmetric there is no such bound.** A mode of eigenvalue λ is
    multiplied by the roots of :math:`\mu^2 - (2 - s^2 \lambda) \mu + 1`, whose product is 1: both
    stay on the unit circle only if λ is real and in [0, 4/s²], and for any other λ one of them
    grows, however small s is. The diffusion operators of a CSNN have complex eigenvalues in
    general. Damping helps where it outweighs what they turn: see :func:`needed_damping`.

    Args:
        operator: A, from nodes to nodes.
        x: where features begin, ``(n, d, h)``.
        steps: how many.
        step_size: s.
        velocity: with what they begin; none if not given.
        damping: r, not negative.
    """
    check_square(operator)
    if not (math.isfinite(step_size) and step_size > 0):
        raise ValueError(f"`step_size` must be positive; got {step_size}")
    if not (math.isfinite(damping) and damping >= 0):
        raise ValueError(f"`damping` must not be negative; got {damping}")
    v = x.new_zeros(x.shape) if velocity is None else velocity
    for _ in range(steps):
        v = (1 - step_size * damping) * v - step_size * operator.mv(x)
        x = x + step_size * v
    return Wave(x, v)


def stable_step(operator: Operator) -> float:
    r"""A step size for undamped waves of a symmetric, positive semi-definite operator.

    :math:`s = 0.99 \cdot 2 / \sqrt{b}` with :func:`~coopsheaf.sheaves.norm_bound` b ≥ λ_max; for
    normalised Laplacians of undirected sheaves, whose spectrum is in [0, 2], any s < √2 will do.
    """
    bound = float(norm_bound(check_square(operator)))
    return 0.99 * 2 / math.sqrt(bound) if bound > 0 else 1.0


def needed_damping(eigenvalue: complex) -> float:
    r"""The smallest r for which :math:`u'' = -\lambda u - r u'` does not grow.

    With :math:`\lambda = a + ib` the characteristic equation :math:`z^2 + r z + \lambda = 0` has
    both roots in the closed left half-plane exactly if :math:`a r^2 \ge b^2` (and a ≥ 0):
    :math:`r = |b| / \sqrt a`, infinite for a = 0 ≠ b or a < 0. It is the statement for continuous
    time; steps need s small besides.
    """
    a, b = eigenvalue.real, eigenvalue.imag
    if a < 0:
        return math.inf
    if b == 0:
        return 0.0
    return abs(b) / math.sqrt(a) if a > 0 else math.inf
