r"""Second order: features that swing, :math:`X'' = -A X - r X'`, instead of those that settle."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.polynomials import check_square, norm_bound

# A transient bound takes an eigenvalue problem of this many rows for each of its angles.
MAX_ROWS = 1024


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
    general. Damping helps where it outweighs what they turn: :func:`stable_steps` has the step
    sizes of a mode, :func:`transient_bound` what is guaranteed of all of them together.

    Args:
        operator: A, from nodes to nodes.
        x: where features begin, ``(n, d, h)``.
        steps: how many.
        step_size: s.
        velocity: with what they begin; none if not given.
        damping: r, not negative.
    """
    check_square(operator)
    _check_step(step_size)
    _check_damping(damping)
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
    time; with any larger r, steps below the second number of :func:`stable_steps` decay too.
    """
    a, b = eigenvalue.real, eigenvalue.imag
    if a < 0:
        return math.inf
    if b == 0:
        return 0.0
    return abs(b) / math.sqrt(a) if a > 0 else math.inf


def stable_steps(eigenvalue: complex, damping: float = 0.0) -> tuple[float, float]:
    r"""The step sizes with which :func:`propagate` does not let a mode grow, an open interval.

    With q = 1 - s r a mode of :math:`\lambda = a + ib` follows
    :math:`u_{t+1} = (1 + q - s^2 \lambda) u_t - q u_{t-1}`. For :math:`|q| < 1` both roots of its
    characteristic polynomial are inside the unit circle exactly if λ is inside an ellipse,

    .. math::
        \Bigl(\frac{s^2 a}{1 + q} - 1\Bigr)^2 + \Bigl(\frac{s^2 b}{1 - q}\Bigr)^2 < 1,

    and with q put in, exactly if s lies between :math:`(2 b^2 - a r^2 \mp a \sqrt{r^4 + 4 a r^2 -
    4 b^2}) / (r |\lambda|^2)`. The lower end is 0 where r exceeds :func:`needed_damping`; below
    that there may be steps that are stable though shorter ones are not.

    Undamped (q = 1) the ellipse has no width: real λ > 0 swing for s < 2 / √λ, and all others
    grow. λ = 0 stays for s < 2 / r (undamped, a velocity that it begins with carries it away
    linearly). Nothing holds where q ≤ -1, or where a ≤ 0 and λ is not 0. For several modes,
    intersect their intervals.

    Args:
        eigenvalue: λ.
        damping: r, not negative.

    Returns:
        The shortest and the longest step, both excluded; (0, 0) if there is none.
    """
    r = _check_damping(damping)
    a, b = eigenvalue.real, eigenvalue.imag
    if a == b == 0:
        return 0.0, 2 / r if r > 0 else math.inf
    if a <= 0 or (r == 0 and b != 0):
        return 0.0, 0.0
    if r == 0:
        return 0.0, 2 / math.sqrt(a)
    inside = r**4 + 4 * a * r**2 - 4 * b**2
    if inside <= 0:
        return 0.0, 0.0
    # Either end is written without a difference of numbers that may be nearly equal.
    middle, width = 2 * b**2 - a * r**2, a * math.sqrt(inside)
    outweighed = 4 * (a * r**2 - b**2)
    if middle <= 0:
        return 0.0, outweighed / (width - middle) / r
    return max(0.0, -outweighed / (middle + width) / r), (middle + width) / (a * a + b * b) / r


def transient_bound(
    operator: Operator, step_size: float, damping: float, *, angles: int = 360
) -> float:
    r"""How far damped waves can rise before they decay: K for which, at every step t,

    .. math::
        \|X_t\| \le K\, (\|X_0\| + |q|\, \|X_0 - s V_0\|), \qquad q = 1 - s r.

    Eigenvalues inside the ellipse of :func:`stable_steps` say that waves decay in the end; where A
    is not normal they may grow by any factor before. If the *numerical range* of A is inside, all
    eigenvalues are, and :math:`1 / K` is its distance from the ellipse, times s²: for
    :math:`W = (1 + q) I - s^2 A`, the steps are coefficients of
    :math:`(\mu^2 - \mu W + q)^{-1}`, which on the unit circle is at most one over the distance
    of the numerical range of W from :math:`\mu + q / \mu`. These points are the ellipse. The
    distance is found by a few support lines; what may lie between two of them is taken off.

    Args:
        operator: A, from nodes to nodes, small enough for a dense matrix.
        step_size: s.
        damping: r, positive and below 2 / s.
        angles: how many support lines; more of them make K smaller, down to the above.

    Returns:
        K; infinite if the numerical range leaves the ellipse, which decides nothing, or touches
        it, as it does wherever A annuls something.
    """
    check_square(operator)
    s, r = _check_step(step_size), _check_damping(damping)
    check_int("angles", angles, minimum=1)
    if not 0 < s * r < 2:
        raise ValueError(f"`damping` must be between 0 and 2 / `step_size` = {2 / s:g}; got {r:g}")
    rows = operator.domain[0] * operator.domain[1]
    if rows > MAX_ROWS:
        raise ValueError(f"`operator` must have at most {MAX_ROWS} rows for this; got {rows}")
    if rows == 0:
        return 0.0
    q = 1 - s * r
    matrix = -(s**2) * operator.to_dense().detach().double()
    matrix.diagonal().add_(1 + q)
    symmetric, skew = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
    gap = math.inf
    for k in range(angles):  # the lower half is a mirror image: A is real
        turn = math.pi * (k + 0.5) / angles
        across, up = math.cos(turn), math.sin(turn)
        reach = torch.linalg.eigvalsh(across * symmetric - 1j * up * skew)[-1]
        gap = min(gap, math.hypot((1 + q) * across, (1 - q) * up) - float(reach))
    # Support functions change no faster than their sets are wide.
    slope = 1 + abs(q) + float(torch.linalg.matrix_norm(matrix, ord=2))
    gap -= slope * math.pi / (2 * angles)
    return 1 / gap if gap > 0 else math.inf


def _check_step(step_size: float) -> float:
    if not (math.isfinite(step_size) and step_size > 0):
        raise ValueError(f"`step_size` must be positive; got {step_size}")
    return step_size


def _check_damping(damping: float) -> float:
    if not (math.isfinite(damping) and damping >= 0):
        raise ValueError(f"`damping` must not be negative; got {damping}")
    return damping
