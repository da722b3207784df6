"""Cooperative Sheaf Neural Networks on PyTorch and PyTorch Geometric.

The names below are loaded when they are first used, so that ``import coopsheaf`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from coopsheaf.estimators.bound import with_graph as with_graph
    from coopsheaf.estimators.graph import CSNNClassifier as CSNNClassifier
    from coopsheaf.estimators.graph import CSNNRegressor as CSNNRegressor
    from coopsheaf.estimators.graph import GraphClassifier as GraphClassifier
    from coopsheaf.estimators.graph import GraphRegressor as GraphRegressor
    from coopsheaf.models.csnn import CSNN as CSNN
    from coopsheaf.models.registry import list_models as list_models
    from coopsheaf.models.registry import make_model as make_model
    from coopsheaf.models.registry import register_model as register_model
    from coopsheaf.nn.csnn_conv import CSNNConv as CSNNConv
    from coopsheaf.nn.csnn_conv import record_maps as record_maps
    from coopsheaf.predictions import predict as predict
    from coopsheaf.predictions import predict_links as predict_links
    from coopsheaf.sheaves.coboundaries import coboundary as coboundary
    from coopsheaf.sheaves.graph import Graph as Graph
    from coopsheaf.sheaves.laplacian import in_laplacian as in_laplacian
    from coopsheaf.sheaves.laplacian import out_laplacian as out_laplacian
    from coopsheaf.sheaves.laplacian import sheaf_laplacian as sheaf_laplacian
    from coopsheaf.sheaves.maps import ConformalMaps as ConformalMaps
    from coopsheaf.sheaves.operator import Operator as Operator
    from coopsheaf.sheaves.sheaf import DirectedSheaf as DirectedSheaf
    from coopsheaf.sheaves.sheaf import FlatSheaf as FlatSheaf
    from coopsheaf.sheaves.sheaf import Sheaf as Sheaf
    from coopsheaf.sheaves.spectral import dirichlet_energy as dirichlet_energy
    from coopsheaf.sheaves.spectral import harmonic_space as harmonic_space
    from coopsheaf.sheaves.spectral import spectrum as spectrum
    from coopsheaf.train.pretrained import from_pretrained as from_pretrained
    from coopsheaf.train.pretrained import save_pretrained as save_pretrained

__getattr__, __dir__, __all__ = attach(__name__, submodules=True)
