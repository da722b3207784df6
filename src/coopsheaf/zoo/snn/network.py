"""The Sheaf Neural Network of a fixed sheaf."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network, make_act, make_linear
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt
from coopsheaf.sheaves.laplacian import GraphOperator, weighted_degree
from coopsheaf.sheaves.operator import BlockDiagonal, Identity, Multiple, Operator, Product, Sum
from coopsheaf.tensor_checks import check_edge_numbers
from coopsheaf.zoo.nsd.conv import check_undirected_weight
from coopsheaf.zoo.nsd.edge_maps import undirected_partners
from coopsheaf.zoo.snn.conv import FixedSheafConv

NORMALIZATIONS = {"augmented": 1.0, "plain": 0.0}  # what is added to D


class SNN(Network):
    r"""Sheaf Neural Network (Hansen & Gebhart, 2020) on the constant or the signed sheaf.

    An encoder lifts the input to h channels of stalk dimension d; then, layer by layer,

    .. math:: X_{t+1} = \rho\bigl(D_F (I_n \otimes B_t) X_t A_t\bigr), \qquad D_F = I - \Delta,

    on stalks :math:`\mathbb{R}^d` with every map the identity. An edge weight of sign s and size w
    gives the maps (1, s) and the weight w. Node by node, with :math:`D_i = \sum_j |w_{ij}|` and
    :math:`\bar X = (I_n \otimes B) X A`,

    .. math::
        x_i' = \rho\Bigl(\frac{\bar x_i}{D_i + 1} + \sum_{j \to i}
               \frac{w_{ij} \bar x_j}{\sqrt{(D_i + 1)(D_j + 1)}}\Bigr).

    With the sheaf of one's own use :class:`~coopsheaf.zoo.snn.conv.FixedSheafConv`. The
    paper normalises with D, not D + I; encoder, dropout and readout are ours.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is d·h wide.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        stalk_dim: dimension d of the stalks.
        normalization: ``"augmented"``, or ``"plain"`` for the pseudo-inverse of D in place of
            the inverse of D + I.
        left_weights: learn B.
        input_dropout: dropout probability of the input features.
        dropout: dropout probability of what enters a layer.
        act: ρ, also after the encoder.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; batch ``(n,)``, the graph of each node; edge_weight ``(m,)`` of
        any sign, the same both ways. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    takes_edge_weight = True
    undirected = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        stalk_dim: int = 2,
        normalization: str = "augmented",
        left_weights: bool = True,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        act: str | Callable[[Tensor], Tensor] | None = "relu",
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.normalization = normalization
        self.added = check_choice("normalization", normalization, NORMALIZATIONS)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        self.act = make_act(act)

        width = stalk_dim * hidden_channels
        self.encoder = nn.Linear(in_channels, width)
        self.convs = nn.ModuleList(
            FixedSheafConv(
                hidden_channels, hidden_channels, stalk_dim, left_weights=left_weights, act=self.act
            )
            for _ in range(num_layers)
        )
        self.readout = make_linear(self._end_layers(width, jk, num_layers), out_channels)
        self.reset_parameters()

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        undirected_partners(graph)
        x = F.dropout(x, self.input_dropout, self.training)
        x = self.act(self.encoder(x)).unflatten(1, (self.stalk_dim, self.hidden_channels))
        diffusion = self._diffusion(x, graph, edge_weight)
        for conv in self.convs:
            x = conv(F.dropout(x, self.dropout, self.training), diffusion)  # (n, d, h)
            yield x.flatten(1)  # (n, d·h)

    def _diffusion(self, x: Tensor, graph: Graph, weight: Tensor | None) -> Operator:
        d, size = self.stalk_dim, None if weight is None else weight.abs()
        degree = weighted_degree(graph, size).to(x.dtype)
        root = BlockDiagonal(inverse_sqrt(degree + self.added), d)
        laplacian = GraphOperator(graph, degree, weight, d)
        normalized = Product(root, Product(laplacian, root))
        identity = Identity(graph.num_nodes, d, dtype=x.dtype, device=x.device)
        return Sum(identity, Multiple(-1.0, normalized))

    def _check_weight(self, edge_weight: Tensor, graph: Graph, x: Tensor) -> Tensor:
        weight = check_edge_numbers(edge_weight, graph.num_edges, "x", x)
        if weight.is_cpu and not torch.compiler.is_compiling() and not weight.isfinite().all():
            raise ValueError("`edge_weight` must be finite; got infinite or undefined weights")
        return check_undirected_weight(weight, graph)

    def __repr__(self) -> str:
        return (
            f"SNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, stalk_dim={self.stalk_dim})"
        )
