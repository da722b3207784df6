"""Patches of a graph that attend to each other or are mixed (He et al., 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.graph_vit.layers import HadamardBlock as HadamardBlock
    from coopsheaf.zoo.graph_vit.layers import MixerBlock as MixerBlock
    from coopsheaf.zoo.graph_vit.layers import PatchConv as PatchConv
    from coopsheaf.zoo.graph_vit.network import GraphMixer as GraphMixer
    from coopsheaf.zoo.graph_vit.network import GraphViT as GraphViT
    from coopsheaf.zoo.graph_vit.patches import Patches as Patches
    from coopsheaf.zoo.graph_vit.patches import make_patches as make_patches

_PAPER = "He et al., ICML 2023"

INFOS = (
    ModelInfo(
        "graph-vit",
        "coopsheaf.zoo.graph_vit.network:GraphViT",
        "patches of a graph, and attention between them where they overlap",
        _PAPER,
        edge_attr=True,
        default_lr=1e-3,
    ),
    ModelInfo(
        "graph-mixer",
        "coopsheaf.zoo.graph_vit.network:GraphMixer",
        "patches of a graph, mixed by perceptrons",
        _PAPER,
        edge_attr=True,
        default_lr=1e-3,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
