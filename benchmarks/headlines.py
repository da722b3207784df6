"""What README.md and docs/results.md say of training steps, written from records.

    python benchmarks/headlines.py [--records FILE ...]

Both sides of every ratio keep freed memory. What is between the marks in the two files is replaced;
a test compares it with the records.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from settings import SETTINGS
from shared import read_json_lines
from step_tables import MEMORY, TIME

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "benchmarks" / "results" / "train_step.jsonl"
BEGIN, END = "<!-- steps: begin -->", "<!-- steps: end -->"
GRAPHS = ("tolokers", "minesweeper", "roman-empire")

Steps = dict[tuple[str, str, str], dict[str, Any]]


def find_steps(records: list[dict[str, Any]]) -> Steps:
    """Steps with one thread by graph, kernel and allocator; the last of several."""
    return {
        (r["graph"], r["kernel"], r["allocator"]): r
        for r in records
        if r["threads"] == 1 and "allocator" in r
    }


def ratio(steps: Steps, graph: str, kernel: str, other: str, key: str = TIME) -> float | None:
    """``kernel`` over ``other``, both by the same allocator; ``None`` if one was not measured.

    Time is with kept memory. Memory is without: who keeps it holds more than a step needs, most of
    all who makes a tensor per edge.
    """
    how = "kept" if key == TIME else "plain"
    a, b = (steps.get((graph, name, how), {}).get(key) for name in (kernel, other))
    return None if a is None or b is None else a / b


def kept_alone(steps: Steps, graph: str, kernel: str) -> float | None:
    """How much faster one side is for keeping freed memory, nothing else changed."""
    a, b = (steps.get((graph, kernel, how), {}).get(TIME) for how in ("plain", "kept"))
    return None if a is None or b is None else a / b


def best(steps: Steps, graph: str) -> str:
    """Our fastest way that was measured in single precision."""
    return "native" if (graph, "native", "kept") in steps else "factored"


def sentence(steps: Steps) -> str:
    """Of README.md: tolokers, against the ordinary way and a GCN."""
    graph = "tolokers"
    ours = best(steps, graph)
    own = steps[graph, ours, "kept"]
    seconds = f"{own[TIME] / 1000:.2g} s on one core"
    way = ratio(steps, graph, "baseline", ours)
    gcn, cached = (ratio(steps, graph, ours, name) for name in ("gcn", "gcn-cached"))
    assert way is not None
    assert gcn is not None
    memory = ratio(steps, graph, "baseline", ours, MEMORY)
    more = "" if memory is None else f", and {memory:.0f} times the memory"
    csr = "" if cached is None else f" ({cached:.2f} on a cached sparse matrix)"
    gains = [kept_alone(steps, graph, name) for name in ("baseline", "gcn", ours)]
    alone = ""
    if None not in gains:
        alone = " That setting alone makes them {:.1f}, {:.1f} and {:.1f} times faster.".format(
            *(gain for gain in gains if gain is not None)
        )
    return (
        f"- **One training step** at the size of tolokers (a million directed edges): {seconds}. "
        f"The same network\n  with one message per edge, our rewriting of the ordinary way, "
        f"takes {way:.0f} times as long{more};\n  a GCN of PyG as wide and deep: this step takes "
        f"{gcn:.2f} of its time{csr}.\n  All sides keep freed memory for the next step.{alone}"
    )


def table(steps: Steps) -> str:
    """Of docs/results.md: a line per graph."""
    head = ("graph", "edges (directed)", "coopsheaf", "of its products", "ordinary way",
            "its memory", "of a GCN", "of a GCN on a cached CSR")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for graph in GRAPHS:
        ours = best(steps, graph)
        if (graph, ours, "kept") not in steps:
            continue
        own, setting = steps[graph, ours, "kept"], SETTINGS[graph]
        edges = setting.num_pairs * (2 if setting.both_ways else 1)
        cells = [graph, f"{edges:,}", f"{own[TIME] / 1000:.2g} s"]
        cells.append(f"{own[TIME] / own['floor_ms']:.2f} ×")
        cells += [
            _times(ratio(steps, graph, "baseline", ours)),
            _times(ratio(steps, graph, "baseline", ours, MEMORY)),
            _times(ratio(steps, graph, ours, "gcn")),
            _times(ratio(steps, graph, ours, "gcn-cached")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _times(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} ×" if value >= 10 else f"{value:.2f} ×"


def replaced(text: str, block: str) -> str:
    """A file with another block between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the file must have {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def blocks(records: list[dict[str, Any]]) -> dict[Path, str]:
    steps = find_steps(records)
    return {ROOT / "README.md": sentence(steps), ROOT / "docs" / "results.md": table(steps)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, nargs="+", default=[RECORDS], metavar="FILE")
    args = parser.parse_args()
    records = [record for path in args.records for record in read_json_lines(path)]
    for path, block in blocks(records).items():
        path.write_text(replaced(path.read_text(encoding="utf-8"), block), encoding="utf-8")
        print(f"{path.relative_to(ROOT)}:\n{block}\n")


if __name__ == "__main__":
    main()
