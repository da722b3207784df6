"""GloGNN: coefficients between all pairs of nodes, which are never formed."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.sparse_inputs import apply_to_inputs, take_inputs
from coopsheaf.nn.structure import AdjacencyLinear, check_rows
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.plain.averaging import Averaging

ADJACENCIES = {
    "row-normalized": "with a loop at every node, rows that sum to one",
    "raw": "as it is",
}


def global_step(
    h: Tensor,
    first: Tensor,
    propagate: Callable[[Tensor], Tensor],
    hop_weights: Tensor,
    *,
    gamma: float,
    beta1: float,
    beta2: float,
    scale: Tensor | None = None,
) -> Tensor:
    r"""One layer of GloGNN: :math:`H' = (1 - \gamma) Z^* H + \gamma H_0`.

    The coefficients between all nodes are those that minimise

    .. math:: \lVert H - (1 - \gamma) Z H - \gamma H_0 \rVert^2 + \beta_1 \lVert Z \rVert^2
              + \beta_2 \lVert Z - \textstyle\sum_k \lambda_k A^k \rVert^2 .

    With :math:`c = 1 / (\beta_1 + \beta_2)` they need not be formed:

    .. math::
        Q &= (1 - \gamma)\, c\, H - (1 - \gamma)\, c^2 H
             \bigl[(1 - \gamma)^{-2} I + c\, H^\top H\bigr]^{-1} H^\top H \\
        H' &= (1 - \gamma) H (H^\top Q) + \beta_2 \textstyle\sum_k \lambda_k A^k Q
             - \gamma (1 - \gamma) H_0 (H^\top Q) + \gamma H_0 .

    That is an inverse of C × C and K sparse products of n × C.

    Args:
        h: H, ``(n, C)``.
        first: :math:`H_0`, ``(n, C)``.
        propagate: multiplies with A.
        hop_weights: :math:`\lambda`, ``(K,)``.
        gamma: γ in [0, 1).
        beta1, beta2: not negative, not both 0.
        scale: ``(C,)`` w of GloGNN++: :math:`Q \operatorname{diag}(w)` in place of Q, and
            :math:`\operatorname{diag}(w) H^\top Q` in place of :math:`H^\top Q`.

    Returns:
        ``(n, C)``.
    """
    rest, c = 1 - gamma, 1 / (beta1 + beta2)
    gram = h.mT @ h  # (C, C)
    inner = torch.eye(h.shape[1], dtype=h.dtype, device=h.device) / rest**2 + c * gram
    # Positive definite: it need not be looked at, which would wait for a device.
    q = rest * c * h - rest * c**2 * h @ torch.linalg.solve_ex(inner, gram)[0]  # (n, C)
    if scale is not None:
        q = q * scale
    between = h.mT @ q  # (C, C)
    if scale is not None:
        between = scale.unsqueeze(1) * between
    out = rest * h @ between - gamma * rest * first @ between + gamma * first
    hop = q
    for weight in hop_weights:
        hop = propagate(hop)
        out = out + beta2 * weight * hop
    return out


class GloGNN(Network):
    r"""GloGNN and GloGNN++ of Li et al. (ICML 2022).

    .. math:: H_0 = \operatorname{MLP}\bigl(\operatorname{ReLU}(\delta\, X W_X
              + (1 - \delta)\, A W_A)\bigr), \qquad H_{t+1} = (1 - \gamma) Z_t^* H_t + \gamma H_0

    with biases, and :func:`global_step` for the second equation; features after the first are as
    many as outputs. The weights of hops, and w of GloGNN++, are shared by all layers. Every
    node hears all others, and :math:`W_A` has a row for each: the network belongs to one graph.
    Train it in double precision (``train.precision=64``), as its authors do.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of the first layer.
        num_layers: number of layers of the second equation.
        out_channels: size of the output; ``None`` for ``hidden_channels`` features.
        num_nodes: number of nodes of the graph.
        delta: δ, share of the features; with 1 there is no :math:`W_A`.
        gamma: γ, share of the first features in every layer; below 1.
        beta1: β₁, how small coefficients shall be.
        beta2: β₂, how near they shall be to the hops.
        num_hops: number K of hops.
        adjacency: A: ``"row-normalized"``, with loops, or ``"raw"``.
        mlp_layers: linear layers after the first, with ReLU and dropout between them.
        dropout: dropout probability before every one of them.
        scaled: GloGNN++.
        pool: ``None``: there is one graph.

    Shapes:
        x ``(num_nodes, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`;
        edge_weight ``(m,)``. Returns ``(num_nodes, out_channels)``.
    """

    takes_edge_weight = True
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
        delta: float = 0.5,
        gamma: float = 0.5,
        beta1: float = 0.0,
        beta2: float = 1.0,
        num_hops: int = 2,
        adjacency: str = "row-normalized",
        mlp_layers: int = 1,
        dropout: float = 0.5,
        scaled: bool = False,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_nodes = check_int("num_nodes", num_nodes, minimum=1)
        self.num_hops = check_int("num_hops", num_hops, minimum=1)
        check_int("mlp_layers", mlp_layers, minimum=1)
        check_choice("adjacency", adjacency, ADJACENCIES)
        self.adjacency = adjacency
        if not 0 <= delta <= 1:
            raise ValueError(f"`delta` must be between 0 and 1; got {delta}")
        if not 0 <= gamma < 1:
            raise ValueError(f"`gamma` must be at least 0 and below 1; got {gamma}")
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= value < math.inf:
                raise ValueError(f"`{name}` must be finite and not negative; got {value}")
        if beta1 + beta2 == 0:
            raise ValueError("`beta1` and `beta2` must not both be 0")
        self.delta, self.gamma, self.beta1, self.beta2 = delta, gamma, beta1, beta2
        self.dropout = check_probability("dropout", dropout)
        width = self._end_layers(hidden_channels if out_channels is None else out_channels)
        self.lin = nn.Linear(in_channels, hidden_channels) if delta > 0 else None
        self.links = AdjacencyLinear(num_nodes, hidden_channels) if delta < 1 else None
        sizes = [*[hidden_channels] * mlp_layers, width]
        self.mlp = nn.ModuleList(nn.Linear(sizes[t], sizes[t + 1]) for t in range(mlp_layers))
        self.hop_weights = nn.Parameter(torch.empty(num_hops))
        self.scale = nn.Parameter(torch.empty(width)) if scaled else None
        self.readout = nn.Identity()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.constant_(self.hop_weights, 1 / self.num_hops)
        if self.scale is not None:
            nn.init.constant_(self.scale, 1 / self.scale.numel())

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        check_rows(x, self.num_nodes, "GloGNN")
        raw = self.adjacency == "raw"
        h: Tensor | None = None
        if self.lin is not None:
            h = self.delta * apply_to_inputs(self.lin, take_inputs(x))
        if self.links is not None:
            assert self.links.bias is not None
            propagate = Averaging(graph, self.links.weight, edge_weight, raw=raw)
            rows = (1 - self.delta) * (propagate(self.links.weight) + self.links.bias)
            h = rows if h is None else h + rows
        assert h is not None, "one of the two is there"
        for layer in self.mlp:
            h = layer(dropout(F.relu(h), self.dropout, self.training))
        return self._hear_all(h, graph, edge_weight, raw)

    def _hear_all(self, h: Tensor, graph: Graph, edge_weight: Tensor | None, raw: bool) -> Tensor:
        # Inverses are not for half precision, which autocast alone brings here.
        half = h.dtype in (torch.bfloat16, torch.float16)
        with torch.autocast(h.device.type, enabled=False) if half else nullcontext():
            h = h.to(torch.promote_types(h.dtype, torch.float32))
            weight = None if edge_weight is None else edge_weight.to(h.dtype)
            propagate, first = Averaging(graph, h, weight, raw=raw), h
            for _ in range(self.num_layers):
                h = global_step(
                    h,
                    first,
                    propagate,
                    self.hop_weights,
                    gamma=self.gamma,
                    beta1=self.beta1,
                    beta2=self.beta2,
                    scale=self.scale,
                )
        return h

    def __repr__(self) -> str:
        return (
            f"GloGNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_nodes={self.num_nodes}, "
            f"scaled={self.scale is not None})"
        )
