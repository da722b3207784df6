"""H2GCN, as its authors have it and as the LINKX benchmark has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_act, make_linear
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.sparse_inputs import apply_to_inputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.h2gcn.hops import Hops, two_hops
from coopsheaf.zoo.plain.propagation import Propagation

MOST_ROUNDS = 8  # each doubles the width


class TwoHopSum(nn.Module):
    r"""What is one hop away beside what is two: :math:`[\bar A_1 X \,\Vert\, \bar A_2 X]`.

    Each matrix is normalised with its own degrees; there are no weights.

    Shapes:
        x ``(n, c)``; near and far, the two matrices on n nodes. Returns ``(n, 2·c)``.
    """

    def forward(self, x: Tensor, near: Propagation, far: Propagation) -> Tensor:
        return torch.cat([near(x), far(x)], dim=1)


class H2GCN(Network):
    r"""H2GCN of Zhu et al. (NeurIPS 2020).

    .. math::
        R_0 = \sigma(X W_e), \qquad R_k = [\, \bar A_1 R_{k-1} \,\Vert\, \bar A_2 R_{k-1} \,],
        \qquad Z = \operatorname{dropout}([\, R_0 \Vert \dots \Vert R_K \,])\, W_c

    with :math:`\bar A = D^{-1/2} A D^{-1/2}` of the neighbours and of the nodes strictly two hops
    away (:func:`~coopsheaf.zoo.h2gcn.two_hops`); loops are left out, and nothing has a bias. The
    last features are :math:`2^{K+1} - 1` times as wide as the first. Kernels start as Glorot &
    Bengio (2010) draw them. The two matrices are made once per graph and remembered with it; where
    the second is too large, it is refused.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of :math:`R_0`.
        num_layers: number K of rounds, at most 8.
        out_channels: size of the output; ``None`` for what :math:`W_c` sees.
        act: σ; ``"identity"`` or ``None`` for none.
        dropout: dropout probability before :math:`W_c`.
        most_pairs: largest number of pairs of nodes two hops apart.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    exportable = False
    why_not_exportable = "this network needs the nodes that are two hops apart"

    strict: ClassVar[bool] = True
    has_bias: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        act: str | Callable[[Tensor], Tensor] | None = "relu",
        dropout: float = 0.5,
        most_pairs: float = 5e7,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        if num_layers > MOST_ROUNDS:
            raise ValueError(
                f"`num_layers` must be at most {MOST_ROUNDS}: every round doubles the width; "
                f"got {num_layers}"
            )
        if not 0 <= most_pairs < float("inf"):
            raise ValueError(f"`most_pairs` must be finite and not negative; got {most_pairs}")
        self.dropout = check_probability("dropout", dropout)
        self.act, self.most_pairs = make_act(act), most_pairs
        self.encoder = nn.Linear(in_channels, hidden_channels, bias=self.has_bias)
        self.convs = nn.ModuleList(TwoHopSum() for _ in range(num_layers))
        self.norms = nn.ModuleList(self._make_norms())
        width = self._end_layers(hidden_channels * (2 ** (num_layers + 1) - 1))
        self.readout = make_linear(width, out_channels, bias=self.has_bias)
        self.reset_parameters()

    def _make_norms(self) -> list[nn.Module]:
        return []

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for linear in (self.encoder, self.readout):
            if isinstance(linear, nn.Linear):
                nn.init.xavier_uniform_(linear.weight)

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        near, far = self._matrices(x, graph)
        rounds = [self.act(apply_to_inputs(self.encoder, take_inputs(x)))]
        for conv in self.convs:
            rounds.append(conv(rounds[-1], near, far))
        return dropout(torch.cat(rounds, dim=1), self.dropout, self.training)

    def _matrices(self, x: Tensor, graph: Graph) -> list[Propagation]:
        name = "two hops, strictly" if self.strict else "two hops"

        def make(graph: Graph) -> Hops:
            return two_hops(graph, strict=self.strict, most=self.most_pairs)

        patterns: Any = graph.remember(name, make)
        return [Propagation(pattern, x, loops=False) for pattern in patterns]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels})"
        )


class H2GCNLINKX(H2GCN):
    r"""H2GCN in the form of the LINKX benchmark (Lim et al., NeurIPS 2021).

    .. math::
        R_0 = \operatorname{ReLU}(X W_e + b_e), \qquad
        R_k = \operatorname{BN}([\, \bar A_1 \tilde R_{k-1} \,\Vert\, \bar A_2 \tilde R_{k-1} \,]),
        \qquad \tilde R = \operatorname{dropout}(R),

    the last round without batch norm and after dropout, and a linear layer with a bias of all of
    them side by side. Its two hops are not strict: :math:`A_2 = [A^2 - A > 0]` has every node
    itself and the neighbours with which it shares two others. Its row of the tables on Penn94 is
    this network.

    Arguments and shapes are those of :class:`H2GCN`; the dropout is that after every round.
    """

    strict = False
    has_bias = True

    def _make_norms(self) -> list[nn.Module]:
        sizes = [self.hidden_channels * 2**k for k in range(1, self.num_layers)]
        return [nn.BatchNorm1d(size) for size in sizes]

    def reset_parameters(self) -> None:
        Network.reset_parameters(self)

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        near, far = self._matrices(x, graph)
        rounds = [self.act(apply_to_inputs(self.encoder, take_inputs(x)))]
        x = F.dropout(rounds[0], self.dropout, self.training)
        *inner, last = self.convs
        for conv, norm in zip(inner, self.norms, strict=True):
            rounds.append(norm(conv(x, near, far)))
            x = F.dropout(rounds[-1], self.dropout, self.training)
        x = F.dropout(last(x, near, far), self.dropout, self.training)
        return torch.cat([*rounds, x], dim=1)
