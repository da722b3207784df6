"""What is trained on Peptides-func: settings of CSNN in short runs, then all networks in 40 epochs,
then everything as published. Imports no PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coopsheaf.train.config import PRECISIONS
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import recipe_for

DATASET = "peptides-func"
BUDGET = 500_000  # parameters, of the benchmark; the search keeps to it
SEARCHED = "csnn"
SEARCH_EPOCHS = 5
SHORT_EPOCHS = 40
SEEDS = (0, 1, 2, 3)

# The two that are compared in full come first; networks that see the same data are neighbours.
MODELS = (
    "csnn", "gcn-lrgb", "bunn", "gine", "gatedgcn", "san", "graph-vit", "graph-mixer", "gps",
    "exphormer", "drew",
)  # fmt: skip

PATCHES = ("graph-vit", "graph-mixer")  # cut graphs with METIS

PARTS = {
    "search": f"settings of CSNN, {SEARCH_EPOCHS} epochs each, one seed",
    "cut": f"every network, {SHORT_EPOCHS} epochs in place of hundreds, one seed",
    "full": "every network as its recipe says",
}


def _trial(
    channels: int, layers: int, lr: float, *, stalk_dim: int = 3, norm: str = "batch"
) -> Sequence[str]:
    return (
        f"model.hidden_channels={channels}",
        f"model.stalk_dim={stalk_dim}",
        f"model.num_layers={layers}",
        f"model.norm={norm}",
        f"train.lr={lr:g}",
    )


# What differs from the recipe csnn/peptides-func, cheap ones first: whoever has an hour has those.
# All fields that vary are written out, so that a recipe that takes up the choice changes nothing.
TRIALS: dict[str, Sequence[str]] = {
    "small": _trial(32, 4, 1e-3),
    "stalks of 2": _trial(48, 4, 1e-3, stalk_dim=2),
    "small, faster": _trial(32, 4, 3e-3),
    "small, layer norm": _trial(32, 4, 1e-3, norm="layer"),
    "recipe": _trial(64, 6, 1e-3),
}


@dataclass(frozen=True)
class Job:
    """One run of the plan.

    Args:
        part: ``"search"``, ``"cut"`` or ``"full"``.
        name: of the trial, or of the network.
        recipe: all that determines it; its seed too.
    """

    part: str
    name: str
    recipe: Recipe

    @property
    def key(self) -> tuple[str, str, int, str, int]:
        """What a record of it has."""
        recipe = self.recipe
        data, seed = recipe.data.name, recipe.train.seed
        return recipe.model_name, data, seed, recipe.hash(), recipe.version


def shorten(recipe: Recipe, epochs: int) -> Recipe:
    """The same with fewer epochs: warm-up and patience keep their share of them."""
    share = epochs / recipe.train.epochs
    words = [f"train.epochs={epochs}"]
    if recipe.train.schedule == "cosine":
        words.append(f"train.warmup={round(share * recipe.train.warmup)}")
    if recipe.train.schedule == "plateau":
        patience = max(1, round(share * recipe.train.plateau_patience))
        words.append(f"train.plateau_patience={patience}")
    return recipe.set(*words)


def search_job(trial: str, precision: str) -> Job:
    """A short run of a setting of CSNN."""
    recipe = recipe_for(SEARCHED, DATASET).set(*TRIALS[trial])
    return _job("search", trial, shorten(recipe, SEARCH_EPOCHS), SEEDS[0], precision)


def cut_job(model: str, precision: str, chosen: str | None) -> Job:
    """The short protocol; of CSNN with the setting that the search has chosen."""
    recipe = shorten(_recipe(model, chosen), SHORT_EPOCHS)
    return _job("cut", model, recipe, SEEDS[0], precision)


def full_job(model: str, seed: int, precision: str, chosen: str | None) -> Job:
    """The whole protocol of a network."""
    return _job("full", model, _recipe(model, chosen), seed, precision)


def _recipe(model: str, chosen: str | None) -> Recipe:
    recipe = recipe_for(model, DATASET)
    return recipe.set(*TRIALS[chosen]) if model == SEARCHED and chosen is not None else recipe


def _job(part: str, name: str, recipe: Recipe, seed: int, precision: str) -> Job:
    assert precision in PRECISIONS
    return Job(part, name, recipe.set(f"train.seed={seed}", f"train.precision={precision}"))
