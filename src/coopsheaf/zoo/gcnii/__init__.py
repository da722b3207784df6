"""GCNII: deep graph convolutions with initial residual and identity mapping (ICML 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.gcnii.network import GCNII as GCNII
    from coopsheaf.zoo.gcnii.network import GCNIIConv as GCNIIConv
    from coopsheaf.zoo.gcnii.network import GCNIIStar as GCNIIStar
    from coopsheaf.zoo.gcnii.network import GCNIIStarConv as GCNIIStarConv

_PAPER = "Chen et al., ICML 2020"

INFOS = (
    ModelInfo(
        "gcnii",
        "coopsheaf.zoo.gcnii.network:GCNII",
        "deep GCN with initial residual and identity mapping",
        _PAPER,
        edge_weight=True,
    ),
    ModelInfo(
        "gcnii-star",
        "coopsheaf.zoo.gcnii.network:GCNIIStar",
        "GCNII* with weights of its own for the initial residual",
        _PAPER,
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
