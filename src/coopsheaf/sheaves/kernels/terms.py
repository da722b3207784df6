"""What every kernel is given: the parts of one operator."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from coopsheaf.sheaves.graph import Graph


class Terms(NamedTuple):
    r"""The parts of :math:`y_i = D_i x_i - \sum_{e = (j \to i)} w_e\, L_e^\top R_e\, x_j`.

    Maps belong to the n nodes (:math:`L_e = L_i, R_e = R_j`) or to the m edges; the kernel that is
    called says to which.
    """

    graph: Graph
    diagonal: Tensor  # (n,) or (n, d, d)
    left: Tensor  # (n, d, d) or (m, d, d)
    right: Tensor  # as left
    edge_weight: Tensor | None = None  # (m,)
