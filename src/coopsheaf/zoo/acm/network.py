"""ACM-GCN: every node mixes what its neighbours have, what sets it apart, and itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, reset_children
from coopsheaf.nn.sparse_inputs import SparseInputs, take_inputs
from coopsheaf.nn.structure import check_rows
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.zoo.plain.averaging import Averaging


class ACMConv(nn.Module):
    r"""The layer of ACM-GCN (Luan et al., NeurIPS 2022).

    With :math:`A_L = D^{-1} (A + I)` and :math:`A_H = I - A_L`,

    .. math::
        H_L &= \operatorname{ReLU}(A_L H W_L), \quad H_H = \operatorname{ReLU}(A_H H W_H), \quad
        H_I = \operatorname{ReLU}(H W_I) \\
        \alpha &= \operatorname{softmax}\bigl(\tfrac{1}{C}\,
            \sigma([H_L v_L, H_H v_H, H_I v_I])\, V\bigr), \qquad
        H' = c\,(\alpha_L H_L + \alpha_H H_H + \alpha_I H_I)

    node by node, with C = 3 channels and c = 3. With the nodes of a graph known there is a fourth
    one, :math:`H_S = \operatorname{ReLU}(A W_S)`, a row of :math:`W_S` for each of them; then C = 4
    and c = 1, as in the authors' code. There are no biases.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        act_first: propagate after the ReLU, :math:`A_L \operatorname{ReLU}(H W_L)` ("ACMII").
        num_nodes: number of nodes, for the fourth channel; ``None`` for none.
        norm_scores: the scores see the channels through a layer norm.

    Shapes:
        x ``(n, in_channels)``; average, the matrix :math:`A_L`. Returns ``(n, out_channels)``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        act_first: bool = False,
        num_nodes: int | None = None,
        norm_scores: bool = False,
    ) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.act_first = act_first
        count = 3 if num_nodes is None else 4
        self.weight = nn.Parameter(torch.empty(in_channels, 3 * out_channels))  # L, H, I
        self.structure: nn.Parameter | None = None
        if num_nodes is not None:
            check_int("num_nodes", num_nodes, minimum=1)
            self.structure = nn.Parameter(torch.empty(num_nodes, out_channels))
        self.score = nn.Parameter(torch.empty(count, out_channels))  # v
        self.mix = nn.Parameter(torch.empty(count, count))  # V
        self.norms = nn.ModuleList(
            nn.LayerNorm(out_channels) if norm_scores else nn.Identity() for _ in range(count)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform, as in the authors' code; the bound of a score is that of one output."""
        bound = self.out_channels**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.structure is not None:
            nn.init.uniform_(self.structure, -bound, bound)
        nn.init.uniform_(self.score, -1, 1)
        nn.init.uniform_(self.mix, -(len(self.mix) ** -0.5), len(self.mix) ** -0.5)
        reset_children(self)

    def forward(
        self,
        x: Tensor | SparseInputs,
        graph: Graph,
        average: Averaging,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        channels = self.channels(x, graph, average, edge_weight)
        shares = self.shares(channels)  # (n, C)
        mixed = sum(shares[:, c : c + 1] * part for c, part in enumerate(channels))
        assert isinstance(mixed, Tensor)
        return 3 * mixed if len(channels) == 3 else mixed

    def channels(
        self,
        x: Tensor | SparseInputs,
        graph: Graph,
        average: Averaging,
        edge_weight: Tensor | None = None,
    ) -> list[Tensor]:
        """What there is to mix, ``(n, out_channels)`` each: low, high, identity, structure."""
        y = x @ self.weight  # (n, 3·out)
        y = F.relu(y) if self.act_first else y
        _, high, own = y.chunk(3, 1)
        heard_low, heard_high = average(y[:, : 2 * self.out_channels]).chunk(2, 1)
        found = [heard_low, high - heard_high, own]
        found = found if self.act_first else [F.relu(part) for part in found]
        if self.structure is not None:
            blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
            rows = sparse_product(self.structure.unsqueeze(1), graph, blocks).squeeze(1)
            found.append(F.relu(rows))
        return found

    def shares(self, channels: list[Tensor]) -> Tensor:
        """How much of each channel every node takes, ``(n, C)``; rows sum to one."""
        scores = torch.stack(
            [
                norm(part) @ v
                for norm, part, v in zip(self.norms, channels, self.score, strict=True)
            ],
            dim=1,
        )
        return torch.softmax(torch.sigmoid(scores) @ self.mix / len(channels), dim=1)

    def __repr__(self) -> str:
        return f"ACMConv({self.in_channels}, {self.out_channels}, channels={len(self.mix)})"


class ACMGCN(Network):
    r"""ACM-GCN of Luan et al. (NeurIPS 2022).

    .. math:: H_{t+1} = \operatorname{ReLU}(\operatorname{conv}_t(\operatorname{dropout}(H_t)))

    with the layers of :class:`ACMConv`; the last one gives the outputs, which are not negative in
    the authors' code, and so they are here. No setting of this network has been released for the
    tables on small graphs, only those of :class:`ACMGCNPlus`.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of every layer but the last.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for ``hidden_channels`` features.
        act_first: propagate after the activation of a layer.
        dropout: dropout probability of what enters a layer.
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
        act_first: bool = False,
        dropout: float = 0.5,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self._build(hidden_channels, num_layers, act_first, dropout)

    def _build(
        self,
        hidden_channels: int,
        num_layers: int,
        act_first: bool,
        dropout: float,
        num_nodes: int | None = None,
        norm_scores: bool = False,
    ) -> None:
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.act_first = act_first
        self.dropout = check_probability("dropout", dropout)
        outputs = hidden_channels if self.out_channels is None else self.out_channels
        width = self._end_layers(outputs)
        sizes = [self.in_channels, *[hidden_channels] * (num_layers - 1), width]
        self.convs = nn.ModuleList(
            ACMConv(
                sizes[t],
                sizes[t + 1],
                act_first=act_first,
                num_nodes=num_nodes,
                norm_scores=norm_scores,
            )
            for t in range(num_layers)
        )
        self.readout = nn.Identity()
        self.reset_parameters()

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        average = Averaging(graph, x, edge_weight)
        inputs = take_inputs(x, self.dropout, self.training)
        *inner, last = self.convs
        for conv in inner:
            x = F.relu(conv(inputs, graph, average, edge_weight))
            inputs = F.dropout(x, self.dropout, self.training)
        return last(inputs, graph, average, edge_weight)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"act_first={self.act_first})"
        )


class ACMGCNPlus(ACMGCN):
    r"""ACM-GCN+: with a channel of the adjacency matrix, a learned row for every node.

    Such a network belongs to one graph. The paper also puts a layer norm before the mixing; the
    released code for small graphs makes it and never applies it, so it is off by default.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of every layer but the last.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for ``hidden_channels`` features.
        num_nodes: number of nodes of the graph.
        structure: have the channel of the adjacency matrix; without, and without norms, this is
            :class:`ACMGCN`.
        norm_scores: a layer norm between the channels and what scores them.
        act_first: propagate after the activation of a layer.
        dropout: dropout probability of what enters a layer.
        pool: ``None``: there is one graph.

    Shapes:
        x ``(num_nodes, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`;
        edge_weight ``(m,)``. Returns ``(num_nodes, out_channels)``.
    """

    exportable = False
    why_not_exportable = "this network knows every node of one graph"

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_nodes: int,
        structure: bool = True,
        norm_scores: bool = False,
        act_first: bool = False,
        dropout: float = 0.5,
        pool: str | None = None,
    ) -> None:
        Network.__init__(self, in_channels, out_channels, pool=pool)
        self.num_nodes = check_int("num_nodes", num_nodes, minimum=1)
        rows = num_nodes if structure else None
        self._build(hidden_channels, num_layers, act_first, dropout, rows, norm_scores)

    def embed(self, x: Tensor, graph: Graph, **options: Tensor | None) -> Tensor:
        check_rows(x, self.num_nodes, "ACM-GCN+")
        return super().embed(x, graph, **options)
