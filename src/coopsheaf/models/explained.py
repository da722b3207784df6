"""Edge masks of PyG's explainers, which ride on the edge weights."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import MessagePassing

from coopsheaf.sheaves.graph import Graph


class EdgeMasks(MessagePassing):
    r"""Where PyG's explainers leave the mask of the edges that they learn.

    They look for layers of the kind ``MessagePassing``, which multiply their messages by it. The
    layers here send no messages, so this module, which has no parameters and passes none either,
    is what they find: while a mask is set, the weight of edge e is

    .. math:: w_e' = m_e w_e,

    with :math:`m_e` the mask, after a sigmoid where the explainer asks for one.

    Args:
        undirected: edges have the same weight both ways; so the mask of an edge is the mean of the
            two that an explainer has for it.
    """

    def __init__(self, undirected: bool = False) -> None:
        super().__init__()
        self.undirected = undirected

    def forward(self, edge_weight: Tensor | None, graph: Graph, x: Tensor) -> Tensor | None:
        """The weights ``(m,)`` of a graph under the mask; as they are if there is none."""
        mask = self._edge_mask if self.explain else None
        if mask is None:
            return edge_weight
        if mask.shape != (graph.num_edges,):
            raise ValueError(
                f"the edge mask of an explainer must have shape ({graph.num_edges},), one number "
                f"per edge; got {tuple(mask.shape)}"
            )
        mask = (mask.sigmoid() if self._apply_sigmoid else mask).to(x.dtype)
        if self.undirected:
            mask = (mask + mask[graph.partners()]) / 2
        return mask if edge_weight is None else mask * edge_weight
