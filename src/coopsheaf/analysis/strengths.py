r"""How strongly nodes listen and broadcast, in the unit of their layer.

**What is free.** Over an edge e = j → i a pass of a layer carries :math:`-w_e l_i r_j R_i^\top
Q_j`, a product of what the listener takes and what the broadcaster gives, and both passes together
:math:`-w_e \langle u_i, v_j \rangle R_i^\top Q_j` (:mod:`coopsheaf.analysis.passes`). Nothing but
such products is ever carried. So

.. math::
    l^A_i \mapsto a\, l^A_i, \quad r^A_j \mapsto a^{-1} r^A_j, \qquad
    l^B_i \mapsto b\, l^B_i, \quad r^B_j \mapsto b^{-1} r^B_j \qquad (a, b > 0)

changes no message of the layer, over one hop or two, but every :math:`u_i` and :math:`v_j`: in
every layer, and in either pass, taking is measured in a unit of its own and giving in its inverse.
The length of :math:`u_i` or :math:`v_j` alone says nothing, and a threshold for it, common to all
layers or not, means nothing. Flows depend on neither a nor b.

(Multiplying the maps themselves, S by c and T by 1/c, keeps every :math:`T_i^\top S_j`. It does not
keep the layer: the degrees :math:`\deg s_i^2` and :math:`\deg t_i^2` of the augmented normalisation
stand beside a 1 and change with c, in all semantics. Where the messages change, so may the
actions.)

**The unit.** With :math:`k^{in}_i = \sum_{j \to i, j \ne i} w_e` and :math:`k^{out}_j` likewise,
let

.. math::
    \varphi_{ij} = \sqrt{k^{in}_i k^{out}_j} \, \langle u_i, v_j \rangle
    = \langle \hat u_i, \hat v_j \rangle .

It is the flow of an edge j → i over :math:`w_e / \sqrt{k^{in}_i k^{out}_j}`, which the
symmetrically normalised adjacency would carry there: a number without unit or degree, and defined
for any two nodes, whether there is an edge or not. The strengths are its root mean squares over all
who could be at the other end, in units of that over all pairs:

.. math::
    \text{listening}_i &= \frac1\varrho \Bigl(\operatorname*{mean}_j \varphi_{ij}^2\Bigr)^{1/2}
    = \frac1\varrho \sqrt{\hat u_i^\top M_v \hat u_i}, \\
    \text{broadcasting}_j &= \frac1\varrho \Bigl(\operatorname*{mean}_i \varphi_{ij}^2\Bigr)^{1/2}
    = \frac1\varrho \sqrt{\hat v_j^\top M_u \hat v_j}, \\
    \varrho^2 &= \operatorname*{mean}_{i, j} \varphi_{ij}^2 = \operatorname{tr} M_u M_v,

where :math:`M_u = \operatorname{mean}_i \hat u_i \hat u_i^\top` is over the nodes with edges into
them and :math:`M_v` over those with edges out of them. Nothing here depends on a and b, and nothing
on another layer. In every layer both strengths have the root mean square 1, so that a layer that
carries anything has a node that listens and one that broadcasts, for any threshold up to 1. They do
not depend on what the neighbours of a node do. Both are exactly 0 without an edge, listening where
:math:`T_i = 0` and broadcasting where :math:`S_j = 0`.

If :math:`\varrho = 0` nothing flows in the layer and there is no unit to be had from flows. Each of
the two strengths is then its own length over the root mean square of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from coopsheaf.analysis.passes import LayerPasses


@dataclass(frozen=True)
class Strengths:
    """What the nodes of one layer give and take.

    Args:
        listening: ``(n,)``, in units of ``typical``.
        broadcasting: ``(n,)``, likewise.
        typical: ϱ, the root mean square of φ over all pairs of a listener and a broadcaster.
        typical_flow: ``(m,)``, what each edge would carry if φ were ϱ there, :math:`\\varrho w_e /
            \\sqrt{k^{in}_i k^{out}_j}`; 0 for loops.
    """

    listening: Tensor
    broadcasting: Tensor
    typical: float
    typical_flow: Tensor


def read_strengths(passes: LayerPasses) -> Strengths:
    """The strengths of all nodes in the unit of their layer; see the module."""
    graph = passes.graph  # from broadcaster to listener
    weight = passes.weight * (graph.source != graph.target)  # to hear oneself is no listening
    come = sum_at(graph.target, weight, graph.num_nodes)
    go = sum_at(graph.source, weight, graph.num_nodes)
    u, v = come.sqrt() * passes.listener, go.sqrt() * passes.broadcaster  # (2 or 1, n)
    if not (u.isfinite().all() and v.isfinite().all()):
        raise ValueError("`model` must have finite maps on `x`; got some that are not")
    moment_u, moment_v = _second_moment(u[:, come > 0]), _second_moment(v[:, go > 0])
    typical = float((moment_u * moment_v).sum().sqrt())
    if typical > 0:
        # No entry is negative: nothing cancels, and a sum is 0 only if all of it is.
        listening = (u * (moment_v @ u)).sum(0).sqrt() / typical
        broadcasting = (v * (moment_u @ v)).sum(0).sqrt() / typical
    else:
        listening, broadcasting = (
            vectors.norm(dim=0) / (float(moment.trace().sqrt()) or 1.0)
            for vectors, moment in ((u, moment_u), (v, moment_v))
        )
    plain = (come[graph.target] * go[graph.source]).clamp(min=torch.finfo(u.dtype).tiny).rsqrt()
    return Strengths(listening, broadcasting, typical, typical * weight * plain)


def sum_at(ends: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """The values of all edges with the same end, added up, ``(n,)``."""
    return values.new_zeros(num_nodes).index_add(0, ends, values)


def _second_moment(vectors: Tensor) -> Tensor:
    """The mean of x xᵀ over the columns of ``(2 or 1, k)``; zero if there are none."""
    return vectors @ vectors.T / max(vectors.shape[1], 1)
