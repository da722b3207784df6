"""The networks that NeighborsMatch was published with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GatedGraphConv, GCNConv, GINConv

from coopsheaf.checks import check_choice, check_int
from coopsheaf.models.network import Network, make_linear
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.network import give_loops, graph_convolution

GAT_HEADS = 4


def _gin(channels: int) -> nn.Module:
    return GINConv(
        nn.Sequential(
            nn.Linear(channels, channels),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
            nn.Linear(channels, channels),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
        )
    )


def _gat(channels: int) -> nn.Module:
    if channels % GAT_HEADS:
        raise ValueError(
            f"`hidden_channels` must be a multiple of {GAT_HEADS}, the number of heads; "
            f"got {channels}"
        )
    return GATConv(channels, channels // GAT_HEADS, heads=GAT_HEADS, add_self_loops=False)


class Kind(NamedTuple):
    """A layer and what comes after it."""

    conv: Callable[[int], nn.Module]
    relu: bool
    residual: bool
    norm: bool


KINDS: dict[str, Kind] = {
    "gcn": Kind(lambda channels: GCNConv(channels, channels), relu=True, residual=True, norm=True),
    "gin": Kind(_gin, relu=True, residual=True, norm=True),
    "gat": Kind(_gat, relu=False, residual=True, norm=True),
    "ggnn": Kind(
        lambda channels: GatedGraphConv(channels, num_layers=1),
        relu=False,
        residual=False,
        norm=False,
    ),
}


class MatchNetwork(Network):
    r"""The networks of the over-squashing study of Alon & Yahav (ICLR 2021).

    .. math:: Y = \operatorname{conv}_t(X_t, A), \qquad
              X_{t+1} = \operatorname{LayerNorm}_t\bigl([X_t +]\; [\operatorname{relu}](Y)\bigr)

    where brackets and norm depend on the kind:

    ========== ========================================= ====== ========== ======
    kind       conv (PyG's)                              relu   residual   norm
    ========== ========================================= ====== ========== ======
    ``"gcn"``  ``GCNConv``                               yes    yes        yes
    ``"gin"``  ``GINConv``, MLP of two (linear, batch    yes    yes        yes
               norm, ReLU)
    ``"gat"``  ``GATConv``, 4 heads, concatenated        no     yes        yes
    ``"ggnn"`` ``GatedGraphConv`` of one step            no     no         no
    ========== ========================================= ====== ========== ======

    The readout is linear without bias. On loops in the edge list: GCN keeps them and adds the
    missing ones, GAT has one per node in any case, and to GIN and GGNN a loop makes a node its own
    neighbour. Messages go from source to target, so k layers see k hops against the edges.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number of layers; a tree of depth r wants r + 1.
        out_channels: size of the output; ``None`` for the features of the last layer.
        kind: ``"gcn"``, ``"gin"``, ``"gat"`` or ``"ggnn"``.
        encoder: from input features to ``(n, hidden_channels)``; a linear layer if not given. With
            one that has ``integers = True`` (:class:`PairEmbedding`), x may hold integers.
        unroll: use one layer num_layers times, with its own norm each time.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node. Returns ``(n, out_channels)``, or ``(graphs,
        out_channels)`` with a pool.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 3,
        out_channels: int | None = None,
        *,
        kind: str,
        encoder: nn.Module | None = None,
        unroll: bool = False,
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        parts = check_choice("kind", kind, KINDS)
        self.kind, self.relu, self.residual = kind, parts.relu, parts.residual
        self.encoder = nn.Linear(in_channels, hidden_channels) if encoder is None else encoder
        self.convs = nn.ModuleList(
            parts.conv(hidden_channels) for _ in range(1 if unroll else num_layers)
        )
        self.norms = nn.ModuleList(
            nn.LayerNorm(hidden_channels) if parts.norm else nn.Identity()
            for _ in range(num_layers)
        )
        seen = self._end_layers(hidden_channels, jk, num_layers)
        self.readout = make_linear(seen, out_channels, bias=False)
        self.reset_parameters()

    def _check_x(self, x: Tensor) -> Tensor:
        if getattr(self.encoder, "integers", False) and not x.is_floating_point():
            # The checks that follow know one dtype; single precision is exact up to 2²⁴.
            dtype = next(self.parameters()).dtype
            if dtype in (torch.bfloat16, torch.float16):
                raise ValueError(
                    f"`x` of integers needs a model in single precision at least; got {dtype} "
                    "(autocast works)"
                )
            x = x.to(dtype)
        return super()._check_x(x)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        # Once per graph: PyG would look for loops in every layer, and wait for the device.
        edge_index = (give_loops(graph) if self.kind == "gat" else graph).edge_index
        x = self.encoder(x)
        for layer, norm in enumerate(self.norms):
            conv = self.convs[layer % len(self.convs)]
            y = graph_convolution(conv, x, graph) if self.kind == "gcn" else conv(x, edge_index)
            y = F.relu(y) if self.relu else y
            x = norm(x + y if self.residual else y)
            yield x

    def __repr__(self) -> str:
        unroll = ", unroll=True" if len(self.convs) < self.num_layers else ""
        return (
            f"MatchNetwork({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"kind={self.kind!r}{unroll})"
        )


class PairEmbedding(nn.Module):
    """The sum of two learned vectors, one for each integer of a pair.

    A node of NeighborsMatch is a pair (key, value): ``key_table[key] + value_table[value]``.

    Args:
        num_keys: keys are in ``[0, num_keys)``.
        num_values: values are in ``[0, num_values)``.
        channels: size of the vectors.

    Shapes:
        x ``(n, 2)``, integers of any dtype. Returns ``(n, channels)``.
    """

    integers = True

    def __init__(self, num_keys: int, num_values: int, channels: int) -> None:
        super().__init__()
        check_int("num_keys", num_keys, minimum=1)
        check_int("num_values", num_values, minimum=1)
        check_int("channels", channels, minimum=1)
        self.key_table = nn.Embedding(num_keys, channels)
        self.value_table = nn.Embedding(num_values, channels)

    def reset_parameters(self) -> None:
        self.key_table.reset_parameters()
        self.value_table.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        pairs = x.to(torch.int64)
        return self.key_table(pairs[:, 0]) + self.value_table(pairs[:, 1])

    def __repr__(self) -> str:
        keys, values = self.key_table, self.value_table
        return (
            f"PairEmbedding({keys.num_embeddings}, {values.num_embeddings}, {keys.embedding_dim})"
        )
