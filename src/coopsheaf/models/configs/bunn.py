"""Settings of BuNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coopsheaf.checks import check_choice
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network
    from coopsheaf.nn.heat import Heat

HEATS = {
    "taylor": "Taylor polynomial of the heat kernel",
    "spectral": "heat kernel on the smoothest eigenvectors, with learned times",
    "mean": "mean over the graph, the kernel after infinite time",
}


@dataclass(frozen=True)
class BuNNConfig:
    """Settings of :class:`~coopsheaf.models.bunn.BuNN`.

    ``heat_steps`` and ``normalization`` are those of the Taylor polynomial, ``num_eigenpairs`` and
    ``tau_init`` those of the spectral kernel.
    """

    hidden_channels: int = 64
    num_layers: int = 2
    num_bundles: int = 16
    stalk_dim: int = 2
    phi_layers: int = 2
    orthogonal: str = "euler"
    heat: str = "taylor"
    tau: float = 1.0
    heat_steps: int = 8
    normalization: str = "symmetric"
    num_eigenpairs: int = 500
    tau_init: str = "uniform"
    concat: str = "node"
    dropout: float = 0.2
    norm: str = "layer"
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.bunn import BuNN

        return BuNN(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            num_bundles=self.num_bundles,
            stalk_dim=self.stalk_dim,
            phi_layers=self.phi_layers,
            orthogonal=self.orthogonal,
            heat=self._heat(),
            concat=self.concat,
            dropout=self.dropout,
            norm=self.norm,
            pool=self.pool if graph_level else None,
        )

    def _heat(self) -> Heat:
        from coopsheaf.nn.heat import LimitHeat, SpectralHeat, TaylorHeat

        check_choice("heat", self.heat, HEATS)
        if self.heat == "mean":
            return LimitHeat()
        if self.heat == "spectral":
            return SpectralHeat(
                self.num_bundles,
                self.tau,
                num_eigenpairs=self.num_eigenpairs,
                tau_init=self.tau_init,
            )
        return TaylorHeat(self.heat_steps, self.tau, normalization=self.normalization)


# Wide residual networks diverge at the rates that small ones like.
_LR = 3e-4

INFOS = (
    ModelInfo(
        "bunn",
        BuNNConfig,
        1,
        "Bundle Neural Network",
        "Bamberger et al., ICLR 2025",
        edge_weight=True,
        default_lr=_LR,
    ),
)
