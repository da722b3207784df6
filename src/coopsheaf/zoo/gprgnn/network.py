"""GPR-GNN: a perceptron at every node, then a learned sum over powers of the adjacency matrix."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, reset_children
from coopsheaf.nn.sparse_inputs import take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.perceptron import Perceptron
from coopsheaf.zoo.plain.propagation import Propagation


def pagerank_weights(alpha: float, num_hops: int) -> Tensor:
    r"""The weights of personalised PageRank, cut off after K hops, ``(K + 1,)``.

    .. math:: \gamma_k = \alpha (1 - \alpha)^k \quad (k < K), \qquad \gamma_K = (1 - \alpha)^K

    They sum to one. α = 1 gives (1, 0, ..., 0): no neighbour is heard at first.
    """
    weights = [alpha * (1 - alpha) ** k for k in range(num_hops)]
    return torch.tensor([*weights, (1 - alpha) ** num_hops], dtype=torch.float64)


class GPRGNN(Network):
    r"""GPR-GNN of Chien et al. (ICLR 2021).

    .. math:: Z = \sum_{k=0}^{K} \gamma_k S^k \operatorname{MLP}(X), \qquad
              S = D^{-1/2} (A + I) D^{-1/2}

    with learned γ of any sign, which start as personalised PageRank (:func:`pagerank_weights`).
    Node by node, :math:`z_i = \sum_k \gamma_k \sum_j (S^k)_{ij} \operatorname{MLP}(x_j)`. A loop is
    added to stored ones; PyG's ``gcn_norm``, which the authors use, gives a node with a loop no
    second one: that is this network on data without loops. Outputs are made before the hops, so a
    product is as wide as there are outputs.

    Args:
        in_channels: size of the input features.
        hidden_channels: size between the layers of the perceptron.
        num_layers: number of its linear layers.
        out_channels: size of the output; ``None`` for ``hidden_channels``.
        num_hops: number K of hops.
        alpha: α of the weights that γ starts with.
        decay_gammas: let weight decay act on γ as well; the authors' optimiser leaves them alone.
        input_dropout: dropout probability of the input features.
        dropout: dropout probability between the layers of the perceptron.
        hop_dropout: dropout probability before the first hop.
        norm: ``None``, ``"layer"`` or ``"batch"``, after the activations of the perceptron.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``. Returns ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_hops: int = 10,
        alpha: float = 0.1,
        decay_gammas: bool = False,
        input_dropout: float = 0.5,
        dropout: float = 0.5,
        hop_dropout: float = 0.5,
        norm: str | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_hops = check_int("num_hops", num_hops, minimum=0)
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` must be between 0 and 1; got {alpha}")
        self.alpha, self.decay_gammas = alpha, decay_gammas
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        self.hop_dropout = check_probability("hop_dropout", hop_dropout)
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), width]
        self.perceptron = Perceptron(sizes, norm=norm, dropout=dropout)
        self.gammas = nn.Parameter(torch.empty(num_hops + 1))
        self.readout = nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        reset_children(self)
        with torch.no_grad():
            self.gammas.copy_(pagerank_weights(self.alpha, self.num_hops))

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [] if self.decay_gammas else [{"params": [self.gammas], "weight_decay": 0.0}]

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        propagate = Propagation(graph, x, edge_weight)
        x = self.perceptron(take_inputs(x, self.input_dropout, self.training))
        x = F.dropout(x, self.hop_dropout, self.training)
        first, *others = self.gammas.unbind()
        total = first * x
        for gamma in others:
            x = propagate(x)
            total = total + gamma * x
        return total

    def __repr__(self) -> str:
        return (
            f"GPRGNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_hops={self.num_hops}, alpha={self.alpha})"
        )
