"""Settings for data that nobody has tuned on: one rule, from what is seen before training.

The rule was chosen by validation over a set of data sets (``python -m lab defaults``; the tables
are in ``docs/csnn-options.md``) and is for CSNN on nodes with classes. Other models and tasks have
their :func:`~coopsheaf.train.recipe.default_recipe`. Imports no PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from coopsheaf.train.recipe import DEFAULT, Recipe, default_recipe

if TYPE_CHECKING:
    from coopsheaf.data.links import AnyDataset

MANY = 100  # features: words and one-hot columns rather than measurements
FAMILY = ("csnn", "csnn-identity", "csnn-random")


@dataclass(frozen=True)
class Seen:
    """What the rule looks at.

    Args:
        features: number of columns of x.
    """

    features: int


def look_at(dataset: AnyDataset) -> Seen:
    """What is seen of data before training."""
    return Seen(dataset.num_features)


def rule(seen: Seen) -> dict[str, Any]:
    """Settings by ``section.field``, on top of those of the default recipe."""
    chosen: dict[str, Any] = {"model.semantics": "messages", "model.map_start": "equal"}
    chosen |= {"model.dropout": 0.5, "train.weight_decay": 5e-4, "train.map_weight_decay": 1e-2}
    if seen.features >= MANY:  # where they are few, each may be needed
        chosen["model.input_dropout"] = 0.5
    return chosen


def default_for(model_name: str, dataset: AnyDataset, name: str = "") -> Recipe:
    """A model's settings for data without a recipe of its own, which it has been shown.

    Args:
        model_name: a name of the registry.
        dataset: the data.
        name: of the data, if it is one that others measure.
    """
    return suit(default_recipe(model_name, name), dataset)


def suit(recipe: Recipe, dataset: AnyDataset) -> Recipe:
    """A default recipe as it suits some data; any other recipe is what it was."""
    nodes = getattr(dataset, "num_nodes", None) is not None
    classes = dataset.task in ("binary", "multiclass")
    if recipe.name != DEFAULT or recipe.model_name not in FAMILY or not (nodes and classes):
        return recipe
    seen = look_at(dataset)
    chosen = {key: value for key, value in rule(seen).items() if _has(recipe, key)}
    sections: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
    for key, value in chosen.items():
        section, _, field = key.partition(".")
        sections[section][field] = value
    said = ", ".join(f"{key} = {value}" for key, value in chosen.items())
    source = f"default of coopsheaf for {seen.features:,} features; not tuned; {said}"
    changed = {key: replace(getattr(recipe, key), **values) for key, values in sections.items()}
    return replace(recipe, source=source, **changed)


def _has(recipe: Recipe, key: str) -> bool:
    """Whether a setting means something to a model."""
    section, _, field = key.partition(".")
    if key == "train.map_weight_decay":
        return recipe.model_name == "csnn"  # the others learn no maps
    return field in {item.name for item in fields(getattr(recipe, section))}
