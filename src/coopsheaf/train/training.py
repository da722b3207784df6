"""Train a model by name on data by name, or on a graph at hand: one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from coopsheaf.data.links import AnyDataset
from coopsheaf.data.tables.load import TableData, load_tables
from coopsheaf.train.data import load_data, whereabouts
from coopsheaf.train.defaults import suit
from coopsheaf.train.loop import EpochReport
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.recipes import load_recipe, recipe_for
from coopsheaf.train.run import Run, run_split


def train(
    data: str | Data | TableData | AnyDataset,
    model: str = "csnn",
    *,
    recipe: Recipe | str | None = None,
    settings: Mapping[str, Any] | None = None,
    split: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    data_dir: str | Path | None = None,
    report: Callable[[EpochReport], None] | None = None,
) -> Run:
    """Train one model on one split::

        run = train("texas", settings={"train.epochs": 100}, out="my-run")
        run.scores  # {"train": ..., "val": ..., "test": ...}

    Args:
        data: the name of a dataset; what :func:`~coopsheaf.data.load_tables` returned, or a PyG
            ``Data``, which goes through it: then the run keeps how columns were read, and
            :func:`~coopsheaf.train.run_data` reads other graphs the same way; or a dataset of this
            library, features as they are, such as :func:`~coopsheaf.data.split_links` makes of
            links.
        model: a name of :func:`~coopsheaf.models.list_models`.
        recipe: settings to start from, instead of the model's recipe for this dataset: a recipe,
            the name of one or a TOML file. It names its model itself.
        settings: what to change in them, by ``section.field``.
        split: which of the dataset's splits.
        out: the run's folder; by default nothing is written.
        resume: continue what is in ``out``.
        data_dir: a folder to look for a dataset's files in.
        report: called after every epoch.
    """
    changes = [f"{name}={spell(value)}" for name, value in (settings or {}).items()]
    given, chosen = data, _choose(data, model, recipe).set(*changes)
    folder = None if data_dir is None else Path(data_dir)
    extra: dict[str, Any] = {}
    dataset: AnyDataset
    if isinstance(data, Data):
        data = load_tables(data, seed=chosen.train.seed)
    if isinstance(data, str):
        dataset, extra = load_data(chosen.data, folder), whereabouts(folder)
    elif isinstance(data, TableData):
        dataset, extra = data.dataset, data.kept
    else:
        dataset = data
    if recipe is None:
        chosen = suit(_choose(given, model, None), dataset).set(*changes)
    run, _ = run_split(
        chosen,
        dataset,
        split,
        out=None if out is None else Path(out),
        resume=resume,
        extra=extra,
        report=report,
    )
    return run


def _choose(data: Any, model: str, recipe: Recipe | str | None) -> Recipe:
    if not isinstance(data, str | Data | TableData | AnyDataset):
        raise ValueError(
            "`data` must be the name of a dataset, a PyG Data, a dataset of this library or what "
            f"load_tables returned; got {type(data).__name__}"
        )
    if recipe is None:
        return recipe_for(model, data) if isinstance(data, str) else default_recipe(model)
    if model != "csnn":
        raise ValueError("`model` and `recipe` exclude each other: a recipe names its model")
    found = load_recipe(recipe) if isinstance(recipe, str) else recipe
    if isinstance(data, str) and found.data.name != data:
        raise ValueError(
            f"`recipe` must be one for {data!r}; got one for {found.data.name or 'other data'!r}"
        )
    return found


def spell(value: Any) -> str:
    """A value as a user would type it."""
    return (
        "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
