"""Sheaf attention (Barbero et al., 2022): how much comes from an edge, and how it is turned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.sheaf_attention.network import SheafAttention as SheafAttention
    from coopsheaf.zoo.sheaf_attention.network import SheafAttentionConv as SheafAttentionConv

INFOS = (
    ModelInfo(
        "sheaf-attention",
        "coopsheaf.zoo.sheaf_attention.network:SheafAttention",
        "graph attention whose messages are transported by a learned sheaf",
        "Barbero et al., 2022",
        directed=False,
        kinship=Kinship(
            "ends of edges",
            "orthogonal, learned; or diagonal, or any",
            operator="Λ ⊙ (I + Σ FᵀF), Λ the softmax of GAT",
            step="σ(A W₁ X W₂)",
            normal="no",
            psd="no",
            hops=1,
            cost="c·d",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
