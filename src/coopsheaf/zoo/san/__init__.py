"""SAN: attention along the edges, and faintly between all other pairs (Kreuzer et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.san.network import SAN as SAN
    from coopsheaf.zoo.san.network import SANAttention as SANAttention
    from coopsheaf.zoo.san.network import SANLayer as SANLayer
    from coopsheaf.zoo.san.pairs import Block as Block
    from coopsheaf.zoo.san.pairs import pair_blocks as pair_blocks

INFOS = (
    ModelInfo(
        "san",
        "coopsheaf.zoo.san.network:SAN",
        "attention along the edges and, faintly, between all other pairs",
        "Kreuzer et al., NeurIPS 2021",
        edge_attr=True,
        default_lr=3e-4,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
