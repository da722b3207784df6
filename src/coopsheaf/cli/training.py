"""``coopsheaf train`` and ``coopsheaf bench``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from coopsheaf.cli import args, show
from coopsheaf.cli.hints import check_alone
from coopsheaf.cli.limits import check_threads
from coopsheaf.cli.own import has_own, read_own
from coopsheaf.cli.passed_over import say_passed_over
from coopsheaf.cli.stopping import Stop, check_requeue, stoppable
from coopsheaf.cli.summaries import describe_decision, show_summaries
from coopsheaf.cli.verifying import verify
from coopsheaf.data.catalogue import DATASETS
from coopsheaf.data.dataset import PARTS, GraphDataset, NodeDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.metrics import METRICS
from coopsheaf.data.pack import PREFIX, kept_tables
from coopsheaf.models.registry import MODELS
from coopsheaf.train import runner
from coopsheaf.train.beforehand import check_splits
from coopsheaf.train.data import load_data, whereabouts
from coopsheaf.train.defaults import suit
from coopsheaf.train.launch import find_launch
from coopsheaf.train.recipe import DataConfig, Recipe, default_recipe
from coopsheaf.train.recipes import load_recipe, recipe_for
from coopsheaf.train.records import PassedOver, append_record, find_records, spell_splits
from coopsheaf.train.run import run_split
from coopsheaf.train.trouble import remark


def train(command: args.Train) -> int:
    set_threads(command.threads)
    check_requeue(command.requeue_exit_code)
    if command.dataset is not None and command.dataset.startswith(PREFIX):
        # By its whole path, so that the run finds it again from anywhere.
        folder = Path(command.dataset.removeprefix(PREFIX)).resolve()
        command = replace(command, dataset=f"{PREFIX}{folder}")
    tables = command.tables
    own = has_own(tables, command.dataset)
    check_alone(command.dataset or "")
    recipe = choose_recipe(command, own)
    extra: dict[str, Any] = {}
    dataset: AnyDataset
    if own:
        dataset, extra = read_own(tables, recipe.train.seed)
    else:
        dataset = _load(recipe, command.data_dir)
        extra = whereabouts(command.data_dir) | kept_tables(dataset)
    recipe = choose_recipe(command, own, dataset)
    splits = show.parse_splits(command.splits or "0", dataset.num_splits)
    if command.out is not None and len(splits) > 1:
        raise ValueError("--out takes one run; leave it out, or choose one split")
    check_splits(recipe.train, dataset, splits)
    introduce(recipe, dataset)
    with stoppable() as stop:
        return _train_splits(command, recipe, dataset, splits, extra, stop)


def _train_splits(
    command: args.Train,
    recipe: Recipe,
    dataset: AnyDataset,
    splits: list[int],
    extra: dict[str, Any],
    stop: Stop,
) -> int:
    """Train and record one split after the other; returns the exit code."""
    for split in splits:
        out = command.out or Path("runs") / f"{recipe.model_name}-{dataset.name}-{split}"
        with show.progress(f"split {split}") as report:
            run, result = run_split(
                recipe,
                dataset,
                split,
                out=out,
                resume=command.resume,
                extra=extra,
                report=report,
                should_stop=stop,
                announce=_announce,
            )
        if result.interrupted:
            show.note(
                f"stopped after epoch {result.epochs}; the state is in {out}. "
                "Continue with the same command and --resume"
            )
            return stop.exit_code(command.requeue_exit_code)
        if find_launch().rank > 0:
            continue  # the first process speaks and records for all
        record = runner.make_record(run, result)
        file = command.results / f"{record.model}-{record.dataset}.jsonl"
        # A run that had ended before it was resumed may have been recorded then.
        passed_over = PassedOver()
        known = find_records(command.results, passed_over) if command.resume else []
        if record.key not in {r.key for r in known}:
            append_record(file, record)
        say_passed_over(passed_over.reasons)
        metric = METRICS[run.task.metric].label
        often = f", evaluated every {result.eval_every}" if result.eval_every > 1 else ""
        show.say(
            f"split {split}: {metric} train {result.scores['train']:.4f}  "
            f"val {result.scores['val']:.4f}  test {result.scores['test']:.4f}  "
            f"(epoch {result.best_epoch} of {result.epochs}{often}, {result.seconds:.1f} s)"
        )
        show.say(f"  run: {out}   record: {file}")
        if len(splits) == 1:
            show_summaries(run, run.summary, "test")
        else:
            for line in describe_decision(run):
                show.say(f"  {line}")
        word = remark(run.task, dataset, split, result, recipe.train)
        if word is not None:
            show.say(f"  NOTE: {word}")
    if len(splits) > 1:
        show.say("all metrics of a run, and a report by class: coopsheaf evaluate RUN")
    return 0


def bench(command: args.Bench) -> int:
    if command.verify is not None:
        return verify(command)
    set_threads(command.threads)
    check_requeue(command.requeue_exit_code)
    recipes = [_find_recipe(name).set(*command.set) for name in command.recipes]
    if not recipes:
        raise ValueError("name at least one recipe, e.g. csnn/tolokers")
    passed_over = PassedOver()
    for recipe in recipes:
        dataset = _load(recipe, command.data_dir)
        every = f"0-{dataset.num_splits - 1}"
        splits = show.parse_splits(command.splits or every, dataset.num_splits)
        check_splits(recipe.train, dataset, splits)
        introduce(recipe, dataset)
        done = 0
        with stoppable() as stop:
            for outcome in _outcomes(command, recipe, dataset, splits, stop, passed_over):
                record, done = outcome.record, done + 1
                state = "recorded already" if outcome.skipped else f"{record.seconds:.0f} s"
                show.say(
                    f"split {outcome.split}: val {_score(record.val)}  "
                    f"test {_score(record.test)}  ({state})"
                )
        seeds = 1 if command.seeds is None else len(show.parse_seeds(command.seeds))
        if done < seeds * len(splits):
            say_passed_over(passed_over.reasons)
            how = "begins them again" if command.together else "continues where it was"
            show.note(f"stopped; the same command {how}")
            return stop.exit_code(command.requeue_exit_code)
    say_passed_over(passed_over.reasons)
    show.say(f"records: {command.results}   tables: coopsheaf report --results {command.results}")
    return 0


def _outcomes(
    command: args.Bench,
    recipe: Recipe,
    dataset: AnyDataset,
    splits: list[int],
    stop: Stop,
    passed_over: PassedOver,
) -> Iterator[runner.Outcome]:
    """One split after the other, or all in one pass."""
    shared: dict[str, Any] = {
        "results": command.results,
        "work": command.work,
        "extra": whereabouts(command.data_dir),
        "should_stop": stop,
        "bad": passed_over,
    }
    if command.together:
        from coopsheaf.train.together.bench import bench_together

        def progress(splits: tuple[int, ...]) -> runner.Progress:
            return show.progress(spell_splits(splits))

        seeds = None if command.seeds is None else show.parse_seeds(command.seeds)
        return bench_together(recipe, dataset, splits, seeds=seeds, progress=progress, **shared)
    if command.seeds is not None:
        raise ValueError("--seeds goes with --together; one seed is --set train.seed=N")

    def of_one(split: int) -> runner.Progress:
        return show.progress(f"split {split}")

    return runner.bench(recipe, dataset, splits, progress=of_one, **shared)


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def set_threads(threads: int | None) -> None:
    if threads is not None:
        torch.set_num_threads(check_threads(threads))


def choose_recipe(command: args.Train, own: bool, dataset: AnyDataset | None = None) -> Recipe:
    """What a command asks for; defaults as they suit the data, if it has been read."""
    if command.recipe is not None:
        if command.model != "csnn":
            raise ValueError("--model and --recipe exclude each other: a recipe names its model")
        recipe = load_recipe(command.recipe)
        data = DataConfig() if own else replace(recipe.data, name=command.dataset or "")
        recipe = replace(recipe, data=data)
    else:
        name = command.dataset or ""
        recipe = default_recipe(command.model) if own else recipe_for(command.model, name)
        recipe = recipe if dataset is None else suit(recipe, dataset)
    short = {field: getattr(command, field) for field in ("epochs", "seed", "metric", "threshold")}
    given = [f"train.{field}={value}" for field, value in short.items() if value is not None]
    if command.class_weights:
        given.append("train.class_weights=true")
    recipe = recipe.set(*command.set, *given)
    if own and recipe.data != DataConfig():
        raise ValueError(
            "--set data.* is for datasets by name; for tables there are --undirected and "
            "--self-loops, and features are standardised as they are read"
        )
    if command.dataset is not None and recipe.data.name != command.dataset:
        raise ValueError(
            f"--set data.name={recipe.data.name}: the dataset is {command.dataset!r} already; name "
            "one of the two"
        )
    return recipe


def _announce(batches: dict[str, Any]) -> None:
    """What mini-batches are like, and how much of the graph they leave out."""
    sizes = ", ".join(
        f"{key} {batches[key]}" for key in ("size", "parts", "fanouts") if key in batches
    )
    show.say(
        f"batches of {batches['kind']} ({sizes}): {batches['steps']:,} steps per epoch, "
        f"{batches['nodes_per_step']:,} nodes and {batches['edges_per_step']:,} edges each, "
        f"{100 * batches['edges_kept']:.1f} % of the edges kept"
    )


def _find_recipe(name: str) -> Recipe:
    """A recipe by name or file; a model without one for a dataset has its marked default."""
    model, _, dataset = name.partition("/")
    known = model in MODELS and dataset in DATASETS
    return recipe_for(model, dataset) if known else load_recipe(name)


def _load(recipe: Recipe, data_dir: Path | None) -> NodeDataset | GraphDataset:
    with show.notice(f"reading {recipe.data.name} ..."):
        return load_data(recipe.data, data_dir)


def _count_links(dataset: LinkDataset) -> str:
    sizes = ", ".join(f"{getattr(dataset, part).shape[1]:,} {part}" for part in PARTS)
    ends = " (each from both of its ends)" if dataset.undirected else ""
    return (
        f"links: {sizes}{ends}; messages travel on those of train, val and test are ranked "
        f"against {dataset.val_negatives.shape[1]} non-edges each"
    )


def introduce(recipe: Recipe, dataset: AnyDataset) -> None:
    done = dataset.processing
    if isinstance(dataset, GraphDataset):
        size = f"{len(dataset.graphs):,} graphs"
    else:
        size = f"{dataset.num_nodes:,} nodes, {dataset.num_edges:,} directed edges"
    show.say(f"{dataset.name}: {size}, {dataset.num_features} features, {dataset.task}")
    features = done.features if recipe.data.name else "as encoded above"
    show.say(f"  direction {done.direction}, self-loops {done.self_loops}, features {features}")
    if done.relations is not None:
        show.say(f"  edges: relations {done.relations}")
    told = {"places of nodes": done.pe, "bonds": done.bonds}
    if any(told.values()):
        show.say("  " + ", ".join(f"{name}: {kind}" for name, kind in told.items() if kind))
    if isinstance(dataset, LinkDataset):
        show.say(f"  {_count_links(dataset)}")
    if dataset.remark:
        show.say(f"  NOTE: {dataset.remark}")
    show.say(f"{recipe.model_name}: recipe {recipe.name or '-'} ({recipe.source or 'no source'})")
