"""What the records of ``train_step.py`` say: columns, and the ratios that were aimed at."""

from __future__ import annotations

from typing import Any, NamedTuple

from shared import aligned

Record = dict[str, Any]
TIME, MEMORY = "step_ms", "peak_mb"
PUBLISHED = ("tolokers", "minesweeper", "roman-empire")
REPORTED = ("", 0.0)  # a ratio that is shown, and that nobody set a goal for
RANDOM = ("random-1e5", "random-3e5", "random-1e6")


class Target(NamedTuple):
    """A ratio, per graph, and what it must be: at least x ("+"), at most x ("-"), or anything.

    ``over`` is another kernel, ``"floor"``, or ``"1 thread"``: the same kernel with one thread.
    """

    kernel: str
    over: str
    key: str
    wanted: dict[str, tuple[str, float]]
    inverse: bool = False  # the other one divided by this one


TARGETS = [
    Target("native", "floor", TIME, {"minesweeper": ("-", 1.30), "roman-empire": ("-", 1.40)}),
    Target("bf16", "floor", TIME, {"minesweeper": ("-", 0.95), "roman-empire": ("-", 1.05)}),
    Target("factored", "floor", TIME, {"minesweeper": ("-", 2.5), "roman-empire": ("-", 2.5)}),
    Target("compiled", "floor", TIME, {"minesweeper": ("-", 2.0), "roman-empire": ("-", 2.0)}),
    Target(
        "native",
        "factored",
        TIME,
        {"tolokers": ("-", 0.75), **dict.fromkeys(RANDOM, ("-", 0.65))},
    ),
    Target(
        "native",
        "factored",
        MEMORY,
        dict.fromkeys((*PUBLISHED, *RANDOM), ("-", 1.0)),
    ),
    Target(
        "native",
        "1 thread",
        TIME,
        dict.fromkeys((*PUBLISHED, *RANDOM), ("+", 1.7)),
        inverse=True,
    ),
    Target(
        "factored",
        "baseline",
        TIME,
        {"tolokers": ("+", 15), "minesweeper": ("+", 3.5), "roman-empire": ("+", 2.5)},
        inverse=True,
    ),
    Target(
        "factored",
        "baseline",
        MEMORY,
        {"tolokers": ("+", 5), "minesweeper": ("+", 2), "roman-empire": ("+", 1.5)},
        inverse=True,
    ),
    Target(
        "factored",
        "gcn",
        TIME,
        {"tolokers": ("-", 1), "minesweeper": ("-", 3.5), "roman-empire": ("-", 3.5)},
    ),
    Target("factored", "gcn-512", TIME, dict.fromkeys(PUBLISHED, ("+", 1)), inverse=True),
    Target("factored", "gcn-cached", TIME, dict.fromkeys(PUBLISHED, REPORTED)),
    Target("native", "gcn", TIME, dict.fromkeys((*PUBLISHED, "texas"), REPORTED)),
    Target("native", "gcn-cached", TIME, dict.fromkeys((*PUBLISHED, "texas"), REPORTED)),
]
# Milliseconds of a step with one thread.
STEP_MS = {("native", "texas"): 7.0}


def format_tables(records: list[Record]) -> str:
    """The records in aligned columns, then the ratios that were aimed at."""
    head = ("graph", "threads", "memory", "clock", "kernel", "step ms", "/ floor", "/ gcn")
    rows = [(*head, "peak MB", "total", "loss")]
    found = {(*_group(r), r["kernel"]): r for r in records}
    for r in records:
        gcn = found.get((*_group(r), "gcn"))
        left = (r["graph"], str(r["threads"]), allocator(r), r.get("clock", "wall"), r["kernel"])
        times = (_number(r[TIME]), f"{r[TIME] / r['floor_ms']:.2f}" if r.get("floor_ms") else "-")
        over = f"{r[TIME] / gcn[TIME]:.2f}" if gcn else "-"
        memory = [f"{r[key]:,.0f}" if key in r else "-" for key in (MEMORY, "total_mb")]
        rows.append((*left, *times, over, *memory, f"{r['loss']:.4f}"))
    ratios = [("graph", "threads", "memory", "ratio", "is", "target", "")]
    for group in dict.fromkeys(map(_group, records)):
        ratios += _judge(group, found)
    tables = f"{aligned(rows, '<><<<>>>>>>')}\n\n{aligned(ratios, '<><<>><')}"
    alone = allocator_alone(records)
    return tables + (f"\n\n{alone}" if alone else "")


def allocator(record: Record) -> str:
    """What a side did with freed memory. Records that do not say are older: ours alone kept it."""
    old = "plain" if record["kernel"] in ("baseline", "gcn", "gcn-512") else "kept"
    found: str = record.get("allocator", old)
    return found


def _group(record: Record) -> tuple[str, int, str]:
    """What may be compared: one graph, so many threads, and one allocator unless it is older."""
    return record["graph"], record["threads"], record.get("allocator", "mixed")


def _judge(group: tuple[str, int, str], found: dict[Any, Record]) -> list[tuple[str, ...]]:
    graph, threads, kept = group
    rows = []
    for target in TARGETS:
        record = found.get((*group, target.kernel), {})
        value, against = record.get(target.key), record.get("floor_ms")
        if target.over == "1 thread":
            single = found.get((graph, 1, kept, target.kernel), {})
            against = single.get(target.key) if threads == 2 else None
        elif target.over != "floor":
            against = found.get((*group, target.over), {}).get(target.key)
        if graph not in target.wanted or value is None or against is None:
            continue
        ratio = against / value if target.inverse else value / against
        names = (target.over, target.kernel) if target.inverse else (target.kernel, target.over)
        what = "time" if target.key == TIME else "memory"
        rows.append((graph, str(threads), kept, f"{' / '.join(names)}, {what}", f"{ratio:.2f}"))
        rows[-1] += _verdict(ratio, *target.wanted[graph])
    for (kernel, name), most in STEP_MS.items():
        record = found.get((*group, kernel), {})
        if name == graph and threads == 1 and record:
            row = (graph, "1", kept, f"{kernel}, ms", f"{record[TIME]:.1f}")
            rows.append((*row, *_verdict(record[TIME], "-", most)))
    return rows


def _verdict(value: float, sign: str, target: float) -> tuple[str, str]:
    if not sign:
        return "-", ""
    met = value >= target if sign == "+" else value <= target
    goal = f"{'at least' if sign == '+' else 'at most'} {target:g}"
    return goal, "met" if met else "missed"


def allocator_alone(records: list[Record]) -> str:
    """What keeping freed memory alone is worth to each side, where both ways were measured."""
    keys = ("graph", "threads", "kernel", "clock")
    told = [r for r in records if "allocator" in r]
    found = {(*(r.get(key) for key in keys), r["allocator"]): r[TIME] for r in told}
    rows = [("graph", "threads", "kernel", "plain ms", "kept ms", "plain / kept")]
    for (*side, kept), seconds in found.items():
        plain = found.get((*side, "plain"))
        if kept == "kept" and plain is not None:
            graph, threads, kernel, _ = side
            times = (_number(plain), _number(seconds), f"{plain / seconds:.2f}")
            rows.append((graph, str(threads), kernel, *times))
    return aligned(rows, "<><>>>") if len(rows) > 1 else ""


def _number(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:,.1f}"
