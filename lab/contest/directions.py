"""How scores follow the share of arcs whose direction tells the class. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean, pstdev

from coopsheaf.report.paired import VERDICTS
from coopsheaf.report.tables import NOTHING
from coopsheaf.report.text import markdown_table
from lab.cells import advantage_cell
from lab.contest.entries import Entry, standings
from lab.contest.plan import LEAGUES
from lab.contest.sentences import Finding, pair

PLACE = "contest-directions-share"
LEAGUE = LEAGUES["directions"]
# Data by the per cent of arcs that tell by their direction.
SHARES = {dataset: int(dataset.rpartition("-")[2]) for dataset in LEAGUE.budgets}
# A network beside one that differs in what is asked about.
ASKED = (
    ("csnn", "csnn-both-ways", "the same network on arcs both ways"),
    ("dsnn", "nsd-orthogonal", "the same diffusion without phases, on arcs both ways"),
    ("csnn", "dsnn", "an operator that is not normal against a Hermitian one"),
)


def share_lines(entries: Iterable[Entry]) -> str:
    """A sentence for each of :data:`ASKED`, and the differences behind them."""
    found = standings(LEAGUE, entries)
    by_pair = {}
    for first, second, _ in ASKED:
        pairs = {share: pair(found[first, d], found[second, d], "") for d, share in SHARES.items()}
        by_pair[first, second] = {share: one for share, one in pairs.items() if one is not None}
    lines = [
        f"- {first} against {second} ({what}): {_sentence(by_pair[first, second])}\n"
        for first, second, what in ASKED
    ]
    rows = [
        (f"{share} %", *(_cell(some.get(share)) for some in by_pair.values()))
        for share in SHARES.values()
        if any(share in some for some in by_pair.values())
    ]
    head = "arcs that tell by direction | " + " | ".join(f"{a} − {b}" for a, b, _ in ASKED)
    table = markdown_table(head, rows, "l" + "r" * len(ASKED)) + "\n" if rows else ""
    return table + "".join(lines)


def _sentence(findings: Mapping[int, Finding]) -> str:
    """Where the first is better, worse or neither, by share."""
    parts: list[str] = []
    for word in VERDICTS:
        shares = [share for share, one in findings.items() if one.paired.verdict == word]
        parts += [f"{word} at {_and(shares)} %"] if shares else []
    if not findings:
        return "not measured yet."
    left = [share for share in SHARES.values() if share not in findings]
    parts += [f"not measured yet at {_and(left)} %"] if left else []
    return ", ".join(parts) + "."


def _and(numbers: list[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _cell(finding: Finding | None) -> str:
    return NOTHING if finding is None else advantage_cell(finding.paired, finding.metric)


Curves = dict[str, list[tuple[int, float, float]]]


def curves(entries: Iterable[Entry]) -> Curves:
    """Of each contestant share, mean test score and deviation over splits, where finished."""
    found: Curves = {}
    for (name, dataset), standing in standings(LEAGUE, entries).items():
        tests = list(standing.tests.values())
        if standing.done and tests:
            found.setdefault(name, []).append((SHARES[dataset], fmean(tests), pstdev(tests)))
    return {name: sorted(points) for name, points in found.items()}
