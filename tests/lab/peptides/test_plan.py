"""What is trained on the peptides: settings of a search, and protocols that differ in length only."""

from __future__ import annotations

from typing import Any

import pytest

from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import recipe_for
from lab.peptides.plan import (
    BUDGET,
    DATASET,
    MODELS,
    SEARCH_EPOCHS,
    SEEDS,
    SHORT_EPOCHS,
    TRIALS,
    cut_job,
    full_job,
    search_job,
    shorten,
)
from lab.published import PUBLISHED


def differences(first: Recipe, second: Recipe) -> dict[str, Any]:
    """What the second has where the first has something else; name and source aside."""
    one, two = first.to_mapping(), second.to_mapping()
    return {
        f"{part}.{key}": two[part].get(key)
        for part in ("model", "data", "train")
        for key in {**one[part], **two[part]}
        if one[part].get(key) != two[part].get(key)
    }


def test_every_printed_row_is_in_the_plan() -> None:
    printed = {entry.model for entry in PUBLISHED if entry.dataset == DATASET}
    assert printed | {"graph-mixer"} == set(MODELS)
    assert len(set(MODELS)) == len(MODELS)


# Warm-up of 5 epochs in 250 and of 10 in 200; patience of 20 in 300, in 500 and in 200.
WARM = ("csnn", "gcn-lrgb", "bunn", "gine", "gatedgcn", "gps")
SCALED = {
    **{model: {"train.warmup": 1} for model in WARM},
    "exphormer": {"train.warmup": 2},
    "drew": {"train.plateau_patience": 3},
    "san": {"train.plateau_patience": 2},
    "graph-vit": {"train.plateau_patience": 4},
    "graph-mixer": {"train.plateau_patience": 4},
}


@pytest.mark.parametrize("model", MODELS)
def test_the_cut_protocol_differs_in_its_length_alone(model: str) -> None:
    recipe, cut = recipe_for(model, DATASET), cut_job(model, "32", None).recipe
    assert differences(recipe, cut) == {"train.epochs": SHORT_EPOCHS, **SCALED[model]}
    assert cut.train.seed == SEEDS[0]
    whole = full_job(model, SEEDS[0], "32", None).recipe
    assert whole.hash() == recipe.hash()


def test_precision_is_passed_on_and_is_part_of_the_settings() -> None:
    for make in (
        lambda precision: search_job("small", precision),
        lambda precision: cut_job("gine", precision, None),
        lambda precision: full_job("gine", 0, precision, None),
    ):
        assert make("bf16").recipe.train.precision == "bf16"
        assert make("bf16").key != make("32").key


def test_seeds_are_runs_of_their_own_with_one_setting() -> None:
    keys = {full_job("gine", seed, "32", None).key for seed in SEEDS}
    assert len(keys) == 4
    assert len({key[3] for key in keys}) == 1


def test_a_short_schedule_never_has_a_patience_of_nothing() -> None:
    assert shorten(recipe_for("san", DATASET), 5).train.plateau_patience == 1
    assert shorten(recipe_for("csnn", DATASET), 5).train.warmup == 0


def test_trials_are_settings_of_csnn_within_the_budget() -> None:
    """All of them say the same fields, so that whatever the recipe says, they stay what they are."""
    fields = [{word.partition("=")[0] for word in words} for words in TRIALS.values()]
    assert all(each == fields[0] for each in fields)
    hashes = set()
    for trial in TRIALS:
        recipe = search_job(trial, "32").recipe
        hashes.add(recipe.hash())
        changed = differences(recipe_for("csnn", DATASET), recipe)
        assert changed.keys() <= fields[0] | {"train.epochs", "train.warmup"}
        assert recipe.train.epochs == SEARCH_EPOCHS
        model = recipe.model.build(9, 10, graph_level=True, edge_channels=0, pe_channels=20)
        assert sum(parameter.numel() for parameter in model.parameters()) <= BUDGET
    assert len(hashes) == len(TRIALS)


def test_only_csnn_takes_what_the_search_has_chosen() -> None:
    for make in (cut_job, lambda model, precision, chosen: full_job(model, 0, precision, chosen)):
        plain, small = make("csnn", "32", None).recipe, make("csnn", "32", "small").recipe
        changed = differences(plain, small)
        assert changed == {"model.hidden_channels": 32, "model.num_layers": 4}
        assert make("gine", "32", "small") == make("gine", "32", None)
