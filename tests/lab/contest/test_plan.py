"""The plan is fixed before anything runs, and the same for everybody."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.models.kinship import sheaf_systems
from coopsheaf.train.recipe import Recipe, default_recipe
from lab.contest.plan import (
    APART,
    BLOCK,
    LEAGUES,
    MOST_TRIALS,
    PROTOCOL,
    PUBLISHED,
    SHARED,
    Contestant,
    shared_draws,
)

CONTESTANTS = {one.name: one for league in LEAGUES.values() for one in league.contestants.values()}


@cache
def recipes(name: str) -> list[Recipe]:
    return [CONTESTANTS[name].recipe(trial, "texas") for trial in range(BLOCK)]


def test_the_draws_are_those_that_were_settled() -> None:
    """Another seed, space or generator would be another contest."""
    first = {
        "train.lr": 0.003,
        "train.weight_decay": 0.0005,
        "model.dropout": 0.7,
        "model.input_dropout": 0.5,
        "width": 32,
        "model.num_layers": 2,
        "model.norm": "layer",
    }
    assert shared_draws()[0] == first
    assert CONTESTANTS["csnn"].recipe(0, "texas").hash() == "20d124d15c6dc144"


def test_draws_go_by_name_so_that_others_may_join() -> None:
    """Hashes from before the controls were in the league."""
    settled = {
        "conn-nsd": "489106490f7136df",
        "quiver-nsd": "63225f3f12f51ddd",
        "dsnn": "ff1a5f1554915307",
        "onda": "8432af5a2e62fae1",
        "isn": "244d008fe503b89b",
        "nsd-general": "69719fdc7246019d",
    }
    for name, last in settled.items():
        assert CONTESTANTS[name].recipe(BLOCK - 1, "texas").hash() == last


def test_all_sheaf_systems_are_in_their_league() -> None:
    """But for one that is there by another name, an ancestor, and one that others compete with."""
    members = {one.model for one in LEAGUES["sheaves"].contestants.values()}
    assert set(sheaf_systems()) - members == {"nsd-identity", "snn", "bunn"}


def test_controls_are_rivals_and_their_maps_are_not_searched() -> None:
    for name in ("csnn-random", "nsd-random", "conn-nsd-edge-random", "conn-nsd-node-random"):
        control = CONTESTANTS[name]
        assert not control.csnn
        assert not {"train.map_weight_decay", "model.map_start", "model.maps"} & set(control.own)


def test_nobody_gets_loops_where_somebody_refuses_them() -> None:
    for dataset in LEAGUES["sheaves"].budgets:
        info, has = DATASETS[dataset], []
        for contestant in LEAGUES["sheaves"].contestants.values():
            chosen = contestant.recipe(0, dataset).data.self_loops
            has.append((chosen or info.processing.self_loops) != "remove")
        assert not any(has) or info.published.self_loops == 0


def test_a_record_says_all_that_is_set() -> None:
    """Whoever types it again has the same recipe, also where loops are taken away."""
    for name, trial in (("csnn", 0), ("csnn-released", 3), ("dsnn", 1)):
        one = CONTESTANTS[name]
        for dataset in ("texas", "chameleon-directed"):
            typed = default_recipe(one.model, dataset).set(*one.assignments(trial, dataset))
            assert typed.hash() == one.recipe(trial, dataset).hash()
    published = CONTESTANTS["csnn"].recipe(PUBLISHED, "chameleon-directed")
    assert published.data.self_loops == "remove"


def test_a_dozen_trials_have_every_value_equally_often() -> None:
    for key, values in SHARED.items():
        counts = Counter(draw[key] for draw in shared_draws()[:BLOCK])
        assert counts == dict.fromkeys(values, BLOCK // len(values))


def test_no_two_trials_agree_in_what_everybody_has() -> None:
    places = {tuple(draw[key] for key in APART) for draw in shared_draws()}
    assert len(places) == MOST_TRIALS


@pytest.mark.parametrize("contestant", CONTESTANTS.values(), ids=lambda one: one.name)
def test_everybody_has_the_same_shared_settings(contestant: Contestant) -> None:
    assert set(PROTOCOL) <= set(contestant.settings(0))
    for recipe, draw in zip(recipes(contestant.name), shared_draws(), strict=False):
        for key, value in draw.items():
            if key in contestant.own or not has(recipe, key):
                continue
            found = get(recipe, key)
            if key == "model.norm" and value == "none":
                assert found == get(default_recipe(contestant.model, "texas"), key)
            else:
                assert found == value


@pytest.mark.parametrize("contestant", CONTESTANTS.values(), ids=lambda one: one.name)
def test_every_trial_is_a_network_and_another_one(contestant: Contestant) -> None:
    some = recipes(contestant.name)
    assert len({recipe.hash() for recipe in some}) == BLOCK
    assert len({contestant.settings(trial) for trial in range(MOST_TRIALS)}) == MOST_TRIALS
    for recipe in some[:4]:
        recipe.model.build(4, 2, num_nodes=5)


@pytest.mark.parametrize("contestant", CONTESTANTS.values(), ids=lambda one: one.name)
def test_what_is_said_to_be_chosen_is_chosen(contestant: Contestant) -> None:
    """A setting that its network does not have is drawn, as for the others, and left out."""
    said = {line.partition("=")[0] for line in contestant.settings(0)}
    assert set(contestant.choices) <= said
    assert not set(contestant.without) & said
    assert set(contestant.without) <= set(contestant.own)


@pytest.mark.parametrize("name", ["csnn", "nsd-general", "dnsd", "csnn-identity"])
def test_the_width_of_a_sheaf_is_that_of_all_others(name: str) -> None:
    for recipe, draw in zip(recipes(name), shared_draws(), strict=False):
        model = recipe.model
        assert model.hidden_channels == int(draw["width"]) // model.stalk_dim


def test_options_of_csnn_share_all_but_what_they_are() -> None:
    settings = [set(CONTESTANTS["csnn-messages"].settings(t)) for t in range(3)]
    assert all("model.semantics=messages" in some for some in settings)
    assert CONTESTANTS["csnn"].recipe(0, "texas").model.semantics == "paper"


def test_budgets_are_of_data_that_there_is() -> None:
    for league in LEAGUES.values():
        for dataset, budget in league.budgets.items():
            count = DATASETS[dataset].published.splits
            assert budget.trials <= MOST_TRIALS
            assert set(budget.search) <= set(budget.final) <= set(range(count))
            assert not budget.takes_over or budget.takes_over in league.budgets


def has(recipe: Recipe, key: str) -> bool:
    section, _, name = key.partition(".")
    return hasattr(getattr(recipe, section, None), name) if name else False


def get(recipe: Recipe, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(recipe, section), name)
