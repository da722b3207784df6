"""Exphormer: sparse attention that reaches everywhere in a few steps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.models.network import Network, make_linear
from coopsheaf.nn.inputs import EdgeInputs, NodeInputs
from coopsheaf.nn.per_batch import remember_with_batch
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.exphormer.layers import ExphormerLayer
from coopsheaf.zoo.exphormer.routes import Routes, make_routes


class Exphormer(Network):
    """Exphormer of Shirzad et al. (ICML 2023) with gated sums beside it.

    Layers of :class:`ExphormerLayer`. Attention runs along the edges of the graph, along those of
    ``num_virtual`` virtual nodes, each joined with all nodes of its graph both ways, and along
    those of a random expander, if there is one. The published runs on Peptides have no expander.
    Features of a route: those of its edge, one learned vector for all edges of the expander, and
    two for every virtual node, one for each way. Nothing has the size of all pairs.

    An expander joins nodes by their places in the list: with it, outputs depend on the order of the
    nodes.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_heads: number of heads; divides ``hidden_channels``.
        num_virtual: number of virtual nodes of every graph.
        expander_degree: number of random permutations that make the expander; 0 for none.
        expander_seed: of the expander; it is the same for all graphs of one size.
        dropout: dropout probability.
        encoder: ``"linear"``, or ``"atoms"`` for the codes of atoms and bonds.
        pe_kind: ``"none"``, ``"rwse"`` or ``"lappe"``, the encoding of places beside the features.
        pe_width: size of the encoding in the first layer.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        pe_channels: number of columns of the encoding in the data.
        edge_channels: number of features of an edge; 0 for one vector for all edges.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``; pe ``(n, pe_channels)``; edge_attr ``(m, edge_channels)``. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    exportable = False
    why_not_exportable = "this network has nodes and edges that the graph does not have"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 4,
        out_channels: int | None = None,
        *,
        num_heads: int = 4,
        num_virtual: int = 1,
        expander_degree: int = 0,
        expander_seed: int = 0,
        dropout: float = 0.0,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_width: int = 16,
        pool: str | None = None,
        pe_channels: int = 0,
        edge_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_virtual = check_int("num_virtual", num_virtual, minimum=0)
        self.expander_degree = check_int("expander_degree", expander_degree, minimum=0)
        self.expander_seed = check_int("expander_seed", expander_seed, minimum=0)
        self.encoder = NodeInputs(
            in_channels,
            hidden_channels,
            encoder=encoder,
            pe_kind=pe_kind,
            pe_channels=pe_channels,
            pe_width=pe_width,
        )
        self.pe_channels = self.encoder.pe_channels
        self.edge_encoder = EdgeInputs(edge_channels, hidden_channels, encoder=encoder)
        self.edge_channels = self.edge_encoder.edge_channels

        def vectors(count: int) -> nn.Parameter | None:
            return nn.Parameter(torch.empty(count, hidden_channels)) if count else None

        self.virtual, self.inward, self.outward = (vectors(num_virtual) for _ in range(3))
        self.expander = vectors(min(1, expander_degree))
        self.layers = nn.ModuleList(
            ExphormerLayer(hidden_channels, num_heads=num_heads, dropout=dropout)
            for _ in range(num_layers)
        )
        self.readout = make_linear(self._end_layers(hidden_channels), out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for vectors in (self.virtual, self.inward, self.outward, self.expander):
            if vectors is not None:
                nn.init.normal_(vectors)  # as the rows of an embedding start

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        routes = self._routes(graph, batch)
        x, edges = self.encoder(x, pe), self.edge_encoder(edge_attr, graph)
        said = routes.features(edges, self.expander, self.inward, self.outward)
        virtual = x.new_zeros(0, x.shape[1])
        if self.virtual is not None:
            virtual = self.virtual.repeat(routes.num_graphs, 1)
        for layer in self.layers:
            x, virtual, edges = layer(x, virtual, graph, edges, routes, said)
        return x

    def _routes(self, graph: Graph, batch: Tensor | None) -> Routes:
        sizes = self.num_virtual, self.expander_degree, self.expander_seed

        def make() -> Routes:
            return make_routes(
                graph, batch, num_virtual=sizes[0], expander_degree=sizes[1], seed=sizes[2]
            )

        return remember_with_batch(graph, f"routes {sizes}", batch, make)

    def __repr__(self) -> str:
        return (
            f"Exphormer({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_virtual={self.num_virtual}, "
            f"expander_degree={self.expander_degree})"
        )
