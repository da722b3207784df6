"""What the networks of the benchmark share: how they begin, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.inputs import EdgeInputs, NodeInputs
from coopsheaf.sheaves.graph import Graph

LayerMaker = Callable[..., nn.Module]


class LongRangeNetwork(Network):
    r"""Encoders of nodes, places and edges, layers of one width, and a head.

    .. math:: h^{(0)}_i = [\phi(x_i) \,\Vert\, \psi(p_i)], \qquad
              h^{(t+1)}, e^{(t+1)} = \operatorname{layer}_t(h^{(t)}, e^{(t)})

    The head is, after pooling for whole graphs, ``head_layers`` linear layers with dropout before
    each and GELU between them.

    Args:
        in_channels: size of the input features.
        hidden_channels: width of every layer.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        make_layer: called with the width and ``dropout`` for each layer, a module that takes
            features of nodes and of edges and what :meth:`prepare` made, and gives both features.
        dropout: dropout probability.
        encoder: ``"linear"`` for features, ``"atoms"`` for the codes of atoms and of bonds.
        pe_kind: ``"none"``, ``"rwse"`` or ``"lappe"``: what the places of nodes are.
        pe_width: how much of the first width is that of places.
        head_layers: number of linear layers of the head.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the head sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).
        pe_channels: size of the places of nodes.
        edge_channels: size of the features of edges; without any, all edges share a learned vector.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node; pe ``(n, pe_channels)``; edge_attr
        ``(m, edge_channels)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a
        pool.
    """

    # Nobody hears what the last layer makes of the edges; nor is a table of bonds always looked up.
    idle = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int | None,
        *,
        make_layer: LayerMaker,
        dropout: float = 0.1,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_width: int = 16,
        head_layers: int = 3,
        pool: str | None = None,
        jk: str | None = None,
        pe_channels: int = 0,
        edge_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        self.edge_channels = check_int("edge_channels", edge_channels, minimum=0)
        self.pe_channels = pe_channels
        self.nodes = NodeInputs(
            in_channels,
            hidden_channels,
            encoder=encoder,
            pe_kind=pe_kind,
            pe_channels=pe_channels,
            pe_width=pe_width,
        )
        self.edges = self._make_edges(encoder)
        self.layers = nn.ModuleList(
            make_layer(hidden_channels, dropout=dropout) for _ in range(num_layers)
        )
        width = self._end_layers(hidden_channels, jk, num_layers)
        self.readout = make_head(width, out_channels, head_layers, dropout)
        self.reset_parameters()

    def _make_edges(self, encoder: str) -> EdgeInputs | None:
        return EdgeInputs(self.edge_channels, self.hidden_channels, encoder=encoder)

    def prepare(
        self, x: Tensor, graph: Graph, batch: Tensor | None, edge_weight: Tensor | None
    ) -> Any:
        """What all layers need of the graph, made once per pass."""
        return graph

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
        beside = {"batch": batch, "pe": pe, "edge_weight": edge_weight, "edge_attr": edge_attr}
        outputs = self.layer_outputs(x, graph, **beside)
        if self.jump is not None:
            return self.jump(list(outputs))
        for last in outputs:  # noqa: B007 -- it is wanted below
            pass
        return last

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = self.nodes(x, pe)
        e = self.embed_edges(edge_attr, graph)
        where = self.prepare(x, graph, batch, edge_weight)
        for layer in self.layers:
            x, e = layer(x, e, where)
            yield x

    def embed_edges(self, edge_attr: Tensor | None, graph: Graph) -> Tensor | None:
        """What enters the first layer of the edges, ``(m, hidden_channels)``."""
        return None if self.edges is None else self.edges(edge_attr, graph)

    def __repr__(self) -> str:
        edges = f", edge_channels={self.edge_channels}" if self.edge_channels else ""
        places = f", pe_channels={self.pe_channels}" if self.pe_channels else ""
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}{edges}{places})"
        )


def make_head(width: int, out_channels: int | None, num_layers: int, dropout: float) -> nn.Module:
    """Linear layers with dropout before each and GELU between them; nothing without an output."""
    check_int("head_layers", num_layers, minimum=1)
    if out_channels is None:
        return nn.Identity()
    hidden: list[nn.Module] = []
    for _ in range(num_layers - 1):
        hidden += [nn.Dropout(dropout), nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*hidden, nn.Dropout(dropout), nn.Linear(width, out_channels))


def normalize(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """Batch norm of ``(n, width)`` rows; a single one, or none, by what was seen before.

    Of one row there is no deviation, and of none no mean: it would become NaN for good.
    """
    if x.shape[0] > 1:
        return norm(x)
    mean, variance = norm.running_mean, norm.running_var
    return F.batch_norm(x, mean, variance, norm.weight, norm.bias, False, 0.0, norm.eps)
