"""Who is compared, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coopsheaf.checks import did_you_mean
from coopsheaf.compare.boosted import TREES, TreeContestant
from coopsheaf.compare.contestants import Contestant
from coopsheaf.compare.folds import Dataset
from coopsheaf.compare.networks import NetworkContestant
from coopsheaf.compare.trees import TreeSettings, load_sklearn
from coopsheaf.models.registry import MODELS
from coopsheaf.train.defaults import default_for
from coopsheaf.train.recipe import DataConfig, default_recipe

USUAL = ("csnn", "gcn-plain", "sage-plain", "mlp", *TREES)


def find_contestants(
    names: Sequence[str],
    data: DataConfig,
    *,
    settings: Sequence[str] = (),
    class_weights: bool = False,
    metric: str | None = None,
    dataset: Dataset | None = None,
) -> list[Contestant]:
    """Contestants by name.

    Args:
        names: models of the registry and ``TREES``.
        data: which data, and what is done to it.
        settings: ``section.field=value`` for all networks; what is set is not searched.
        class_weights: weigh classes by their inverse frequency, for all of them.
        metric: what decides and is compared, if not the metric of the data.
        dataset: the data itself, for settings that follow from it
            (:func:`~coopsheaf.train.default_for`).
    """
    known = (*MODELS, *TREES)
    if not names:
        raise ValueError("`models` must name at least one model; got none")
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"`models` must be among {', '.join(known)}; got {name!r}{hint}")
        if names.count(name) > 1:
            raise ValueError(f"`models` must have each name once; got {name!r} twice")
    for text in settings:
        if text.startswith("train.metric="):
            raise ValueError(f"--set {text}: it is for all models; say `metric` instead")
    about_data = [text for text in settings if text.startswith("data.")]
    if about_data and not data.name:
        raise ValueError(
            f"--set {about_data[0]}: settings of data are for datasets by name; for tables there "
            "are options such as `undirected` and `self_loops`"
        )
    more = ["train.class_weights=true"] if class_weights else []
    more += [] if metric is None else [f"train.metric={metric}"]
    fixed = tuple(text.partition("=")[0] for text in settings)
    found: list[Contestant] = []
    seed: int | None = None
    for name in names:
        if name in TREES:
            continue
        plain = default_recipe(name, data.name)
        recipe = plain if dataset is None else default_for(name, dataset, data.name)
        recipe = replace(recipe, data=data).set(*settings, *more)
        seed = recipe.train.seed
        found.append(NetworkContestant(recipe, fixed))
    trees = TreeSettings(class_weights=class_weights)
    trees = trees if seed is None else replace(trees, seed=seed)
    if TREES.keys() & set(names):
        load_sklearn()
    found += [TreeContestant(name, trees, data, metric) for name in names if name in TREES]
    return sorted(found, key=lambda one: names.index(one.name))
