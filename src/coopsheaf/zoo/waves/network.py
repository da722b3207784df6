"""Neural Sheaf Propagation and ONDA: features that swing instead of settling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps
from coopsheaf.zoo.nsd.network import NSD
from coopsheaf.zoo.platonov.layers import FeedForward
from coopsheaf.zoo.waves.conv import DirectionalWaveConv, WaveConv


class NSP(NSD):
    r"""Neural Sheaf Propagation (Suk et al., 2022): waves in place of heat.

    .. math::
        X_{t+1} = 2 X_t - X_{t-1}
                  - \sigma\bigl(\Delta_t (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr), \qquad
        X_{-1} = X_0,

    with everything else as in :class:`~coopsheaf.zoo.nsd.NSD`, but for its ε. Without σ and
    :math:`W_1`, :math:`W_2` it is leapfrog with steps of size 1, stable because the augmented Δ has
    its spectrum in [0, 2) and waves need less than 4; so Δ is always augmented. The start
    :math:`X_{-1}` is our own choice: features begin at rest.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers, that is, of steps.
        out_channels: size of the output; ``None`` for the features of the last layer.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; batch ``(n,)``, the graph of each node; edge_weight ``(m,)``,
        the same both ways. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    learns_epsilon = False

    @arguments_of(NSD, without=("normalization",))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        **settings: Any,
    ) -> None:
        if settings.pop("normalization", "augmented") != "augmented":
            raise ValueError("`normalization` must be 'augmented': other waves of step 1 may grow")
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, **settings)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = before = self.encode(x)
        laplacian: Operator | None = None
        for t in range(self.num_layers):
            laplacian = self.learn_sheaf(t, x, graph, edge_weight, laplacian)
            y = self.diffuse(t, x, graph, laplacian)
            x, before = 2 * x - before - self.act(y), x
            yield x.flatten(1)  # (n, d·h)


class ONDA(NSD):
    r"""ONDA (Van Looy, Trenta, Gravina, Borgi et al., 2026): blocks of waves on learned sheaves.

    A block learns a sheaf from its features, lets waves run on it for some steps
    (:class:`~coopsheaf.zoo.waves.WaveConv`), and ends with two linear layers:

    .. math:: X_{b+1} = \operatorname{MLP}_b\bigl(\operatorname{wave}_b(X_b)\bigr).

    Encoder and readout are those of :class:`~coopsheaf.zoo.nsd.NSD`. Of the paper we know the
    equations of a step and the grids; how a block begins, the MLP (as wide as a layer, GELU) and
    dropout are our own choice.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is d·h wide.
        num_layers: number of blocks.
        out_channels: size of the output; ``None`` for the features of the last block.
        num_steps: steps of a block.
        step_size: s, below √2 where the Laplacian is normalised.
        dissipation: damp, with a learned R(X) > 0.
        forcing: force, with a learned Φ(X).
        maps_each_step: learn the sheaf anew in every step, not once in a block.
        maps: ``"general"``, ``"orthogonal"``, ``"diagonal"`` or ``"identity"``.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; batch ``(n,)``, the graph of each node; edge_weight ``(m,)``,
        the same both ways. Returns ``(n, out_channels)``, or ``(graphs, out_channels)``.
    """

    conv_kind = WaveConv
    learns_epsilon = False

    @arguments_of(NSD)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_steps: int = 4,
        step_size: float = 0.1,
        dissipation: bool = False,
        forcing: bool = False,
        maps_each_step: bool = False,
        maps: str | EdgeMaps = "general",
        **settings: Any,
    ) -> None:
        if maps_each_step and settings.get("maps_once"):
            raise ValueError("`maps_once` and `maps_each_step` exclude each other; got both")
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            num_steps=num_steps,
            step_size=step_size,
            dissipation=dissipation,
            forcing=forcing,
            maps=maps,
            **settings,
        )
        self.maps_each_step = maps_each_step
        width = self.total_dim * hidden_channels
        self.mlps = nn.ModuleList(
            FeedForward(width, width, width, dropout=self.dropout) for _ in range(num_layers)
        )

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
            if not self.maps_each_step:
                laplacian = self.learn_sheaf(t, x, graph, edge_weight, laplacian)
            weight = edge_weight if laplacian is None else None
            x = F.dropout(x, self.dropout, self.training)
            x = self.convs[t](x, graph, weight, laplacian=laplacian)
            flat = self.mlps[t](x.flatten(1))  # (n, d·h)
            yield flat
            x = flat.unflatten(1, (self.total_dim, self.hidden_channels))


class DirectionalONDA(ONDA):
    """ONDA with two maps per arc: directions count, and lists need not hold edges both ways.

    As :class:`ONDA`, on :class:`~coopsheaf.zoo.waves.DirectionalWaveConv`. Its operator is not
    symmetric, so that no step size is stable for all maps; blocks are short, and ``dissipation``
    damps.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of blocks.
        out_channels: size of the output; ``None`` for the features of the last block.
        settings: as for :class:`ONDA`, but for fixed coordinates and learned weights.
    """

    undirected = False
    conv_kind = DirectionalWaveConv

    @arguments_of(ONDA, without=("sparse_reading", "add_lp", "add_hp", "learn_weights"))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, **settings)

    def map_learners(self) -> list[nn.Module]:
        senders = (conv.sender_learner for conv in self.convs)
        return [*super().map_learners(), *(s for s in senders if isinstance(s, EdgeLearner))]
