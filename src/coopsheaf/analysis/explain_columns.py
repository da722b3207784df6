r"""Which columns moved a prediction: a node's own, and those of the nodes that it hears.

With :math:`g = \partial f / \partial x` the gradient of the score
(:mod:`coopsheaf.analysis.explain`) and b the baseline, feature p of node j has the attribution

.. math:: a_{jp} = g_{jp} \, (x_{jp} - b_p),

to first order, by how much f falls if that feature alone becomes :math:`b_p`. What belongs to a
column c is added up, :math:`a_{jc} = \sum_{p \in c} a_{jp}`. For the node i that is explained, the
*own* part of column c is :math:`a_{ic}`, its *neighbours'* part the sum of :math:`a_{jc}` over all
other nodes j within reach of the network. All columns together are the attribution of a node,
:math:`\sum_c a_{jc} = a_j`, and like it they split into what passed through the diffusion and what
passed through the map learners.

**Why the gradient at the node's own features, and no path integral.** To *mute* a column is to
set it to its mean and to leave all others as they are. A gradient at x predicts exactly that
step, for as long as it is small. Integrated gradients average over states in which the other
columns are on their way to the mean as well: they add up to :math:`f(x) - f(b)`, and rank single
columns worse (:func:`~coopsheaf.analysis.check_columns` measures it; the guide has the numbers).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from coopsheaf.analysis.columns import Columns
from coopsheaf.checks import check_choice, check_int

PARTS = {
    "own": "the node's own columns",
    "neighbours": "the columns of all other nodes",
}


@dataclass(frozen=True, eq=False)
class ColumnAttribution:
    """By how much a score would fall, to first order, if a column were at its mean.

    Args:
        node: i, whose prediction is explained.
        columns: k of them.
        cells: ``(n, k)``, of every column at every node, signed.
        diffusion_cells: ``(n, k)``, the part of it with maps held; ``None`` for networks that learn
            no maps.
    """

    node: int
    columns: Columns
    cells: Tensor
    diffusion_cells: Tensor | None

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns.names

    @property
    def own(self) -> Tensor:
        """``(k,)``, of the node's own columns."""
        return self._part(self.cells, "own")

    @property
    def neighbours(self) -> Tensor:
        """``(k,)``, of the columns of all other nodes, each summed over them."""
        return self._part(self.cells, "neighbours")

    def part(self, part: str) -> Tensor:
        """``(k,)``, of a part by name: ``"own"`` or ``"neighbours"``."""
        check_choice("part", part, PARTS)
        return self._part(self.cells, part)

    def diffusion(self, part: str) -> Tensor | None:
        """What of a part passed through the diffusion alone, ``(k,)``."""
        check_choice("part", part, PARTS)
        return None if self.diffusion_cells is None else self._part(self.diffusion_cells, part)

    def learners(self, part: str) -> Tensor | None:
        """What of a part passed through a map learner, ``(k,)``."""
        held = self.diffusion(part)
        return None if held is None else self.part(part) - held

    def top(self, part: str = "own", count: int = 10) -> list[int]:
        """The columns with the largest attribution of either sign; those with none are left out."""
        return largest(self.part(part), check_int("count", count, minimum=1))

    @property
    def header(self) -> list[str]:
        parts = [] if self.diffusion_cells is None else ["diffusion", "learners"]
        return ["column", "attribution", *parts]

    def rows(self, part: str = "own", count: int = 10) -> list[list[str]]:
        """A row of text per column of :meth:`top`, under :attr:`header`."""
        parts = (self.part(part), self.diffusion(part), self.learners(part))
        return [
            [self.names[c], *(f"{float(each[c]):+.4g}" for each in parts if each is not None)]
            for c in self.top(part, count)
        ]

    def _part(self, cells: Tensor, part: str) -> Tensor:
        # Not all minus own: what is exactly zero at every other node stays exactly zero.
        if part == "own":
            return cells[self.node]
        return cells[: self.node].sum(0) + cells[self.node + 1 :].sum(0)


def attribute_columns(
    node: int, columns: Columns, apart: Tensor, total: Tensor, held: Tensor | None
) -> ColumnAttribution:
    """Fold gradients ``(n, F)`` times distances ``(n, F)`` from the baseline to columns."""
    return ColumnAttribution(
        node=node,
        columns=columns,
        cells=columns.fold(total * apart),
        diffusion_cells=None if held is None else columns.fold(held * apart),
    )


def largest(values: Tensor, count: int) -> list[int]:
    """Where the ``count`` largest absolute values are, none of them 0; the first of equals."""
    size = values.abs()
    order = torch.sort(size, descending=True, stable=True).indices[:count]
    return [k for k in order.tolist() if size[k] > 0]
