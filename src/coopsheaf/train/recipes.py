"""Recipes that come with the package, and recipe files of the user. Imports no PyTorch."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from coopsheaf.checks import did_you_mean
from coopsheaf.config import ConfigError, from_mapping
from coopsheaf.models.registry import MODELS, find_model
from coopsheaf.schema import brief_text
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe, default_recipe, recipe_from_mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def recipe_names() -> list[str]:
    """The names of the packaged recipes: ``model/dataset``."""
    return sorted(f"{model}/{dataset}" for model in MODELS for dataset in _packaged(model))


def load_recipe(name: str) -> Recipe:
    """A packaged recipe by its name, or a TOML file by its path."""
    if name.endswith(".toml"):
        return recipe_from_mapping(read_toml(Path(name)), name)
    names = recipe_names()
    if name not in names:
        hint = did_you_mean(name, names, most=3)
        raise ConfigError(f"there is no recipe {name!r}{hint}; there are {', '.join(names)}")
    model, _, dataset = name.partition("/")
    return recipe_from_mapping(_packaged(model)[dataset], name)


def recipe_for(model: str, dataset: str) -> Recipe:
    """The packaged recipe of a model on a dataset, or the model's marked default.

    A pack has the recipe of the dataset in it.
    """
    find_model(model)
    if dataset.startswith("pack:"):
        from coopsheaf.data.pack import PREFIX, read_meta

        recipe = recipe_for(model, str(read_meta(dataset.removeprefix(PREFIX)).get("name", "")))
        return replace(recipe, data=replace(recipe.data, name=dataset))
    name = f"{model}/{dataset}"
    return load_recipe(name) if name in recipe_names() else default_recipe(model, dataset)


def load_grid(model: str) -> dict[str, list[Any]]:
    """The published search grid of a model: the values of each ``section.field``."""
    values = read_packaged("grids", model)
    if values is None:
        raise ConfigError(f"there is no published search grid of {model!r}")
    sections = {"model": find_model(model).settings, "train": TrainConfig}
    grid = {}
    for section, kind in sections.items():
        for field, choices in values.get(section, {}).items():
            for choice in choices:  # every value must fit its field
                from_mapping(kind, {field: choice}, f"grids/{model}.toml: [{section}]")
            grid[f"{section}.{field}"] = choices
    return grid


def dump_toml(recipe: Recipe) -> str:
    """A recipe as TOML text that :func:`load_recipe` reads back."""
    lines: list[str] = []
    for section, values in recipe.to_mapping().items():
        lines += [f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in values.items()), ""]
    return "\n".join(lines)


@cache
def _packaged(model: str) -> dict[str, dict[str, Any]]:
    """The packaged recipes of a model, by dataset, each as :func:`recipe_from_mapping` reads it.

    ``docs/recipes.md`` describes the file.
    """
    values = read_packaged("recipes", model)
    if values is None:
        return {}
    where = f"{model}.toml"
    _check_keys(values, ("like", "remark", "shared", "recipe"), where)
    shared, remark = values.get("shared", {}), values.get("remark", "")
    entries: dict[str, dict[str, Any]] = {}
    if "like" in values:
        entries |= _packaged(values["like"])
    for entry in values.get("recipe", []):
        _check_keys(entry, ("datasets", "source", "model", "data", "train"), where)
        sections = {key: entry[key] for key in ("model", "data", "train") if key in entry}
        sections["recipe"] = {"source": entry["source"]}
        entries |= dict.fromkeys(entry["datasets"], sections)
    recipes = {}
    for dataset, entry in entries.items():
        source = entry["recipe"]["source"] + (f"; {remark}" if remark else "")
        recipes[dataset] = {
            "recipe": {"name": f"{model}/{dataset}", "source": source},
            "model": {**entry.get("model", {}), **shared.get("model", {}), "name": model},
            "data": {**entry.get("data", {}), **shared.get("data", {}), "name": dataset},
            "train": {**entry.get("train", {}), **shared.get("train", {})},
        }
    return recipes


def read_packaged(kind: str, model: str) -> dict[str, Any] | None:
    """The file of a model in the folder ``kind`` beside its network, if there is one."""
    package = find_model(model).package
    if package is None:
        return None
    file = resources.files(package) / kind / f"{model}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _check_keys(values: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in values:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; there are {', '.join(known)}")


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a user's TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: must be UTF-8 text") from None
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        reason = (
            "nested too deeply" if isinstance(error, RecursionError) else brief_text(str(error))
        )
        raise ConfigError(f"{path}: not valid TOML ({reason})") from None


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's as well; TOML wants one more.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
