"""Exphormer: attention along edges, an expander and virtual nodes (Shirzad et al., 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.exphormer.layers import ExphormerAttention as ExphormerAttention
    from coopsheaf.zoo.exphormer.layers import ExphormerLayer as ExphormerLayer
    from coopsheaf.zoo.exphormer.network import Exphormer as Exphormer
    from coopsheaf.zoo.exphormer.routes import Routes as Routes
    from coopsheaf.zoo.exphormer.routes import expander_edges as expander_edges

INFOS = (
    ModelInfo(
        "exphormer",
        "coopsheaf.zoo.exphormer.network:Exphormer",
        "gated sums and attention along edges, virtual nodes and an optional expander",
        "Shirzad et al., ICML 2023",
        edge_attr=True,
        default_lr=3e-4,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
