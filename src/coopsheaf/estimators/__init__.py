"""Estimators in the manner of scikit-learn: ``fit``, ``predict``, ``score``; searches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.estimators.bound import BoundClassifier as BoundClassifier
    from coopsheaf.estimators.bound import BoundRegressor as BoundRegressor
    from coopsheaf.estimators.bound import with_graph as with_graph
    from coopsheaf.estimators.graph import CSNNClassifier as CSNNClassifier
    from coopsheaf.estimators.graph import CSNNRegressor as CSNNRegressor
    from coopsheaf.estimators.graph import GraphClassifier as GraphClassifier
    from coopsheaf.estimators.graph import GraphRegressor as GraphRegressor

__getattr__, __dir__, __all__ = attach(__name__)
