"""How the nodes of CO-GNN choose their actions: networks, temperature and sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.cognn.layers import ACTION_LAYERS, Actions

EVALUATIONS = {
    "argmax": "the likelier action: deterministic",
    "sample": "fresh noise in every call, as the authors' code does",
    "seeded": "noise from a generator that starts at one seed in every call",
}


class ActionNetwork(nn.Module):
    """A small GNN that gives every node two scores: "open" and "closed".

    It runs on the whole graph: actions do not close edges to it. ReLU and dropout come between its
    layers.

    Args:
        in_channels: size of the input features.
        hidden_channels: size between the layers.
        num_layers: number of layers.
        kind: of the layers: ``"mean"``, ``"sum"``, ``"gcn"``, ``"gin"`` or ``"linear"``.
        dropout: dropout probability between the layers.

    Shapes:
        x ``(n, in_channels)``; graph of n nodes and m edges; edge_weight ``(m,)``. Returns
        ``(n, 2)``; column 0 is "open".
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        *,
        kind: str = "mean",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_int("in_channels", in_channels, minimum=1)
        check_int("action_channels", hidden_channels, minimum=1)
        check_int("action_layers", num_layers, minimum=1)
        make = check_choice("action", kind, ACTION_LAYERS)
        self.dropout = check_probability("dropout", dropout)
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), 2]
        self.convs = nn.ModuleList(make(a, b) for a, b in pairwise(sizes))

    def reset_parameters(self) -> None:
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        for conv in self.convs[:-1]:
            x = F.relu(conv(x, graph, None, edge_weight))
            x = F.dropout(x, self.dropout, self.training)
        return self.convs[-1](x, graph, None, edge_weight)

    def __repr__(self) -> str:
        return f"ActionNetwork({', '.join(map(repr, self.convs))})"


class FixedTemperature(nn.Module):
    """One temperature for all nodes.

    Args:
        tau: the temperature, positive.
    """

    def __init__(self, tau: float) -> None:
        super().__init__()
        self.tau = _check_positive("tau", tau)

    def reset_parameters(self) -> None:
        """Nothing is learned."""

    def forward(self, x: Tensor) -> Tensor:
        """The temperature of every node, ``(n,)``."""
        return x.new_full((x.shape[0],), self.tau)

    def sharpness(self, x: Tensor) -> Tensor:
        """One over the temperature, ``(n,)``."""
        return x.new_full((x.shape[0],), 1 / self.tau)

    def __repr__(self) -> str:
        return f"FixedTemperature({self.tau})"


class LearnedTemperature(nn.Module):
    r"""A temperature for every node, learned from its features.

    .. math:: \tau_v = \frac{1}{\operatorname{softplus}(\omega^\top x_v) + \tau_0} \le 1 / \tau_0

    Args:
        channels: size of the features.
        tau0: :math:`\tau_0`, not negative; 0 bounds nothing.
    """

    def __init__(self, channels: int, tau0: float) -> None:
        super().__init__()
        if isinstance(tau0, bool) or not 0 <= tau0 < math.inf:
            raise ValueError(f"`tau0` must be finite and not negative; got {tau0!r}")
        self.tau0 = float(tau0)
        self.lin = nn.Linear(channels, 1, bias=False)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """The temperature of every node, ``(n,)``; 0 where it would be infinite."""
        tau = self.sharpness(x).reciprocal()
        return torch.where(torch.isinf(tau), torch.zeros_like(tau), tau)

    def sharpness(self, x: Tensor) -> Tensor:
        """One over the temperature, ``(n,)``.

        Sampling multiplies by this and so has finite gradients at all temperatures; where it is 0
        none reach the scores.
        """
        return F.softplus(self.lin(x).squeeze(1)) + self.tau0

    def __repr__(self) -> str:
        return f"LearnedTemperature({self.lin.in_features}, tau0={self.tau0})"


class ActionSampler(nn.Module):
    r"""Two action networks, "listen" and "broadcast", and samples of what they say.

    For each of the two, with scores :math:`\ell \in \mathbb{R}^{n \times 2}` and independent noise
    g of the standard Gumbel distribution,

    .. math::
        p_v = \operatorname{softmax}\bigl((\ell_v + g_v) / \tau_v\bigr), \qquad
        a_v = [p_{v0} \ge p_{v1}],

    and the derivative of a is taken to be that of :math:`p_{v0}` (straight-through Gumbel-softmax:
    Jang et al., ICLR 2017). Both share the temperature τ.

    Training samples. Evaluation does what ``evaluation`` says: the authors' code samples there too,
    so that its scores differ from call to call; the default here is deterministic.

    Args:
        channels: size of the features.
        hidden_channels, num_layers, kind, dropout: of both :class:`ActionNetwork`.
        temperature: a module with a method ``sharpness``.
        evaluation: ``"argmax"`` (no noise), ``"sample"`` (fresh noise in every call) or
            ``"seeded"`` (noise from a generator that starts at ``evaluation_seed``; not for
            compiled models).
        evaluation_seed: of the seeded evaluation.

    Shapes:
        x ``(n, channels)``; graph of n nodes and m edges; edge_weight ``(m,)``. Returns
        :class:`~coopsheaf.zoo.cognn.layers.Actions` of ``(n,)``, exactly 0 or 1.
    """

    def __init__(
        self,
        channels: int,
        hidden_channels: int,
        num_layers: int,
        *,
        kind: str = "mean",
        dropout: float = 0.0,
        temperature: FixedTemperature | LearnedTemperature,
        evaluation: str = "argmax",
        evaluation_seed: int = 0,
    ) -> None:
        super().__init__()
        check_choice("evaluation", evaluation, EVALUATIONS)
        self.evaluation = evaluation
        self.evaluation_seed = check_int("evaluation_seed", evaluation_seed, minimum=0)
        self.listen_net, self.broadcast_net = (
            ActionNetwork(channels, hidden_channels, num_layers, kind=kind, dropout=dropout)
            for _ in range(2)
        )
        self.temperature = temperature

    def reset_parameters(self) -> None:
        for module in (self.listen_net, self.broadcast_net, self.temperature):
            module.reset_parameters()

    def generator(self, device: torch.device) -> torch.Generator | None:
        """What the samples of one forward pass are drawn with; ``None`` is PyTorch's own state."""
        if self.training or self.evaluation != "seeded":
            return None
        return torch.Generator(device).manual_seed(self.evaluation_seed)

    def forward(
        self,
        x: Tensor,
        graph: Graph,
        edge_weight: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Actions:
        sharpness = self.temperature.sharpness(x)
        noisy = self.training or self.evaluation != "argmax"
        chosen = []
        for network in (self.listen_net, self.broadcast_net):
            scores = network(x, graph, edge_weight)  # (n, 2)
            if noisy:
                scores = scores + gumbel_noise(scores, generator)
            chosen.append(straight_through(scores, sharpness).to(x.dtype))
        return Actions(*chosen)

    def __repr__(self) -> str:
        return (
            f"ActionSampler({self.listen_net!r}, {self.temperature!r}, "
            f"evaluation={self.evaluation!r})"
        )


def gumbel_noise(like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Independent −log(−log u), u uniform in (0, 1), of the shape of ``like``; always finite."""
    # Half precision would draw 0 and round to 1.
    dtype = torch.promote_types(like.dtype, torch.float32)
    u = torch.rand(like.shape, generator=generator, dtype=dtype, device=like.device)
    u = u.clamp(min=torch.finfo(dtype).tiny)  # torch.rand can be 0 but not 1
    return -(-u.log()).log()


def straight_through(scores: Tensor, sharpness: Tensor) -> Tensor:
    """1 where column 0 of ``scores`` wins and 0 elsewhere, with the derivative of its softmax.

    Args:
        scores: ``(n, 2)``, noise included; a tie goes to column 0.
        sharpness: one over the temperature, ``(n,)``.

    Returns:
        ``(n,)``.
    """
    # The softmax of two is the sigmoid of their difference: infinite scores do no harm.
    lead = scores[:, 0] - scores[:, 1]
    soft = torch.sigmoid(lead * sharpness)
    hard = (lead >= 0).to(soft.dtype)
    return hard + (soft - soft.detach())  # the difference is exactly 0


@contextmanager
def record_actions(model: nn.Module) -> Iterator[list[Actions]]:
    """Collect the actions that the nodes choose in every layer of a CO-GNN.

    Inside the ``with`` block each forward pass appends one entry per layer, in order, to the list;
    what ``forward`` computes and returns does not change::

        with record_actions(model) as actions:
            out = model(x, edge_index)
        actions[0].listens  # (n,): 1 for the nodes that listen in the first layer
        actions[0].codes()  # (n,): which of ACTION_NAMES each node does

    The actions are those of the computation itself, gradients included. Not for compiled models.
    """
    actions: list[Actions] = []

    def collect(module: nn.Module, inputs: Any, output: Actions) -> None:
        actions.append(output)

    handles = [
        module.register_forward_hook(collect)
        for module in model.modules()
        if isinstance(module, ActionSampler)
    ]
    try:
        yield actions
    finally:
        for handle in handles:
            handle.remove()


def _check_positive(argument: str, value: float) -> float:
    if isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"`{argument}` must be finite and positive; got {value!r}")
    return float(value)
