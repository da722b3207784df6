"""FSGNN: the features of every hop have a linear layer of their own, and a share."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network, make_linear
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.sparse_inputs import SparseInputs, take_inputs
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.eager import is_transformed
from coopsheaf.zoo.plain.propagation import Propagation

# Which matrices are raised to powers: without added loops, with them.
HOPS: dict[str, tuple[bool, ...]] = {
    "no-loop": (False,),
    "loop": (True,),
    "all": (False, True),
}


class FSGNN(Network):
    r"""FSGNN, "Simplifying approach to node classification in GNNs" (Maurya et al., 2022).

    .. math::
        Z = \operatorname{dropout}\bigl(\operatorname{ReLU}\bigl(\operatorname{concat}_m
            \alpha_m \operatorname{norm}(M_m W_m + b_m)\bigr)\bigr) W + b, \qquad
        \alpha = \operatorname{softmax}(a)

    where the :math:`M_m` are X and, for k = 1, ..., K, :math:`(D^{-1/2} A D^{-1/2})^k X` or
    :math:`S^k X` with :math:`S = D^{-1/2} (A + I) D^{-1/2}`, or both, and norm divides every row by
    its length. The M depend on nothing learned: of dense features they are made once per graph and
    features and kept with the graph, K + 1 times (2K + 1 for both) the size of X. Of many
    features that are mostly zeros, such as the words of thousands of nodes, they would be large and
    have few zeros left: there every step propagates anew, and what is propagated is :math:`X W_m`.

    The tables on Texas, Wisconsin, Cornell and Film were made with hops of the list as it is
    (``hops="no-loop"``, ``direction="rows"`` and ``self_loops="keep"`` of the data).

    Args:
        in_channels: size of the input features.
        hidden_channels: size of the features of a hop.
        num_layers: number K of hops.
        out_channels: size of the output; ``None`` for what the last linear layer would see.
        hops: ``"no-loop"``, ``"loop"`` or ``"all"``.
        hop_norm: divide the features of every hop by their length.
        dropout: dropout probability before the last linear layer.
        attention_lr: learning rate of a; that of the recipe if not given.
        attention_weight_decay: weight decay of a; that of the recipe if not given.
        output_weight_decay: weight decay of the last layer; that of the recipe if not given.
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
        num_layers: int = 3,
        out_channels: int | None = None,
        *,
        hops: str = "no-loop",
        hop_norm: bool = True,
        dropout: float = 0.5,
        attention_lr: float | None = None,
        attention_weight_decay: float | None = None,
        output_weight_decay: float | None = None,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.hops, self.loops = hops, check_choice("hops", hops, HOPS)
        self.hop_norm = hop_norm
        self.dropout = check_probability("dropout", dropout)
        self.own = {
            "attention_lr": attention_lr,
            "attention_weight_decay": attention_weight_decay,
            "output_weight_decay": output_weight_decay,
        }
        for name, value in self.own.items():
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"`{name}` must be finite and not negative; got {value}")
        count = 1 + num_layers * len(self.loops)
        self.weight = nn.Parameter(torch.empty(count, in_channels, hidden_channels))
        self.bias = nn.Parameter(torch.empty(count, 1, hidden_channels))
        self.attention = nn.Parameter(torch.empty(count))
        self.readout = make_linear(self._end_layers(count * hidden_channels), out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Linear layers as PyTorch starts them; all hops count the same."""
        super().reset_parameters()
        bound = self.in_channels**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)
        nn.init.ones_(self.attention)

    def parameter_groups(self) -> list[dict[str, Any]]:
        wanted = {
            "attention": {"lr": "attention_lr", "weight_decay": "attention_weight_decay"},
            "output": {"weight_decay": "output_weight_decay"},
        }
        params = {"attention": [self.attention], "output": list(self.readout.parameters())}
        groups = []
        for part, keys in wanted.items():
            own = {key: self.own[name] for key, name in keys.items() if self.own[name] is not None}
            if own and params[part]:
                groups.append({"params": params[part], **own})
        return groups

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        inputs = take_inputs(x)
        if isinstance(inputs, SparseInputs):
            y = self._weigh_first(inputs, graph, edge_weight) + self.bias  # (hops, n, h)
        else:
            hops = propagated(x, graph, self.num_layers, self.loops, edge_weight)
            y = torch.bmm(hops, self.weight) + self.bias
        if self.hop_norm:
            y = F.normalize(y, dim=-1)
        y = torch.softmax(self.attention, 0).view(-1, 1, 1) * y
        y = F.relu(y).transpose(0, 1).flatten(1)  # (n, hops·h)
        return dropout(y, self.dropout, self.training)

    def _weigh_first(self, x: SparseInputs, graph: Graph, edge_weight: Tensor | None) -> Tensor:
        """The same without hops of features, which have few zeros left; ``(hops, n, h)``."""
        wide = self.weight.transpose(0, 1).flatten(1)  # (c, hops·h)
        own, *rest = (x @ wide).split(self.hidden_channels, 1)
        found = [own]
        for k, added in enumerate(self.loops):
            propagate = Propagation(graph, x.values, edge_weight, loops=added)
            left = torch.cat(rest[k * self.num_layers : (k + 1) * self.num_layers], 1)
            for _ in range(self.num_layers):
                left = propagate(left)
                found.append(left[:, : self.hidden_channels])
                left = left[:, self.hidden_channels :]
        return torch.stack(found)

    def __repr__(self) -> str:
        return (
            f"FSGNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, hops={self.hops!r})"
        )


def propagated(
    x: Tensor,
    graph: Graph,
    num_hops: int,
    loops: tuple[bool, ...],
    edge_weight: Tensor | None = None,
) -> Tensor:
    """The features and those of every hop, ``(1 + num_hops * len(loops), n, c)``.

    Those of the last features that were asked for are kept with the graph, as long as nobody
    writes into them; not where something is differentiated with respect to features or weights.
    """
    learned = edge_weight is not None or x.requires_grad or forward_ad._current_level >= 0
    if learned or torch.compiler.is_compiling() or is_transformed() or x.is_inference():
        return _propagate(x, graph, num_hops, loops, edge_weight)
    kept: list[Any] = graph.remember("features of hops", lambda graph: [])
    key = (x._version, x.dtype, num_hops, loops)
    if not (kept and kept[0]() is x and kept[1] == key):
        with torch.inference_mode(False), torch.no_grad():
            hops = _propagate(x, graph, num_hops, loops, None)
        kept[:] = [weakref.ref(x), key, hops]
    hops = kept[2]
    return hops


def _propagate(
    x: Tensor, graph: Graph, num_hops: int, loops: tuple[bool, ...], weight: Tensor | None
) -> Tensor:
    hops = [x]
    for added in loops:
        propagate, heard = Propagation(graph, x, weight, loops=added), x
        for _ in range(num_hops):
            heard = propagate(heard)
            hops.append(heard)
    return torch.stack(hops)
