"""How tables shall be read, in the user's words. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from coopsheaf.checks import check_choice, check_int

TABLE_TASKS = {
    "classification": "binary or multiclass, by the number of classes",
    "binary": "two classes, one logit",
    "multiclass": "several classes, one logit each",
    "multilabel": "several yes/no labels at once",
    "regression": "real targets",
    "link": "which edges are missing",
}
SELF_LOOPS = {"keep": "as they are", "remove": "taken out", "add": "one at every node"}
DUPLICATES = {
    "keep": "as they are",
    "merge": "one edge, the weights added, the features averaged",
}
ISOLATED = {"keep": "as they are", "exclude": "in no part of the split"}

# Options that may name several columns or labels.
SEVERAL = ("target", "features", "drop", "categorical", "text", "edge_features", "unlabelled")
EDGE_OPTIONS = ("duplicates", "self_loops", "isolated")


@dataclass(frozen=True)
class TableOptions:
    """What was asked for; :func:`~coopsheaf.data.load_tables` says what each of them means."""

    target: tuple[str, ...] = ()
    id: str | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    split: str | None = None
    source: str | None = None
    edge_target: str | None = None
    weight: str | None = None
    edge_features: tuple[str, ...] = ()
    time: str | None = None
    graph: str | None = None
    task: str | None = None
    unlabelled: tuple[str, ...] | None = None
    undirected: bool = False
    self_loops: str = "keep"
    duplicates: str = "keep"
    isolated: str = "keep"
    seed: int = 0
    validation: float | None = None

    def __post_init__(self) -> None:
        if self.task is not None:
            check_choice("task", self.task, TABLE_TASKS)
        check_choice("self_loops", self.self_loops, SELF_LOOPS)
        check_choice("duplicates", self.duplicates, DUPLICATES)
        check_choice("isolated", self.isolated, ISOLATED)
        check_int("seed", self.seed, minimum=0)
        share = self.validation
        if share is not None and (isinstance(share, bool) or not 0 < share < 1):
            raise ValueError(f"`validation` must be a share between 0 and 1; got {share!r}")
        if self.time is not None and self.task != "link":
            raise ValueError("`time` orders edges to predict and goes with the task link alone")

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is at its default is left out."""
        values = asdict(self)
        return {
            item.name: values[item.name]
            for item in fields(self)
            if values[item.name] != item.default
        }
