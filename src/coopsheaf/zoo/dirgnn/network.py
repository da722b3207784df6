"""Dir-GNN: what comes along the edges and what comes against them, weighed apart."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network, make_linear
from coopsheaf.nn.sparse_inputs import SparseInputs, apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product


class DirSAGEConv(nn.Module):
    r"""The convolution of Dir-SAGE (Rossi et al., LoG 2023).

    .. math:: Y = \alpha\,(M_{out} X W_{out} + b_{out}) + (1 - \alpha)(M_{in} X W_{in} + b_{in})
              + X W + b

    with means over the nodes that a node points to, :math:`(M_{out} X)_i = \operatorname{mean}_{i
    \to j} x_j`, and over those that point to it, :math:`(M_{in} X)_i = \operatorname{mean}_{j \to
    i} x_j`. PyG's ``DirGNNConv`` around its ``SAGEConv`` computes the same with a message per edge.

    Args:
        in_channels: size of the input.
        out_channels: size of the output.
        alpha: share α of the edges that leave a node.

    Shapes:
        x ``(n, in_channels)``; graph of n nodes. Returns ``(n, out_channels)``.
    """

    has_root = True

    def __init__(self, in_channels: int, out_channels: int, *, alpha: float = 0.5) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.alpha = alpha
        self.lin_out = nn.Linear(in_channels, out_channels)
        self.lin_in = nn.Linear(in_channels, out_channels)
        self.lin = nn.Linear(in_channels, out_channels) if self.has_root else None

    def reset_parameters(self) -> None:
        for linear in self.children():
            linear.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor | SparseInputs, graph: Graph) -> Tensor:
        out = self.alpha * self._listen(self.lin_out, x, graph.reverse())
        out = out + (1 - self.alpha) * self._listen(self.lin_in, x, graph)
        return out if self.lin is None else out + apply_to_inputs(self.lin, x)

    def _listen(self, linear: nn.Linear, x: Tensor | SparseInputs, graph: Graph) -> Tensor:
        """The weights commute with the sum over neighbours: they act where rows are shorter."""
        if self.out_channels < self.in_channels or isinstance(x, SparseInputs):
            return self.aggregate(x @ linear.weight.mT, graph) + linear.bias
        return linear(self.aggregate(x, graph))

    def aggregate(self, x: Tensor, graph: Graph) -> Tensor:
        """What a node hears along the edges of a graph, ``(n, c)``."""
        heard = sparse_product(x.unsqueeze(1), graph).squeeze(1)
        return heard / graph.in_degree.clamp(min=1).to(x.dtype).unsqueeze(1)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({self.in_channels}, {self.out_channels}, alpha={self.alpha})"


class DirGCNConv(DirSAGEConv):
    r"""The convolution of Dir-GCN (Rossi et al., LoG 2023).

    .. math:: Y = \alpha\,(\tilde A^\top X W_{out} + b_{out})
              + (1 - \alpha)(\tilde A X W_{in} + b_{in}), \qquad
              \tilde A = D_{in}^{-1/2} A D_{out}^{-1/2}

    where row i of A are the nodes that point to i, and no loops are added. The degree of a node is
    counted on the side on which it is; ``DirGNNConv`` around PyG's ``GCNConv`` takes the same one
    at both ends, and adds the node's own features.
    """

    has_root = False

    def aggregate(self, x: Tensor, graph: Graph) -> Tensor:
        sent = _root(graph.out_degree, x) * x
        return _root(graph.in_degree, x) * sparse_product(sent.unsqueeze(1), graph).squeeze(1)


def _root(degree: Tensor, like: Tensor) -> Tensor:
    """1/√d, ``(n, 1)``; 0 where d is."""
    degree = degree.to(like.dtype)
    return (degree.clamp(min=1).rsqrt() * (degree > 0)).unsqueeze(1)


CONVS: dict[str, type[DirSAGEConv]] = {"sage": DirSAGEConv, "gcn": DirGCNConv}


class DirGNN(Network):
    r"""Dir-GNN of Rossi et al. (LoG 2023): directed edges, with weights for either direction.

    .. math:: H_{t+1} = \operatorname{dropout}(\operatorname{ReLU}(\operatorname{conv}_t(H_t)))

    with :class:`DirSAGEConv` or :class:`DirGCNConv`, rows divided by their norms if
    asked for, and a linear layer. On undirected graphs both directions are one.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of every layer.
        num_layers: number of convolutions.
        out_channels: size of the output; ``None`` for the features of the last layer.
        conv: ``"sage"`` or ``"gcn"``.
        alpha: share of the edges that leave a node; the rest is that of the edges into it.
        normalize_rows: divide the features of a node by their norm after every layer.
        dropout: dropout probability after every layer.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 3,
        out_channels: int | None = None,
        *,
        conv: str = "sage",
        alpha: float = 0.5,
        normalize_rows: bool = False,
        dropout: float = 0.0,
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        kind = check_choice("conv", conv, CONVS)
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` must be between 0 and 1; got {alpha}")
        self.conv, self.alpha, self.normalize_rows = conv, alpha, normalize_rows
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1)]
        self.convs = nn.ModuleList(kind(size, hidden_channels, alpha=alpha) for size in sizes)
        width = self._end_layers(hidden_channels, jk, num_layers)
        self.readout = make_linear(width, out_channels)
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
        inputs = take_inputs(x)
        for conv in self.convs:
            x = F.dropout(F.relu(conv(inputs, graph)), self.dropout, self.training)
            if self.normalize_rows:
                x = F.normalize(x, dim=1)
            yield x
            inputs = x

    def __repr__(self) -> str:
        return (
            f"DirGNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, conv={self.conv!r}, alpha={self.alpha})"
        )
