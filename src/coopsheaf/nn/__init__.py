"""Layers and the learners of their maps."""

from coopsheaf.nn.csnn_conv import CSNNConv, LayerMaps, record_maps
from coopsheaf.nn.learners import (
    EmbeddedSAGELearner,
    GraphNormSAGELearner,
    MapLearner,
    MLPLearner,
    NodeNormSAGELearner,
    ProjectedSAGELearner,
)
from coopsheaf.nn.sage import SAGE, SAGEConv

__all__ = [
    "SAGE",
    "CSNNConv",
    "EmbeddedSAGELearner",
    "GraphNormSAGELearner",
    "LayerMaps",
    "MLPLearner",
    "MapLearner",
    "NodeNormSAGELearner",
    "ProjectedSAGELearner",
    "SAGEConv",
    "record_maps",
]
