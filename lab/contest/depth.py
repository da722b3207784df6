"""Depth in finished searches: what reaches how far, and what equal reach is worth. Imports no
PyTorch.

Only validation scores of trials are looked at: nothing here is a final run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coopsheaf.report.tables import unit
from coopsheaf.report.text import markdown_table
from lab.contest.entries import Entry, Standing, standings
from lab.contest.plan import LEAGUES
from lab.contest.sentences import plural

HOPS = {"csnn": 2, "csnn-messages": 1}  # of one layer
MATCHED = {"GCN": ("gcn",), "NSD": ("nsd-diag", "nsd-orthogonal", "nsd-general")}  # one hop a layer


def best_by_layers(one: Standing) -> dict[int, float]:
    """Number of layers → best mean validation score of a trial, of those that came to something."""
    best: dict[int, float] = {}
    for trial in one.whole_trials:
        if one.worth(trial) == -math.inf:
            continue
        settings = next(iter(one.runs[trial].values())).settings
        layers = next(int(s.partition("=")[2]) for s in settings if ".num_layers=" in s)
        best[layers] = max(best.get(layers, float("-inf")), one.worth(trial))
    return best


def best_by_hops(both: Sequence[Standing]) -> dict[int, float]:
    """Layers times the hops of a layer → best mean validation score of a trial."""
    best: dict[int, float] = {}
    for one in both:
        for layers, value in best_by_layers(one).items():
            count = layers * HOPS[one.contestant.name]
            best[count] = max(best.get(count, float("-inf")), value)
    return best


@dataclass(frozen=True)
class Matched:
    """CSNN of t layers and rivals of 2t, which reach as far.

    Args:
        league, dataset, metric: where.
        layers: t.
        csnn: best validation score of CSNN's trials with t layers, larger is better.
        rivals: those of the rivals' trials with 2t layers.
    """

    league: str
    dataset: str
    metric: str
    layers: int
    csnn: float
    rivals: dict[str, float]


def matched_depths(entries: Iterable[Entry]) -> list[Matched]:
    """Wherever CSNN and a rival are searched to the end and have trials of both depths."""
    known, matched = list(entries), []
    for league in LEAGUES.values():
        found = standings(league, known)
        for dataset in league.budgets:
            ours = found.get(("csnn", dataset))
            if ours is None or not (ours.searched and ours.runs):
                continue
            rivals: dict[str, dict[int, float]] = {}
            for kind, names in MATCHED.items():
                places = [found[name, dataset] for name in names if (name, dataset) in found]
                best: dict[int, float] = {}
                for one in places:
                    if one.searched and one.runs:
                        for layers, value in best_by_layers(one).items():
                            best[layers] = max(best.get(layers, value), value)
                rivals[kind] = best
            for layers, value in sorted(best_by_layers(ours).items()):
                far = {
                    kind: best[2 * layers] for kind, best in rivals.items() if 2 * layers in best
                }
                if far:
                    place = (league.name, dataset, ours.metric)
                    matched.append(Matched(*place, layers, value, far))
    return matched


def matched_table(found: Sequence[Matched]) -> str:
    """A row for each data set and depth."""
    lines = []
    for one in found:
        factor, digits = unit(one.metric)
        cells = [f"{one.layers} / {2 * one.layers}", f"{factor * abs(one.csnn):.{digits}f}"]
        for kind in MATCHED:
            value = one.rivals.get(kind)
            if value is None:
                cells.append("–")
                continue
            gap = f"{factor * (one.csnn - value):+.{digits}f}"
            cells.append(f"{factor * abs(value):.{digits}f} ({gap})")
        lines.append((one.league, one.dataset, *cells))
    beside = " | ".join(f"best {kind} of 2t (CSNN's lead)" for kind in MATCHED)
    head = f"league | dataset | layers, t / 2t | best CSNN of t | {beside}"
    return markdown_table(head, lines, "lllr" + "r" * len(MATCHED))


def matched_sentence(found: Sequence[Matched]) -> str:
    """In how many places equal reach is worth less than CSNN's."""
    parts = []
    for kind in MATCHED:
        gaps = [one.csnn - one.rivals[kind] for one in found if kind in one.rivals]
        if gaps:
            ahead = sum(gap > 0 for gap in gaps)
            parts.append(f"{kind} in {ahead} of {plural(len(gaps), 'comparison')}")
    if not parts:
        return ""
    return (
        "At equal reach, t layers of CSNN against 2t layers, CSNN's best validation score is "
        f"higher than that of {' and '.join(parts)}."
    )
