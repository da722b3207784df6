"""Leagues and records that were never run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.contest.entries import Entry, file_of
from lab.contest.plan import LEAGUES, PUBLISHED, Budget, Contestant, League

BUDGET = Budget(2, (0, 1), (0, 1, 2, 3))


def league(*, published: bool = False, **budgets: Budget) -> League:
    contestants = (
        Contestant("csnn", "csnn", csnn=True),
        Contestant("csnn-messages", "csnn", fixed=("model.semantics=messages",), csnn=True),
        Contestant("mlp", "mlp"),
        Contestant("gcn", "gcn"),
    )
    return League(
        "made-up",
        "",
        {one.name: one for one in contestants},
        budgets or {"texas": BUDGET, "film": BUDGET},
        published,
    )


def entry(
    contestant: str,
    trial: int,
    split: int,
    val: float | None,
    test: float | None,
    dataset: str = "texas",
    *,
    league: str = "made-up",
    trouble: str = "",
    settings: Sequence[str] = ("model.num_layers=2",),
) -> Entry:
    return Entry(
        league,
        contestant,
        dataset,
        trial,
        split,
        43,
        contestant,
        list(settings) if trial != PUBLISHED else [],
        "accuracy",
        val,
        test,
        f"{contestant}-{trial}",
        best_epoch=10,
        trouble=trouble,
    )


def finished(
    contestant: str,
    tests: Sequence[float],
    val: float = 0.5,
    dataset: str = "texas",
    league: str = "made-up",
) -> list[Entry]:
    """Two trials, of which the second is chosen and has these test scores on all splits."""
    poor = [entry(contestant, 0, k, val - 0.1, 0.99, dataset, league=league) for k in (0, 1)]
    good = [
        entry(contestant, 1, k, val, test, dataset, league=league) for k, test in enumerate(tests)
    ]
    return poor + good


def whole(
    contestant: str,
    tests: Sequence[float],
    val: float = 0.5,
    dataset: str = "texas",
    league: str = "sheaves",
) -> list[Entry]:
    """A finished contestant of a league on a data set: trial 1, of two layers, is best."""
    budget = LEAGUES[league].budgets[dataset]
    runs = []
    for trial in range(budget.trials):
        layers = (f"model.num_layers={1 + trial % 4}",)
        splits = budget.final if trial == 1 else budget.search
        value = val if trial == 1 else val - 0.2
        runs += [
            entry(contestant, trial, k, value, tests[k], dataset, league=league, settings=layers)
            for k in splits
        ]
    return runs


def write_entries(folder: Path, entries: Iterable[Entry]) -> None:
    """All at once: one by one, each under a lock, takes seconds."""
    files: dict[Path, list[str]] = {}
    for one in entries:
        file = file_of(folder, one.league, one.contestant, one.dataset)
        files.setdefault(file, []).append(one.to_line() + "\n")
    for file, lines in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(lines), encoding="utf-8")
