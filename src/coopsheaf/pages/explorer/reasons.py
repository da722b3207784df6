"""Why some nodes got their predictions: found, and written down for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from coopsheaf.analysis.explain import Explanation
from coopsheaf.analysis.explain_columns import PARTS
from coopsheaf.analysis.explain_run import ColumnRow
from coopsheaf.analysis.importance import WHERE, ColumnImportance
from coopsheaf.pages.explorer.neighbourhood import Selection
from coopsheaf.pages.explorer.packing import pack, shorten
from coopsheaf.pages.explorer.reading import Reading

_LABEL = 60
_MOST = 50  # columns in the list of importance
_TITLES = {"own": "Its own columns", "neighbours": "Columns of its neighbours"}


@dataclass(frozen=True)
class Reasons:
    """Why a node got its prediction.

    Args:
        why: the nodes, edges and paths that moved it.
        score: what is explained, in words.
        columns: the columns that matter most, by part: ``"own"`` and ``"neighbours"``.
    """

    why: Explanation
    score: str
    columns: dict[str, list[ColumnRow]]


def find_reasons(reading: Reading, nodes: Sequence[int]) -> list[Reasons]:
    """Explain some nodes, down to columns; a forward pass for every column that is shown."""
    return [
        Reasons(why, score_name(reading, why), {part: reading.columns(why, part) for part in PARTS})
        for why in reading.explain(nodes)
    ]


def compose_reasons(
    reasons: Reasons, selection: Selection, names: Sequence[str] | None
) -> dict[str, Any]:
    """As plain values; nodes are numbered as they are in the selection.

    Args:
        names: of all nodes; their numbers if not given.
    """
    why = reasons.why
    number = {int(node): i for i, node in enumerate(selection.nodes)}
    return {
        "node": number[why.node],
        "score": reasons.score,
        "value": why.value,
        "rows": [
            {
                "node": number.get(node, -1),
                "name": str(node) if names is None else names[node],
                "hops": int(why.distance[node]),
                "attribution": float(why.attribution[node]),
                "diffusion": None if why.diffusion is None else float(why.diffusion[node]),
                "learners": None if why.learners is None else float(why.learners[node]),
            }
            for node in why.top()
        ],
        "columns": [_columns(reasons, part) for part in PARTS],
        "attribution": pack(why.attribution[torch.from_numpy(selection.nodes)], "f4"),
        "paths": [
            {
                "nodes": [number.get(node, -1) for node in path.nodes],
                "text": path.text(names),
                "layers": list(path.layers),
                "strength": path.strength,
            }
            for path in why.paths
        ],
    }


def _columns(reasons: Reasons, part: str) -> dict[str, Any]:
    rows = reasons.columns[part]
    return {
        "part": part,
        "title": _TITLES[part],
        "rows": [
            row._asdict() | {"name": shorten(row.name, _LABEL), "value": shorten(row.value, _LABEL)}
            for row in rows
        ],
        "others": int((reasons.why.columns.part(part) != 0).sum()) - len(rows),
    }


def compose_importance(found: ColumnImportance) -> dict[str, Any]:
    """The columns that matter most for all nodes together, as plain values."""
    mean, spread, order = found.mean.tolist(), found.spread.tolist(), found.order()
    return {
        "metric": found.label,
        "where": WHERE[found.part],
        "score": found.score,
        "repeats": found.drops.shape[1],
        "rows": [
            {"name": shorten(found.names[c], _LABEL), "drop": mean[c], "spread": spread[c]}
            for c in order[:_MOST]
        ],
        "others": max(0, len(order) - _MOST),
    }


def score_name(reading: Reading, why: Explanation) -> str:
    """What is explained, in words."""
    kind, names = reading.run.task.kind, reading.run.class_names

    def name(k: int) -> str:
        return shorten(names[k], _LABEL) if k < len(names) else str(k)

    if kind == "regression":
        return "the predicted value"
    if kind == "binary":
        return f"the logit of {name(1)} against {name(0)}"
    if why.score.against is None:
        return f"the logit of {name(why.score.output)}"
    return f"the logit of {name(why.score.output)} minus that of {name(why.score.against)}"
