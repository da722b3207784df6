"""Runs of one graph, trained together: what they have in common, and what each leaves behind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from coopsheaf.config import to_mapping
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.links import AnyDataset
from coopsheaf.memory import forget_peak, peak_bytes
from coopsheaf.nn.sparse_runs import as_run_inputs
from coopsheaf.train.beforehand import check_splits, task_of
from coopsheaf.train.build import Rescaled, build_model
from coopsheaf.train.engine import Plain
from coopsheaf.train.feed import NodeFeed
from coopsheaf.train.launch import find_launch
from coopsheaf.train.loggers import watching
from coopsheaf.train.loop import EpochReport, FitResult, _make_optimizer, train_dtype
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, describe, run_identity
from coopsheaf.train.summary import conclude
from coopsheaf.train.task import Task
from coopsheaf.train.together.loop import Member, Pass, fit_together
from coopsheaf.train.together.stack import Stack
from coopsheaf.train.world import World

# Settings of training in which runs of one pass may differ.
FREE = ("seed", "lr", "weight_decay", "map_weight_decay")
# At most so many nodes, and nodes and edges, of all copies of a graph: some gigabytes.
NODES, SIZE, RUNS = 1 << 18, 1 << 24, 32
_ALONE = "train them one by one (leave --together out)"


@dataclass(frozen=True)
class Job:
    """A recipe on a split."""

    recipe: Recipe
    split: int


@dataclass(frozen=True)
class Ended:
    """What became of a job: a run, or why there is none."""

    job: Job
    run: Run | None
    result: FitResult
    trouble: str = ""


def runs_at_once(dataset: AnyDataset) -> int:
    """How many runs of a graph one pass holds."""
    if not isinstance(dataset, NodeDataset):
        return 1
    n, m = dataset.num_nodes, dataset.num_edges
    return max(1, min(RUNS, NODES // max(1, n), SIZE // max(1, n + m)))


def shape_of(recipe: Recipe) -> dict[str, Any]:
    """What recipes that are trained in one pass have in common."""
    mapping = recipe.to_mapping()
    mapping.pop("recipe")
    mapping["train"] = {k: v for k, v in mapping["train"].items() if k not in FREE}
    # Whether there is a decay of maps decides what an optimiser is.
    mapping["maps apart"] = recipe.train.map_weight_decay is not None
    return mapping


def check_together(recipe: Recipe, dataset: AnyDataset) -> None:
    """Refuse what cannot be trained in one pass, in one line."""
    why = ""
    if not isinstance(dataset, NodeDataset):
        why = f"it is for predictions about the nodes of one graph, which {dataset.name} is not"
    elif recipe.batch.is_set:
        why = f"every step sees the whole graph; `batch.kind` is {recipe.batch.kind!r}"
    elif recipe.train.precision not in ("32", "64"):
        why = f"`train.precision` must be 32 or 64; it is {recipe.train.precision!r}"
    elif recipe.train.compile:
        why = "`train.compile` is for runs alone"
    elif find_launch().size > 1:
        why = f"it is for one process; {find_launch().size} were started"
    if why:
        raise ValueError(f"runs cannot be trained together: {why}; {_ALONE}")


def run_together(
    jobs: Sequence[Job],
    dataset: AnyDataset,
    *,
    extra: dict[str, Any] | None = None,
    report: Callable[[EpochReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[Ended] | None:
    """Train recipes of one shape on splits of one graph, in one pass over all of them.

    Every run starts with the parameters that it would have alone and draws its dropout from its
    own seed; what comes out differs by rounding, and by masks of features that are mostly zero.
    Nothing is written, and nothing can be resumed: all runs are one piece of work.

    Args:
        jobs: what to run; settings may differ in seed, rates and weight decays.
        dataset: the data as the models shall see it.
        extra, report, should_stop: see :func:`coopsheaf.train.run.run_split` and
            :func:`~coopsheaf.train.together.loop.fit_together`.

    Returns:
        What became of each; ``None`` if it was stopped.
    """
    first = jobs[0].recipe
    for job in jobs:
        check_together(job.recipe, dataset)
        check_splits(job.recipe.train, dataset, [job.split])
        if shape_of(job.recipe) != shape_of(first):
            raise ValueError(
                "runs of one pass must have the same settings but for train."
                f"{', train.'.join(FREE)}; got {to_mapping(first.train)} and "
                f"{to_mapping(job.recipe.train)}"
            )
    assert isinstance(dataset, NodeDataset)
    task, engine = task_of(first.train, dataset), Plain(first.train.precision)
    forget_peak()
    members = members_of(jobs, dataset)
    x, stack = make_stack(first, task, members)
    identities = [run_identity(job.recipe, dataset, job.split) for job in jobs]
    with ExitStack() as open_now:
        for job, member, identity in zip(jobs, members, identities, strict=True):
            watch = watching(job.recipe, task.metric, identity, None)
            member.watch = open_now.enter_context(watch)
        results = fit_together(
            members, task, x, engine=engine, stack=stack, report=report, should_stop=should_stop
        )
    if results is None:
        return None
    ended = []
    for job, member, result, identity in zip(jobs, members, results, identities, strict=True):
        if member.trouble:
            ended.append(Ended(job, None, result, member.trouble))
            continue
        info = describe(job.recipe, dataset, job.split, member.network) | (extra or {})
        info |= {"status": "finished", "identity": identity, "result": asdict(result)}
        info |= {"together": len(jobs), "peak_mb": peak_bytes() / 2**20}
        info |= conclude(member.network, member.feed, task, job.recipe.train, World(engine))
        member.network.eval()
        run = Run(member.network, job.recipe, task, dataset.class_names, info)
        ended.append(Ended(job, run, result))
    return ended


def members_of(jobs: Sequence[Job], dataset: NodeDataset) -> list[Member]:
    """The runs before their first step, each with the network that it would have alone.

    They have one graph: what networks derive from it, such as a connection, is found once.
    """
    members = [_member(job, dataset) for job in jobs]
    for member in members[1:]:
        member.feed.graph = members[0].feed.graph
    return members


def _member(job: Job, dataset: NodeDataset) -> Member:
    network, dtype = build_model(job.recipe, dataset), train_dtype(job.recipe.train)
    feed = NodeFeed(dataset, job.split, device=torch.device("cpu"), dtype=dtype)
    if isinstance(network, Rescaled):
        network.fit(feed.train_targets())
    return Member(network, feed, job.recipe.train)


def make_stack(recipe: Recipe, task: Task, members: Sequence[Member]) -> tuple[Tensor, Stack]:
    """The features as networks see them in a pass, and the networks as one, if they can be."""
    x = as_run_inputs(members[0].feed.x)
    networks, name = [member.network for member in members], recipe.model_name
    network = networks[0]
    names = {id(parameter): key for key, parameter in network.named_parameters()}
    if len(names) < len(list(network.named_parameters(remove_duplicate=False))):
        raise ValueError(
            f"{name} cannot be trained together: its layers share parameters; {_ALONE}"
        )
    optimizer = _make_optimizer(network, members[0].config)
    groups = [
        [names[id(p)] for p in group["params"] if p.requires_grad]
        for group in optimizer.param_groups
    ]
    wide = x.shape[1] if type(x) is not Tensor else -1
    # In a run alone what has no gradient is left as it is, also by a decay of weights.
    idle = _try(recipe, task, members, Stack(networks, groups, wide), x)
    return x, Stack(networks, [[n for n in group if n not in idle] for group in groups], wide)


def _try(
    recipe: Recipe, task: Task, members: Sequence[Member], stack: Stack, x: Tensor
) -> list[str]:
    """A pass there and back, compared with a network alone; the parameters without a gradient."""
    generators = [torch.Generator().manual_seed(0) for _ in members]
    engine, feed = Plain(recipe.train.precision), members[0].feed
    network = members[0].network.eval()
    try:
        # Where vmap has to go through the runs one by one it says so, and there is nothing to gain.
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "There is a performance drop", UserWarning)
            with torch.no_grad(), engine.autocast():
                want = feed.forward(network)
                leaves = {key: leaf.detach() for key, leaf in stack.leaves().items()}
                given = x, feed.graph, feed.edge_inputs, generators
                got = stack.outputs(leaves, *given, training=False)[0]
            _, idle = Pass(members, task, stack, x, engine).train(generators)
    except (RuntimeError, NotImplementedError, TypeError, UserWarning) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{recipe.model_name} cannot be trained together ({reason}); {_ALONE}"
        ) from error
    far, size = (got - want).abs().mean().item(), want.abs().mean().item()
    if not far <= 1e-3 * size + 1e-6 and math.isfinite(size):
        raise ValueError(
            f"{recipe.model_name} cannot be trained together: its outputs would differ from those "
            f"of a network alone, by {far:.2g} on average; {_ALONE}"
        )
    return idle
