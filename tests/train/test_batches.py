"""Settings of batches, and their place in recipes."""

from __future__ import annotations

import hashlib
import json

import pytest

from coopsheaf.config import ConfigError, to_mapping
from coopsheaf.train.batches import BatchConfig, parse_fanouts
from coopsheaf.train.recipe import recipe_from_mapping
from coopsheaf.train.recipes import dump_toml, load_recipe


def test_without_batches_a_recipe_is_what_it_was() -> None:
    recipe = load_recipe("csnn/tolokers")
    assert not recipe.batch.is_set
    assert "batch" not in recipe.to_mapping()
    train = {key: value for key, value in to_mapping(recipe.train).items() if key != "seed"}
    plain = ["csnn", to_mapping(recipe.model), to_mapping(recipe.data), train]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    assert recipe.hash() == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert "checkpoint_layers" not in text


def test_batches_are_part_of_a_recipe() -> None:
    recipe = load_recipe("csnn/tolokers")
    batched = recipe.set("batch.parts=40").set("batch.kind=clusters").set("batch.halo=true")
    assert batched.batch == BatchConfig("clusters", parts=40, halo=True)
    assert batched.batch.is_set
    assert batched.hash() != recipe.hash()
    assert batched.hash() != batched.set("batch.parts=41").hash()
    assert recipe_from_mapping(batched.to_mapping(), "here") == batched
    assert dump_toml(batched).endswith('[batch]\nkind = "clusters"\nparts = 40\nhalo = true\n')
    again = batched.set("batch.kind=none").set("batch.parts=none").set("batch.halo=none")
    assert again.hash() == recipe.hash()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "batch.kind=cluster",
            "`kind` must be one of 'clusters', 'neighbours', 'nodes', 'ranges'; got 'cluster'",
        ),
        ("batch.size=0", "`size` must be an integer of at least 1; got 0"),
        ("batch.parts=-2", "`parts` must be an integer of at least 1; got -2"),
        ("batch.chunk=0", "`chunk` must be an integer of at least 1; got 0"),
        ("batch.size=many", "batch.size must be a whole number or none; got 'many'"),
        ("batch.fanouts=5,0", "`fanouts` must be whole numbers of at least 1, .* got '5,0'"),
        ("batch.fanouts=5;3", "`fanouts` must be whole numbers of at least 1, .* got '5;3'"),
        ("batch.fan=5", "unknown setting 'fan'"),
    ],
)
def test_bad_settings(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_recipe("csnn/tolokers").set(assignment)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            BatchConfig(size=5),
            "`batch.kind` must be one of .* if other settings of batch are given",
        ),
        (
            BatchConfig("nodes", parts=5),
            "`batch.parts` goes with `batch.kind` 'clusters' or 'ranges'; got 'nodes'",
        ),
        (BatchConfig("nodes", fanouts="5"), "`batch.fanouts` goes with `batch.kind` 'neighbours'"),
        (BatchConfig("neighbours", halo=True), "`batch.halo` goes with .* 'clusters' or 'nodes'"),
    ],
)
def test_settings_that_do_not_go_together(config: BatchConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.is_set  # noqa: B018


def test_fanouts_are_numbers() -> None:
    assert parse_fanouts("10, 5,-1") == (10, 5, -1)
