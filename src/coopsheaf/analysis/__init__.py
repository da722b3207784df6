"""Reading networks: who influences whom, how far, along which maps, and how smooth features become.

Nothing here trains. The names below are loaded when they are first used.

* influence: :func:`influence`, :func:`influence_by_hop`, :func:`compare_influence`;
  :func:`frozen_maps` tells the diffusion from the map learners;
* receptive fields: :func:`receptive_field`, :func:`receptive_growth`;
* distances and the classical bound: :func:`hop_distances`, :func:`shortest_path`,
  :func:`adjacency_bound`, :func:`average_by_hop`;
* cooperation: :func:`read_actions`, :func:`sensitivity`, :func:`summarise_actions`,
  :func:`group_nodes`, :func:`node_homophily`; :func:`closed_channels`, :func:`silenced`;
* explanations: :func:`explain_node`, of a trained run :func:`explain_prediction`,
  :func:`strongest_paths`, :func:`check_explanation`; down to columns: :class:`Columns`,
  :func:`column_rows`, :func:`check_columns`, :func:`mute_columns`; of all nodes together:
  :func:`column_importance`; for PyG's ``Explainer``: :class:`AttributionExplainer`;
* routing: :func:`route`, :func:`apply_route`, :func:`route_jacobian`, :func:`verify_route`;
* over-smoothing: :func:`layer_features`, :func:`feature_energy`, :func:`energy_by_layer`,
  :func:`compare_energy`, :func:`rayleigh_by_layer`;
* spectra of what the layers do: :func:`layer_spectra`.

:mod:`coopsheaf.figures` draws what is found here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.analysis.action_summary import ActionRow as ActionRow
    from coopsheaf.analysis.action_summary import ActionSummary as ActionSummary
    from coopsheaf.analysis.action_summary import NodeGroups as NodeGroups
    from coopsheaf.analysis.action_summary import degree_bins as degree_bins
    from coopsheaf.analysis.action_summary import group_nodes as group_nodes
    from coopsheaf.analysis.action_summary import homophily_bins as homophily_bins
    from coopsheaf.analysis.action_summary import node_homophily as node_homophily
    from coopsheaf.analysis.action_summary import summarise_actions as summarise_actions
    from coopsheaf.analysis.actions import ACTIONS as ACTIONS
    from coopsheaf.analysis.actions import ActionReport as ActionReport
    from coopsheaf.analysis.actions import LayerActions as LayerActions
    from coopsheaf.analysis.actions import Sensitivity as Sensitivity
    from coopsheaf.analysis.actions import flow_edges as flow_edges
    from coopsheaf.analysis.actions import read_actions as read_actions
    from coopsheaf.analysis.actions import sensitivity as sensitivity
    from coopsheaf.analysis.channels import LayerChannels as LayerChannels
    from coopsheaf.analysis.channels import closed_channels as closed_channels
    from coopsheaf.analysis.channels import silenced as silenced
    from coopsheaf.analysis.columns import Columns as Columns
    from coopsheaf.analysis.energy import EnergyProfile as EnergyProfile
    from coopsheaf.analysis.energy import RayleighProfile as RayleighProfile
    from coopsheaf.analysis.energy import compare_energy as compare_energy
    from coopsheaf.analysis.energy import energy_by_layer as energy_by_layer
    from coopsheaf.analysis.energy import feature_energy as feature_energy
    from coopsheaf.analysis.energy import rayleigh_by_layer as rayleigh_by_layer
    from coopsheaf.analysis.explain import Explanation as Explanation
    from coopsheaf.analysis.explain import explain_node as explain_node
    from coopsheaf.analysis.explain_check import ExplanationCheck as ExplanationCheck
    from coopsheaf.analysis.explain_check import check_explanation as check_explanation
    from coopsheaf.analysis.explain_check import rank_correlation as rank_correlation
    from coopsheaf.analysis.explain_columns import ColumnAttribution as ColumnAttribution
    from coopsheaf.analysis.explain_columns_check import ColumnCheck as ColumnCheck
    from coopsheaf.analysis.explain_columns_check import MutedColumns as MutedColumns
    from coopsheaf.analysis.explain_columns_check import check_columns as check_columns
    from coopsheaf.analysis.explain_columns_check import mute_columns as mute_columns
    from coopsheaf.analysis.explain_paths import FlowPath as FlowPath
    from coopsheaf.analysis.explain_paths import strongest_paths as strongest_paths
    from coopsheaf.analysis.explain_run import ColumnRow as ColumnRow
    from coopsheaf.analysis.explain_run import column_rows as column_rows
    from coopsheaf.analysis.explain_run import explain_prediction as explain_prediction
    from coopsheaf.analysis.hops import adjacency_bound as adjacency_bound
    from coopsheaf.analysis.hops import average_by_hop as average_by_hop
    from coopsheaf.analysis.hops import hop_distances as hop_distances
    from coopsheaf.analysis.hops import shortest_path as shortest_path
    from coopsheaf.analysis.importance import ColumnImportance as ColumnImportance
    from coopsheaf.analysis.importance import column_importance as column_importance
    from coopsheaf.analysis.jacobians import Comparison as Comparison
    from coopsheaf.analysis.jacobians import HopProfile as HopProfile
    from coopsheaf.analysis.jacobians import Influence as Influence
    from coopsheaf.analysis.jacobians import compare_influence as compare_influence
    from coopsheaf.analysis.jacobians import influence as influence
    from coopsheaf.analysis.jacobians import influence_by_hop as influence_by_hop
    from coopsheaf.analysis.probing import frozen_maps as frozen_maps
    from coopsheaf.analysis.probing import layer_features as layer_features
    from coopsheaf.analysis.pyg_explainer import AttributionExplainer as AttributionExplainer
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
    from coopsheaf.analysis.spectra import LayerSpectra as LayerSpectra
    from coopsheaf.analysis.spectra import Spectra as Spectra
    from coopsheaf.analysis.spectra import layer_spectra as layer_spectra

__getattr__, __dir__, __all__ = attach(__name__)
