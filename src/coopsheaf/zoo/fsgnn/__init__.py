"""FSGNN: features of every hop, selected by a soft choice (Maurya et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.fsgnn.network import FSGNN as FSGNN

INFOS = (
    ModelInfo(
        "fsgnn",
        "coopsheaf.zoo.fsgnn.network:FSGNN",
        "features of every hop, normalised and softly selected",
        "Maurya et al., J. Comp. Sci. 2022",
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
