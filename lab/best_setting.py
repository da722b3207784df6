"""What CSNN reaches with the paper's operator, and what with any of its options: two columns, in
each what validation chose. Imports no PyTorch.

Settings compete with the records of benches, of the study of defaults and of finished contests, if
they have been run on all splits of a data set. Controls without learned maps are no options.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from coopsheaf.report.paired import Paired
from coopsheaf.report.rows import Row, newest, summarise, validation
from coopsheaf.report.tables import METRIC_LABELS, NOTHING
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.records import Record
from lab.agenda import AGENDA
from lab.cells import advantage_cell, dataset_cell, legend, score_cell
from lab.compare import compare
from lab.contest.entries import Entry, standings
from lab.contest.plan import LEAGUES
from lab.published import PAPER
from lab.seeds import first_seeds

PLACE, SHORT_PLACE = "best-setting", "best-setting-short"
OPERATORS = {"paper": "the paper's operator", "released": "the released order"} | {
    "messages": "messages alone"
}
ALONE = "nothing else was run"
_ORDER = {name: k for k, name in enumerate(dict.fromkeys(item.dataset for item in AGENDA))}


@dataclass(frozen=True)
class Reached:
    """A data set and all that was run of CSNN on all of its splits.

    Args:
        paper: the best setting with the paper's operator, by validation.
        best: the best setting of all.
        others: how many settings there are, and how many of them are not the paper's.
    """

    paper: Row
    best: Row
    settings: int
    others: int

    @property
    def paired(self) -> Paired | None:
        """The best against the paper's, if they are two."""
        return None if self.best is self.paper else compare(self.best, self.paper)


def is_paper(row: Row) -> bool:
    """Whether it is the network of the paper; how it was trained does not matter."""
    return row.semantics == "paper" and not row.ablation


def words(row: Row) -> str:
    """What a network is."""
    return ", ".join(filter(None, (OPERATORS.get(row.semantics, row.semantics), row.ablation)))


def chosen_in_contests(entries: Sequence[Entry]) -> list[Record]:
    """The runs of CSNN that finished searches chose, as records."""
    found = []
    for league in LEAGUES.values():
        for standing in standings(league, entries).values():
            if standing.contestant.csnn and standing.done and standing.chosen is not None:
                runs = standing.runs[standing.chosen]
                found += [_as_record(runs[split]) for split in standing.budget.final]
    return found


def _as_record(entry: Entry) -> Record:
    settings = (text.partition("=") for text in entry.settings)
    model = {key.removeprefix("model."): value for key, _, value in settings if "model." in key}
    return Record(
        model=entry.model,
        dataset=entry.dataset,
        split=entry.split,
        seed=entry.seed,
        semantics=model.get("semantics", "paper"),
        metric=entry.metric,
        val=entry.val,
        test=entry.test,
        best_epoch=entry.best_epoch,
        config_hash=entry.config_hash,
        model_version=entry.model_version,
        recipe=f"contest {entry.league}: {entry.contestant}, trial {entry.trial}",
        config={"model": model},
        dataset_checksum=entry.dataset_checksum,
    )


def reached(
    benches: Iterable[Record], defaults: Iterable[Record], entries: Sequence[Entry]
) -> list[Reached]:
    """Where the paper's operator was run on all splits, in the order of the agenda."""
    pool = [*first_seeds([*benches, *defaults]), *chosen_in_contests(entries)]
    mine = newest(record for record in pool if record.model == "csnn")
    sizes: dict[tuple[str, str], int] = {}
    remarks: dict[tuple[str, str], str] = {}
    for record in mine:
        place = (record.dataset, record.dataset_checksum)
        sizes[place] = max(record.splits, sizes.get(place, 0))
        remarks[place] = remarks.get(place) or record.dataset_remark
    groups: dict[tuple[str, str], list[Row]] = {}
    # A record of a contest says nothing of its data, the others do.
    told = [replace(r, dataset_remark=remarks[r.dataset, r.dataset_checksum]) for r in mine]
    for row in summarise(told, PAPER):
        place = (row.dataset, row.dataset_checksum)
        if 1 < sizes[place] == len(row.tests) == len(row.vals) and "identity" not in row.ablation:
            groups.setdefault(place, []).append(row)
    found = []
    for rows in groups.values():
        papers = [row for row in rows if is_paper(row)]
        if papers:
            paper, best = max(papers, key=validation), max(rows, key=validation)
            best = paper if is_paper(best) else best
            found.append(Reached(paper, best, len(rows), len(rows) - len(papers)))
    return sorted(found, key=lambda one: _ORDER.get(one.paper.dataset, len(_ORDER)))


def best_table(found: Sequence[Reached]) -> str:
    """Two columns, what the second is, and the difference split by split."""
    if not found:
        return "The paper's operator has not been run on all splits of anything yet.\n"
    head = (
        "dataset | metric | splits | CSNN with the paper's operator | CSNN at its best setting"
        " | which is | settings (not the paper's) | best − paper's operator (95 % interval;"
        " corrected) | best is"
    )
    lines = []
    for one in found:
        paired = one.paired
        lines.append(
            (
                dataset_cell(one.paper),
                METRIC_LABELS.get(one.paper.metric, one.paper.metric),
                str(len(one.paper.runs)),
                score_cell(one.paper.metric, one.paper.tests),
                score_cell(one.best.metric, one.best.tests) if one.others else ALONE,
                _which(one),
                f"{one.settings} ({one.others})",
                advantage_cell(paired, one.best.metric) if paired else NOTHING,
                paired.verdict if paired else NOTHING,
            )
        )
    table = markdown_table(head, lines, "llrrrlrrl")
    return f"{table}{legend([one.paper for one in found], paper=False)}\n{sentence(found)}\n"


def _which(one: Reached) -> str:
    if not one.others:
        return NOTHING
    source = escape_markdown(one.best.recipe)
    return f"{words(one.best)} ({source})" if source else words(one.best)


def sentence(found: Sequence[Reached]) -> str:
    """What the table says, in words."""
    other = [one.paper.dataset for one in found if one.best is not one.paper]
    same = [one.paper.dataset for one in found if one.best is one.paper and one.others]
    alone = [one.paper.dataset for one in found if not one.others]
    parts = (
        ("Validation prefers another setting than the paper's operator on", other),
        ("It prefers the paper's operator on", same),
        ("Nothing but the paper's operator was run on all splits of", alone),
    )
    return " ".join(f"{text} {', '.join(names)}." for text, names in parts if names)


def short_table(found: Sequence[Reached]) -> str:
    """The two columns alone, two data sets in a row."""
    cells = [
        (
            dataset_cell(one.paper).removesuffix(" †"),
            score_cell(one.paper.metric, one.paper.tests),
            score_cell(one.best.metric, one.best.tests) if one.others else ALONE,
        )
        for one in found
    ]
    cells += [("", "", "")] * (len(cells) % 2)
    half = len(cells) // 2
    rows = [first + second for first, second in zip(cells[:half], cells[half:], strict=True)]
    head = "dataset | paper's operator | best setting"
    return markdown_table(f"{head} | {head}", rows, "lrrlrr")


def best_places(found: Sequence[Reached]) -> dict[str, str]:
    """What belongs in the places of the documents."""
    return {PLACE: best_table(found), SHORT_PLACE: short_table(found)}
