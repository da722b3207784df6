"""Models by name: their settings, what builds them, and the version of what they compute.

Nothing here imports PyTorch until a model is built.
"""

from __future__ import annotations

from coopsheaf.checks import check_choice
from coopsheaf.models.configs import bunn, cognn, csnn, match, nsd, plain, platonov
from coopsheaf.models.info import ModelInfo

# In the order in which they are listed.
_FAMILIES = (csnn, plain, nsd, platonov, bunn, cognn, match)

MODELS: dict[str, ModelInfo] = {info.name: info for family in _FAMILIES for info in family.INFOS}


def find_model(name: str) -> ModelInfo:
    """A model by its name; the error lists the names."""
    return check_choice("model", name, MODELS)
