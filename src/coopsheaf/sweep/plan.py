"""The plan of a sweep: what is searched, and how; read back from the sweep's folder."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from coopsheaf.checks import check_choice, check_int
from coopsheaf.config import ConfigError, config_hash
from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.metrics import METRICS
from coopsheaf.schema import brief_text
from coopsheaf.sweep.queue import SAMPLERS
from coopsheaf.sweep.space import (
    Choice,
    Setting,
    Space,
    Value,
    choose,
    grid_points,
    space_from_plain,
)
from coopsheaf.train.beforehand import check_splits, task_of
from coopsheaf.train.recipe import Recipe, recipe_from_mapping


class SweepError(ValueError):
    """A folder that does not hold what it should; one line."""


@dataclass(frozen=True)
class Plan:
    """What is searched, and how. The same plan is the same sweep.

    Args:
        recipe: what the space varies.
        space: what there is to choose from.
        dataset, checksum, metric: of the data.
        splits: whose validation metric is averaged.
        sampler: ``"tpe"``, ``"random"`` or ``"grid"``.
        seed: of the sampler.
        prune: whether to give up trials between splits.
    """

    recipe: Recipe
    space: Space
    dataset: str
    checksum: str
    metric: str
    splits: tuple[int, ...]
    sampler: str = "tpe"
    seed: int = 0
    prune: bool = True

    def __post_init__(self) -> None:
        check_choice("sampler", self.sampler, SAMPLERS)
        check_int("seed", self.seed, minimum=0)
        if not self.splits:
            raise ValueError("`splits` must name at least one split; got none")

    @property
    def maximise(self) -> bool:
        return METRICS[self.metric].higher

    @property
    def identity(self) -> str:
        """Names the plan; what the recipe and the space are called does not count."""
        recipe, settings = self.recipe, self.space.to_plain()["settings"]
        of_data = (self.dataset, self.checksum, self.metric, list(self.splits))
        of_recipe = (recipe.model_name, recipe.version, recipe.hash(), recipe.train.seed)
        return config_hash(of_recipe, of_data, settings, self.sampler, self.seed, self.prune)

    @cached_property
    def grid(self) -> list[dict[str, Value]]:
        """The points of a grid, in the order in which they are tried; empty for other samplers."""
        return grid_points(self.recipe, self.space, self.seed) if self.sampler == "grid" else []

    def point(self, pick: Callable[[str, Setting], Value]) -> Recipe:
        """The recipe at a point of the space."""
        return choose(self.recipe, self.space, pick)[0]

    def to_plain(self) -> dict[str, Any]:
        """Plain values; :func:`plan_from_plain` reads them back."""
        return {
            "recipe": self.recipe.to_mapping(),
            "space": self.space.to_plain(),
            "dataset": self.dataset,
            "checksum": self.checksum,
            "metric": self.metric,
            "splits": list(self.splits),
            "sampler": self.sampler,
            "seed": self.seed,
            "prune": self.prune,
        }


def plan_from_plain(values: Mapping[str, Any], where: str) -> Plan:
    """Read what :meth:`Plan.to_plain` gave."""
    return Plan(
        **{
            **values,
            "recipe": recipe_from_mapping(values["recipe"], where),
            "space": space_from_plain(values["space"]),
            "splits": tuple(values["splits"]),
        }
    )


def make_plan(
    recipe: Recipe,
    space: Space,
    dataset: AnyDataset,
    splits: list[int],
    **options: Any,
) -> Plan:
    """A plan for a dataset; every value of the space is tried on a network first.

    Args:
        recipe, space: see :class:`Plan`.
        dataset: the processed data.
        splits: whose validation metric is averaged.
        options: ``sampler``, ``seed`` and ``prune``.
    """
    if "train.metric" in space.settings:
        raise ConfigError(
            "`train.metric` says which trial is best and cannot be searched; take it out of the "
            "space and choose it with --set train.metric=NAME"
        )
    check_splits(recipe.train, dataset, splits)
    metric = task_of(recipe.train, dataset).metric
    plan = Plan(recipe, space, dataset.name, dataset.checksum, metric, tuple(splits), **options)
    _check_networks(plan, dataset)
    assert plan.grid is not None  # a space that has no grid is an error now
    return plan


def load_plan(folder: Path) -> Plan:
    """The plan of a sweep's folder."""
    path = folder / "sweep.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        plan = plan_from_plain(values["plan"], str(path))
        known = values["identity"]
    except FileNotFoundError:
        raise SweepError(f"{folder}: not a sweep (there is no sweep.json in it)") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = brief_text(str(error), 500)
        raise SweepError(f"{path}: not a sweep of coopsheaf ({reason})") from None
    if plan.identity != known:
        raise SweepError(f"{path}: was changed, or is of another version of the model")
    return plan


def _check_networks(plan: Plan, dataset: AnyDataset) -> None:
    """Build a network with every value: some settings are only looked at then.

    A value may go with some values of other settings only, so several are tried.
    """
    import torch

    draw = random.Random(0)
    graph_level = isinstance(dataset, GraphDataset)

    def build(name: str, value: Value, first: bool) -> None:
        def pick(other: str, item: Setting) -> Value:
            if other == name:
                return value
            ends = _ends(item)
            return ends[0] if first else draw.choice(ends)

        plan.point(pick).model.build(
            4,
            dataset.out_channels,
            graph_level=graph_level,
            num_nodes=getattr(dataset, "num_nodes", None),
        )

    for name, item in plan.space.settings.items():
        for value in _ends(item):
            for attempt in range(12):
                try:
                    with torch.random.fork_rng(devices=[]):
                        build(name, value, first=attempt == 0)
                    break
                except (TypeError, ValueError) as error:
                    last = error
            else:
                raise ConfigError(f"{name} = {value!r} fits no network: {last}")


def _ends(item: Setting) -> tuple[Value, ...]:
    return item.values if isinstance(item, Choice) else (item.low, item.high)
