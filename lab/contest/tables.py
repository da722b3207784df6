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
from lab.contest.sentences import Finding, finding_table, pair, plural, set_sentence

BEST = "CSNN, best option by validation"


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
        own = "; ".join(f"`{key}`: {_spell(values)}" for key, values in contestant.choices.items())
        fixed = ", ".join(f"`{setting}`" for setting in contestant.fixed)
        lines.append((name, f"`{contestant.model}`", own or NOTHING, fixed or NOTHING))
    return markdown_table("contestant | model | its own settings | set", lines, "llll")


def league_table(league: League, entries: Iterable[Entry]) -> str:
    """Test scores of what validation chose, and mean ranks; the best by test in bold.

    CSNN has a line for each option, and one for whichever validation chooses on a data set.
    """
    known = list(entries)
    found = standings(league, known)
    if not any(standing.runs for standing in found.values()):
        return "Nothing has been run yet.\n"
    ranked, as_one, sets = mean_ranks(found), ranks_as_one(found), common_sets(found)
    order = sorted(league.contestants, key=lambda name: ranked.get(name, float("inf")))
    best, options = _best_by_test(found), best_options(found)
    cells = [_cell(options[data], False) if data in options else NOTHING for data in league.budgets]
    lines = [(f"*{BEST}*", NOTHING, _rank_cell(as_one, BEST), *cells)] if options else []
    for name in order:
        cells = [_cell(found[name, data], best.get(data) == name) for data in league.budgets]
        lines.append((name, _rank_cell(ranked, name), _rank_cell(as_one, name), *cells))
    head = " | ".join(("contestant", "mean rank", "with one CSNN", *league.budgets))
    table = markdown_table(head, lines, "l" + "r" * (len(league.budgets) + 2))
    among = f"Ranks are means over {', '.join(sets)}" if sets else "There are no ranks yet"
    said = f"{among}; they compare those who have finished there.\n\n{verdict(league, known)}"
    return f"{table}\n{said}\n"


def _rank_cell(ranks: Mapping[str, float], name: str) -> str:
    return f"{ranks[name]:.2f}" if name in ranks else NOTHING


def best_options(found: Standings) -> dict[str, Standing]:
    """Of each data set the finished option of CSNN with the best validation score."""
    best: dict[str, Standing] = {}
    for (_, data), one in found.items():
        if one.contestant.csnn and one.done:
            best[data] = max(best.get(data, one), one, key=lambda each: each.validation)
    return best


def ranks_as_one(found: Standings) -> dict[str, float]:
    """Mean places of :data:`BEST` and the rivals, without CSNN's options one by one."""
    options, sets = best_options(found), common_sets(found)
    rivals = [name for name in _finished(found) if not _is_csnn(found, name)]
    if not sets or not all(data in options for data in sets):
        return {}
    rows = [
        {BEST: _mean_test(options[data])} | {name: _mean_test(found[name, data]) for name in rivals}
        for data in sets
    ]
    return {name: fmean(_rank(row, name) for row in rows) for name in (BEST, *rivals)}


def verdict(league: League, entries: Sequence[Entry]) -> str:
    """Whether CSNN's best option is anywhere worse than the best rival, and whether it is first."""
    findings = csnn_against_best(league, entries)
    ranks = ranks_as_one(standings(league, entries))
    if not findings:
        return f"{BEST} is not compared yet: not enough has been run."
    worse = [one.dataset for one in findings if one.paired.verdict == "worse"]
    compared = f"({plural(len(findings), 'data set')} compared)"
    text = f"{BEST} is nowhere worse than the best rival with significance {compared}."
    if worse:
        where = ", ".join(worse)
        text = f"{BEST} is worse than the best rival with significance on {where} {compared}."
    if len(findings) < len(league.budgets):
        text += (
            f" {len(league.budgets) - len(findings)} of {len(league.budgets)} are not compared yet."
        )
    if BEST not in ranks or len(ranks) < 2:
        return f"{text} There is no mean rank yet."
    first = min(name for name in ranks if name != BEST and ranks[name] == _least(ranks))
    place = f"{ranks[BEST]:.2f} of {len(ranks)}"
    rival = f"{first} with {ranks[first]:.2f}"
    if ranks[BEST] < ranks[first]:
        return f"{text} Its mean rank is the best of all: {place}, before {rival}."
    word = "shared by" if ranks[BEST] == ranks[first] else "not the best:"
    return f"{text} Its mean rank, {place}, is {word} {rival}."


def _least(ranks: Mapping[str, float]) -> float:
    """The best mean rank of a rival."""
    return min(rank for name, rank in ranks.items() if name != BEST)


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
    names = _finished(found)
    if not sets:
        return {}
    rows = [{name: _mean_test(found[name, data]) for name in names} for data in sets]
    return {name: fmean(_rank(row, name) for row in rows) for name in names}


def _finished(found: Standings) -> list[str]:
    """Who has finished any data set."""
    return list(dict.fromkeys(name for (name, _), one in found.items() if one.done))


def _is_csnn(found: Standings, name: str) -> bool:
    return any(one.contestant.csnn for (other, _), one in found.items() if other == name)


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
