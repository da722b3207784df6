"""The page of contests: budgets, spaces, scores, CSNN against the best rival, what is missing.
Imports no PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from coopsheaf.report.rows import sign_of
from coopsheaf.report.tables import NOTHING
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.records import spell_splits
from lab.cells import score_cell
from lab.contest.entries import Entry, Standing, Standings, standings
from lab.contest.plan import LEAGUES, PROTOCOL, SHARED, League, Values
from lab.contest.sentences import Finding, finding_table, pair, set_sentence


def contest_places(entries: Sequence[Entry]) -> dict[str, str]:
    """What belongs in the places of ``docs/contest.md``."""
    places = {"contest-shared": shared_table()}
    for name, league in LEAGUES.items():
        places |= {
            f"contest-{name}-budget": budget_table(league),
            f"contest-{name}-space": space_table(league),
            f"contest-{name}-scores": league_table(league, entries),
            f"contest-{name}-csnn": csnn_lines(league, entries),
            f"contest-{name}-missing": missing(league, entries),
        }
        if league.published:
            places[f"contest-{name}-published"] = published_table(league, entries)
    return places


def shared_table() -> str:
    """The one space of shared settings, and the protocol."""
    lines = [(f"`{key}`", _spell(values)) for key, values in SHARED.items()]
    fixed = ", ".join(f"`{setting}`" for setting in PROTOCOL)
    table = markdown_table("setting | one of", lines, "ll")
    return f"{table}\nFor everybody: {fixed}.\n"


def _spell(values: Values) -> str:
    return ", ".join(f"{value:g}" if type(value) is float else str(value) for value in values)


def budget_table(league: League) -> str:
    """How much everybody may try, by data set."""
    lines = []
    for dataset, budget in league.budgets.items():
        trials = f"those of {budget.takes_over}" if budget.takes_over else str(budget.trials)
        search = NOTHING if budget.takes_over else spell_splits(budget.search)
        lines.append((dataset, trials, search, spell_splits(budget.final)))
    return markdown_table("dataset | trials of each | searched on | then run on", lines, "lrll")


def space_table(league: League) -> str:
    """What each has to choose from beside the shared space."""
    lines = []
    for name, contestant in league.contestants.items():
        own = "; ".join(f"`{key}`: {_spell(values)}" for key, values in contestant.own.items())
        fixed = ", ".join(f"`{setting}`" for setting in contestant.fixed)
        lines.append((name, f"`{contestant.model}`", own or NOTHING, fixed or NOTHING))
    return markdown_table("contestant | model | its own settings | set", lines, "llll")


def league_table(league: League, entries: Iterable[Entry]) -> str:
    """Test scores of what validation chose, and mean ranks; the best by test in bold."""
    found = standings(league, entries)
    if not any(standing.runs for standing in found.values()):
        return "Nothing has been run yet.\n"
    ranked, sets = mean_ranks(found), common_sets(found)
    order = sorted(league.contestants, key=lambda name: ranked.get(name, float("inf")))
    best = _best_by_test(found)
    lines = []
    for name in order:
        rank = f"{ranked[name]:.2f}" if name in ranked else NOTHING
        cells = [_cell(found[name, data], best.get(data) == name) for data in league.budgets]
        lines.append((name, rank, *cells))
    head = " | ".join(("contestant", "mean rank", *league.budgets))
    table = markdown_table(head, lines, "l" + "r" * (len(league.budgets) + 1))
    among = f"Ranks are means over {', '.join(sets)}" if sets else "There are no ranks yet"
    return f"{table}\n{among}; they compare those who have finished there.\n"


def _cell(standing: Standing, is_best: bool) -> str:
    """The score, or how far it has come."""
    if standing.done:
        text = score_cell(standing.metric, list(standing.tests.values()))
        return f"**{text}**" if is_best else text
    if standing.searched and standing.chosen is None:
        return "no trial succeeded" if standing.source is None else NOTHING
    if standing.chosen is not None:
        return "searched; final runs missing"
    if not standing.runs or standing.source is not None:
        return NOTHING
    return f"{len(standing.whole_trials)} of {standing.budget.trials} trials"


def _mean_test(standing: Standing) -> float:
    return sign_of(standing.metric) * fmean(standing.tests.values())


def _best_by_test(found: Standings) -> dict[str, str]:
    best: dict[str, tuple[float, str]] = {}
    for (name, dataset), standing in found.items():
        if standing.done and standing.tests:
            value = (_mean_test(standing), name)
            best[dataset] = max(best.get(dataset, value), value, key=lambda item: item[0])
    return {dataset: name for dataset, (_, name) in best.items()}


def common_sets(found: Standings) -> list[str]:
    """Data sets that all have finished who have finished any."""
    names = {name for (name, _), standing in found.items() if standing.done}
    sets = dict.fromkeys(dataset for _, dataset in found)
    return [data for data in sets if names and all(found[name, data].done for name in names)]


def mean_ranks(found: Standings) -> dict[str, float]:
    """Mean places by test over :func:`common_sets`; equals share the mean of theirs."""
    sets = common_sets(found)
    names = list(dict.fromkeys(name for (name, _), one in found.items() if one.done))
    if not sets:
        return {}
    rows = [{name: _mean_test(found[name, data]) for name in names} for data in sets]
    return {name: fmean(_rank(row, name) for row in rows) for name in names}


def _rank(row: Mapping[str, float], name: str) -> float:
    values = list(row.values())
    above = sum(value > row[name] for value in values)
    return above + (values.count(row[name]) + 1) / 2


def csnn_against_best(league: League, entries: Iterable[Entry]) -> list[Finding]:
    """On every data set the best option of CSNN against the best rival, both by validation."""
    return best_against(
        league, entries, lambda one: one.contestant.csnn, lambda one: not one.contestant.csnn
    )


def best_against(
    league: League,
    entries: Iterable[Entry],
    is_first: Callable[[Standing], bool],
    is_second: Callable[[Standing], bool],
) -> list[Finding]:
    """On every data set the best of some against the best of others, both by validation."""
    found, findings = standings(league, entries), []
    for dataset in league.budgets:
        here = [one for (_, data), one in found.items() if data == dataset and one.done]
        sides = [[one for one in here if belongs(one)] for belongs in (is_first, is_second)]
        if not all(sides):
            continue
        first, second = (max(side, key=lambda one: one.validation) for side in sides)
        source = f"{league.name}: best of {len(sides[0])} against best of {len(sides[1])}"
        finding = pair(first, second, source)
        findings += [] if finding is None else [finding]
    return findings


def csnn_lines(league: League, entries: Sequence[Entry]) -> str:
    """The comparisons, and a plain line for each data set."""
    findings = {finding.dataset: finding for finding in csnn_against_best(league, entries)}
    table = finding_table(list(findings.values())) + "\n" if findings else ""
    lines = [
        set_sentence(findings[dataset])
        if dataset in findings
        else f"{dataset}: CSNN is not compared yet: not enough has been run."
        for dataset in league.budgets
    ]
    return table + "".join(f"- {line}\n" for line in lines)


def published_table(league: League, entries: Iterable[Entry]) -> str:
    """Packaged recipes on the splits of the final runs; they are in no search."""
    found = standings(league, entries)
    lines = []
    for name in league.contestants:
        cells = []
        for dataset, budget in league.budgets.items():
            values = found[name, dataset].published
            few = "" if len(values) == len(budget.final) else f" ({len(values)} splits)"
            text = score_cell(found[name, dataset].metric, list(values.values()))
            cells.append(text + few if values else NOTHING)
        if any(cell != NOTHING for cell in cells):
            lines.append((name, *cells))
    if not lines:
        return "Nothing has been run yet.\n"
    head = " | ".join(("contestant", *league.budgets))
    return markdown_table(head, lines, "l" + "r" * len(league.budgets))


def missing(league: League, entries: Iterable[Entry]) -> str:
    """What is not finished, with commands."""
    found = standings(league, entries)
    lines = []
    for dataset in league.budgets:
        names = [name for name in league.contestants if not found[name, dataset].done]
        if not names:
            continue
        everybody = len(names) == len(league.contestants)
        words = ["python -m lab contest", f"--league {league.name}", f"--datasets {dataset}"]
        words += [] if everybody else [f"--models {' '.join(names)}"]
        who = "everybody" if everybody else ", ".join(names)
        lines.append((dataset, escape_markdown(who), f"`{' '.join(words)}`"))
    if not lines:
        return "Nothing: all of it is recorded.\n"
    return markdown_table("dataset | not finished | command", lines, "lll")
