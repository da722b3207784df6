"""Reading networks: who influences whom, how far, along which maps, and how smooth features become.

Nothing here trains. The names below are loaded when they are first used.

* influence: :func:`influence`, :func:`influence_by_hop`, :func:`compare_influence`;
  :func:`frozen_maps` tells the diffusion from the map learners;
* receptive fields: :func:`receptive_field`, :func:`receptive_growth`;
* distances and the classical bound: :func:`hop_distances`, :func:`shortest_path`,
  :func:`adjacency_bound`, :func:`average_by_hop`;
* routing: :func:`route`, :func:`apply_route`, :func:`route_jacobian`, :func:`verify_route`;
* over-smoothing: :func:`layer_features`, :func:`feature_energy`, :func:`energy_by_layer`,
  :func:`compare_energy`;
* figures: :mod:`coopsheaf.analysis.figures`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coopsheaf.analysis.energy import EnergyProfile as EnergyProfile
    from coopsheaf.analysis.energy import compare_energy as compare_energy
    from coopsheaf.analysis.energy import energy_by_layer as energy_by_layer
    from coopsheaf.analysis.energy import feature_energy as feature_energy
    from coopsheaf.analysis.hops import adjacency_bound as adjacency_bound
    from coopsheaf.analysis.hops import average_by_hop as average_by_hop
    from coopsheaf.analysis.hops import hop_distances as hop_distances
    from coopsheaf.analysis.hops import shortest_path as shortest_path
    from coopsheaf.analysis.jacobians import Comparison as Comparison
    from coopsheaf.analysis.jacobians import HopProfile as HopProfile
    from coopsheaf.analysis.jacobians import Influence as Influence
    from coopsheaf.analysis.jacobians import compare_influence as compare_influence
    from coopsheaf.analysis.jacobians import influence as influence
    from coopsheaf.analysis.jacobians import influence_by_hop as influence_by_hop
    from coopsheaf.analysis.probing import frozen_maps as frozen_maps
    from coopsheaf.analysis.probing import layer_features as layer_features
    from coopsheaf.analysis.receptive import ReceptiveGrowth as ReceptiveGrowth
    from coopsheaf.analysis.receptive import receptive_field as receptive_field
    from coopsheaf.analysis.receptive import receptive_growth as receptive_growth
    from coopsheaf.analysis.routing import Route as Route
    from coopsheaf.analysis.routing import RouteCheck as RouteCheck
    from coopsheaf.analysis.routing import RouteLayer as RouteLayer
    from coopsheaf.analysis.routing import apply_route as apply_route
    from coopsheaf.analysis.routing import route as route
    from coopsheaf.analysis.routing import route_jacobian as route_jacobian
    from coopsheaf.analysis.routing import verify_route as verify_route

_HOME = {
    "Comparison": "jacobians",
    "EnergyProfile": "energy",
    "HopProfile": "jacobians",
    "Influence": "jacobians",
    "ReceptiveGrowth": "receptive",
    "Route": "routing",
    "RouteCheck": "routing",
    "RouteLayer": "routing",
    "adjacency_bound": "hops",
    "apply_route": "routing",
    "average_by_hop": "hops",
    "compare_energy": "energy",
    "compare_influence": "jacobians",
    "energy_by_layer": "energy",
    "feature_energy": "energy",
    "frozen_maps": "probing",
    "hop_distances": "hops",
    "influence": "jacobians",
    "influence_by_hop": "jacobians",
    "layer_features": "probing",
    "receptive_field": "receptive",
    "receptive_growth": "receptive",
    "route": "routing",
    "route_jacobian": "routing",
    "shortest_path": "hops",
    "verify_route": "routing",
}

__all__ = ["figures", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "figures":
        return import_module("coopsheaf.analysis.figures")
    if name not in _HOME:
        raise AttributeError(f"module 'coopsheaf.analysis' has no attribute {name!r}")
    value = getattr(import_module(f"coopsheaf.analysis.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
