"""Settings of the networks on sheaves with maps at edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from coopsheaf.models.info import ModelInfo, NetworkConfig, freeze_maps

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


@dataclass(frozen=True)
class NSDIdentityConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with every map the identity.

    ``normalization`` is ``"augmented"`` or ``"none"``; with diagonal and general maps also
    ``"degree"``.
    """

    network = "nsd:NSD"

    hidden_channels: int = 32
    num_layers: int = 2
    stalk_dim: int = 3
    add_lp: bool = False
    add_hp: bool = False
    normalization: str = "augmented"
    left_weights: bool = True
    right_weights: bool = True
    second_linear: bool = False
    input_dropout: float = 0.0
    dropout: float = 0.0
    act: str = "elu"
    pool: str = "mean"

    maps: ClassVar[str] = "identity"

    def options(self) -> dict[str, Any]:
        normalization = None if self.normalization == "none" else self.normalization
        return {**super().options(), "maps": self.maps, "normalization": normalization}


@dataclass(frozen=True)
class NSDDiagConfig(NSDIdentityConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with diagonal maps."""

    map_act: str = "tanh"
    sparse_learner: bool = False
    maps_once: bool = False

    maps: ClassVar[str] = "diagonal"


@dataclass(frozen=True)
class NSDGeneralConfig(NSDDiagConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with any matrices as maps."""

    maps: ClassVar[str] = "general"


@dataclass(frozen=True)
class _BundleConfig(NSDDiagConfig):
    """What the two kinds of orthogonal maps share."""

    orthogonal: str = "householder"

    def options(self) -> dict[str, Any]:
        from coopsheaf.nn.edge_maps import OrthogonalMaps

        options = super().options()
        del options["orthogonal"]  # a part of the maps
        return {**options, "maps": OrthogonalMaps(self.stalk_dim, self.orthogonal)}


@dataclass(frozen=True)
class NSDRandomConfig(_BundleConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with orthogonal maps that are not trained.

    They depend on the features, through learners that stay as they are drawn. Weights are a part of
    the sheaf as well: none are learned.
    """

    def options(self) -> dict[str, Any]:
        return {**super().options(), "learn_weights": False}

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        return freeze_maps(super().build(in_channels, out_channels, graph_level=graph_level))


@dataclass(frozen=True)
class NSDOrthogonalConfig(_BundleConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with orthogonal maps."""

    learn_weights: bool = True


@dataclass(frozen=True)
class SNNConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.snn.SNN`."""

    network = "snn:SNN"

    hidden_channels: int = 32
    num_layers: int = 2
    stalk_dim: int = 2
    normalization: str = "augmented"
    left_weights: bool = True
    input_dropout: float = 0.0
    dropout: float = 0.0
    act: str = "relu"
    pool: str = "mean"


def _info(name: str, config: type, description: str, paper: str) -> ModelInfo:
    return ModelInfo(name, config, 1, description, paper, directed=False, edge_weight=True)


_BODNAR = "Bodnar et al., NeurIPS 2022"

INFOS = (
    _info("nsd-diag", NSDDiagConfig, "Neural Sheaf Diffusion, diagonal maps", _BODNAR),
    _info("nsd-orthogonal", NSDOrthogonalConfig, "Neural Sheaf Diffusion, O(d) maps", _BODNAR),
    _info("nsd-general", NSDGeneralConfig, "Neural Sheaf Diffusion, general maps", _BODNAR),
    _info("nsd-identity", NSDIdentityConfig, "NSD with every map the identity", _BODNAR),
    _info("nsd-random", NSDRandomConfig, "NSD with random orthogonal maps, not trained", _BODNAR),
    _info("snn", SNNConfig, "Sheaf Neural Network of a fixed sheaf", "Hansen & Gebhart, 2020"),
)
