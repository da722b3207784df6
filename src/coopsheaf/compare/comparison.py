"""What a comparison says: rows, paired differences, sentences. Imports no PyTorch.

In each fold the validation score chooses among the trials of a model, and the test score of the
chosen one counts; those of the others are used for nothing. Where one model stands for several (the
best that sees the graph, say), the mean validation score chooses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev

from coopsheaf.compare.plan import ModelPlan, Plan, load_plan
from coopsheaf.compare.texts import sentences, to_html, to_markdown, to_text
from coopsheaf.report.paired import Paired
from coopsheaf.report.rows import sign_of
from coopsheaf.train.records import OnBad, Record, find_records, warn_of_line

FIRST = "csnn"  # whom the others are set against


@dataclass(frozen=True)
class ComparedModel:
    """One model over the folds that all of its trials were run on.

    Args:
        name: of the model.
        sees_graph: whether edges mean anything to it.
        test, val: scores of the trial that validation chose, by fold.
        chosen: the number of that trial, by fold; 0 is the default settings.
        fits: how many there are.
        seconds: of all of them.
        failed: how many came to nothing.
    """

    name: str
    sees_graph: bool
    test: dict[int, float]
    val: dict[int, float]
    chosen: dict[int, int]
    fits: int
    seconds: float
    failed: int

    @property
    def mean(self) -> float | None:
        return fmean(self.test.values()) if self.test else None

    @property
    def std(self) -> float | None:
        """Of the population."""
        return pstdev(self.test.values()) if len(self.test) > 1 else None

    @property
    def val_mean(self) -> float | None:
        return fmean(self.val.values()) if self.val else None


@dataclass(frozen=True)
class Comparison:
    """Models on the same folds of the same data::

        print(comparison)          # a table and what it means, in words
        comparison.sentence        # the latter alone
        comparison.paired("csnn", "boosted-neighbours").verdict

    Args:
        plan: what was to be compared.
        models: what came of each.
    """

    plan: Plan
    models: tuple[ComparedModel, ...]

    @property
    def metric(self) -> str:
        return self.plan.metric

    @cached_property
    def folds(self) -> tuple[int, ...]:
        """The folds on which every model has a score: those that are compared."""
        numbers = [fold.number for fold in self.plan.folds]
        return tuple(n for n in numbers if all(n in model.test for model in self.models))

    @property
    def is_complete(self) -> bool:
        """Whether all fits were made."""
        return sum(model.fits for model in self.models) == self.plan.fits

    def model(self, name: str) -> ComparedModel:
        """What came of a model."""
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in self.models)
        raise ValueError(f"`name` must be one of {known}; got {name!r}")

    def paired(self, first: str, second: str) -> Paired | None:
        """The first against the second, fold by fold; ``None`` without a common fold."""
        a, b = self.model(first).test, self.model(second).test
        common = [n for n in a if n in b]
        if not common:
            return None
        ours, theirs = (tuple(side[n] for n in common) for side in (a, b))
        return Paired(ours, theirs, sign_of(self.metric), self.plan.test_per_train)

    def best(self, *, sees_graph: bool | None = None) -> ComparedModel | None:
        """The model with the best mean validation score, of all or of those with or without."""
        rivals = [
            model
            for model in self.models
            if model.val_mean is not None and sees_graph in (None, model.sees_graph)
        ]
        sign = sign_of(self.metric)
        return max(rivals, key=lambda model: sign * (model.val_mean or 0.0), default=None)

    @property
    def reference(self) -> str | None:
        """Whom the others are set against: ``csnn``, else the best by validation."""
        best = self.best()
        names = [model.name for model in self.models if model.test]
        return FIRST if FIRST in names else None if best is None else best.name

    @property
    def sentence(self) -> str:
        """Whether the graph helps, and whether boosted trees would do."""
        return " ".join(sentences(self))

    def to_markdown(self) -> str:
        """The table and what it means."""
        return to_markdown(self)

    def __str__(self) -> str:
        return to_text(self)

    def _repr_html_(self) -> str:
        return to_html(self)


def conclude(plan: Plan, records: Iterable[Record]) -> Comparison:
    """What the records say of a plan; fits that are not recorded are missing."""
    known: dict[tuple[object, ...], Record] = {}
    for record in records:
        if record.metric == plan.metric:
            known.setdefault(record.key, record)
    return Comparison(plan, tuple(_conclude_model(plan, model, known) for model in plan.models))


def _conclude_model(
    plan: Plan, model: ModelPlan, known: dict[tuple[object, ...], Record]
) -> ComparedModel:
    sign = sign_of(plan.metric)
    test, val, chosen, made = {}, {}, {}, []
    for fold in plan.folds:
        found = [known.get(plan.key(fold, model, trial)) for trial in model.trials]
        made += [record for record in found if record is not None]
        if None in found:
            continue  # fewer trials would be another budget
        scored = [
            (sign * record.val, number, record)
            for number, record in enumerate(found)
            if record is not None and record.val is not None
        ]
        if not scored:
            continue
        _, number, best = max(scored, key=lambda entry: (entry[0], -entry[1]))  # first of equals
        assert best.val is not None
        if best.test is not None:
            test[fold.number], val[fold.number] = best.test, best.val
            chosen[fold.number] = number
    return ComparedModel(
        model.name,
        model.sees_graph,
        test,
        val,
        chosen,
        fits=len(made),
        seconds=sum(record.seconds or 0.0 for record in made),
        failed=sum(record.val is None for record in made),
    )


def load_comparison(folder: str | Path, bad: OnBad = warn_of_line) -> Comparison:
    """What a folder of :func:`~coopsheaf.compare.compare_models` says.

    Args:
        folder: with ``compare.json`` and ``records/``.
        bad: is told of lines that are no records; they are passed over.
    """
    path = Path(folder)
    return conclude(load_plan(path), find_records(path / "records", bad))
