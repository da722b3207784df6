"""CO-GNN (Finkelshtein et al., ICML 2024): every node chooses an action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.cognn.actions import ActionSampler as ActionSampler
    from coopsheaf.zoo.cognn.actions import record_actions as record_actions
    from coopsheaf.zoo.cognn.network import CoGNN as CoGNN

INFOS = (
    ModelInfo(
        "cognn",
        "coopsheaf.zoo.cognn.network:CoGNN",
        "CO-GNN: every node chooses whether to listen and whether to broadcast",
        "Finkelshtein et al., ICML 2024",
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
