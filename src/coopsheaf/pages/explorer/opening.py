"""What a page shows when it is opened: which node is chosen, and which layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from coopsheaf.analysis.actions import ACTIONS, ActionReport, LayerActions
from coopsheaf.pages.explorer.neighbourhood import Selection


@dataclass(frozen=True)
class Opening:
    """Where a reader begins.

    Args:
        node: the chosen one, by its place among the nodes that are shown; -1 for none.
        layer: counted from 0.
    """

    node: int = -1
    layer: int = 0


def choose_opening(actions: ActionReport | None, selection: Selection, node: int | None) -> Opening:
    """The node that was asked for, and the layer with the most to see among what is shown.

    That is the one whose actions differ most: with the largest entropy of their shares. Where these
    are equal, the one whose flows differ most.
    """
    place = -1 if node is None else int(selection.nodes.searchsorted(node))
    layers = actions.layers if actions is not None else ()
    seen = [_to_see(layer, selection) for layer in layers]
    return Opening(place, seen.index(max(seen)) if seen else 0)


def _to_see(layer: LayerActions, selection: Selection) -> tuple[float, float]:
    count = torch.bincount(layer.action[torch.from_numpy(selection.nodes)], minlength=len(ACTIONS))
    shares = [share for share in (count / count.sum().clamp(min=1)).tolist() if share > 0]
    flow = layer.flow[torch.from_numpy(selection.edges)]
    mean = float(flow.mean()) if len(flow) else 0.0
    spread = float(flow.std(correction=0)) / mean if mean > 0 else 0.0
    # Rounded: what differs less is not seen.
    return round(-sum(share * math.log(share) for share in shares), 3), round(spread, 6)
