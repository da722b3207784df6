"""Questions about CSNN, each answered from records: a table, a plain sentence, a command.

A sentence is computed from the numbers and says also when the answer is no, or not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.models.registry import find_model
from coopsheaf.report.rows import Row, newest, sign_of, summarise
from coopsheaf.report.tables import unit
from coopsheaf.report.text import markdown_table
from coopsheaf.train.records import Record, find_records
from lab.channels import ChannelResult, channel_tables, percent, read_channels
from lab.compare import QUESTIONS, Question, compare, twins
from lab.contest.depth import (
    HOPS,
    best_by_hops,
    matched_depths,
    matched_sentence,
    matched_table,
)
from lab.contest.entries import Entry, read_entries, standings
from lab.contest.plan import LEAGUES, Contestant
from lab.contest.sentences import Finding, conclusion, finding_table, pair, plural
from lab.contest.tables import best_against
from lab.published import PAPER
from lab.seeds import first_seeds, seed_spreads, seed_table


@dataclass(frozen=True)
class Evidence:
    """All records below a folder of results."""

    results: Path

    @cached_property
    def all_seeds(self) -> list[Record]:
        return find_records(self.results)

    @cached_property
    def records(self) -> list[Record]:
        return first_seeds(self.all_seeds)

    @cached_property
    def defaults(self) -> list[Record]:
        return find_records(self.results / "defaults")

    @cached_property
    def entries(self) -> list[Entry]:
        return read_entries(self.results / "contest")

    @cached_property
    def channels(self) -> list[ChannelResult]:
        return read_channels(self.results / "channels")


@dataclass(frozen=True)
class Answer:
    """A sentence, and the table behind it."""

    sentence: str
    table: str = ""


@dataclass(frozen=True)
class Asked:
    """A question.

    Args:
        name: of its place in a document.
        command: what measures more of it.
        answer: from the evidence.
    """

    name: str
    command: str
    answer: Callable[[Evidence], Answer]

    def text(self, evidence: Evidence) -> str:
        found = self.answer(evidence)
        parts = [f"**{found.sentence}**\n", found.table, f"```bash\n{self.command}\n```\n"]
        return "\n".join(part for part in parts if part)


def question_places(results: Path) -> dict[str, str]:
    """What belongs in the places of ``docs/questions.md``."""
    evidence = Evidence(results)
    return {f"answer-{asked.name}": asked.text(evidence) for asked in ASKED}


def from_findings(findings: Sequence[Finding], subject: str) -> Answer:
    table = finding_table(findings) if findings else ""
    return Answer(conclusion(findings, subject), table)


def from_both(alike: Sequence[Finding], searched: Sequence[Finding], subject: str) -> Answer:
    """Twins that differ in one thing and contestants that searched for themselves, apart.

    Settings that were chosen for one side favour it: two answers are not to be mixed.
    """
    sentence = (
        f"With the same settings: {conclusion(alike, subject)} "
        f"Each with what an equal search chose: {conclusion(searched, subject)}"
    )
    if not (alike or searched):
        return Answer(conclusion((), subject))
    return Answer(sentence, finding_table([*alike, *searched]))


def twin_findings(question: Question, records: Iterable[Record], source: str) -> list[Finding]:
    """Of each data set the pair of settings with the best validation, split by split."""
    best: dict[object, Finding] = {}
    for first, _, paired in twins(question, records):
        if len(paired.differences) > 1:
            names = (question.first, question.second)
            one = Finding(first.dataset, first.metric, *names, paired, source)
            best.setdefault(first.column, one)
    return list(best.values())


def contest_findings(entries: Sequence[Entry], first: str, second: str) -> list[Finding]:
    """Two contestants, each with what its search chose, on all data of all leagues."""
    findings = []
    for league in LEAGUES.values():
        found = standings(league, entries)
        for dataset in league.budgets:
            if {first, second} <= set(league.contestants):
                one = pair(found[first, dataset], found[second, dataset], f"contest {league.name}")
                findings += [] if one is None else [one]
    return findings


def _twins(name: str) -> Question:
    return next(question for question in QUESTIONS if question.name == name)


MESSAGES = Question(
    "messages",
    "messages alone",
    "the paper's operator",
    lambda record: record.model == "csnn" and record.semantics == "messages",
    lambda record: record.model == "csnn" and record.semantics == "paper",
    ("semantics",),
)


def maps(evidence: Evidence) -> Answer:
    findings = twin_findings(_twins("maps"), evidence.records, "same settings but for the maps")
    searched = contest_findings(evidence.entries, "csnn", "csnn-identity")
    return from_both(findings, searched, "CSNN with learned maps")


def order(evidence: Evidence) -> Answer:
    findings = twin_findings(_twins("order"), evidence.records, "same settings but for the order")
    searched = contest_findings(evidence.entries, "csnn", "csnn-released")
    return from_both(findings, searched, "the paper's order")


def diagonal(evidence: Evidence) -> Answer:
    """Whether the network is better without it: messages alone against the paper's operator."""
    source = "same settings but for the operator"
    findings = twin_findings(MESSAGES, [*evidence.records, *evidence.defaults], source)
    searched = contest_findings(evidence.entries, "csnn-messages", "csnn")
    return from_both(findings, searched, "the operator without the diagonal")


def direction(evidence: Evidence) -> Answer:
    findings = directed_findings(evidence.records)
    findings += contest_findings(evidence.entries, "csnn", "csnn-both-ways")
    return from_findings(findings, "CSNN on the arcs as they are stored")


def directed_findings(records: Iterable[Record]) -> list[Finding]:
    """CSNN on a file with directions and on the same nodes and splits without, order by order.

    Settings are those with the most splits and then the best validation score on each file.
    """
    best: dict[tuple[str, str], Row] = {}
    for row in summarise(newest(records), PAPER):
        if row.model == "csnn" and not row.ablation:
            key = (row.dataset, row.semantics)
            best[key] = max(best.get(key, row), row, key=_standing)
    findings = []
    for (dataset, semantics), row in best.items():
        base = best.get((dataset.removesuffix("-directed"), semantics))
        if not dataset.endswith("-directed") or base is None:
            continue
        paired = compare(replace(row, **_column(base)), base)
        if paired is not None and len(paired.differences) > 1:
            names = ("stored arcs", "both ways")
            source = f"recipes, {semantics} order"
            findings.append(Finding(dataset, row.metric, *names, paired, source))
    return findings


def _standing(row: Row) -> tuple[int, float]:
    value = float("-inf") if row.val_mean is None else sign_of(row.metric) * row.val_mean
    return len(row.runs), value


def _column(row: Row) -> dict[str, Any]:
    """What makes :func:`lab.compare.compare` take two files of one graph for the same data."""
    names = ("dataset", "dataset_checksum", "metric", "remark")
    return {name: getattr(row, name) for name in names}


CLOSED = 0.05  # a share of channels from which one may speak of closing


def closing(evidence: Evidence) -> Answer:
    results = evidence.channels
    if not results:
        return Answer("Not measured yet.")
    layers = [layer.closed for result in results for layer in result.layers]
    start = [layer.closed for result in results for layer in result.start]
    share = fmean(layers)
    word = "Yes" if share >= CLOSED else "Hardly"
    scored = [r for r in results if r.test is not None and r.closed_test is not None]
    moved = [abs((r.test or 0.0) - (r.closed_test or 0.0)) for r in scored]
    effect = ""
    if moved:
        effect = (
            " Closing them to the last bit moves the test score by"
            f" {100 * fmean(moved):.2f} points on average, at most {100 * max(moved):.2f}."
        )
    sentence = (
        f"{word}: {percent(layers)} of the channels of {len(results)} trained networks are closed "
        f"({percent([min(layers)])} to {percent([max(layers)])} by layer; "
        f"{percent(start)} before training).{effect}"
    )
    return Answer(sentence, channel_tables(results))


def hops(evidence: Evidence) -> Answer:
    """The best validation of every number of hops in finished searches; test is not looked at.

    Then CSNN of t layers beside networks of 2t layers of one hop, which reach as far.
    """
    lines, gaps = [], []
    for league in LEAGUES.values():
        found = standings(league, evidence.entries)
        for dataset in league.budgets:
            both = [found[name, dataset] for name in HOPS]
            if not all(one.searched and one.runs for one in both):
                continue
            best = best_by_hops(both)
            near = max(value for count, value in best.items() if count <= 2)
            gaps.append((dataset, near - max(best.values())))
            factor, digits = unit(both[0].metric)
            cells = ", ".join(f"{k}: {factor * best[k]:.{digits}f}" for k in sorted(best))
            lines.append((league.name, dataset, cells, f"{factor * gaps[-1][1]:+.{digits}f}"))
    matched = matched_depths(evidence.entries)
    parts, tables = [], []
    if gaps:
        lost = ", ".join(dict.fromkeys(dataset for dataset, gap in gaps if gap < -0.01))
        few = (
            f"More than two hops gain over a point of validation on {lost}"
            if lost
            else "No: networks of one or two hops come within a point of the best validation score"
            " everywhere"
        )
        parts.append(f"{few} ({plural(len(gaps), 'data set')} searched to the end).")
        head = "league | dataset | best validation by hops | at most two hops − the best"
        tables.append(markdown_table(head, lines, "lllr"))
    if matched:
        parts.append(matched_sentence(matched))
        tables.append(matched_table(matched))
    return Answer(" ".join(parts) or "Not measured yet.", "\n".join(tables))


def stable(evidence: Evidence) -> Answer:
    """Seeds of the same settings, and trials that came to nothing."""
    spreads = [s for s in seed_spreads(evidence.all_seeds) if s.rows[0].model == "csnn"]
    parts = []
    if spreads:
        within = 100 * median(spread.within_split for spread in spreads)
        parts.append(
            f"The seed alone moves the score of CSNN on one split by {within:.1f} points (median "
            f"of {len(spreads)} settings), and at most by "
            f"{100 * max(spread.largest for spread in spreads):.1f}"
        )
    table = seed_table(evidence.all_seeds) if spreads else ""
    runs: dict[str, list[Entry]] = {}
    for entry in evidence.entries:
        if entry.trial >= 0:
            runs.setdefault(entry.contestant, []).append(entry)
    if runs:
        lines = [_trouble_row(name, some) for name, some in runs.items()]
        head = "contestant | runs of trials | came to nothing | median epoch kept"
        table += ("\n" if table else "") + markdown_table(head, lines, "lrrr")
        ours = [entry for name, some in runs.items() if name.startswith("csnn") for entry in some]
        broken = sum(bool(entry.trouble) for entry in ours)
        parts.append(f"{broken} of {len(ours)} runs of CSNN in searches came to nothing")
    return Answer("; ".join(parts) + "." if parts else "Not measured yet.", table)


def _trouble_row(name: str, runs: Sequence[Entry]) -> tuple[str, ...]:
    broken = sum(bool(entry.trouble) for entry in runs)
    kept = median(entry.best_epoch for entry in runs)
    return name, str(len(runs)), str(broken), f"{kept:.0f}"


def non_normal(evidence: Evidence) -> Answer:
    """The best network whose operator is not normal against the best whose operator is."""
    findings = []
    for name in ("sheaves", "directions"):
        league = LEAGUES[name]
        findings += best_against(
            league,
            evidence.entries,
            lambda one: is_normal(one.contestant, one.dataset) is False,
            lambda one: is_normal(one.contestant, one.dataset) is True,
        )
        findings += [f for f in contest_findings(evidence.entries, "csnn", "dsnn") if _in(f, name)]
    return from_findings(findings, "an operator that is not normal")


def _in(finding: Finding, league: str) -> bool:
    return finding.source == f"contest {league}"


def is_normal(contestant: Contestant, dataset: str) -> bool | None:
    """Whether its operator on this data is normal, as the registry says; ``None`` of no sheaf."""
    kinship = find_model(contestant.model).kinship
    normal = None if kinship is None else kinship.normal
    both_ways = "data.direction=undirected" in contestant.fixed
    if normal == "undirected":
        return both_ways or DATASETS[dataset].processing.direction == "undirected"
    return None if normal is None else normal == "yes"


_CONTEST = "python -m lab contest --league"
ASKED: tuple[Asked, ...] = (
    Asked("maps", f"{_CONTEST} heterophily --models csnn csnn-identity", maps),
    Asked("direction", f"{_CONTEST} directions --models csnn csnn-both-ways", direction),
    Asked("order", f"{_CONTEST} heterophily --models csnn csnn-released", order),
    Asked("diagonal", f"{_CONTEST} heterophily --models csnn csnn-messages", diagonal),
    Asked("channels", "python -m lab channels --splits 10", closing),
    Asked("hops", f"{_CONTEST} heterophily --models csnn csnn-messages gcn nsd-orthogonal", hops),
    Asked("stable", f"{_CONTEST} heterophily --models csnn", stable),
    Asked("non-normal", f"{_CONTEST} sheaves", non_normal),
)
