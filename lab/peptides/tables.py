"""The page of the peptides, from records. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from coopsheaf.report.tables import NOTHING, format_score
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.recipes import recipe_for
from coopsheaf.train.records import Record
from lab.peptides.plan import DATASET, MODELS, PATCHES, SEARCHED, SEEDS, TRIALS, search_job
from lab.peptides.records import Known, chosen_trial, recorded, search_precision, searched
from lab.published import PAPER

_SHOWN = ("hidden_channels", "stalk_dim", "num_layers", "norm", "learner")


def search_table(known: Known) -> str:
    """Every setting of the search; the chosen one in bold print. Test scores are not looked at."""
    precision = search_precision(known)
    found, chosen = searched(known, precision), chosen_trial(known)
    lines = []
    for name in TRIALS:
        recipe = search_job(name, precision).recipe
        settings = [str(getattr(recipe.model, key)) for key in _SHOWN]
        cells = [f"**{name}**" if name == chosen else name, *settings, f"{recipe.train.lr:g}"]
        record = found.get(name)
        if record is None:
            lines.append((*cells, NOTHING, "not run", NOTHING, NOTHING))
            continue
        epochs = f"{record.best_epoch} of {record.epochs}"
        score = _score([record], "val")
        lines.append((*cells, f"{record.parameters:,}", score, epochs, _seconds([record])))
    head = "setting | channels | d | layers | norm | learner | lr | parameters"
    text = markdown_table(f"{head} | AP, validation | best epoch | s / epoch", lines, "lrrrllrrrrr")
    if found:
        text += f"\nPrecision {precision}, seed {SEEDS[0]}.\n"
    if chosen is None:
        text += f"\n{len(found)} of {len(TRIALS)} settings are recorded: nothing is chosen yet.\n"
    return text


def part_table(known: Known, part: str) -> str:
    """Every network of a part beside the paper's number; what is less than printed says so."""
    found, marks = recorded(part, known), _marks()
    wanted = 1 if part == "cut" else len(SEEDS)
    lines = []
    for model in MODELS:
        rows = found.get(model, [])
        entry = PAPER.find(model, DATASET)
        printed = NOTHING
        if entry is not None:
            mark = marks[entry.protocol.source]
            printed = f"{format_score(entry.metric, entry.value, entry.deviation)} {mark}".strip()
        if not rows:
            lines.append((escape_markdown(model), *[NOTHING] * 7, printed))
            continue
        first = rows[0]
        lines.append(
            (
                escape_markdown(model),
                f"{first.parameters:,}",
                f"{first.epochs} of {recipe_for(model, DATASET).train.epochs}",
                f"{len(rows)} of {wanted}" if part == "full" else f"1 of {len(SEEDS)}",
                str(first.config["train"]["precision"]),
                _score(rows, "val"),
                _score(rows, "test"),
                _seconds(rows),
                printed,
            )
        )
    head = "network | parameters | epochs | seeds | precision | AP, validation | AP, test"
    table = markdown_table(f"{head} | s / epoch | AP, printed", lines, "lrrrlrrrr")
    return table + _legend(marks)


def _marks() -> dict[str, str]:
    """A mark for each source of printed numbers; none for the paper's own runs."""
    sources = dict.fromkeys(
        entry.protocol.source for model in MODELS if (entry := PAPER.find(model, DATASET))
    )
    own = PAPER.find(SEARCHED, DATASET)
    assert own is not None
    others = [source for source in sources if source != own.protocol.source]
    return {own.protocol.source: "", **dict(zip(others, "†‡§¶", strict=False))}


def _legend(marks: dict[str, str]) -> str:
    return "".join(f"\n{mark} {source}.\n" for source, mark in marks.items() if mark)


def _score(rows: Sequence[Record], name: str) -> str:
    """Mean and population deviation over seeds, in per cent."""
    values = [value for row in rows if (value := getattr(row, name)) is not None]
    if not values:
        return NOTHING
    return format_score(rows[0].metric, fmean(values), pstdev(values) if len(values) > 1 else None)


def _seconds(rows: Sequence[Record]) -> str:
    values = [r.seconds_per_epoch for r in rows if r.seconds_per_epoch is not None]
    return f"{fmean(values):.0f}" if values else NOTHING


def needs_table() -> str:
    """What every network is told and how long its protocol is, from its recipe."""
    lines = []
    for model in MODELS:
        recipe = recipe_for(model, DATASET)
        train, data = recipe.train, recipe.data
        told = (data.pe or NOTHING, data.bonds or NOTHING)
        length = (str(train.batch_size), str(train.epochs), train.schedule)
        extra = "`[partition]`" if model in PATCHES else NOTHING
        lines.append((escape_markdown(model), *told, *length, extra))
    head = "network | places | bonds | graphs per step | epochs | learning rate | extra"
    return markdown_table(head, lines, "lllrrll")


def contents(known: Known) -> dict[str, str]:
    """Everything that is written into the document, by its place."""
    return {
        "peptides-search": search_table(known),
        "peptides-cut": part_table(known, "cut"),
        "peptides-full": part_table(known, "full"),
        "peptides-needs": needs_table(),
    }
