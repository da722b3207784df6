"""What sheaves of all kinds share: a graph, immutability, constant and random maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coopsheaf.sheaves.draws import Draw
from coopsheaf.sheaves.graph import Graph, as_graph

if TYPE_CHECKING:
    from typing_extensions import Self


class BaseSheaf:
    """What the sheaves share: a graph of n nodes, m edges and stalks of dimension d."""

    graph: Graph
    edge_weight: Tensor | None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change: build a new one instead")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change: build a new one instead")

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def edge_index(self) -> Tensor:
        return self.graph.edge_index

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    @property
    def num_edges(self) -> int:
        return self.graph.num_edges

    @property
    def stalk_dim(self) -> int:
        raise NotImplementedError

    @property
    def edge_stalk_dim(self) -> int:
        """The dimension of the stalks of edges: that of nodes, if nothing else is said."""
        return self.stalk_dim

    @classmethod
    def _assemble(cls, graph: Graph, make: Draw, edge_weight: Tensor | None) -> Self:
        """A sheaf whose maps ``make`` makes, ``(*shape, d, d)`` for each shape it is asked for."""
        raise NotImplementedError

    @classmethod
    def constant(
        cls,
        edge_index: Tensor | Graph,
        stalk_dim: int = 1,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """The constant sheaf: every map is the identity, so that its Laplacians are the graph's.

        Args:
            edge_index: as for the sheaf itself.
            stalk_dim: d.
            num_nodes: n; the largest index plus one if not given.
            edge_weight: ``(m,)``, not negative.
            dtype: of the maps; PyTorch's default if not given.
        """
        graph = as_graph(edge_index, num_nodes)
        draw = Draw(stalk_dim, "identity", None, dtype, graph.device)
        return cls._assemble(graph, draw, edge_weight)

    @classmethod
    def random(
        cls,
        edge_index: Tensor | Graph,
        stalk_dim: int = 1,
        num_nodes: int | None = None,
        *,
        kind: str = "orthogonal",
        seed: int = 0,
        edge_weight: Tensor | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """A sheaf with independent random maps.

        Args:
            edge_index: as for the sheaf itself.
            stalk_dim: d.
            num_nodes: n; the largest index plus one if not given.
            kind: ``"orthogonal"`` (uniform on O(d)), ``"general"`` (normal entries of variance
                1/d) or ``"diagonal"`` (normal entries of variance 1).
            seed: the same seed gives the same maps.
            edge_weight: ``(m,)``, not negative.
            dtype: of the maps; PyTorch's default if not given.
        """
        graph = as_graph(edge_index, num_nodes)
        draw = Draw(stalk_dim, kind, seed, dtype, graph.device)
        return cls._assemble(graph, draw, edge_weight)

    def __repr__(self) -> str:
        weighted = "" if self.edge_weight is None else ", weighted"
        e, d = self.edge_stalk_dim, self.stalk_dim
        edges = "" if e == d else f", edge_stalk_dim={e}"
        return (
            f"{type(self).__name__}(num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"stalk_dim={d}{edges}{weighted})"
        )
