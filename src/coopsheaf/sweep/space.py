"""Search spaces: what a sweep may choose from, read from TOML and checked. Imports no PyTorch.

A space is a file like a published grid (``recipes/grids``)::

    [grid]                                            # optional
    source = "where it comes from"
    [model]
    name = "csnn"                                     # optional: whose space it is
    stalk_dim = [3, 4, 5]                             # one of these
    dropout = { low = 0.0, high = 0.8, step = 0.2 }   # a range
    [train]
    lr = { low = 1e-4, high = 1e-1, log = true }
    epochs = [200]                                    # one value: set, not searched

In lists of settings that may be unset, ``"none"`` is that, as in ``--set model.norm=none``.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from coopsheaf.config import ConfigError, field_types, from_mapping, to_mapping
from coopsheaf.sweep.rules import RULES
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import read_packaged, read_toml

if sys.version_info >= (3, 11):
    pass
else:
    pass

Value = bool | int | float | str | None

MOST_GRID_POINTS = 1_000_000


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Value, ...]

    def to_plain(self) -> Any:
        return list(self.values)


@dataclass(frozen=True)
class Range:
    """A number from ``low`` to ``high``, both included.

    Args:
        low, high: the ends; whole numbers for a setting that is one.
        log: search its logarithm.
        step: only ``low``, ``low + step``, ...
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return isinstance(self.low, int)

    @property
    def values(self) -> tuple[Value, ...] | None:
        """All values; ``None`` if there is no end of them."""
        if self.step is None and not self.whole:
            return None
        low, step = Decimal(str(self.low)), Decimal(str(self.step or 1))
        count = int((Decimal(str(self.high)) - low) / step)
        kind = int if self.whole else float
        return tuple(kind(low + k * step) for k in range(count + 1))

    def to_plain(self) -> Any:
        plain: dict[str, Any] = {"low": self.low, "high": self.high}
        if self.log:
            plain["log"] = True
        return plain if self.step is None else plain | {"step": self.step}


Setting = Choice | Range


@dataclass(frozen=True)
class Space:
    """What may be chosen: settings by ``section.field``.

    Args:
        settings: what there is to choose from.
        source: where the space comes from, in a few words.
    """

    settings: Mapping[str, Setting]
    source: str = ""

    @property
    def searched(self) -> dict[str, Setting]:
        """The settings that have more than one value."""
        return {name: item for name, item in self.settings.items() if not _single(item)}

    def without(self, names: Iterable[str]) -> Space:
        """The space without some settings, which then are what the recipe says."""
        gone = set(names)
        return replace(
            self, settings={name: item for name, item in self.settings.items() if name not in gone}
        )

    def combinations(self) -> int | None:
        """How many combinations of values there are; ``None`` if there is no end of them."""
        total = 1
        for item in self.searched.values():
            if item.values is None:
                return None
            total *= len(item.values)
        return total

    def to_plain(self) -> dict[str, Any]:
        """Plain values; :func:`space_from_plain` reads them back."""
        settings = {name: item.to_plain() for name, item in self.settings.items()}
        return {"settings": settings, "source": self.source}


def space_from_plain(values: Mapping[str, Any]) -> Space:
    """Read what :meth:`Space.to_plain` gave; it was checked then."""
    return Space(
        {
            name: Choice(tuple(item)) if isinstance(item, list) else Range(**item)
            for name, item in values["settings"].items()
        },
        values["source"],
    )


def load_space(recipe: Recipe, file: Path | None = None, fixed: Iterable[str] = ()) -> Space:
    """The space of a file, or the published grid of the recipe's model; every value is checked.

    Args:
        recipe: what the space varies.
        file: the space; by default the model's published grid.
        fixed: settings that are not to be searched, whatever the space says.
    """
    model = recipe.model_name
    if file is None:
        packaged = read_packaged("grids", model)
        if packaged is None:
            raise ConfigError(
                f"there is no published search grid of {model!r}; give a space with --space"
            )
        values, where = packaged, f"grids/{model}.toml"
    else:
        values, where = read_toml(file), str(file)
    space = _read(values, recipe, where).without(fixed)
    if file is None:
        space = replace(space, source=f"the published grid of {model} ({space.source})")
    elif not space.source:
        space = replace(space, source=file.name)
    if not space.searched:
        raise ConfigError(f"{where}: there is nothing to search: no setting has two values")
    return space


def choose(
    recipe: Recipe, space: Space, pick: Callable[[str, Setting], Value]
) -> tuple[Recipe, dict[str, Value]]:
    """A point of the space: the recipe with it, and what was picked.

    ``pick`` is asked for every setting that has more than one value and matters: one that does not,
    beside what was picked before (``rules.py``), stays as the recipe has it; one that
    matters to the recipe and not to the point is unset if it may be, as some are refused where they
    do nothing. So two points that are the same network trained the same way are the same recipe.
    """
    given = recipe
    ruled = {rule.field: rule for rule in RULES if rule.holds_for(recipe.model_name)}
    plain = [name for name in space.settings if name not in ruled]
    picked: dict[str, Value] = {}
    values: dict[str, Value] = {}
    for name in plain:
        values[name] = _pick(name, space.settings[name], pick, picked)
    recipe = with_values(recipe, values)
    for name, rule in ruled.items():  # in the order of the rules: they look at each other
        if rule.idle(recipe):
            recipe = recipe if rule.idle(given) else _without(recipe, name)
        elif name in space.settings:
            item = space.settings[name]
            recipe = with_values(recipe, {name: _pick(name, item, pick, picked)})
    return recipe, picked


def _without(recipe: Recipe, name: str) -> Recipe:
    """The recipe without an optional setting of training."""
    section, _, field = name.partition(".")
    if section == "train" and getattr(TrainConfig, field) is None:
        return with_values(recipe, {name: None})
    return recipe


def with_values(recipe: Recipe, values: Mapping[str, Value]) -> Recipe:
    """The recipe with some settings changed; they have the right types already."""
    sections: dict[str, dict[str, Value]] = {"model": {}, "train": {}}
    for name, value in values.items():
        section, _, field = name.partition(".")
        sections[section][field] = value
    try:
        return replace(
            recipe,
            model=replace(recipe.model, **sections["model"]),
            train=replace(recipe.train, **sections["train"]),  # type: ignore[arg-type]
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None


def grid_points(recipe: Recipe, space: Space, seed: int) -> list[dict[str, Value]]:
    """Every different point of a finite space, in an order drawn from ``seed``."""
    endless = [name for name, item in space.searched.items() if item.values is None]
    if endless:
        raise ConfigError(
            f"`sampler` grid needs lists, or ranges with a step; {endless[0]} has neither"
        )
    count = space.combinations() or 0
    if count > MOST_GRID_POINTS:
        raise ConfigError(
            f"`sampler` grid takes at most {MOST_GRID_POINTS:,} combinations; the space has "
            f"{count:,}: use tpe or random"
        )
    names = list(space.searched)
    found: dict[tuple[tuple[str, Value], ...], dict[str, Value]] = {}
    for combination in itertools.product(*(item.values or () for item in space.searched.values())):
        point = dict(zip(names, combination, strict=True))
        picked = choose(recipe, space, lambda name, item, point=point: point[name])[1]  # type: ignore[misc]
        found.setdefault(tuple(picked.items()), picked)
    points = list(found.values())
    random.Random(seed).shuffle(points)
    return points


def _pick(
    name: str,
    item: Setting,
    pick: Callable[[str, Setting], Value],
    picked: dict[str, Value],
) -> Value:
    if _single(item):
        assert item.values is not None
        return item.values[0]
    picked[name] = pick(name, item)
    return picked[name]


def _single(item: Setting) -> bool:
    return item.values is not None and len(item.values) == 1


def _read(values: Mapping[str, Any], recipe: Recipe, where: str) -> Space:
    sections = {"model": recipe.model, "train": recipe.train}
    for key, section in values.items():
        if key not in ("grid", *sections):
            raise ConfigError(f"{where}: unknown section [{key}]; a space has grid, model, train")
        if not isinstance(section, Mapping):
            raise ConfigError(f"{where}: [{key}] must be a table; got {section!r}")
    head = values.get("grid", {})
    for key in head:
        if key != "source" or not isinstance(head[key], str):
            raise ConfigError(f"{where}: [grid] must hold nothing but source, a text; got {key!r}")
    settings: dict[str, Setting] = {}
    for section, base in sections.items():
        for field, given in values.get(section, {}).items():
            if (section, field) == ("model", "name"):
                if given != recipe.model_name:
                    raise ConfigError(
                        f"{where}: is a space of {given!r}; the model is {recipe.model_name!r}"
                    )
            elif (section, field) == ("train", "seed"):
                raise ConfigError(f"{where}: [train]: seed must not be searched: it is luck")
            else:
                settings[f"{section}.{field}"] = _setting(
                    base, field, given, f"{where}: [{section}]"
                )
    return Space(settings, head.get("source", ""))


def _setting(base: Any, field: str, given: Any, where: str) -> Setting:
    def check(value: Any) -> Value:
        """The value as the setting has it."""
        hints = field_types(type(base))
        if value == "none" and field in hints and _optional(hints[field]):
            value = None
        return getattr(from_mapping(type(base), {**to_mapping(base), field: value}, where), field)

    if isinstance(given, Mapping):
        return _range(given, check, f"{where}: {field}")
    if not isinstance(given, list):
        check(given)  # names an unknown setting first
        raise ConfigError(
            f"{where}: {field} must be a list of values, or a table with low and high; "
            f"got {given!r}"
        )
    if not given:
        raise ConfigError(f"{where}: {field} must have at least one value; got []")
    values = tuple(check(value) for value in given)
    for k, value in enumerate(values):
        if value in values[:k]:
            raise ConfigError(f"{where}: {field} must have each value once; got {given!r}")
    return Choice(values)


def _range(given: Mapping[str, Any], check: Callable[[Any], Value], where: str) -> Range:
    known = ("low", "high", "log", "step")
    for key in given:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; a range has {', '.join(known)}")
    for key in ("low", "high"):
        if key not in given:
            raise ConfigError(f"{where}: a range must have {key}; got {dict(given)!r}")
    low, high, log, step = check(given["low"]), check(given["high"]), given.get("log", False), None
    if isinstance(low, bool) or not isinstance(low, int | float):
        raise ConfigError(f"{where}: a range must be of numbers; got {dict(given)!r}")
    assert isinstance(high, int | float)
    if not isinstance(log, bool):
        raise ConfigError(f"{where}: log must be true or false; got {log!r}")
    if not -float("inf") < low < high < float("inf"):
        raise ConfigError(f"{where}: low must be below high, both finite; got {dict(given)!r}")
    if log and low <= 0:
        raise ConfigError(f"{where}: low must be positive where log is true; got {low}")
    if "step" in given:
        step = given["step"]
        kinds = int if isinstance(low, int) else int | float
        if isinstance(step, bool) or not isinstance(step, kinds) or not 0 < step <= high - low:
            raise ConfigError(
                f"{where}: step must be a positive {'whole ' if kinds is int else ''}number of at "
                f"most high - low; got {step!r}"
            )
        if log:
            raise ConfigError(f"{where}: step and log exclude each other; got {dict(given)!r}")
        # The highest value that is reached.
        start, width = Decimal(str(low)), Decimal(str(step))
        high = type(low)(start + (Decimal(str(high)) - start) // width * width)
    return Range(low, high, log, step)


def _optional(hint: Any) -> bool:
    return type(None) in getattr(hint, "__args__", ())
