"""The Bundle Neural Network."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import NORMS, Network, make_readout
from coopsheaf.nn.inputs import check_pe, make_features, make_places, take_pe
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.orthogonal import Orthogonal
from coopsheaf.zoo.bunn.conv import CONCATS, BundleConv, BundleLearner
from coopsheaf.zoo.bunn.heat import Heat, LimitHeat, SpectralHeat, TaylorHeat
from coopsheaf.zoo.platonov.layers import FeedForward

HEATS: dict[str, Any] = {"taylor": TaylorHeat, "spectral": SpectralHeat, "mean": LimitHeat}


class BuNN(Network):
    r"""Bundle Neural Network (Bamberger et al., ICLR 2025), for nodes or whole graphs.

    In the residual skeleton of Platonov et al. (ICLR 2023), layer by layer,

    .. math:: O_t = \operatorname{Orth}(\phi_t(G, X_t)), \qquad
              X_{t+1} = X_t + O_t^\top\, U_t\bigl(\bar X_t \,\Vert\, e^{-\tau L} O_t \bar X_t\bigr),
              \qquad \bar X_t = \operatorname{norm}(X_t),

    with U two linear layers (:class:`~coopsheaf.zoo.bunn.conv.BundleConv`) and φ a network of its
    own in each layer (:class:`~coopsheaf.zoo.bunn.conv.BundleLearner`), which sees the features
    before the norm. The encoder is a linear layer, dropout and GELU; a norm and a linear layer end
    the network. No loops are added.

    The Taylor heat kernel takes directed graphs: heat follows the edges, each end normalised by
    its own degree. The spectral one refuses them.

    Args:
        in_channels: size of the input features.
        hidden_channels: number of channels, a multiple of ``num_bundles`` · ``stalk_dim``.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        num_bundles: number of bundles.
        stalk_dim: dimension of a bundle.
        phi_layers: number of GraphSAGE blocks of each φ; 0 for two linear layers.
        orthogonal: ``"euler"``, ``"householder"``, ``"cayley"``, ``"matrix-exponential"``, or an
            object of :mod:`coopsheaf.sheaves.orthogonal`.
        heat: how features spread: ``"taylor"``, a polynomial of degree ``heat_steps`` of the heat
            kernel; ``"spectral"``, the kernel on the smoothest eigenvectors, with learned times;
            ``"mean"``, the kernel after infinite time; or an object of
            :mod:`coopsheaf.zoo.bunn.heat`, of which every layer gets a copy.
        tau: the time τ, or where the learned times start.
        heat_steps, normalization: of the Taylor polynomial.
        num_eigenpairs, tau_init: of the spectral kernel.
        concat: what U sees beside the diffused features: ``"node"`` for them before, as they are,
            ``"common"`` for them before, in the common frame, or ``"none"``.
        dropout: dropout probability.
        norm: ``"layer"`` or ``"batch"``.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).
        encoder: ``"linear"``, or ``"atoms"``: an :class:`~coopsheaf.nn.AtomEncoder` of codes.
        pe_kind: ``"none"``, ``"rwse"`` or ``"lappe"``: places of nodes that are encoded beside the
            features, in ``pe_width`` of the channels.
        readout_layers: number of linear layers of the readout, GELU between them.
        pe_channels: size of the places of nodes.

    Shapes:
        as those of :class:`~coopsheaf.models.network.Network`; inside ``(n, hidden_channels)``.
    """

    takes_edge_weight = True
    later_settings = ("encoder", "pe_kind", "pe_width", "readout_layers")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 64,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        num_bundles: int = 16,
        stalk_dim: int = 2,
        phi_layers: int = 2,
        orthogonal: str | Orthogonal = "euler",
        heat: str | Heat = "taylor",
        tau: float = 1.0,
        heat_steps: int = 8,
        normalization: str = "symmetric",
        num_eigenpairs: int = 500,
        tau_init: str = "uniform",
        concat: str = "node",
        dropout: float = 0.2,
        norm: str = "layer",
        pool: str | None = None,
        jk: str | None = None,
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_width: int = 16,
        readout_layers: int = 1,
        pe_channels: int = 0,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.num_bundles = check_int("num_bundles", num_bundles, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=2)
        self.dropout = check_probability("dropout", dropout)
        check_int("phi_layers", phi_layers, minimum=0)
        check_choice("concat", concat, CONCATS)
        if hidden_channels % (num_bundles * stalk_dim):
            raise ValueError(
                "`hidden_channels` must be a multiple of num_bundles · stalk_dim = "
                f"{num_bundles * stalk_dim}; got {hidden_channels}"
            )
        if heat == "taylor":
            kernel: Heat = TaylorHeat(heat_steps, tau, normalization=normalization)
        elif heat == "spectral":
            kernel = SpectralHeat(
                num_bundles, tau, num_eigenpairs=num_eigenpairs, tau_init=tau_init
            )
        elif isinstance(heat, Heat):
            if (tau, heat_steps, normalization) != (1.0, 8, "symmetric"):
                raise ValueError(
                    "`tau`, `heat_steps` and `normalization` go with the name of a heat kernel; "
                    f"got {(tau, heat_steps, normalization)} beside {heat}, which has its own"
                )
            kernel = heat
        else:
            kernel = check_choice("heat", heat, HEATS)()
        make_norm = check_choice("norm", norm, NORMS)
        width = hidden_channels

        self.pe_channels = check_pe(pe_kind, pe_channels)
        self.places = make_places(pe_kind, pe_channels, pe_width, width)
        own = width if self.places is None else width - pe_width
        self.encoder = make_features(in_channels, own, encoder)
        self.learners = nn.ModuleList(
            BundleLearner(
                width,
                num_bundles,
                stalk_dim,
                num_layers=phi_layers,
                orthogonal=orthogonal,
                dropout=dropout,
            )
            for _ in range(num_layers)
        )
        inputs = width if concat == "none" else 2 * width
        self.convs = nn.ModuleList(
            BundleConv(
                width,
                num_bundles,
                stalk_dim,
                heat=deepcopy(kernel),
                update=FeedForward(inputs, width, width, dropout=dropout),
                concat=concat,
            )
            for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(make_norm(width) for _ in range(num_layers))
        self.last_norm = make_norm(width)
        seen = self._end_layers(width, jk, num_layers)
        self.readout = make_readout(seen, out_channels, readout_layers)
        self.reset_parameters()

    def map_learners(self) -> list[nn.Module]:
        return list(self.learners)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        x = F.gelu(F.dropout(self._encode(x, pe), self.dropout, self.training))
        for learner, conv, norm in zip(self.learners, self.convs, self.norms, strict=True):
            maps = learner(x, graph, edge_weight)  # (n, B, d, d)
            x = x + conv(norm(x), maps, graph, batch, edge_weight)
            yield x

    def _encode(self, x: Tensor, pe: Tensor | None) -> Tensor:
        if self.places is None:
            return self.encoder(x)
        places = self.places(take_pe(pe, x, self.pe_channels))
        return torch.cat([self.encoder(x), places], dim=1)

    def after_layers(self, x: Tensor) -> Tensor:
        return self.last_norm(x)

    def __repr__(self) -> str:
        return (
            f"BuNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, num_bundles={self.num_bundles}, "
            f"stalk_dim={self.stalk_dim}, heat={self.convs[0].heat})"
        )
