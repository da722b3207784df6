"""Tables of the long-range tasks, from records. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean, pstdev

from coopsheaf.report.tables import NOTHING
from coopsheaf.report.text import markdown_table
from coopsheaf.train.records import Record
from lab.long_range.inside import Inside
from lab.long_range.plan import CONTESTANTS, TASKS
from lab.long_range.records import Found

PLACES = {"barbell": "long-range-barbell", "transfer": "long-range-transfer"} | {
    "echo-like": "long-range-echo-like"
}
INFLUENCE_PLACE, SPECTRA_PLACE = "long-range-influence", "long-range-spectra"

# What others have printed: Van Looy et al., 2026. Barbell is a mean squared error.
PRINTED = {
    "csnn": {"barbell-10": 0.474, "barbell-20": 0.891, "barbell-50": 0.742},
    "nsd-orthogonal": {"barbell-10": 0.937, "barbell-20": 1.005, "barbell-50": 0.825},
    "onda": {"barbell-10": 0.0007, "barbell-20": 0.0009, "barbell-50": 0.083},
}

# What needs no network, fitted on the training part and measured on the test part: the mean of a
# node's side on Barbell, the median of all targets elsewhere. A test computes them again.
WITHOUT = {
    "barbell-10": 0.92,
    "barbell-20": 0.70,
    "barbell-50": 0.67,
    "echo-like-sssp": 4.89,
    "echo-like-ecc": 6.80,
    "echo-like-diameter": 8.43,
}


def value(record: Record) -> float | None:
    """What a table shows: squared errors of Barbell, per cent of labels, hops."""
    if record.test is None:
        return None
    if record.metric == "rmse":
        return record.test**2
    return 100 * record.test if record.metric == "accuracy" else record.test


def cell(rows: Sequence[Record], digits: int) -> str:
    """Mean and deviation over seeds; how many, if there are not three."""
    values = [found for found in map(value, rows) if found is not None]
    if not values:
        return NOTHING
    text = f"{fmean(values):.{digits}f}"
    if len(values) > 1:
        text += f" ± {pstdev(values):.{digits}f}"
    return text if len(values) == 3 else f"{text} ({len(values)})"


def group_table(found: Found, group: str) -> str:
    """A row for each contestant that was run, a column for each task of a group."""
    names = [name for name, task in TASKS.items() if task.group == group]
    names = sorted((name for name in names if any(task == name for _, task in found)), key=_by_size)
    digits = 0 if group == "transfer" else 2
    rows = []
    for contestant, what in CONTESTANTS.items():
        cells = [cell(found.get((contestant, name), ()), digits) for name in names]
        if any(text != NOTHING for text in cells):
            depth = "/".join(str(what.layers(TASKS[name].hops)) for name in names)
            printed = _printed(contestant, names) if group == "barbell" else ()
            rows.append((contestant, depth, *cells, *printed))
    head = ["network", "layers", *names]
    head += ["printed by others"] if group == "barbell" else []
    if any(name in WITHOUT for name in names):
        known = [f"{WITHOUT[name]:.{digits}f}" for name in names]
        rest = [NOTHING] * (len(head) - 2 - len(known))
        rows.append(("*no network*", NOTHING, *known, *rest))
    return markdown_table(" | ".join(head), rows, "l" + "r" * (len(head) - 1))


def _by_size(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("-")
    return (stem, int(number)) if number.isdecimal() else (name, 0)


def _printed(contestant: str, names: Sequence[str]) -> tuple[str]:
    known = PRINTED.get(contestant, {})
    return (" / ".join(f"{known[name]:g}" for name in names if name in known) or NOTHING,)


def influence_table(rows: Iterable[Inside]) -> str:
    """Influence of what is furthest, as a share of that of the node itself: drawn and trained."""
    cells = [
        (
            row.task,
            row.contestant,
            str(len(row.influence) - 1),
            _share(row.before),
            _share(row.influence),
        )
        for row in _in_order(rows)
    ]
    return markdown_table("task | network | hops | as drawn | trained", cells, "llrrr")


def _share(values: Sequence[float]) -> str:
    """The last value in units of the largest."""
    top = max(values)
    return f"{values[-1] / top:.1e}" if top > 0 else NOTHING


def spectra_table(rows: Iterable[Inside]) -> str:
    """The operators of trained CSNNs, the extremes over their layers."""
    cells = []
    for row in _in_order(rows):
        layers = row.layers
        if not layers:
            continue
        real, field = ([layer[key] for layer in layers] for key in ("real", "range"))
        damping = [layer["damping"] for layer in layers]
        cells.append(
            (
                row.task,
                row.contestant,
                _interval(real),
                f"{max(layer['imaginary'] for layer in layers):.2f}",
                _interval(field),
                f"{max(layer['departure'] for layer in layers):.2f}",
                "none" if None in damping else f"{max(damping):.2f}",
            )
        )
    head = "task | network | real parts | imaginary, at most | numerical range"
    return markdown_table(f"{head} | from normal | damping that holds it", cells, "llrrrrr")


def _interval(pairs: Sequence[Sequence[float]]) -> str:
    low = min(pair[0] for pair in pairs)
    high = max(pair[1] for pair in pairs)
    return f"{round(low, 2) + 0.0:.2f} to {high:.2f}"


def _in_order(rows: Iterable[Inside]) -> list[Inside]:
    """Task by task and contestant by contestant, as the plan has them; of several the last."""
    last = {(row.task, row.contestant): row for row in rows}
    places = [(task, contestant) for task in TASKS for contestant in CONTESTANTS]
    return [last[place] for place in places if place in last]


def contents(found: Found, looked: Sequence[Inside]) -> dict[str, str]:
    """Everything that is written into the document, by its place."""
    return {place: group_table(found, group) for group, place in PLACES.items()} | {
        INFLUENCE_PLACE: influence_table(looked),
        SPECTRA_PLACE: spectra_table(looked),
    }
