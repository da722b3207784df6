"""CSNN, the base of all networks, and the registry of models by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.models.csnn import CSNN as CSNN
    from coopsheaf.models.info import ModelInfo as ModelInfo
    from coopsheaf.models.kinship import Kinship as Kinship
    from coopsheaf.models.kinship import sheaf_systems as sheaf_systems
    from coopsheaf.models.network import Network as Network
    from coopsheaf.models.registry import find_model as find_model
    from coopsheaf.models.registry import list_models as list_models
    from coopsheaf.models.registry import make_model as make_model
    from coopsheaf.models.registry import register_model as register_model

__getattr__, __dir__, __all__ = attach(__name__)
