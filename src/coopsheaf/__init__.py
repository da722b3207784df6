"""Cooperative Sheaf Neural Networks on PyTorch and PyTorch Geometric.

The names below are loaded when they are first used, so that ``import coopsheaf`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from coopsheaf.estimator import CSNNClassifier as CSNNClassifier
    from coopsheaf.estimator import CSNNRegressor as CSNNRegressor
    from coopsheaf.graph import Graph as Graph
    from coopsheaf.laplacian import coboundary as coboundary
    from coopsheaf.laplacian import in_laplacian as in_laplacian
    from coopsheaf.laplacian import out_laplacian as out_laplacian
    from coopsheaf.laplacian import sheaf_laplacian as sheaf_laplacian
    from coopsheaf.memory import keep_freed_memory as keep_freed_memory
    from coopsheaf.models.csnn import CSNN as CSNN
    from coopsheaf.nn.csnn_conv import CSNNConv as CSNNConv
    from coopsheaf.nn.csnn_conv import record_maps as record_maps
    from coopsheaf.sheaf import ConformalMaps as ConformalMaps
    from coopsheaf.sheaf import DirectedSheaf as DirectedSheaf
    from coopsheaf.sheaf import FlatSheaf as FlatSheaf
    from coopsheaf.sheaf import Sheaf as Sheaf
    from coopsheaf.spectral import dirichlet_energy as dirichlet_energy
    from coopsheaf.spectral import harmonic_space as harmonic_space
    from coopsheaf.spectral import spectrum as spectrum

_HOME = {
    "CSNN": "models.csnn",
    "CSNNClassifier": "estimator",
    "CSNNConv": "nn.csnn_conv",
    "CSNNRegressor": "estimator",
    "ConformalMaps": "sheaf",
    "DirectedSheaf": "sheaf",
    "FlatSheaf": "sheaf",
    "Graph": "graph",
    "Sheaf": "sheaf",
    "coboundary": "laplacian",
    "dirichlet_energy": "spectral",
    "harmonic_space": "spectral",
    "in_laplacian": "laplacian",
    "keep_freed_memory": "memory",
    "out_laplacian": "laplacian",
    "record_maps": "nn.csnn_conv",
    "sheaf_laplacian": "laplacian",
    "spectrum": "spectral",
}

_SUBMODULES = {
    "analysis", "compat", "diffusion", "graph", "kernels", "laplacian", "models", "nn",
    "operator", "orthogonal", "scale", "sheaf", "spectral",
}  # fmt: skip

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"coopsheaf.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'coopsheaf' has no attribute {name!r}")
    value = getattr(import_module(f"coopsheaf.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
