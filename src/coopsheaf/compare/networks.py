"""Networks as contestants: trained by the runner that trains all others."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from coopsheaf.compare.contestants import (
    MOST_DRAWS,
    Home,
    Trial,
    blank_record,
    source_of,
    title_of,
)
from coopsheaf.compare.folds import Dataset, Fold
from coopsheaf.config import config_hash
from coopsheaf.data.dataset import NodeDataset, Processing, process_edges
from coopsheaf.models.registry import find_model
from coopsheaf.sweep.space import Choice, Space, Value, choose
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.records import Record, append_record
from coopsheaf.train.run import run_identity
from coopsheaf.train.runner import Progress, bench


@dataclass(frozen=True)
class NetworkContestant:
    """A network of the registry; ``recipe`` is its default, ``fixed`` what is not searched."""

    recipe: Recipe
    fixed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.recipe.model_name

    @property
    def version(self) -> int:
        return self.recipe.version

    @property
    def sees_graph(self) -> bool:
        return find_model(self.name).find_network().sees_edges

    @property
    def seed(self) -> int:
        return self.recipe.train.seed

    def draw(self, count: int, seed: int) -> list[Trial]:
        space = network_space(self.recipe).without(self.fixed)
        rng = random.Random(f"{seed}/{self.name}")

        def pick() -> tuple[Recipe, dict[str, Value]]:
            return choose(self.recipe, space, lambda name, item: rng.choice(item.values or (None,)))

        found = {self.recipe.hash(): Trial(0, self.recipe, {}, self.recipe.hash())}
        for _ in range(MOST_DRAWS):
            if len(found) == count:
                break
            try:
                recipe, picked = pick()
                with torch.random.fork_rng(devices=[]):
                    recipe.model.build(4, 2, num_nodes=4)
            except (TypeError, ValueError):  # values that do not go together
                continue
            changed = {name: value for name, value in picked.items() if value != self._own(name)}
            found.setdefault(recipe.hash(), Trial(len(found), recipe, changed, recipe.hash()))
        return [replace(trial, point=_named(trial)) for trial in found.values()]

    def _own(self, name: str) -> Any:
        section, _, setting = name.partition(".")
        return getattr(getattr(self.recipe, section), setting)

    def fit(
        self, trial: Trial, fold: Fold, home: Home, progress: Progress, stop: Callable[[], bool]
    ) -> Record | None:
        recipe, dataset = trial.point, self.taken(fold.dataset)
        outcomes = bench(
            recipe,
            dataset,
            [fold.split],
            results=home.records,
            work=home.runs,
            extra=fold.extra,
            progress=lambda split: progress,
            should_stop=stop,
        )
        try:
            with closing(outcomes):  # type: ignore[type-var]
                record = next((outcome.record for outcome in outcomes), None)
        except ValueError as error:
            if trial.number == 0:  # more likely the data than the settings
                raise ValueError(f"{self.name} with its default settings: {error}") from error
            record = self._failed(trial, dataset, fold, str(error))
            append_record(home.records / f"{self.name}-{dataset.name}.jsonl", record)
        if record is not None:  # thousands of networks are of no use
            identity = config_hash(run_identity(recipe, dataset, fold.split))
            name = f"{self.name}-{dataset.name}-{fold.split}-{identity}"
            shutil.rmtree(home.runs / name, ignore_errors=True)
        return record

    def _failed(self, trial: Trial, dataset: Dataset, fold: Fold, reason: str) -> Record:
        """A drawn setting with which training came to nothing: tried, without a score."""
        config = trial.point.to_mapping()
        source = f"{config['recipe']['source']}; it failed: {' '.join(reason.split())}"
        config["recipe"] = config["recipe"] | {"source": source}
        return blank_record(self, trial, dataset, fold, config, seed=trial.point.train.seed)

    def taken(self, dataset: Dataset) -> Dataset:
        """The data as this network can use it."""
        return self._take(dataset)[0]

    def unused(self, dataset: Dataset) -> list[str]:
        return self._take(dataset)[1]

    def _take(self, dataset: Dataset) -> tuple[Dataset, list[str]]:
        info, notes = find_model(self.name), []
        network = info.find_network()
        if dataset.edge_channels and not info.edge_attr:
            notes.append("the features of edges")
            dataset = _without_edge_features(dataset)
        if not isinstance(dataset, NodeDataset):
            return dataset, notes
        if dataset.edge_weight is not None and not network.takes_edge_weight:
            notes.append("the weights of edges")
            dataset = replace(dataset, edge_weight=None)
        if network.undirected and dataset.reciprocated < 1:
            notes.append("the direction of edges")
            processing = replace(dataset.processing, direction="undirected")
            both_ways = Processing(direction="undirected")
            edges = (dataset.edge_index, dataset.edge_weight, dataset.edge_attr)
            index, weight, attr = process_edges(edges, both_ways, dataset.num_nodes)
            dataset = replace(
                dataset,
                edge_index=index,
                edge_weight=weight,
                edge_attr=attr,
                processing=processing,
            )
        return dataset, notes if self.sees_graph else []


def network_space(recipe: Recipe) -> Space:
    """A small space around a recipe: the values of each setting that the network has."""
    lr = recipe.train.lr
    values: dict[str, Iterable[Value]] = {
        "model.num_layers": (1, 2, 3),
        "model.stalk_dim": (2, 3, 4),
        "model.input_dropout": (0.0, 0.2, 0.5),
        "model.dropout": (0.0, 0.2, 0.5),
        "train.lr": tuple(float(f"{lr * factor:.3g}") for factor in (0.3, 1, 3)),
        "train.weight_decay": (0.0, 1e-5, 1e-3),
    }
    names = {item.name for item in fields(recipe.model)}
    if "hidden_channels" in names:
        width = recipe.model.hidden_channels
        values["model.hidden_channels"] = (max(1, width // 2), width, 2 * width)
    pinned = find_model(recipe.model_name).pinned
    kept = {
        name: Choice(tuple(some))
        for name, some in values.items()
        if name.startswith("train.") or (name[6:] in names and name[6:] not in pinned)
    }
    return Space(kept, "a small space around the default settings")


def _without_edge_features(dataset: Dataset) -> Dataset:
    if isinstance(dataset, NodeDataset):
        return replace(dataset, edge_attr=None, edge_names=())
    graphs = []
    for graph in dataset.graphs:
        graphs.append(graph.clone())
        graphs[-1].edge_attr = None
    return replace(dataset, graphs=graphs)


def _named(trial: Trial) -> Recipe:
    recipe = replace(trial.point, name=title_of(trial.number), source=source_of(trial.number))
    assert recipe.hash() == trial.hash
    return recipe
