"""A comparison under way: every model with every trial on every fold, what is recorded skipped."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coopsheaf.checks import check_choice, check_int
from coopsheaf.compare.comparison import Comparison, conclude
from coopsheaf.compare.contestants import Contestant, Home, Trial
from coopsheaf.compare.data import Division, given_folds, named_folds, table_folds
from coopsheaf.compare.folds import Dataset, Folds, check_folds
from coopsheaf.compare.lineup import USUAL, find_contestants
from coopsheaf.compare.plan import FoldPlan, ModelPlan, Plan, TrialPlan, enter
from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.links import LinkDataset
from coopsheaf.data.metrics import METRICS, check_metric
from coopsheaf.data.tables.load import table_options
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.records import OnBad, Record, find_records, warn_of_line
from coopsheaf.train.runner import Progress
from coopsheaf.train.task import Task
from coopsheaf.train.training import spell

MOST_FITS = 500


@dataclass(frozen=True)
class Step:
    """One fit of a comparison: which of how many, and its record."""

    number: int
    total: int
    model: str
    fold: int
    trial: int
    record: Record


class Match:
    """Contestants on folds, ready to be compared.

    Args:
        folds: of the data.
        contestants: who takes part.
        trials: of each; one has fewer if its space is smaller.
        seed: of folds and trials.
        metric: that was asked for; else that of the data.
    """

    def __init__(
        self,
        folds: Folds,
        contestants: Sequence[Contestant],
        *,
        trials: int = 4,
        seed: int = 0,
        metric: str | None = None,
    ) -> None:
        check_int("trials", trials, minimum=1)
        self.folds, self.contestants = folds, tuple(contestants)
        if metric is not None:
            check_choice("metric", metric, METRICS)
            check_metric("metric", metric, folds.dataset.task)
        self.task = Task(folds.dataset.task, metric or folds.metric)
        check_folds(folds, self.task)
        self.trials = {who.name: who.draw(trials, seed) for who in self.contestants}
        self.plan = self._plan(trials, seed)

    def _plan(self, trials: int, seed: int) -> Plan:
        folds, data = self.folds, self.folds.dataset
        models = []
        remarks = [*([data.remark] if data.remark else []), *folds.notes]
        for who in self.contestants:
            drawn = self.trials[who.name]
            if len(drawn) < trials:
                remarks.append(f"{who.name} has {len(drawn)} different settings to try")
            if unused := who.unused(data):
                remarks.append(f"{who.name} does not use {' and '.join(unused)}")
            plans = tuple(TrialPlan(trial.hash, dict(trial.changed)) for trial in drawn)
            models.append(ModelPlan(who.name, who.version, who.sees_graph, plans))
        graphs = isinstance(data, GraphDataset)
        parts = tuple(
            FoldPlan(number, 0 if graphs else number, checksum, *sizes)
            for number, checksum, sizes in zip(
                folds.numbers, folds.checksums, folds.sizes, strict=True
            )
        )
        return Plan(
            dataset=data.name,
            size=say_size(data),
            task=data.task,
            metric=self.task.metric,
            over=folds.over,
            seed=seed,
            train_seed=self.contestants[0].seed,
            folds=parts,
            models=tuple(models),
            remarks=tuple(remarks),
        )

    def run(
        self,
        folder: Path,
        *,
        progress: Callable[[str], Progress] = lambda label: nullcontext(None),
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[Step]:
        """Make the fits that are missing, fold by fold, and yield every one; ends when stopped.

        Args:
            folder: of the comparison.
            progress: makes the progress report of a fit from its label.
            should_stop: asked after every epoch.
        """
        enter(folder, self.plan)
        home, done = Home(folder), 0
        for number, part in zip(self.folds.numbers, self.plan.folds, strict=True):
            known = {record.key: record for record in find_records(home.records, lambda _: None)}
            fold = None
            for who, trial, key in self._fits(part):
                done += 1
                record = known.get(key)
                if record is None:
                    if should_stop():
                        return
                    fold = fold or self.folds.make(number)
                    label = f"{done}/{self.plan.fits} {who.name}, {self.folds.one} {number}"
                    label += f", trial {trial.number}"
                    record = who.fit(trial, fold, home, progress(label), should_stop)
                if record is None:
                    return
                yield Step(done, self.plan.fits, who.name, number, trial.number, record)

    def _fits(self, part: FoldPlan) -> Iterator[tuple[Contestant, Trial, tuple[Any, ...]]]:
        for who, model in zip(self.contestants, self.plan.models, strict=True):
            for trial, plan in zip(self.trials[who.name], model.trials, strict=True):
                yield who, trial, self.plan.key(part, model, plan)

    def missing(self, folder: Path) -> int:
        """How many fits have no record in a folder yet."""
        known = {record.key for record in find_records(Home(folder).records, lambda _: None)}
        return sum(key not in known for part in self.plan.folds for *_, key in self._fits(part))

    def conclude(self, folder: Path, bad: OnBad = warn_of_line) -> Comparison:
        """What the records of a folder say."""
        return conclude(self.plan, find_records(Home(folder).records, bad))


def check_fits(plan: Plan, most: int) -> None:
    """Refuse more fits than somebody meant."""
    if plan.fits > most:
        raise ValueError(
            f"`max_fits` must be at least the number of fits, {plan.fits} ({len(plan.folds)} "
            f"{plan.over} x {plan.fits // len(plan.folds)} trials of all models); got {most}: take "
            "fewer, or raise it"
        )


def say_size(dataset: Dataset) -> str:
    """What there is, in a few words."""
    if isinstance(dataset, GraphDataset):
        return f"{len(dataset.graphs):,} graphs, {dataset.num_features:,} features"
    return (
        f"{dataset.num_nodes:,} nodes, {dataset.num_edges:,} edges, "
        f"{dataset.num_features:,} features"
    )


def compare_models(
    data: Any,
    edges: Any = None,
    *,
    models: Sequence[str] = USUAL,
    folds: int | None = None,
    repeats: int | None = None,
    splits: Sequence[int] | None = None,
    trials: int = 4,
    epochs: int | None = None,
    metric: str | None = None,
    class_weights: bool = False,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    data_dir: str | Path | None = None,
    max_fits: int = MOST_FITS,
    report: Callable[[Step], None] | None = None,
    **tables: Any,
) -> Comparison:
    """Does the graph help, and would boosted trees do? Every model on the same folds::

        comparison = compare_models("nodes.csv", "edges.csv", target="label")
        print(comparison)

    Each model has the same number of trials, the first with its default settings, the others drawn
    around them. In each fold validation chooses one, and its test score counts.

    Args:
        data: the name of a dataset, a dataset of this library, or nodes in any form that
            :func:`~coopsheaf.data.load_tables` takes.
        edges: of these nodes.
        models: names of :func:`~coopsheaf.models.list_models`, ``"boosted-columns"`` (trees on the
            columns alone) and ``"boosted-neighbours"`` (columns, degrees and the means of the
            neighbours' columns), which need scikit-learn.
        folds: test on each of so many folds, validate on the next one; by default five where the
            data has no splits of its own.
        repeats: instead, so many stratified random splits, 60/20/20.
        splits: instead, these splits of the data; by default its first five.
        trials: of each model.
        epochs: of networks at most, instead of 300.
        metric: what decides and is compared; by default that of the data.
        class_weights: weigh classes by their inverse frequency.
        settings: of all networks, by ``section.field``; what is set is not searched.
        seed: of folds and of what is drawn.
        out: folder of the comparison; the same call with the same folder goes on where it was. By
            default nothing is kept.
        data_dir: where to look for a dataset's files.
        max_fits: refuse to begin more.
        report: called after every fit.
        tables: options of :func:`~coopsheaf.data.load_tables`, such as ``target="label"``.
    """
    given = [f"{name}={spell(value)}" for name, value in (settings or {}).items()]
    given += [] if epochs is None else [f"train.epochs={epochs}"]
    division = Division(folds, repeats, None if splits is None else tuple(splits), seed)
    if isinstance(data, str) and edges is None:
        if tables:
            raise ValueError(f"`{next(iter(tables))}` goes with tables, not with a dataset's name")
        where = None if data_dir is None else Path(data_dir)
        parts, config = named_folds(data, division, settings=given, data_dir=where)
    elif isinstance(data, LinkDataset | NodeDataset | GraphDataset):
        if edges is not None or tables:
            raise ValueError("a dataset stands alone: give no edges and no options with it")
        parts, config = given_folds(data, division), DataConfig()
    else:
        graphs = tables.pop("graphs", None)
        options = table_options(**{"seed": seed, **tables})
        parts, config = table_folds(data, edges, graphs, options, division)[0], DataConfig()
    contestants = find_contestants(
        tuple(models),
        config,
        settings=given,
        class_weights=class_weights,
        metric=metric,
        dataset=parts.dataset,
    )
    match = Match(parts, contestants, trials=trials, seed=seed, metric=metric)
    check_fits(match.plan, max_fits)
    with tempfile.TemporaryDirectory() if out is None else nullcontext(str(out)) as folder:
        for step in match.run(Path(folder)):
            if report is not None:
                report(step)
        return match.conclude(Path(folder))
