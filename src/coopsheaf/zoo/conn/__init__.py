"""Connection sheaves (Barbero et al., 2022): orthogonal maps from local PCA, before training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.conn.conv import ConnectionConv as ConnectionConv
    from coopsheaf.zoo.conn.conv import ConnectionMaps as ConnectionMaps
    from coopsheaf.zoo.conn.network import ConnNSD as ConnNSD
    from coopsheaf.zoo.conn.network import RandomConnNSD as RandomConnNSD


def _info(name: str, network: str, description: str, maps: str, **options: Any) -> ModelInfo:
    return ModelInfo(
        name,
        f"coopsheaf.zoo.conn.network:{network}",
        description,
        "Barbero et al., 2022",
        directed=False,
        edge_weight=True,
        kinship=Kinship(
            "ends of edges",
            maps,
            operator="Δ = R δᵀδ R",
            step="(1 + tanh ε) X − σ(A W₁ X W₂)",
            normal="yes",
            psd="yes",
            hops=1,
            cost="c·d",
        ),
        **options,
    )


def _random(name: str, draw: str, maps: str) -> ModelInfo:
    what = f"conn-nsd with random maps, drawn per {draw}"
    one_graph = {"inductive": False, "graph_level": False}
    return _info(name, "RandomConnNSD", what, maps, fixed={"draw": draw}, **one_graph)


INFOS = (
    _info(
        "conn-nsd",
        "ConnNSD",
        "Neural Sheaf Diffusion on the connection of local PCA",
        "orthogonal, from local PCA of the features",
    ),
    _random("conn-nsd-edge-random", "edge", "orthogonal, drawn for each pair of neighbours"),
    _random("conn-nsd-node-random", "node", "orthogonal, between frames drawn for each node"),
)

__getattr__, __dir__, __all__ = attach(__name__)
