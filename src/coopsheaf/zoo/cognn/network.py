"""CO-GNN, the cooperative graph neural network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network, make_act, make_norm
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.cognn.actions import ActionSampler, FixedTemperature, LearnedTemperature
from coopsheaf.zoo.cognn.layers import ENVIRONMENTS

TEMPERATURES = {"fixed": "one for all nodes", "learned": "one per node, from its features"}


class CoGNN(Network):
    r"""Cooperative graph neural network (Finkelshtein et al., ICML 2024).

    In every layer each node chooses whether to listen (a) and whether to broadcast (b), and
    messages pass where both ends agree:

    .. math::
        X &\leftarrow \operatorname{LN}(X_t), \qquad
        (a, b) \sim \pi(X, A), \qquad
        \tilde A = \operatorname{diag}(a)\, A \operatorname{diag}(b), \\
        X_{t+1} &= [X +]\; \sigma\bigl(\operatorname{dropout}(\eta_t(X, \tilde A))\bigr)

    Node by node, :math:`\eta_t` sees the weight :math:`w_{uv} = b_u a_v` on the edge u→v
    (:class:`~coopsheaf.zoo.cognn.layers.CooperativeConv`); (1, 1) is STANDARD, (1, 0) LISTEN, (0,
    1) BROADCAST and (0, 0) ISOLATE. There is one π
    (:class:`~coopsheaf.zoo.cognn.actions.ActionSampler`: two small GNNs and the temperature) and
    one norm for all layers, while every layer has its own η. The encoder is linear, with dropout
    and activation; the norm comes once more before the readout, k − 1 times (linear, dropout,
    activation) and a linear layer.

    Differences to the authors' code: evaluation is deterministic by default; two classes are one
    logit (the task decides), where theirs have two; edge features are not used; the MLP of a GIN
    layer is as wide as its input and has no batch norm, theirs is twice as wide and has one; a loop
    in the edge list counts beside the one that a GCN layer adds, theirs raises; every layer of the
    readout has its own weights; the learned temperature is linear in the features. Edge
    weights, which theirs does not know, multiply w, and the action networks see them too.

    Args:
        in_channels: size of the input features.
        hidden_channels: size of a layer.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        environment: kind of the layers η: ``"mean"``, ``"sum"``, ``"gcn"`` or ``"gin"``.
        action: kind of the layers of π: one of these, or ``"linear"``.
        action_channels: size between the layers of π.
        action_layers: number of layers of π.
        temperature: ``"fixed"``, or ``"learned"`` per node.
        tau: the fixed temperature.
        tau0: :math:`\tau_0` of the learned temperature.
        skip: add the input of a layer (after the norm) to its output.
        dropout: dropout probability everywhere.
        act: the activation σ; π has ReLU.
        norm: ``None``, ``"layer"`` or ``"batch"``.
        readout_layers: number k of linear layers of the readout.
        evaluation: ``"argmax"``, ``"sample"`` or ``"seeded"``
            (:class:`~coopsheaf.zoo.cognn.actions.ActionSampler`).
        evaluation_seed: of the seeded evaluation.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node; edge_weight ``(m,)``. Returns ``(n, out_channels)``, or
        ``(graphs, out_channels)`` with a pool.
    """

    takes_edge_weight = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 128,
        num_layers: int = 3,
        out_channels: int | None = None,
        *,
        environment: str = "mean",
        action: str = "mean",
        action_channels: int = 16,
        action_layers: int = 1,
        temperature: str = "fixed",
        tau: float = 0.01,
        tau0: float = 0.5,
        skip: bool = False,
        dropout: float = 0.2,
        act: str | Callable[[Tensor], Tensor] | None = "gelu",
        norm: str | None = None,
        readout_layers: int = 1,
        evaluation: str = "argmax",
        evaluation_seed: int = 0,
        pool: str | None = None,
        jk: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.dropout = check_probability("dropout", dropout)
        self.environment, self.action, self.skip = environment, action, skip
        self.act = make_act(act)
        make_conv = check_choice("environment", environment, ENVIRONMENTS)
        check_choice("temperature", temperature, TEMPERATURES)

        self.encoder = nn.Linear(in_channels, hidden_channels)
        self.sampler = ActionSampler(
            hidden_channels,
            action_channels,
            action_layers,
            kind=action,
            dropout=dropout,
            temperature=FixedTemperature(tau)
            if temperature == "fixed"
            else LearnedTemperature(hidden_channels, tau0),
            evaluation=evaluation,
            evaluation_seed=evaluation_seed,
        )
        self.convs = nn.ModuleList(
            make_conv(hidden_channels, hidden_channels) for _ in range(num_layers)
        )
        self.norm = make_norm(norm, hidden_channels)
        seen = self._end_layers(hidden_channels, jk, num_layers)
        self.readout = (
            nn.Identity()
            if out_channels is None
            else Decoder(seen, out_channels, readout_layers, dropout=dropout, act=self.act)
        )
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
        x = self.act(F.dropout(self.encoder(x), self.dropout, self.training))
        generator = self.sampler.generator(x.device)
        for conv in self.convs:
            x = self.norm(x)
            actions = self.sampler(x, graph, edge_weight, generator)
            y = conv(x, graph, actions, edge_weight)
            y = self.act(F.dropout(y, self.dropout, self.training))
            x = x + y if self.skip else y
            yield x

    def after_layers(self, x: Tensor) -> Tensor:
        return self.norm(x)

    def __repr__(self) -> str:
        return (
            f"CoGNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, environment={self.environment!r}, "
            f"action={self.action!r})"
        )


class Decoder(nn.Module):
    """Linear layers with dropout and activation between them.

    Args:
        channels: size of the input and between the layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_layers: number of linear layers.
        dropout: dropout probability between the layers.
        act: the activation between the layers.
    """

    def __init__(
        self,
        channels: int,
        out_channels: int,
        num_layers: int,
        *,
        dropout: float,
        act: Callable[[Tensor], Tensor],
    ) -> None:
        super().__init__()
        check_int("readout_layers", num_layers, minimum=1)
        sizes = [*[channels] * (num_layers - 1), out_channels]
        self.lins = nn.ModuleList(nn.Linear(channels, size) for size in sizes)
        self.dropout, self.act = dropout, act

    def reset_parameters(self) -> None:
        for lin in self.lins:
            lin.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        for lin in self.lins[:-1]:
            x = self.act(F.dropout(lin(x), self.dropout, self.training))
        return self.lins[-1](x)

    def __repr__(self) -> str:
        last = self.lins[-1]
        return f"Decoder({last.in_features}, {last.out_features}, num_layers={len(self.lins)})"
