"""A run: one recipe on one split, in a folder of its own; and reading it back."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.config import to_mapping
from coopsheaf.data.dataset import GraphDataset, Processing
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.files import write_json
from coopsheaf.memory import forget_peak, peak_bytes
from coopsheaf.models.registry import find_model
from coopsheaf.notebook import curve_html, table_html
from coopsheaf.schema import brief, brief_text
from coopsheaf.train.beforehand import check_splits, task_of
from coopsheaf.train.build import Rescaled, build_model, build_network
from coopsheaf.train.checkpoint import load_tensors, save_tensors
from coopsheaf.train.decisions import Decision, read_decision
from coopsheaf.train.launch import find_launch
from coopsheaf.train.loggers import watching
from coopsheaf.train.loop import EpochReport, FitResult, fit
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.order import derive_seed
from coopsheaf.train.provenance import instructions, versions
from coopsheaf.train.recipe import Recipe, recipe_from_mapping
from coopsheaf.train.run_info import FORMAT, CheckpointError, read_run_info
from coopsheaf.train.run_schema import check_info, check_recipe
from coopsheaf.train.summary import Summary, conclude, read_summary
from coopsheaf.train.task import Task
from coopsheaf.train.weights import load_network
from coopsheaf.train.world import ProcessLost, World, is_lost, make_fabric


@dataclass(frozen=True)
class Run:
    """A trained model and everything needed to use it again.

    Args:
        model: the network with its best parameters.
        recipe: how it was made.
        task: its task.
        class_names: names of its classes or labels.
        info: the whole of ``run.json``.
        folder: where it was read from; what lies beside it may be read too.
        notes: what reading it had to say, one line each.
    """

    model: nn.Module
    recipe: Recipe
    task: Task
    class_names: tuple[str, ...]
    info: dict[str, Any] = field(repr=False)
    folder: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> dict[str, float]:
        """The metric on train, val and test at the epoch that validation chose."""
        return read_result(self.info).scores

    def check_graph(self, dataset: AnyDataset) -> None:
        """Refuse another graph than that of training, if the network belongs to that one.

        Data of the same number of nodes and another checksum is another graph; data in memory has
        no checksum, and its nodes are trusted to be the same.
        """
        wanted = self.info.get("num_nodes")
        if wanted is None:
            return
        rule = f"{self.recipe.model_name} knows every node of the graph that it was trained on"
        found = getattr(dataset, "num_nodes", None)
        if found != wanted:
            got = "many graphs" if found is None else f"a graph of {found} nodes"
            raise CheckpointError(
                f"{rule}, {wanted} of them, and no other; got {got}: train a model on it, or "
                "choose an inductive one (`coopsheaf models`)"
            )
        known = self.info["dataset_checksum"]
        if known and dataset.checksum and dataset.checksum != known:
            raise CheckpointError(
                f"{rule}, {self.info['dataset'] or 'a table'}, and no other; got other data "
                f"({dataset.name or 'a table'}) with as many nodes: train a model on it, or "
                "choose an inductive one (`coopsheaf models`)"
            )

    @property
    def decision(self) -> Decision:
        """How outputs become probabilities and classes, as validation has said."""
        return read_decision(self.info.get("decision"))

    @property
    def summary(self) -> dict[str, Summary]:
        """All metrics that fit, on val and test, with the run's decisions; empty in older runs."""
        return read_summary(self.info)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Of ``(n, out)`` outputs, calibrated if the run is; see :meth:`Task.probabilities`."""
        return self.task.probabilities(self.decision.adjust(logits))

    def classes(self, logits: Tensor) -> Tensor:
        """The predicted class numbers ``(n,)`` of ``(n, out)`` outputs, by the run's threshold."""
        decision = self.decision
        return self.task.classes(decision.adjust(logits), decision.threshold)

    def _repr_html_(self) -> str:
        info, result = self.info, read_result(self.info)
        facts = {
            "model": f"{self.recipe.model_name}, {info['parameters']:,} parameters",
            "data": f"{info['dataset']}, split {info['split']}",
            "task": info["task"],
            **{f"{self.task.metric}, {part}": score for part, score in result.scores.items()},
            "epoch": f"{result.best_epoch} of {result.epochs}, {result.seconds:.1f} s",
        }
        curve = [row[3] for row in result.history]
        return table_html("Run", facts, curve_html(f"{self.task.metric}, val", curve))

    def check_edge_features(self, dataset: AnyDataset) -> None:
        """Refuse data that tells more or less of edges and of places than that of training."""
        for key, what in {"edge_channels": "features of edges", "pe_channels": "places"}.items():
            wanted, found = self.info.get(key, 0), getattr(dataset, key)
            if found != wanted:
                raise CheckpointError(
                    f"the data has {found} {what}; the model was trained with {wanted}"
                )


def run_split(
    recipe: Recipe,
    dataset: AnyDataset,
    split: int = 0,
    *,
    out: Path | None = None,
    resume: bool = False,
    extra: dict[str, Any] | None = None,
    device: str = "auto",
    checkpoint_seconds: float = 30.0,
    report: Callable[[EpochReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    announce: Callable[[dict[str, Any]], None] | None = None,
) -> tuple[Run, FitResult]:
    """Train one split. Deterministic given the recipe's seed and the number of threads.

    Args:
        recipe: model, data and training settings.
        dataset: the data as the model shall see it.
        split: which of its splits.
        out: the run's folder: ``run.json``, ``model.safetensors`` and, until the run has ended,
            ``state.safetensors``.
        resume: continue what is in ``out``; the end is the same as without interruption.
        extra: what else ``run.json`` shall hold, such as encoders and the data's path.
        device: as Lightning Fabric names it.
        checkpoint_seconds, report, should_stop: see :func:`coopsheaf.train.loop.fit`.
        announce: called before training on mini-batches with what they are like
            (:meth:`coopsheaf.scale.BatchFeed.summary`), which ``run.json`` holds too.
    """
    recipe = _with_processes(recipe, find_launch().size)  # before anybody connects
    network = find_model(recipe.model_name).find_network()
    fabric = make_fabric(recipe.train, device, halves=network.halves_products, idle=network.idle)
    world = World(fabric)
    model = build_model(recipe, dataset)
    task = task_of(recipe.train, dataset)
    ranks = {"rank": world.rank, "world_size": world.size}
    feed = make_feed(dataset, split, recipe, fabric.device, **ranks)
    check_splits(recipe.train, dataset, [split])
    if isinstance(model, Rescaled):
        model.fit(feed.train_targets())
    forget_peak()
    info = describe(recipe, dataset, split, model) | (extra or {})
    batches = world.by_first(lambda: feed.summary(model))
    if batches is not None:
        info["batches"] = batches
        if announce is not None and world.is_first:
            announce(batches)
    identity = run_identity(recipe, dataset, split)
    state_path = None if out is None else out / "state.safetensors"
    if out is not None:
        finished = world.by_first(lambda: _enter(out, identity, info, resume))
        if finished is not None:
            return finished
    # Dropout does not depend on how the model was drawn, and differs between processes.
    seed = recipe.train.seed
    try:
        with watching(recipe, task.metric, identity, out, world.is_first) as watch:
            torch.manual_seed(seed if world.is_first else derive_seed(seed, world.rank))
            result = fit(
                model,
                feed,
                task,
                recipe.train,
                fabric=fabric,
                state_path=state_path,
                identity=identity,
                resume=resume,
                checkpoint_seconds=checkpoint_seconds,
                report=report if world.is_first else None,
                watch=watch,
                should_stop=should_stop,
            )
            if watch is not None and result.interrupted:
                watch.status = "interrupted"
    except Exception as error:
        if world.is_first and out is not None and state_path and not state_path.exists():
            _discard(out)  # there is nothing to resume
        if world.size > 1 and is_lost(error):
            raise ProcessLost(_whats_left(state_path)) from None
        raise
    status = "interrupted" if result.interrupted else "finished"
    info |= {"status": status, "identity": identity, "result": asdict(result)}
    info["peak_mb"] = peak_bytes() / 2**20
    if not result.interrupted:
        info |= conclude(model, feed, task, recipe.train, world)
    model.eval()
    run = Run(model, recipe, task, dataset.class_names, info)
    if out is not None:
        world.by_first(lambda: _leave(run, out))
    return run, result


def _with_processes(recipe: Recipe, count: int) -> Recipe:
    """How many processes share a step decides what comes out, so it belongs to the settings."""
    wanted = recipe.train.processes
    if wanted is not None and wanted != count:
        raise ValueError(
            f"`train.processes` must be {count}, as many as were started; got {wanted}. Start them "
            f"with: torchrun --nproc-per-node {wanted} -m coopsheaf train ..."
        )
    return recipe if count == 1 else replace(recipe, train=replace(recipe.train, processes=count))


def _enter(
    out: Path, identity: str, info: dict[str, Any], resume: bool
) -> tuple[Run, FitResult] | None:
    """Announce a run in its folder, unless it has ended there already."""
    if (out / "run.json").exists():
        finished = _continue(out, identity, resume)
        if finished is not None:
            return finished
    write_json(out / "run.json", info | {"status": "running", "identity": identity})
    return None


def _leave(run: Run, out: Path) -> None:
    """Write what came of a run."""
    if run.info["status"] == "finished":
        save_run(run, out)
        (out / "state.safetensors").unlink(missing_ok=True)
    else:
        write_json(out / "run.json", run.info)


def _whats_left(state_path: Path | None) -> str:
    """What to do after a process was lost."""
    text = "another process of this run has ended before its time"
    if state_path is None or not state_path.exists():
        return f"{text}, before any state was written; start again"
    epoch = load_tensors(state_path)[1]["state"]["epoch"]
    return (
        f"{text}; the state after epoch {epoch} is in {state_path.parent}. Continue with the same "
        "command and --resume"
    )


def save_run(run: Run, out: Path) -> None:
    """Write a finished run; :func:`load_run` reads it back."""
    meta = {"identity": run.info["identity"]}
    save_tensors(out / "model.safetensors", run.model.state_dict(), meta)
    write_json(out / "run.json", run.info)


def run_identity(recipe: Recipe, dataset: AnyDataset, split: int) -> str:
    """Names a run: same settings, model version, seed, split and data, same run."""
    parts = (recipe.model_name, recipe.version, recipe.hash(), recipe.train.seed, split)
    # Data in memory has no checksum; names of runs without features of edges stay what they were.
    edges = (f"{dataset.edge_channels} edge features",) if dataset.edge_channels else ()
    return "/".join(map(str, (*parts, dataset.name, dataset.checksum, *edges)))


def _continue(out: Path, identity: str, resume: bool) -> tuple[Run, FitResult] | None:
    """What to do with a folder that holds a run: nothing there is ever overwritten by another."""
    info = read_run_info(out)
    if not resume:
        raise CheckpointError(
            f"{out}: holds a run already; continue it with --resume, or choose another folder"
        )
    if info.get("identity") != identity:
        raise CheckpointError(
            f"{out}: holds another run (other settings, data or split); choose another folder"
        )
    finished = info.get("status") == "finished"
    run = load_run(out) if finished else None
    # What a process left that was killed while writing, or just before it was done.
    for left_over in (*out.glob(".*.part"), *([out / "state.safetensors"] if finished else [])):
        left_over.unlink(missing_ok=True)
    return None if run is None else (run, read_result(run.info))


def _discard(out: Path) -> None:
    """Take back the announcement of a run that came to nothing, and its folder if it is empty."""
    (out / "run.json").unlink(missing_ok=True)
    with suppress(OSError):
        out.rmdir()


def read_result(info: dict[str, Any]) -> FitResult:
    """The result in ``run.json``; JSON has no NaN, so null stands for it."""
    names = {item.name for item in fields(FitResult)}
    values = {key: value for key, value in info["result"].items() if key in names}
    values["scores"] = {part: _number(score) for part, score in values["scores"].items()}
    values["history"] = [[_number(value) for value in row] for row in values["history"]]
    return FitResult(**values)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def describe(recipe: Recipe, dataset: AnyDataset, split: int, model: nn.Module) -> dict[str, Any]:
    """Everything about a run that is known before it starts, as plain values."""
    # Whether links have a direction decides what the network is.
    links = {"undirected": dataset.undirected} if isinstance(dataset, LinkDataset) else {}
    # A network that belongs to one graph has the size of that graph.
    bound = recipe.model.of_one_graph
    nodes = {"num_nodes": getattr(dataset, "num_nodes", 0)} if bound else {}
    return {
        "format": FORMAT,
        "model": recipe.model_name,
        "model_version": recipe.version,
        "recipe": recipe.to_mapping(),
        "config_hash": recipe.hash(),
        "seed": recipe.train.seed,
        "split": split,
        "splits": dataset.num_splits,
        "dataset": dataset.name,
        "dataset_checksum": dataset.checksum,
        "dataset_remark": dataset.remark,
        "processing": dataset.processing.to_json(),
        "level": level_of(dataset),
        "task": dataset.task,
        **links,
        "metric": recipe.train.metric or dataset.metric,
        "class_names": list(dataset.class_names),
        "in_channels": dataset.num_features,
        "out_channels": dataset.out_channels,
        "edge_channels": dataset.edge_channels,
        **({"pe_channels": dataset.pe_channels} if dataset.pe_channels else {}),
        **nodes,
        "edge_weights": getattr(dataset, "edge_weight", None) is not None,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "instructions": instructions(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
    }


def level_of(dataset: AnyDataset) -> str:
    """What a dataset asks about: every ``"node"``, every ``"graph"``, or every ``"link"``."""
    if isinstance(dataset, LinkDataset):
        return "link"
    return "graph" if isinstance(dataset, GraphDataset) else "node"


def load_run(folder: Path) -> Run:
    """Read a finished run back; nothing in its files is executed.

    Whoever made the folder is not trusted: types, bounds and sizes are compared before they are
    used. What is not known here is in the run's ``notes``.
    """
    info = read_run_info(folder)
    if info.get("status") != "finished":
        raise CheckpointError(
            f"{folder}: the run has not ended (status {brief(info.get('status'))}); "
            "continue it with --resume"
        )
    try:
        notes = check_info(info)
        recipe = recipe_from_mapping(info["recipe"], f"{folder / 'run.json'}")
        notes += check_recipe(info, recipe)
        Processing(**info["processing"])
        model = load_network(
            folder / "model.safetensors",
            info["identity"],
            to_mapping(recipe.model),
            lambda: _rebuild(recipe, info),
        )
        if info["parameters"] != (count := sum(p.numel() for p in model.parameters())):
            raise ValueError(f"parameters must be {count}; got {info['parameters']}")
    except CheckpointError:
        raise
    except (AttributeError, MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as e:
        reason = brief_text((str(e) or type(e).__name__).split("\n")[0], 500)
        raise CheckpointError(f"{folder / 'run.json'}: not a run of coopsheaf ({reason})") from None
    model.eval()
    task, names = Task(info["task"], info["metric"]), tuple(info["class_names"])
    return Run(model, recipe, task, names, info, folder, notes)


def _rebuild(recipe: Recipe, info: dict[str, Any]) -> nn.Module:
    """The network that a run was trained with, with whatever parameters come."""
    return build_network(
        recipe,
        info["in_channels"],
        info["out_channels"],
        graph_level=info["level"] == "graph",
        task=info["task"],
        edge_channels=info.get("edge_channels", 0),  # older runs do not say: there were none
        pe_channels=info.get("pe_channels", 0),
        undirected=info.get("undirected", False),
        num_nodes=info.get("num_nodes"),
    )
