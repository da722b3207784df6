"""CSNN's layer and the learners of its maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.nn.csnn_conv import CSNNConv as CSNNConv
    from coopsheaf.nn.csnn_conv import LayerMaps as LayerMaps
    from coopsheaf.nn.csnn_conv import record_maps as record_maps
    from coopsheaf.nn.edge_features import EdgeMeans as EdgeMeans
    from coopsheaf.nn.edge_features import edge_means as edge_means
    from coopsheaf.nn.encoders import AtomEncoder as AtomEncoder
    from coopsheaf.nn.encoders import BondEncoder as BondEncoder
    from coopsheaf.nn.encoders import LapPEEncoder as LapPEEncoder
    from coopsheaf.nn.encoders import RWSEEncoder as RWSEEncoder
    from coopsheaf.nn.learners import EmbeddedSAGELearner as EmbeddedSAGELearner
    from coopsheaf.nn.learners import GraphNormSAGELearner as GraphNormSAGELearner
    from coopsheaf.nn.learners import MapLearner as MapLearner
    from coopsheaf.nn.learners import MLPLearner as MLPLearner
    from coopsheaf.nn.learners import NodeNormSAGELearner as NodeNormSAGELearner
    from coopsheaf.nn.learners import ProjectedSAGELearner as ProjectedSAGELearner
    from coopsheaf.nn.prenorm import PreNormBlock as PreNormBlock
    from coopsheaf.nn.products import use_products as use_products
    from coopsheaf.nn.sage import SAGE as SAGE
    from coopsheaf.nn.sage import SAGEConv as SAGEConv
    from coopsheaf.nn.structure import AdjacencyLinear as AdjacencyLinear
    from coopsheaf.nn.waves import Swing as Swing

__getattr__, __dir__, __all__ = attach(__name__)
