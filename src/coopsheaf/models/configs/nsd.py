"""Settings of the networks on sheaves with maps at edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network
    from coopsheaf.models.nsd import NSD


@dataclass(frozen=True)
class NSDIdentityConfig:
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with every map the identity.

    ``normalization`` is ``"augmented"``, ``"degree"`` (diagonal and general maps) or ``"none"``.
    """

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

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        return self._build(in_channels, out_channels, graph_level, maps="identity")

    def _build(self, in_channels: int, out_channels: int, graph_level: bool, **learner: Any) -> NSD:
        from coopsheaf.models.nsd import NSD

        return NSD(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            stalk_dim=self.stalk_dim,
            add_lp=self.add_lp,
            add_hp=self.add_hp,
            normalization=None if self.normalization == "none" else self.normalization,
            left_weights=self.left_weights,
            right_weights=self.right_weights,
            second_linear=self.second_linear,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            act=self.act,
            pool=self.pool if graph_level else None,
            **learner,
        )


@dataclass(frozen=True)
class _LearnedConfig(NSDIdentityConfig):
    """What all kinds of learned maps have."""

    map_act: str = "tanh"
    sparse_learner: bool = False
    maps_once: bool = False

    def _learner(self) -> dict[str, Any]:
        return {
            "map_act": self.map_act,
            "sparse_learner": self.sparse_learner,
            "maps_once": self.maps_once,
        }


@dataclass(frozen=True)
class NSDDiagConfig(_LearnedConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with diagonal maps."""

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        learner = {"maps": "diagonal", **self._learner()}
        return self._build(in_channels, out_channels, graph_level, **learner)


@dataclass(frozen=True)
class NSDGeneralConfig(_LearnedConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with any matrices as maps."""

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        learner = {"maps": "general", **self._learner()}
        return self._build(in_channels, out_channels, graph_level, **learner)


@dataclass(frozen=True)
class NSDRandomConfig(_LearnedConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with orthogonal maps that are not trained.

    They depend on the features, through learners that stay as they are drawn.
    """

    orthogonal: str = "householder"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.nn.edge_maps import OrthogonalMaps

        maps = OrthogonalMaps(self.stalk_dim, self.orthogonal)
        # Weights are a part of the sheaf as well: none are learned.
        learner = {"maps": maps, "learn_weights": False, **self._learner()}
        network = self._build(in_channels, out_channels, graph_level, **learner)
        for learned in network.map_learners():
            learned.requires_grad_(False)
        return network


@dataclass(frozen=True)
class NSDOrthogonalConfig(_LearnedConfig):
    """Settings of :class:`~coopsheaf.models.nsd.NSD` with orthogonal maps."""

    orthogonal: str = "householder"
    learn_weights: bool = True

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.nn.edge_maps import OrthogonalMaps

        maps = OrthogonalMaps(self.stalk_dim, self.orthogonal)
        learner = {"maps": maps, "learn_weights": self.learn_weights, **self._learner()}
        return self._build(in_channels, out_channels, graph_level, **learner)


@dataclass(frozen=True)
class SNNConfig:
    """Settings of :class:`~coopsheaf.models.snn.SNN`."""

    hidden_channels: int = 32
    num_layers: int = 2
    stalk_dim: int = 2
    normalization: str = "augmented"
    left_weights: bool = True
    input_dropout: float = 0.0
    dropout: float = 0.0
    act: str = "relu"
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.snn import SNN

        return SNN(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            stalk_dim=self.stalk_dim,
            normalization=self.normalization,
            left_weights=self.left_weights,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            act=self.act,
            pool=self.pool if graph_level else None,
        )


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
