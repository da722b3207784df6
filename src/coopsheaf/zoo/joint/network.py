"""Networks whose sheaf goes from layer to layer and moves with the features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.joint.conv import NOT_HERE, CarriedConv, InvariantConv, JointConv
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps
from coopsheaf.zoo.nsd.network import NSD

_WITHOUT = (*NOT_HERE, "maps_once")


class CarriedNSD(NSD):
    """Neural Sheaf Diffusion whose layers hand their maps on."""

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x, maps = self.encode(x), None
        for t, conv in enumerate(self.convs):
            assert isinstance(conv, CarriedConv)
            seen = F.dropout(x, self.dropout, self.training and t > 0)
            maps = conv.maps(seen, graph, maps)
            laplacian = conv.laplacian_of(maps, x, graph, edge_weight)
            x = self.residual(t, x) - self.act(self.diffuse(t, x, graph, laplacian))
            yield x.flatten(1)  # (n, d·h)


class JdSNN(CarriedNSD):
    r"""Joint diffusion (Hernandez Caralt et al., 2024), for nodes or whole graphs.

    .. math::
        F_{t+1} &= F_t - \sigma_F\bigl(b\, \Delta_{X_t}(V_{1,t} F_t V_{2,t})\bigr), \qquad
        F_0 = I, \\
        X_{t+1} &= (1 + \tanh \varepsilon_t) \odot X_t
                   - \sigma\bigl(\Delta_{F_{t+1}} (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr)

    with both Laplacians of :class:`~coopsheaf.zoo.joint.JointConv` and all else as in
    :class:`~coopsheaf.zoo.nsd.NSD`. A sheaf costs 2d² parameters per layer, however many channels
    there are. A reading of a summary of the paper: the layer says what was decided here.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        map_step: b, positive; up to 1 the maps descend their energy.
        map_act: σ_F: ``"tanh"``, ``"elu"`` or ``"identity"``.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`, without what learns maps there and without
            fixed coordinates.

    Shapes:
        as those of :class:`~coopsheaf.zoo.nsd.NSD`.
    """

    conv_kind = JointConv

    @arguments_of(NSD, without=("maps", "orthogonal", *_WITHOUT))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        map_step: float = 1.0,
        **settings: Any,
    ) -> None:
        settings = settings | {"maps": "general", "map_step": map_step}
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, **settings)

    def map_learners(self) -> list[nn.Module]:
        return [conv.mixing for conv in self.convs if isinstance(conv, JointConv)]


class RiSNN(CarriedNSD):
    r"""Maps from rotation-invariant products (Hernandez Caralt et al., 2024).

    .. math::
        F_{t+1} &= \operatorname{maps}\bigl(\sigma_F(\operatorname{MLP}_t(
                   \tfrac1h\, x_e x_i^\top))\bigr), \qquad x_e = F_t x_i - \bar F_t x_j, \quad
        F_0 = I, \\
        X_{t+1} &= (1 + \tanh \varepsilon_t) \odot X_t
                   - \sigma\bigl(\Delta_{F_{t+1}} (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr)

    with the Laplacian of :class:`~coopsheaf.zoo.joint.InvariantConv` and all else as in
    :class:`~coopsheaf.zoo.nsd.NSD`. A reading of a summary of the paper: the layer says what was
    decided here.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        maps: ``"general"``, ``"orthogonal"``, ``"diagonal"``, or an object of
            :mod:`coopsheaf.zoo.nsd.edge_maps`.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`, without what learns maps there and without
            fixed coordinates.

    Shapes:
        as those of :class:`~coopsheaf.zoo.nsd.NSD`.
    """

    conv_kind = InvariantConv

    @arguments_of(NSD, without=_WITHOUT)
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        maps: str | EdgeMaps = "general",
        **settings: Any,
    ) -> None:
        settings = settings | {"maps": maps}
        super().__init__(in_channels, hidden_channels, num_layers, out_channels, **settings)

    def map_learners(self) -> list[nn.Module]:
        return [conv.invariant_learner for conv in self.convs if isinstance(conv, InvariantConv)]
