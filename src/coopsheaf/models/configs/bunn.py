"""Settings of BuNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coopsheaf.checks import check_choice
from coopsheaf.models.info import ModelInfo, NetworkConfig

if TYPE_CHECKING:
    from coopsheaf.nn.heat import Heat

HEATS = {
    "taylor": "Taylor polynomial of the heat kernel",
    "spectral": "heat kernel on the smoothest eigenvectors, with learned times",
    "mean": "mean over the graph, the kernel after infinite time",
}


@dataclass(frozen=True)
class BuNNConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.bunn.BuNN`.

    ``heat_steps`` and ``normalization`` are those of the Taylor polynomial, ``num_eigenpairs`` and
    ``tau_init`` those of the spectral kernel.
    """

    network = "bunn:BuNN"

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

    def options(self) -> dict[str, Any]:
        of_heat = ("tau", "heat_steps", "normalization", "num_eigenpairs", "tau_init")
        options = {key: value for key, value in super().options().items() if key not in of_heat}
        return {**options, "heat": self._heat()}

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
