"""Recipes: what comes with the package, and what a user may write."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopsheaf.config import ConfigError
from coopsheaf.models.registry import MODELS, find_model, make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import DataConfig, Recipe, default_recipe, recipe_from_mapping
from coopsheaf.train.recipes import dump_toml, load_grid, load_recipe, recipe_for, recipe_names

# Features and outputs of the datasets, and the parameters of the published settings.
PUBLISHED = {
    "csnn/roman-empire": (300, 18, 339_900),
    "csnn/amazon-ratings": (300, 5, 192_299),
    "csnn/minesweeper": (7, 1, 642_840),
    "csnn/tolokers": (10, 1, 16_151),
    "csnn/questions": (301, 1, 53_257),
    "csnn/squirrel": (2089, 5, 271_305),
}


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


# --- the packaged ones ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", recipe_names())
def test_every_packaged_recipe_loads_and_says_where_it_is_from(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert f"{recipe.model_name}/{recipe.data.name}" == name
    assert recipe.source
    assert recipe == recipe_for(recipe.model_name, recipe.data.name)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name: str) -> None:
    in_channels, out_channels, parameters = PUBLISHED[name]
    model = load_recipe(name).model.build(in_channels, out_channels, graph_level=False)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_a_model_without_a_recipe_has_a_marked_default() -> None:
    recipe = recipe_for("csnn", "no-such-set")
    assert recipe.name == "default"
    assert "not tuned" in recipe.source
    assert recipe.data.name == "no-such-set"
    with pytest.raises(ValueError, match="'csnn'"):
        recipe_for("no-such-model", "tolokers")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        ConfigError,
        match=r"no recipe 'csnn/toloker' \(did you mean 'csnn/tolokers'.*there are .*bunn/",
    ):
        load_recipe("csnn/toloker")
    with pytest.raises(ConfigError, match=r"no recipe '\.\./csnn/tolokers'"):
        load_recipe("../csnn/tolokers")


def test_the_names_of_recipes_need_no_torch() -> None:
    code = (
        "import sys; from coopsheaf.train.recipes import *\n"
        "assert 'nsd-diag/texas' in recipe_names()\n"
        "print(sorted({'torch', 'torch_geometric', 'lightning', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_changed_settings_are_no_longer_those_of_their_source() -> None:
    recipe = load_recipe("csnn/tolokers")
    for same in ("train.seed=7", f"train.lr={recipe.train.lr}"):
        assert (recipe.set(same).name, recipe.set(same).source) == (recipe.name, recipe.source)
    assert recipe.set("train.lr=5", f"train.lr={recipe.train.lr}").name == recipe.name
    for changed in (
        recipe.set("train.epochs=4", "train.epochs=5", "model.dropout=0.5"),
        recipe.set("train.epochs=5").set("model.dropout=0.5"),
    ):
        assert changed.name == "csnn/tolokers, changed"
        assert changed.source == f"{recipe.source}; with train.epochs=5, model.dropout=0.5"
    assert recipe_for("csnn", "no-such-set").set("train.lr=1").name != "default"
    assert Recipe("csnn", make_settings("csnn")).set("train.lr=1").source == ""


# --- what a user writes ---------------------------------------------------------------------------


def test_a_file_is_read(tmp_path: Path) -> None:
    text = '[model]\nname = "csnn"\nstalk_dim = 4\n[train]\nlr = 1\n[data]\ndirection = "stored"\n'
    recipe = load_recipe(write(tmp_path, text))
    assert (recipe.model.stalk_dim, recipe.train.lr, recipe.data.direction) == (4, 1.0, "stored")
    assert recipe.model == dataclasses.replace(make_settings("csnn"), stalk_dim=4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model", r"not valid TOML"),
        ("", r"model\.name must be one of csnn, .*; got None"),
        ('[model]\nname = "cnn"', r"model\.name must be one of csnn, .*; got 'cnn'"),
        (
            '[model]\nname = "csnn"\nstalk = 3',
            r"\[model\]: unknown setting 'stalk' \(did you mean 'stalk_dim'\?\)",
        ),
        (
            '[model]\nname = "csnn"\nstalk_dim = "3"',
            r"\[model\]: stalk_dim must be a whole number; got '3'",
        ),
        ('[model]\nname = "csnn"\nstalk_dim = true', r"stalk_dim must be a whole number; got True"),
        (
            '[model]\nname = "csnn"\n[trian]\nlr = 1',
            r"unknown section \[trian\]; there are batch, data, model, recipe, train",
        ),
        ('lr = 3\n[model]\nname = "csnn"', r"unknown section \[lr\]"),
        (
            '[model]\nname = "csnn"\n[train]\nlearning_rate = 1',
            r"\[train\]: unknown setting 'learning_rate'",
        ),
        ('[model]\nname = "csnn"\n[train]\nlr = [1]', r"\[train\]: lr must be a number; got \[1\]"),
        ('[model]\nname = "csnn"\n[data]\nname = 3', r"\[data\]: name must be text; got 3"),
        (
            '[model]\nname = "csnn"\n[recipe]\nauthor = "me"',
            r"unknown setting 'recipe\.author'; there are name, source",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_recipe(write(tmp_path, text))
    assert "mine.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        'model = "csnn"',
        "model = 3",
        '[model]\nname = ["csnn"]',
        'data = 3\n[model]\nname = "csnn"',
        'train = "fast"\n[model]\nname = "csnn"',
        'recipe = "mine"\n[model]\nname = "csnn"',
        '[[model]]\nname = "csnn"',
        '[recipe]\nname = 3\n[model]\nname = "csnn"',
        '[model]\nname = "csnn"\n[train]\noptimizer = "sgb"',
        '[model]\nname = "csnn"\n[train]\nlr = -1.0',
    ],
)
def test_whatever_a_file_holds_the_error_is_one_line_that_names_it(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(ConfigError, match=r"mine\.toml") as caught:
        load_recipe(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read \(No such file"):
        load_recipe(str(tmp_path / "none.toml"))
    path = tmp_path / "latin.toml"
    path.write_bytes(b'[model]\nname = "\xfc"\n')
    with pytest.raises(ConfigError, match=r"latin\.toml: must be UTF-8"):
        load_recipe(str(path))


# --- round trips ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", recipe_names())
def test_packaged_recipes_are_written_and_read_back(tmp_path: Path, name: str) -> None:
    recipe = load_recipe(name)
    assert load_recipe(write(tmp_path, dump_toml(recipe))) == recipe
    assert recipe_from_mapping(recipe.to_mapping(), "here") == recipe


@pytest.mark.parametrize("name", MODELS)
def test_default_recipes_are_written_and_read_back(tmp_path: Path, name: str) -> None:
    recipe = default_recipe(name, "texas")
    assert load_recipe(write(tmp_path, dump_toml(recipe))) == recipe


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
sizes = st.integers(1, 10**6)
positive = st.floats(0, 1e300, allow_nan=False)
recipes = st.builds(
    Recipe,
    st.just("csnn"),
    st.builds(
        find_model("csnn").settings,
        hidden_channels=sizes,
        dropout=positive,
        left_weights=st.booleans(),
        norm=st.none() | any_text,
    ),
    st.builds(DataConfig, any_text, st.none() | any_text),
    st.builds(
        TrainConfig,
        lr=positive,
        epochs=sizes,
        clip=st.none() | positive.filter(bool),
        class_weights=st.booleans(),
        seed=sizes,
    ),
    any_text,
    any_text,
)


@given(recipes)
def test_any_recipe_is_written_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, recipe: Recipe
) -> None:
    folder = tmp_path_factory.getbasetemp()
    again = load_recipe(write(folder, dump_toml(recipe)))
    assert again == recipe
    assert again.hash() == recipe.hash()


# --- overrides and hashes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assignment", "section", "field", "value"),
    [
        ("model.stalk_dim=4", "model", "stalk_dim", 4),
        ("model.dropout=0", "model", "dropout", 0.0),
        ("model.left_weights=false", "model", "left_weights", False),
        ("model.norm=layer", "model", "norm", "layer"),
        ("model.norm=none", "model", "norm", None),
        ("model.semantics=released", "model", "semantics", "released"),
        ("data.direction=undirected", "data", "direction", "undirected"),
        ("data.name=a=b", "data", "name", "a=b"),
        ("train.lr=1e-3", "train", "lr", 0.001),
        ("train.clip=1", "train", "clip", 1.0),
        ("train.class_weights=yes", "train", "class_weights", True),
    ],
)
def test_set_is_typed(assignment: str, section: str, field: str, value: Any) -> None:
    recipe = default_recipe("csnn")
    changed = getattr(getattr(recipe.set(assignment), section), field)
    assert changed == value
    assert type(changed) is type(value)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "model.stalk=4",
            r"--set model\.stalk: unknown setting 'stalk' \(did you mean 'stalk_dim'\?\); there are hidden_channels, .*stalk_dim",
        ),
        ("train.lr=fast", r"--set train\.lr must be a number; got 'fast'"),
        ("model.stalk_dim=2.5", r"must be a whole number; got '2\.5'"),
        (
            "stalk_dim=4",
            r"must look like section\.field=value, with a section of model, data, train",
        ),
        ("model=4", r"must look like section\.field=value"),
        ("model.stalk_dim", r"must look like section\.field=value"),
        ("recipe.name=x", r"must look like section\.field=value"),
        ("model_name=x", r"must look like section\.field=value"),
        ("train.lr.deep=1", r"'lr' has no settings of its own"),
        (
            "train.optimizer=sgb",
            r"train\.optimizer.*must be one of 'adam', 'adamw', 'sgd'; got 'sgb'",
        ),
        ("train.epochs=0", r"train\.epochs.*must be at least 1; got 0"),
        ("train.eval_every=0", r"`eval_every` must be at least 1, or 'auto'; got 0"),
        ("train.eval_every=often", r"`eval_every` must be at least 1, or 'auto'; got 'often'"),
        ("train.eval_parts=val", r"train\.eval_parts.*must be one of 'all'; got 'val'"),
    ],
)
def test_set_names_what_does_not_fit(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        default_recipe("csnn").set(assignment)


def test_seed_name_and_source_do_not_count_in_the_hash() -> None:
    recipe = load_recipe("csnn/tolokers")
    for same in (
        recipe.set("train.seed=7"),
        dataclasses.replace(recipe, name="other"),
        dataclasses.replace(recipe, source="other"),
    ):
        assert same.hash() == recipe.hash()


@pytest.mark.parametrize("section", ["model", "data", "train"])
def test_every_other_setting_counts_in_the_hash(section: str) -> None:
    recipe = load_recipe("csnn/tolokers")
    hashes = {recipe.hash()}
    values = getattr(recipe, section)
    names = [
        field.name for field in dataclasses.fields(values) if field.name not in ("seed", "logger")
    ]
    for name in names:
        old = getattr(values, name)
        new = {bool: not old, int: 97, float: 0.123, str: "adamw", type(None): 0.5}[type(old)]
        if section == "train":
            fitting = {"schedule": "cosine", "precision": "64", "select": "loss", "processes": 2}
            fitting |= {"eval_parts": "all", "stop": "mean", "metric": "ap"}
            fitting |= {"step_epochs": 5, "plateau_floor": 1e-4}
            new = fitting.get(name, new)
        changed = dataclasses.replace(
            recipe, **{section: dataclasses.replace(values, **{name: new})}
        )
        hashes.add(changed.hash())
    assert len(hashes) == len(names) + 1


def test_the_model_counts_in_the_hash() -> None:
    assert default_recipe("gcn-plain").hash() != default_recipe("mlp").hash()


def test_a_recipe_knows_the_version_of_its_model() -> None:
    assert load_recipe("csnn/tolokers").version == MODELS["csnn"].version
    with pytest.raises(ValueError, match="`model` must be one of"):
        Recipe("no-such-model", None)


def test_the_papers_grid_holds_the_published_settings() -> None:
    """Every published setting is a point of the grid, dropout of squirrel aside."""
    grid = load_grid("csnn")
    assert grid["model.stalk_dim"] == [3, 4, 5]
    for name in ("roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions"):
        recipe = load_recipe(f"csnn/{name}")
        for path, choices in grid.items():
            section, field = path.split(".")
            if path == "model.learner_layers" and recipe.model.learner == "mlp":
                continue
            assert getattr(getattr(recipe, section), field) in choices, (name, path)
    with pytest.raises(ConfigError, match="no published search grid of 'mlp'"):
        load_grid("mlp")


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "9" * 5000, "a = \x00"])
def test_a_file_that_no_parser_can_bear_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.toml: not valid TOML") as caught:
        load_recipe(str(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
