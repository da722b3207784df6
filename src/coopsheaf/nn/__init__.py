"""Layers and the learners of their maps."""

from coopsheaf.nn.actions import record_actions
from coopsheaf.nn.bundle_conv import BundleConv
from coopsheaf.nn.csnn_conv import CSNNConv, LayerMaps, record_maps
from coopsheaf.nn.fixed_sheaf_conv import FixedSheafConv
from coopsheaf.nn.learners import (
    EmbeddedSAGELearner,
    GraphNormSAGELearner,
    MapLearner,
    MLPLearner,
    NodeNormSAGELearner,
    ProjectedSAGELearner,
)
from coopsheaf.nn.nsd_conv import NSDConv
from coopsheaf.nn.sage import SAGE, SAGEConv

__all__ = [
    "SAGE",
    "BundleConv",
    "CSNNConv",
    "EmbeddedSAGELearner",
    "FixedSheafConv",
    "GraphNormSAGELearner",
    "LayerMaps",
    "MLPLearner",
    "MapLearner",
    "NSDConv",
    "NodeNormSAGELearner",
    "ProjectedSAGELearner",
    "SAGEConv",
    "record_actions",
    "record_maps",
]
