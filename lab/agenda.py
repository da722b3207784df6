"""What is to be run of the paper's experiments on real graphs, and what of it is recorded. Imports
no PyTorch.

All of CSNN's numbers, in the paper's order and in the released one; the rivals on the graphs that a
CPU can train on; and, marked as such, data that stands in for the paper's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coopsheaf.report.rows import ablation, newest, summarise
from coopsheaf.report.text import markdown_table
from coopsheaf.train.records import Record
from lab.published import PAPER

GEOM = ("texas", "wisconsin", "cornell", "cornell-corrected", "film")
WIKIPEDIA = ("chameleon", "squirrel")
DIRECTED = ("chameleon-directed", "squirrel-directed")
SMALL = (*GEOM, *WIKIPEDIA)
LARGE = ("minesweeper", "tolokers")
ELSEWHERE = ("roman-empire", "amazon-ratings", "questions", "penn94")
PEPTIDES = ("peptides-func", "peptides-struct")
# All rows of the paper's table of long-range tasks.
PEPTIDES_RIVALS = (
    "gcn-lrgb", "gine", "gatedgcn", "drew", "san", "gps", "graph-vit", "exphormer", "bunn",
)  # fmt: skip
# Not the paper's data, or not all of it; the friendship networks have splits of our own.
MARKED = ("roman-empire-substitute", "amazon-ratings-partial")
FRIENDS = ("reed98", "amherst41", "johns-hopkins55", "cornell5")
# Networks for heterophily: those of the paper's second table, and forms of them beside.
HETEROPHILY = (
    "ggcn", "h2gcn", "gprgnn-lab", "fagcn", "mixhop", "gcnii", "geom-gcn", "pairnorm", "fsgnn",
    "glognn", "acm-gcn",
    "gcnii-star", "gprgnn", "glognn++", "acm-gcn-plus", "acmii", "linkx", "dirgnn",
)  # fmt: skip
# The rows of the table on Penn94 that there are here, as their benchmark has them.
PENN94 = (
    "mlp", "gcn-plain", "gat-plain", "mixhop-linkx", "gcnii", "h2gcn-linkx", "gprgnn", "acm-gcn",
    "linkx", "glognn",
)  # fmt: skip
SHEAVES = ("nsd-diag", "nsd-orthogonal", "nsd-general", "bunn", "cognn", "csnn-identity")
PLAIN = ("mlp", "gcn-plain", "sage-plain", "gat-plain")
GEOM_RIVALS = (*PLAIN, "gat-sep", "gt-sep", *SHEAVES, *HETEROPHILY)
WIKIPEDIA_RIVALS = ("mlp", "gcn", "sage", "gat", "gat-sep", "gt-sep", *SHEAVES)
# On the large graphs, where published sizes take days of a CPU: narrower, with the rate that suits
# it, and fewer epochs (CO-GNN is narrow already). Three splits; tables mark them.
_SHORT = "train.epochs=500 train.patience=100"
_NARROW = f"model.hidden_channels=64 train.lr=3e-3 {_SHORT}"
LARGE_RIVALS = dict.fromkeys(("gcn", "sage", "gat-sep", "nsd-orthogonal"), _NARROW) | {
    "bunn": f"{_NARROW} model.num_bundles=32",
    "cognn": _SHORT,
}
FEW = 3  # splits of what stands in for something else, in data or in size

RELEASED = "model.semantics=released"
ZEROS = "model.scale=rectified"


@dataclass(frozen=True)
class Item:
    """One model on one dataset.

    Args:
        model, dataset: as the registries name them.
        runs: how many splits (or seeds) are wanted.
        setting: what differs from the recipe, as a user types it, with spaces between; empty if
            nothing.
        as_published: runs with other settings than those of the recipe do not count.
    """

    model: str
    dataset: str
    runs: int
    setting: str = ""
    as_published: bool = False

    def matches(self, record: Record) -> bool:
        """Whether a record counts for it, whatever its other settings are."""
        if (record.model, record.dataset) != (self.model, self.dataset):
            return False
        if self.as_published and record.recipe != f"{self.model}/{self.dataset}":
            return False
        if self.model != "csnn":
            return all(_has(record, setting) for setting in self.setting.split())
        wanted = {"": ("paper", ""), RELEASED: ("released", ""), ZEROS: ("paper", "exact zeros")}
        return (record.semantics, ablation(record)) == wanted[self.setting]

    def recorded(self, records: Iterable[Record]) -> int:
        """Most runs of it that are recorded with one and the same setting."""
        rows = summarise(newest(record for record in records if self.matches(record)), PAPER)
        return max((len(row.runs) for row in rows), default=0)


def _has(record: Record, setting: str) -> bool:
    """Whether a record was made with a number as a user types it."""
    path, _, text = setting.partition("=")
    section, _, name = path.partition(".")
    value = record.config.get(section, {}).get(name)
    return isinstance(value, int | float) and value == float(text)


def how_cut(model: str, dataset: str, recipe: str) -> str:
    """In what a rival is less than published, where it was run as a CPU trains it; or nothing."""
    of_agenda = dataset in LARGE and model in LARGE_RIVALS
    if not of_agenda or not recipe.startswith(f"{model}/") or recipe == f"{model}/{dataset}":
        return ""
    return "shorter" if LARGE_RIVALS[model] == _SHORT else "smaller"


def _agenda() -> Iterable[Item]:
    for dataset in (*SMALL, *LARGE, *ELSEWHERE, *PEPTIDES):
        yield Item("csnn", dataset, PAPER.expected_runs(dataset)[0] or 10)
    for dataset in MARKED:
        yield Item("csnn", dataset, FEW)
    for dataset in PEPTIDES:
        for model in PEPTIDES_RIVALS:
            yield Item(model, dataset, PAPER.expected_runs(dataset)[0] or 4)
    for dataset in FRIENDS:
        yield Item("csnn", dataset, 5)
    for dataset in (*FRIENDS, "penn94"):
        for model in PENN94:
            yield Item(model, dataset, 5, as_published=True)
    for dataset in (*SMALL, *DIRECTED):
        yield Item("csnn", dataset, 10, RELEASED)
    for dataset in LARGE:
        yield Item("csnn", dataset, FEW, RELEASED)
    for dataset in SMALL:
        yield Item("csnn", dataset, 10, ZEROS)
        for model in GEOM_RIVALS if dataset in GEOM else WIKIPEDIA_RIVALS:
            if (model, dataset) != ("geom-gcn", "cornell-corrected"):  # has no file of relations
                yield Item(model, dataset, 10)
    for dataset in LARGE:
        for model, setting in LARGE_RIVALS.items():
            yield Item(model, dataset, FEW, setting)


AGENDA: tuple[Item, ...] = tuple(_agenda())


def remaining(records: Sequence[Record]) -> list[tuple[Item, int]]:
    """What is not recorded in full, with the number of runs there are."""
    counts = [(item, item.recorded(records)) for item in AGENDA]
    return [(item, count) for item, count in counts if count < item.runs]


def command(items: Sequence[Item]) -> str:
    """The command that runs some items of one setting and number of runs."""
    item = items[0]
    words = ["coopsheaf bench", *(f"{each.model}/{each.dataset}" for each in items)]
    if item.setting:
        words += [f"--set {setting}" for setting in item.setting.split()]
    if PAPER.expected_runs(item.dataset)[1] == "splits":
        return " ".join([*words, f"--splits 0-{item.runs - 1}"])
    loop = " ".join([*words, "--set train.seed=$seed"])
    return f"for seed in $(seq 0 {item.runs - 1}); do {loop}; done"


def still_to_run(records: Sequence[Record]) -> str:
    """What is on the agenda and not recorded in full, with commands."""
    groups: dict[tuple[str, str, int], list[tuple[Item, int]]] = {}
    for item, count in remaining(records):
        groups.setdefault((item.dataset, item.setting, item.runs), []).append((item, count))
    if not groups:
        return "Nothing: all of it is recorded.\n"
    lines = []
    for (dataset, _, runs), items in groups.items():
        done = ", ".join(f"{item.model} {count}" for item, count in items)
        lines.append((dataset, f"{done} (of {runs})", f"`{command([item for item, _ in items])}`"))
    return markdown_table("dataset | recorded | command", lines, "lll")
