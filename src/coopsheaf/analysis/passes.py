r"""What the two passes of a CSNN layer carry, edge by edge.

The operator of a layer (:mod:`coopsheaf.sheaves.diffusion`) is a product P = B A of two passes,

.. math::
    z_i &= \alpha_i \bar x_i - \sum_{j \to i} w_e\, l^A_i r^A_j\, R_i^\top Q_j \bar x_j, \\
    y_i &= \beta_i z_i - \sum_{j \to i} w_e\, l^B_i r^B_j\, R_i^\top Q_j z_j,

with :math:`S_j = s_j Q_j`, :math:`T_i = t_i R_i` and one number per node. In the paper's semantics

.. math::
    \alpha_i = \frac{d_i}{d_i + 1}, \qquad l^A_i = \frac{t_i}{\sqrt{d_i + 1}}, \qquad
    r^A_j = \frac{s_j}{\sqrt{d_j + 1}}

with :math:`d_i = \deg^{out}(i) s_i^2` in the pass A, and the same with :math:`d_i = \deg^{in}(i)
t_i^2` in the pass B. In the released semantics A is the pass that has the target maps in its
diagonal, and j → i is the entry ``(i, j)`` of the edge list.

The product is a sum over walks of at most two hops. Those that use an edge e = j → i and no other
stay where they are in the other pass, and add up to a multiple of one orthogonal matrix:

.. math::
    -w_e \bigl(\beta_i l^A_i r^A_j + \alpha_j l^B_i r^B_j\bigr) R_i^\top Q_j
    = -w_e \langle u_i, v_j \rangle R_i^\top Q_j, \qquad
    u_i = \binom{\beta_i l^A_i}{l^B_i}, \quad v_j = \binom{r^A_j}{\alpha_j r^B_j}.

Its norm :math:`w_e \langle u_i, v_j \rangle` is the *flow* of the edge: what the listener brings
times what the broadcaster brings. If no other walk of two hops leads from j to i, it is the norm of
the block (i, j) of P itself.

With ``semantics="messages"`` there is the pass A of the paper alone, without its diagonal: walks
of one hop, :math:`u_i = l^A_i`, :math:`v_j = r^A_j`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from coopsheaf.sheaves.diffusion import split_passes
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import NodeMapOperator
from coopsheaf.sheaves.operator import Operator


@dataclass(frozen=True)
class Pass:
    """One pass, in norms.

    Args:
        diagonal: ``(n,)``, what a node keeps.
        left: ``(n,)``, the listener's factor l.
        right: ``(n,)``, the broadcaster's factor r.
        edge: ``(m,)``, the norm of what an edge carries: w l r.
    """

    diagonal: Tensor
    left: Tensor
    right: Tensor
    edge: Tensor


@dataclass(frozen=True)
class LayerPasses:
    """The passes of a layer, and the graph along whose edges they carry.

    Args:
        graph: edges in the order of the caller's list, from broadcaster to listener: reversed in
            the released semantics.
        first: A.
        second: B; ``None`` if the layer has one pass.
        weight: ``(m,)``, edge weights; ones if there are none.
    """

    graph: Graph
    first: Pass
    second: Pass | None
    weight: Tensor

    @property
    def listener(self) -> Tensor:
        """u, ``(2, n)``; ``(1, n)`` of one pass."""
        if self.second is None:
            return self.first.left[None]
        return torch.stack([self.second.diagonal * self.first.left, self.second.left])

    @property
    def broadcaster(self) -> Tensor:
        """v, ``(2, n)``; ``(1, n)`` of one pass."""
        if self.second is None:
            return self.first.right[None]
        return torch.stack([self.first.right, self.first.diagonal * self.second.right])

    @property
    def flow(self) -> Tensor:
        """The norm of all walks over one edge alone, ``(m,)``."""
        u, v = self.listener[:, self.graph.target], self.broadcaster[:, self.graph.source]
        return self.weight * (u * v).sum(0)


def read_passes(operator: Operator) -> LayerPasses:
    """The passes of the operator of a CSNN layer, in double precision on the CPU."""
    first, second = split_passes(operator)
    graph = first.graph.to("cpu")
    if first.edge_weight is None:
        weight = torch.ones(graph.num_edges, dtype=torch.float64)
    else:
        weight = first.edge_weight.detach().double().cpu()
    after = None if second is None else _norms(second, graph, weight)
    return LayerPasses(graph, _norms(first, graph, weight), after, weight)


def _norms(operator: NodeMapOperator, graph: Graph, weight: Tensor) -> Pass:
    left, right = _norm(operator.left), _norm(operator.right)
    diagonal = operator.diagonal.detach().double().cpu()
    return Pass(diagonal, left, right, weight * left[graph.target] * right[graph.source])


def _norm(maps: Tensor) -> Tensor:
    """The norms of multiples of orthogonal matrices, ``(n,)``; 0 exactly where the map is."""
    flat = maps.detach().double().cpu().flatten(1)
    return flat.norm(dim=1) / math.sqrt(maps.shape[-1])
