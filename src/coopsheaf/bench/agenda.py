"""What the paper's experiments on real graphs comprise, and what of it is recorded. Imports no
PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coopsheaf.bench.records import Record
from coopsheaf.bench.tables import expected_runs

SMALL = ("texas", "wisconsin", "cornell", "cornell-corrected", "film", "chameleon", "squirrel")
GEOM = SMALL[:5]
WIKIPEDIA = SMALL[5:]
LARGE = ("minesweeper", "tolokers")
ELSEWHERE = ("roman-empire", "amazon-ratings", "questions", "penn94")
PEPTIDES = ("peptides-func", "peptides-struct")
MARKED = (
    "roman-empire-substitute",
    "amazon-ratings-partial",
    "reed98",
    "amherst41",
    "johns-hopkins55",
    "cornell5",
)
SHEAVES = ("nsd-diag", "nsd-orthogonal", "nsd-general", "bunn", "cognn", "csnn-identity")
GEOM_RIVALS = ("mlp", "gcn-plain", "sage-plain", "gat-plain", "gat-sep", "gt-sep", *SHEAVES)
WIKIPEDIA_RIVALS = ("mlp", "gcn", "sage", "gat", "gat-sep", "gt-sep", *SHEAVES)
LARGE_RIVALS = ("gcn", "sage", "gat-sep", "nsd-orthogonal", "cognn", "bunn")

RELEASED = "model.semantics=released"
ZEROS = "model.scale=rectified"


@dataclass(frozen=True)
class Item:
    """One model on one dataset.

    Args:
        model, dataset: as the registries name them.
        runs: how many splits (or seeds) are wanted.
        setting: what differs from the recipe; empty if nothing.
    """

    model: str
    dataset: str
    runs: int
    setting: str = ""

    def matches(self, record: Record) -> bool:
        """Whether a record counts for it, whatever its other settings are."""
        if (record.model, record.dataset) != (self.model, self.dataset):
            return False
        if self.model != "csnn":
            return True
        scale = record.config.get("model", {}).get("scale", "exp")
        wanted = {
            "": ("paper", "exp"),
            RELEASED: ("released", "exp"),
            ZEROS: ("paper", "rectified"),
        }
        return (record.semantics, scale) == wanted[self.setting]

    def recorded(self, records: Iterable[Record]) -> int:
        """Most runs of it that are recorded with one and the same setting and seed."""
        seeds = expected_runs(self.dataset)[1] == "seeds"
        runs: dict[object, set[int]] = {}
        for record in records:
            if self.matches(record):
                run, other = (record.seed, record.split) if seeds else (record.split, record.seed)
                runs.setdefault((record.config_hash, other), set()).add(run)
        return max(map(len, runs.values()), default=0)


def _agenda() -> Iterable[Item]:
    for dataset in (*SMALL, *LARGE, *ELSEWHERE, *PEPTIDES):
        yield Item("csnn", dataset, expected_runs(dataset)[0] or 10)
    for dataset in (*SMALL, "chameleon-directed", "squirrel-directed"):
        yield Item("csnn", dataset, 10, RELEASED)
    for dataset in LARGE:
        yield Item("csnn", dataset, 3, RELEASED)
    for dataset in SMALL:
        yield Item("csnn", dataset, 10, ZEROS)
        for model in GEOM_RIVALS if dataset in GEOM else WIKIPEDIA_RIVALS:
            yield Item(model, dataset, 10)
    for dataset in LARGE:
        for model in LARGE_RIVALS:
            yield Item(model, dataset, 10)
    for dataset in MARKED:
        yield Item("csnn", dataset, expected_runs(dataset)[0] or 10)


AGENDA: tuple[Item, ...] = tuple(_agenda())


def remaining(records: Sequence[Record]) -> list[tuple[Item, int]]:
    """What is not recorded in full, with the number of runs there are."""
    counts = [(item, item.recorded(records)) for item in AGENDA]
    return [(item, count) for item, count in counts if count < item.runs]


def command(items: Sequence[Item]) -> str:
    """The command that runs some items of one setting and number of runs."""
    names = " ".join(f"{item.model}/{item.dataset}" for item in items)
    item = items[0]
    if expected_runs(item.dataset)[1] == "seeds":
        seeds = f"for seed in $(seq 1 {item.runs}); do"
        return f"{seeds} coopsheaf bench {names} --set train.seed=$seed; done"
    words = ["coopsheaf bench", names, f"--splits 0-{item.runs - 1}"]
    if item.setting:
        words.append(f"--set {item.setting}")
    return " ".join(words)
