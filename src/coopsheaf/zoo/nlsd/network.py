"""Nonlinear sheaf diffusion."""

from __future__ import annotations

from typing import Any

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.nonlinear import Phi
from coopsheaf.zoo.nlsd.conv import NLSDConv
from coopsheaf.zoo.nsd.network import NSD


class NLSD(NSD):
    r"""Nonlinear sheaf diffusion (Zaghen et al., 2024), for nodes or whole graphs.

    .. math::
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl(\Delta^\varphi_t((I_n \otimes W_{1,t}) \tilde X_t W_{2,t})\bigr)

    with :math:`\Delta^\varphi` of :class:`~coopsheaf.zoo.nlsd.NLSDConv` and all else as in
    :class:`~coopsheaf.zoo.nsd.NSD`, which is this network with φ = id.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        phi: ``"mlp"``, an odd perceptron per layer; ``"bounded-confidence"``; ``"identity"``; or
            any odd function from ``(m, d, h)`` to ``(m, d, h)``, one for all layers.
        threshold: of bounded confidence: ends that differ by more do not hear each other.
        settings: as for :class:`~coopsheaf.zoo.nsd.NSD`, without fixed coordinates.

    Shapes:
        as those of :class:`~coopsheaf.zoo.nsd.NSD`.
    """

    conv_kind = NLSDConv
    exportable = False
    why_not_exportable = "this network makes a list that has every pair of neighbours once"

    @arguments_of(NSD, without=("add_lp", "add_hp"))
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        phi: str | Phi = "mlp",
        threshold: float = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            num_layers,
            out_channels,
            phi=phi,
            threshold=threshold,
            **settings,
        )
