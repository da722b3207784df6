"""Neural Sheaf Diffusion on quivers."""

from __future__ import annotations

from typing import Any

from coopsheaf.models.arguments import arguments_of
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps
from coopsheaf.zoo.nsd.network import NSD
from coopsheaf.zoo.quiver.conv import QuiverConv


class QuiverNSD(NSD):
    r"""Neural Sheaf Diffusion with the Laplacian of a quiver: one learned map per arc.

    .. math::
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl(\Delta_t (I_n \otimes W_{1,t}) \tilde X_t W_{2,t}\bigr)

    with Δ of :class:`~coopsheaf.zoo.quiver.QuiverConv`; all else is as in
    :class:`~coopsheaf.zoo.nsd.NSD`. A network of our own, as a control: it takes directed graphs
    and knows directions, as CSNN does, but its operator is symmetric and positive semi-definite. So
    it tells what direction alone is worth from what an operator that is not normal is.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        maps: ``"general"``, ``"diagonal"``, ``"orthogonal"``, or an object of
            :mod:`coopsheaf.zoo.nsd.edge_maps`. With orthogonal maps an arc and its reverse with the
            transposed map are the same.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`; edges have no learned weights.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node; edge_weight ``(m,)``. Returns ``(n, out_channels)``, or
        ``(graphs, out_channels)``.
    """

    undirected = False
    conv_kind = QuiverConv

    @arguments_of(NSD, without=("learn_weights",))
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
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            maps=maps,
            learn_weights=False,
            **settings,
        )
