"""Settings of a model, of its training and of batches by one name each, without their sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from coopsheaf.checks import did_you_mean
from coopsheaf.config import change, field_types
from coopsheaf.models.registry import MODELS, find_model
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.defaults import default_for
from coopsheaf.train.recipe import Recipe, default_recipe

if TYPE_CHECKING:
    from coopsheaf.data.links import AnyDataset

# Of whole graphs alone, or decided otherwise: by the estimator's own argument, by torchrun.
NOT_OF_NODES = {"model": {"pool"}, "train": {"seed", "processes", "batch_size"}, "batch": set()}

# What other libraries call them.
ELSEWHERE = {
    "random_state": "seed",
    "learning_rate": "lr",
    "learning_rate_init": "lr",
    "alpha": "weight_decay",
    "max_iter": "epochs",
    "n_epochs": "epochs",
    "n_iter_no_change": "patience",
    "class_weight": "class_weights",
    "n_layers": "num_layers",
    "hidden_dim": "hidden_channels",
    "solver": "optimizer",
    "validation_fraction": "validation",
}


@dataclass(frozen=True)
class Place:
    """Where a setting stands in a recipe, and its type."""

    section: str
    field: str
    hint: Any


def known_settings(model: str) -> dict[str, Place]:
    """All settings of a model, of training and of batches (``batch_kind``, ...), by name."""
    kinds = {"model": find_model(model).settings, "train": TrainConfig, "batch": BatchConfig}
    places: dict[str, Place] = {}
    for section, kind in kinds.items():
        for field, hint in field_types(kind).items():
            if field in NOT_OF_NODES[section]:
                continue
            name = f"batch_{field}" if section == "batch" else field
            if name in places:
                raise ValueError(
                    f"model {model!r} has a setting {name!r} and so has its training: estimators "
                    "know settings by one name; rename that of the network"
                )
            places[name] = Place(section, field, hint)
    return places


def unknown_setting(name: str, who: str, names: list[str]) -> str:
    """The message of a setting that is none."""
    hint = f" (did you mean {ELSEWHERE[name]!r}?)" if ELSEWHERE.get(name) in names else ""
    hint = hint or did_you_mean(name, names)
    return f"{who} has no setting {name!r}{hint}; there are {', '.join(names)}"


def is_registered(model: object) -> bool:
    return isinstance(model, str) and model in MODELS


def make_recipe(
    model: str,
    given: Mapping[str, Any],
    seed: Any,
    who: str,
    dataset: AnyDataset | None = None,
) -> Recipe:
    """The default recipe of a model with what was given; the rest is what it was.

    With a dataset it is that of such data (:func:`~coopsheaf.train.defaults.default_for`).

    Raises:
        ValueError: one line that names ``who`` has the setting, its rule and the value.
    """
    base = default_recipe(model) if dataset is None else default_for(model, dataset)
    source = base.source if base != default_recipe(model) else ""
    places = known_settings(model)
    sections: dict[str, dict[str, Any]] = {"model": {}, "train": {"seed": seed}, "batch": {}}
    for name, value in given.items():
        if name not in places:
            raise ValueError(unknown_setting(name, f"{who} of model {model!r}", list(places)))
        sections[places[name].section][places[name].field] = value
    changed = {key: change(getattr(base, key), sections[key], who) for key in sections}
    return replace(base, name="estimator", source=source, **changed)
