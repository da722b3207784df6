"""Neural Sheaf Diffusion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int, check_probability
from coopsheaf.models.network import Network, make_act, make_linear
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.orthogonal import Orthogonal
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps, OrthogonalMaps


class NSD(Network):
    r"""Neural Sheaf Diffusion (Bodnar et al., NeurIPS 2022), for nodes or whole graphs.

    An encoder lifts the input to h channels of stalk dimension d; then, layer by layer,

    .. math::
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl(\Delta_t (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr),

    node by node :math:`x_i' = (1 + \tanh \varepsilon) \odot x_i - \sigma(y_i)` with y of
    :class:`~coopsheaf.zoo.nsd.conv.NSDConv`, one learned :math:`\varepsilon_t` per layer and stalk
    coordinate, and the sheaf learned anew from :math:`X_t`. :math:`\tilde X_t` is :math:`X_t` after
    dropout; the residual is not dropped out. What the learner sees is dropped out on its own, from
    the second layer on.

    As the authors' released code computes it, with the exceptions that the layer lists.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is (d + fixed coordinates)·h wide.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        stalk_dim: dimension d of the stalks on which maps act.
        maps: ``"diagonal"``, ``"orthogonal"``, ``"general"``, ``"identity"``, or an object of
            :mod:`coopsheaf.zoo.nsd.edge_maps`.
        map_act: ``"tanh"``, ``"elu"`` or ``"identity"``.
        sparse_learner: the learner sees the sum over stalk coordinates.
        sparse_reading: ``"summed"``, or ``"released"`` for what the authors' code sums instead
            (:class:`~coopsheaf.zoo.nsd.conv.NSDConv`).
        learn_weights: learn a weight per edge; orthogonal maps only, and by default with all of
            them.
        maps_once: learn the sheaf in the first layer and keep it in all others (``linear`` in the
            released code).
        add_lp: one more stalk coordinate with the signless Laplacian of the graph.
        add_hp: one more stalk coordinate with the ordinary Laplacian of the graph.
        normalization: ``"augmented"``, ``"degree"`` or ``None``.
        left_weights: learn :math:`W_1`.
        right_weights: learn :math:`W_2`.
        second_linear: another linear layer at the end of the encoder.
        input_dropout: dropout probability of the input features.
        dropout: dropout probability everywhere else.
        act: the activation σ of the layers and the encoder.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; batch ``(n,)``, the graph of each node; edge_weight ``(m,)``,
        the same both ways. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    takes_edge_weight = True
    undirected = True
    later_settings = ("sparse_reading",)

    # What relatives of it have instead; whatever else they are built with goes to their layers.
    conv_kind: ClassVar[type[NSDConv]] = NSDConv
    learns_epsilon: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        stalk_dim: int = 3,
        maps: str | EdgeMaps = "orthogonal",
        orthogonal: str | Orthogonal = "householder",
        map_act: str = "tanh",
        sparse_learner: bool = False,
        learn_weights: bool | None = None,
        maps_once: bool = False,
        add_lp: bool = False,
        add_hp: bool = False,
        normalization: str = "augmented",
        left_weights: bool = True,
        right_weights: bool = True,
        second_linear: bool = False,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        act: str | Callable[[Tensor], Tensor] | None = "elu",
        pool: str | None = None,
        jk: str | None = None,
        sparse_reading: str = "summed",
        **layer_options: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        self.maps_once = maps_once
        self.act = make_act(act)
        if maps == "orthogonal":
            maps = OrthogonalMaps(stalk_dim, orthogonal)
        elif orthogonal != "householder":
            raise ValueError(
                f"`orthogonal` goes with `maps` 'orthogonal'; got {orthogonal!r} with maps {maps!r}"
            )

        convs = [
            self.conv_kind(
                hidden_channels,
                stalk_dim,
                maps=maps,
                map_act=map_act,
                sparse_learner=sparse_learner,
                sparse_reading=sparse_reading,
                learn_weights=learn_weights,
                add_lp=add_lp,
                add_hp=add_hp,
                normalization=None if normalization == "none" else normalization,
                left_weights=left_weights,
                right_weights=right_weights,
                learn_maps=t == 0 or not maps_once,
                **layer_options,
            )
            for t in range(num_layers)
        ]
        self.convs = nn.ModuleList(convs)
        self.total_dim = convs[0].total_dim
        width = self.total_dim * hidden_channels
        self.encoder = nn.Linear(in_channels, width)
        self.second = nn.Linear(width, width) if second_linear else None
        steps = num_layers if self.learns_epsilon else 0
        self.epsilons = nn.ParameterList(torch.empty(self.total_dim, 1) for _ in range(steps))
        width *= self.conv_kind.parts
        self.readout = make_linear(self._end_layers(width, jk, num_layers), out_channels)
        self.reset_parameters()

    def map_learners(self) -> list[nn.Module]:
        learners = (conv.map_learner for conv in self.convs)
        return [learner for learner in learners if isinstance(learner, EdgeLearner)]

    def reset_parameters(self) -> None:
        """Draw all parameters anew; every ε starts at 0."""
        super().reset_parameters()
        for epsilon in self.epsilons:
            nn.init.zeros_(epsilon)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = self.encode(x)
        laplacian: Operator | None = None
        for t in range(self.num_layers):
            laplacian = self.learn_sheaf(t, x, graph, edge_weight, laplacian)
            y = self.diffuse(t, x, graph, laplacian)
            x = self.residual(t, x) - self.act(y)
            yield x.flatten(1)  # (n, d·h)

    def encode(self, x: Tensor) -> Tensor:
        """What enters the first layer, ``(n, d, h)``."""
        x = F.dropout(x, self.input_dropout, self.training)
        x = F.dropout(self.act(self.encoder(x)), self.dropout, self.training)
        if self.second is not None:
            x = self.second(x)
        return x.unflatten(1, (self.total_dim, self.hidden_channels))

    def learn_sheaf(
        self,
        t: int,
        x: Tensor,
        graph: Graph,
        edge_weight: Tensor | None,
        before: Operator | None,
    ) -> Operator:
        """The Laplacian of layer t; that of the layer before, where maps are learned once."""
        if before is not None and self.maps_once:
            return before
        seen = F.dropout(x, self.dropout, self.training and t > 0)
        return cast(NSDConv, self.convs[t]).laplacian(seen, graph, edge_weight)

    def diffuse(self, t: int, x: Tensor, graph: Graph, laplacian: Operator) -> Tensor:
        """What layer t makes of x, before the activation, ``(n, d, h)``."""
        x = F.dropout(x, self.dropout, self.training)
        return self.convs[t](x, graph, laplacian=laplacian)

    def residual(self, t: int, x: Tensor) -> Tensor:
        """What layer t keeps of x, ``(n, d, h)``."""
        return (1 + torch.tanh(self.epsilons[t])) * x

    def __repr__(self) -> str:
        conv, extra = self.convs[0], self.total_dim - self.stalk_dim
        fixed = f" + {extra}" if extra else ""
        return (
            f"{type(self).__name__}({self.in_channels}, {self.hidden_channels}, "
            f"num_layers={self.num_layers}, out_channels={self.out_channels}, "
            f"stalk_dim={self.stalk_dim}{fixed}, maps={conv.edge_maps})"
        )
