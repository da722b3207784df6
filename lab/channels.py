"""Do trained CSNNs close channels? Networks of our recipes, trained again and looked into.

Records of runs hold scores and no weights. So a network is trained once more with the settings of
its recipe, and what stays is one line of JSON: in every layer the share of channels that is closed,
what these would carry and what they carry (:mod:`coopsheaf.analysis.channels`), and the same of the
network before training. Beside it stands the test score with the closed channels closed to the last
bit, and with as many nodes silenced that were drawn at random.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from coopsheaf.analysis.actions import ActionReport, cooperative_network, read_actions
from coopsheaf.analysis.channels import LayerChannels, closed_channels, open_ends, silenced
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.files import append_line, finite
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.data import load_data
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.run import Run, run_split

FILE = "channels.jsonl"
PLACE = "channels"  # of the tables in a document
DATASETS = ("texas", "wisconsin", "chameleon", "tolokers", "minesweeper")
DRAWS = 5  # of nodes to silence at random


@dataclass(frozen=True)
class ChannelResult:
    """What one trained network does with its channels.

    Args:
        dataset, split, seed: of the run.
        recipe: the name of its recipe.
        config_hash: of its settings, as records have it.
        planned_epochs: of the recipe; fewer than that were allowed if ``epochs_allowed`` is less.
        epochs_allowed, epochs, best_epoch: of the training.
        metric, val, test: of the network that was kept.
        closed_test: the test score with the closed channels closed to the last bit.
        random_test: the same with as many nodes silenced at random, one number per draw.
        layers: the channels of every layer.
        start: those of the same network before training.
        versions, machine: provenance.
    """

    dataset: str
    split: int
    seed: int
    recipe: str
    config_hash: str
    planned_epochs: int
    epochs_allowed: int
    epochs: int
    best_epoch: int
    metric: str
    val: float | None
    test: float | None
    closed_test: float | None
    random_test: list[float]
    layers: list[LayerChannels]
    start: list[LayerChannels]
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""


def channels_of(
    datasets: Sequence[str], splits: int, epochs: int | None, results: Path, data_dir: Path | None
) -> Iterator[tuple[ChannelResult, bool]]:
    """Train and measure what is not recorded yet; yields each result and whether it was there."""
    for name in datasets:
        recipe = load_recipe(f"csnn/{name}")
        planned = recipe.train.epochs
        if epochs is not None and epochs < planned:
            recipe = recipe.set(f"train.epochs={epochs}")
        known = {_key(result): result for result in read_channels(results)}
        dataset = load_data(recipe.data, data_dir)
        assert isinstance(dataset, NodeDataset)
        for split in range(min(splits, dataset.num_splits)):
            key = (name, split, recipe.train.seed, recipe.train.epochs)
            if key in known:
                yield known[key], True
                continue
            result = measure(recipe, dataset, split, planned)
            append_line(results / FILE, json.dumps(finite(asdict(result))))
            yield result, False


def _key(result: ChannelResult) -> tuple[Any, ...]:
    return result.dataset, result.split, result.seed, result.epochs_allowed


def measure(recipe: Recipe, dataset: NodeDataset, split: int, planned: int) -> ChannelResult:
    """Train one network on one split, and look at its channels."""
    run, result = run_split(recipe, dataset, split)
    graph = Graph(dataset.edge_index, dataset.num_nodes)
    x = dataset.x.to(next(run.model.parameters()).dtype)
    report = read_actions(run.model, x, graph)
    fresh = deepcopy(run.model)
    torch.manual_seed(recipe.train.seed)
    cooperative_network(fresh).reset_parameters()
    with silenced(run.model, report):
        closed = _test(run, dataset, split, graph)
    drawn = []
    for seed in range(DRAWS):
        with silenced(run.model, shuffled(report, seed)):
            drawn.append(_test(run, dataset, split, graph))
    return ChannelResult(
        dataset=recipe.data.name,
        split=split,
        seed=recipe.train.seed,
        recipe=f"csnn/{recipe.data.name}",
        config_hash=run.info["config_hash"],
        planned_epochs=planned,
        epochs_allowed=recipe.train.epochs,
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        metric=run.task.metric,
        val=result.scores["val"],
        test=result.scores["test"],
        closed_test=closed,
        random_test=drawn,
        layers=list(closed_channels(report, graph)),
        start=list(closed_channels(read_actions(fresh, x, graph), graph)),
        versions=run.info.get("versions", {}),
        machine=run.info.get("machine", ""),
    )


def shuffled(report: ActionReport, seed: int) -> ActionReport:
    """The same actions in every layer, dealt out to other nodes."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for layer in report.layers:
        listens, broadcasts = (
            ends[torch.randperm(len(ends), generator=generator)] for ends in open_ends(layer)
        )
        layers.append(replace(layer, action=2 * (~listens).long() + (~broadcasts).long()))
    return replace(report, layers=tuple(layers))


@torch.no_grad()
def _test(run: Run, dataset: NodeDataset, split: int, graph: Graph) -> float:
    run.model.eval()
    x = dataset.x.to(next(run.model.parameters()).dtype)
    outputs = run.model(x, graph)
    mask = dataset.test[split]
    return run.task.score(outputs[mask], dataset.y[mask])


def read_channels(folder: Path) -> list[ChannelResult]:
    """All recorded results."""
    path = folder / FILE
    if not path.exists():
        return []
    results = []
    for line in path.read_text(encoding="utf-8").splitlines():
        values = json.loads(line)
        for name in ("layers", "start"):
            values[name] = [LayerChannels(**layer) for layer in values[name]]
        results.append(ChannelResult(**values))
    return results


HEAD = (
    "dataset",
    "layer",
    "closed before training",
    "closed",
    "they would carry",
    "they carry",
    "carry under 1 %",
    "deaf nodes",
    "mute nodes",
)


def layer_rows(results: Sequence[ChannelResult]) -> list[list[str]]:
    """One row per dataset and layer, means over the splits."""
    rows = []
    for name, group in _by_dataset(results).items():
        for k in range(len(group[0].layers)):
            now, then = ([getattr(each, part)[k] for each in group] for part in ("layers", "start"))
            cells = [
                percent([layer.closed for layer in then]),
                *(
                    percent([getattr(layer, what) for layer in now])
                    for what in ("closed", "would_carry", "carry", "shut", "deaf", "mute")
                ),
            ]
            rows.append([escape_markdown(name) if k == 0 else "", str(k + 1), *cells])
    return rows


SCORE_HEAD = (
    "dataset",
    "splits",
    "epochs",
    "metric",
    "test",
    "closed to the last bit",
    "as many nodes silenced at random",
)


def score_rows(results: Sequence[ChannelResult]) -> list[list[str]]:
    """One row per dataset: what closing does to the score."""
    rows = []
    for name, group in _by_dataset(results).items():
        first = group[0]
        epochs = str(first.epochs_allowed)
        if first.epochs_allowed < first.planned_epochs:
            epochs = f"{first.epochs_allowed} of {first.planned_epochs}"
        rows.append(
            [
                escape_markdown(name),
                str(len(group)),
                epochs,
                first.metric,
                _score([each.test for each in group]),
                _score([each.closed_test for each in group]),
                _score([fmean(each.random_test) for each in group]),
            ]
        )
    return rows


def channel_tables(results: Sequence[ChannelResult]) -> str:
    """Both tables, for the place of a document."""
    return (
        markdown_table(" | ".join(HEAD), layer_rows(results), "lr" + "r" * (len(HEAD) - 2))
        + "\n"
        + markdown_table(" | ".join(SCORE_HEAD), score_rows(results), "lrrlrrr")
    )


def _by_dataset(results: Sequence[ChannelResult]) -> dict[str, list[ChannelResult]]:
    """Of each dataset the runs with the most epochs allowed, in the order of the records."""
    groups: dict[str, list[ChannelResult]] = {}
    for result in results:
        groups.setdefault(result.dataset, []).append(result)
    most = {name: max(each.epochs_allowed for each in group) for name, group in groups.items()}
    return {
        name: [each for each in group if each.epochs_allowed == most[name]]
        for name, group in groups.items()
    }


def percent(shares: Sequence[float]) -> str:
    """A mean in per cent; what is not nothing never looks like it."""
    mean = 100 * fmean(shares)
    return "< 0.1 %" if 0 < mean < 0.05 else f"{mean:.1f} %"


def _score(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.3f}" if known else "–"
