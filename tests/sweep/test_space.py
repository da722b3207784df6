"""Search spaces: what is read, what is refused, what does not matter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sweep.sweeps import FINITE, SPACE, space
from train.small import node_dataset, recipe

from coopsheaf.config import ConfigError
from coopsheaf.models.registry import MODELS
from coopsheaf.sweep.plan import make_plan
from coopsheaf.sweep.rules import RULES
from coopsheaf.sweep.space import (
    Choice,
    Range,
    Space,
    choose,
    grid_points,
    load_space,
    space_from_plain,
    with_values,
)
from coopsheaf.train.build import build_model
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.recipes import recipe_for

GRIDS = sorted(path.stem for path in (Path(__file__).parents[2] / "src").rglob("grids/*.toml"))
assert len(GRIDS) == 34


def first(name: str, item: Choice | Range) -> Any:
    return item.values[0] if isinstance(item, Choice) else item.low


# --- reading -----------------------------------------------------------------------------------


def test_lists_are_choices_and_tables_are_ranges(tmp_path: Path) -> None:
    text = """
    [grid]
    source = "me"
    [model]
    name = "csnn"
    stalk_dim = { low = 2, high = 5 }
    hidden_channels = { low = 8, high = 64, log = true }
    num_layers = { low = 1, high = 8, step = 3 }
    dropout = { low = 0, high = 0.8, step = 0.3 }
    norm = ["none", "batch"]
    act = ["gelu"]
    [train]
    lr = { low = 1e-4, high = 1, log = true }
    weight_decay = [0, 1e-5]
    clip = [1, "none"]
    """
    found = space(tmp_path, text)
    assert found.source == "me"
    assert found.settings == {
        "model.stalk_dim": Range(2, 5),
        "model.hidden_channels": Range(8, 64, log=True),
        "model.num_layers": Range(1, 7, step=3),
        "model.dropout": Range(0.0, 0.6, step=0.3),
        "model.norm": Choice((None, "batch")),
        "model.act": Choice(("gelu",)),
        "train.lr": Range(1e-4, 1.0, log=True),
        "train.weight_decay": Choice((0.0, 1e-5)),
        "train.clip": Choice((1.0, None)),
    }
    assert "model.act" not in found.searched
    assert space_from_plain(found.to_plain()) == found
    ranges = found.settings
    assert ranges["model.stalk_dim"].values == (2, 3, 4, 5)
    assert ranges["model.num_layers"].values == (1, 4, 7)
    assert ranges["model.dropout"].values == (0.0, 0.3, 0.6)
    assert ranges["train.lr"].values is None
    assert found.combinations() is None
    assert found.without(["train.lr", "model.hidden_channels"]).combinations() == 4 * 3 * 3 * 2 * 2 * 2  # fmt: skip


@pytest.mark.parametrize("model", GRIDS)
def test_published_grids_are_spaces(model: str) -> None:
    found = load_space(default_recipe(model, "texas"))
    assert found.source.startswith(f"the published grid of {model} (")
    assert (found.combinations() or 0) > 1
    point, picked = choose(default_recipe(model, "texas"), found, first)
    assert set(picked) <= set(found.searched)
    assert point.model_name == model


def test_what_is_set_is_not_searched() -> None:
    base = recipe_for("csnn", "texas").set("model.learner=mlp")
    whole, rest = load_space(base), load_space(base, fixed=["model.learner", "train.epochs"])
    assert set(whole.settings) - set(rest.settings) == {"model.learner", "train.epochs"}
    point, picked = choose(base, rest, first)
    assert point.model.learner == "mlp"
    assert point.train.epochs == base.train.epochs
    assert "model.learner_layers" not in picked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model", "not valid TOML"),
        ("", "nothing to search"),
        ("[model]\nstalk_dim = [2]", "nothing to search: no setting has two values"),
        ("[recipe]\nname = 'mine'", "unknown section [recipe]; a space has grid, model, train"),
        ("[data]\ndirection = ['stored']", "unknown section [data]"),
        ("model = 3", "[model] must be a table; got 3"),
        ("[grid]\nauthor = 'me'", "[grid] must hold nothing but source"),
        ("[grid]\nsource = 3", "[grid] must hold nothing but source"),
        ("[model]\nname = 'gcn'", "is a space of 'gcn'; the model is 'csnn'"),
        ("[model]\nname = ['csnn']", "is a space of ['csnn']; the model is 'csnn'"),
        ("[model]\nstalk_dims = [2, 3]", "[model]: unknown setting 'stalk_dims' (did you mean 'stalk_dim'?)"),
        ("[model]\nnum_heads = [2, 3]", "[model]: unknown setting 'num_heads'"),
        ("[model]\nlr = [0.1, 0.2]", "[model]: unknown setting 'lr'"),
        ("[model]\nwrong = 3", "[model]: unknown setting 'wrong'"),
        ("[train]\nseed = [1, 2]", "seed must not be searched"),
        ("[model]\nstalk_dim = []", "stalk_dim must have at least one value"),
        ("[model]\nstalk_dim = 3", "stalk_dim must be a list of values, or a table with low and high; got 3"),
        ("[model]\nstalk_dim = [2, 2.5]", "stalk_dim must be a whole number; got 2.5"),
        ("[model]\nstalk_dim = [2, true]", "stalk_dim must be a whole number; got True"),
        ("[model]\nstalk_dim = ['2']", "stalk_dim must be a whole number; got '2'"),
        ("[model]\nstalk_dim = [[2]]", "stalk_dim must be a whole number; got [2]"),
        ("[model]\nstalk_dim = [2, 3, 2]", "stalk_dim must have each value once"),
        ("[train]\nweight_decay = [0, 0.0]", "weight_decay must have each value once"),
        ("[model]\nleft_weights = [1, 0]", "left_weights must be true or false; got 1"),
        ("[train]\nlr = [-1.0, 0.1]", "`lr` must be finite and not negative; got -1.0"),
        ("[train]\nlr = [nan, 0.1]", "`lr` must be finite and not negative; got nan"),
        ("[train]\noptimizer = ['sgb', 'adam']", "`optimizer` must be one of"),
        ("[train]\nlr = { low = 0.1 }", "a range must have high"),
        ("[train]\nlr = { high = 0.1 }", "a range must have low"),
        ("[train]\nlr = { low = 0.1, high = 0.2, size = 3 }", "unknown key 'size'; a range has low, high, log, step"),
        ("[train]\nlr = { low = 0.2, high = 0.1 }", "low must be below high"),
        ("[train]\nlr = { low = 0.1, high = 0.1 }", "low must be below high"),
        ("[train]\nlr = { low = 0, high = 0.1, log = true }", "low must be positive where log is true; got 0"),
        ("[train]\nlr = { low = 0.1, high = 0.2, log = 'yes' }", "log must be true or false; got 'yes'"),
        ("[train]\nlr = { low = 0.1, high = 0.2, step = 0 }", "step must be a positive number of at most high - low; got 0"),
        ("[train]\nlr = { low = 0.1, high = 0.2, step = 1 }", "step must be a positive number of at most high - low; got 1"),
        ("[train]\nlr = { low = 0.1, high = 0.2, step = 0.1, log = true }", "step and log exclude each other"),
        ("[train]\nlr = { low = 'a', high = 0.2 }", "lr must be a number; got 'a'"),
        ("[train]\nlr = { low = 0.1, high = inf }", "`lr` must be finite and not negative; got inf"),
        ("[model]\nstalk_dim = { low = 2, high = 4, step = 0.5 }", "step must be a positive whole number"),
        ("[model]\nstalk_dim = { low = 2.0, high = 4 }", "stalk_dim must be a whole number; got 2.0"),
        ("[model]\nact = { low = 'a', high = 'b' }", "act: a range must be of numbers"),
        ("[model]\nleft_weights = { low = false, high = true }", "left_weights: a range must be of numbers"),
        ("[model]\nnorm = { low = 'none', high = 'batch' }", "norm: a range must be of numbers"),
    ],
)  # fmt: skip
def test_a_bad_space_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        space(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "space.toml"))
    assert "\n" not in str(caught.value).partition("not valid TOML")[0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_space(recipe(), tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="must be UTF-8 text"):
        load_space(recipe(), tmp_path / "bytes.toml")
    with pytest.raises(ConfigError, match="no published search grid of 'mlp'; give a space with --space"):  # fmt: skip
        load_space(default_recipe("mlp"))


@given(st.text(max_size=60) | st.dictionaries(st.sampled_from(["low", "high", "log", "step", "x"]), st.floats() | st.booleans() | st.integers() | st.text(max_size=3)).map(lambda d: "[train]\nlr = {" + ", ".join(f"{k} = {v!r}".lower() for k, v in d.items()) + "}"))  # fmt: skip
def test_any_text_is_a_space_or_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:  # fmt: skip
    file = tmp_path_factory.getbasetemp() / "any.toml"
    file.write_text(text, encoding="utf-8", newline="")
    try:
        found = load_space(recipe(), file)
    except ConfigError:
        return
    assert found.searched


# --- choosing ----------------------------------------------------------------------------------


def test_a_setting_that_does_not_matter_is_not_chosen(tmp_path: Path) -> None:
    found = space(tmp_path)
    asked: list[str] = []

    def pick(learner: str) -> Any:
        def choice(name: str, item: Choice | Range) -> Any:
            asked.append(name)
            return learner if name == "model.learner" else first(name, item)

        return choice

    base = recipe()
    point, picked = choose(base, found, pick("mlp"))
    assert "model.learner_layers" not in asked
    assert "model.learner_layers" not in picked
    assert point.model.learner_layers == base.model.learner_layers
    point, picked = choose(base, found, pick("sage-graph-norm"))
    assert picked["model.learner_layers"] == point.model.learner_layers == 1


def test_rules_look_at_rules_above_them(tmp_path: Path) -> None:
    text = (
        "[model]\nlearner_channels = [8, 16]\nlearner = ['sage-projected']\nlearner_layers = [1, 2]"
    )
    found = space(tmp_path, text)
    layers = iter([1, 2])

    def pick(name: str, item: Choice | Range) -> Any:
        return next(layers) if name == "model.learner_layers" else 16

    assert choose(recipe(), found, pick)[1] == {"model.learner_layers": 1}
    assert choose(recipe(), found, pick)[1] == {"model.learner_layers": 2, "model.learner_channels": 16}  # fmt: skip


# For each rule: settings under which it holds, and two values that make no difference then.
HOLDS: dict[tuple[str, str], tuple[dict[str, Any], Any, Any]] = {
    ("csnn", "model.learner_layers"): ({"model.learner": "mlp"}, 1, 4),
    ("csnn-random", "model.learner_layers"): ({"model.learner": "mlp"}, 1, 4),
    ("csnn", "model.learner_channels"): ({"model.learner": "sage-projected", "model.learner_layers": 1}, 8, 16),
    ("csnn-random", "model.learner_channels"): ({"model.learner": "sage-graph-norm", "model.learner_layers": 1}, 8, 16),
    ("cognn", "model.action_channels"): ({"model.action_layers": 1}, 4, 8),
    ("cognn", "model.tau"): ({"model.temperature": "learned"}, 0.1, 0.5),
    ("cognn", "model.tau0"): ({"model.temperature": "fixed"}, 0.1, 0.5),
    ("cognn", "model.evaluation_seed"): ({"model.evaluation": "argmax"}, 1, 2),
    ("bunn", "model.tau"): ({"model.heat": "mean"}, 1.0, 2.0),
    ("bunn", "model.heat_steps"): ({"model.heat": "spectral"}, 2, 4),
    ("bunn", "model.normalization"): ({"model.heat": "spectral"}, "symmetric", "random-walk"),
    ("bunn", "model.num_eigenpairs"): ({"model.heat": "taylor"}, 4, 8),
    ("bunn", "model.tau_init"): ({"model.heat": "taylor"}, "uniform", "constant"),
}  # fmt: skip


def small_recipe(model: str) -> Recipe:
    base = default_recipe(model)
    sizes = {"hidden_channels": 4, "stalk_dim": 2, "num_bundles": 2, "num_eigenpairs": 6}
    known = {key: value for key, value in sizes.items() if hasattr(base.model, key)}
    return replace(base, model=replace(base.model, **known))


@pytest.mark.parametrize(("model", "field"), HOLDS, ids=str)
def test_what_does_not_matter_makes_the_same_network(model: str, field: str) -> None:
    settings, one, other = HOLDS[model, field]
    dataset, outputs, weights = node_dataset(), [], []
    both_ways = torch.cat([dataset.edge_index, dataset.edge_index.flip(0)], dim=1)
    for value in (one, other):
        chosen = with_values(small_recipe(model), {**settings, field: value})
        (rule,) = (rule for rule in RULES if rule.field == field and rule.holds_for(model))
        assert rule.idle(chosen)
        network = build_model(chosen, dataset)
        weights.append(network.state_dict())
        torch.manual_seed(0)
        outputs.append(network(dataset.x, both_ways))  # in training: dropout and noise too
    assert torch.equal(*outputs)
    assert list(weights[0]) == list(weights[1])
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_every_rule_of_a_model_is_tested() -> None:
    rules = {(model, rule.field) for rule in RULES for model in rule.models}
    assert rules == set(HOLDS)
    assert {model for model, _ in rules} <= set(MODELS)
    of_training = {rule.field for rule in RULES if not rule.models}
    schedules = {
        "train.warmup": "cosine",
        "train.plateau_patience": "plateau",
        "train.plateau_floor": "plateau",
        "train.step_epochs": "steps",
        "train.step_fall": "steps",
    }
    assert of_training == set(schedules)
    base = default_recipe("csnn")
    for field, schedule in schedules.items():
        (rule,) = (rule for rule in RULES if rule.field == field)
        assert rule.idle(base)
        assert not rule.idle(with_values(base, {"train.schedule": schedule}))


def test_a_setting_that_is_refused_elsewhere_is_unset_there(tmp_path: Path) -> None:
    base = recipe().set("train.schedule=plateau", "train.plateau_floor=1e-5")
    found = space(tmp_path, '[train]\nschedule = ["plateau", "cosine"]\n')
    floors = {
        schedule: choose(base, found, lambda name, item, s=schedule: s)[0].train.plateau_floor
        for schedule in ("plateau", "cosine")
    }
    assert floors == {"plateau": 1e-5, "cosine": None}
    idle = base.set(
        "train.schedule=none"
    )  # what does nothing from the start is refused in training
    one = choose(idle, space(tmp_path, "[train]\nlr = [0.1, 0.2]\n"), lambda name, item: 0.1)[0]
    assert one.train.plateau_floor == 1e-5


# --- grids -------------------------------------------------------------------------------------


def test_a_grid_has_every_different_point_once(tmp_path: Path) -> None:
    base, found = recipe(), space(tmp_path, FINITE)
    points = grid_points(base, found, seed=0)
    # hidden_channels × lr × (mlp, or GraphSAGE of one or two layers)
    assert len(points) == 2 * 2 * 3
    recipes = {choose(base, found, lambda name, item, p=point: p[name])[0].hash() for point in points}  # type: ignore[misc]  # fmt: skip
    assert len(recipes) == len(points)
    assert points == grid_points(base, found, seed=0)
    assert points != grid_points(base, found, seed=1)
    key = lambda point: sorted(map(str, point.items()))  # noqa: E731
    assert sorted(points, key=key) == sorted(grid_points(base, found, seed=1), key=key)


def test_the_grid_of_the_paper_has_fewer_points_than_combinations() -> None:
    base = recipe_for("csnn", "texas")
    found = load_space(base)
    sizes, weights, rates = 3 * 4 * 2, 2 * 2, 2 * 2
    # An MLP of two widths; two kinds of GraphSAGE with one layer, or with 2 to 5 of two widths.
    learners = 2 + 2 * (1 + 4 * 2)
    assert found.combinations() == sizes * weights * rates * 3 * 5 * 2
    assert len(grid_points(base, found, seed=0)) == sizes * weights * rates * learners


def test_a_grid_has_an_end(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"grid needs lists, or ranges with a step; train\.lr has neither"):  # fmt: skip
        grid_points(recipe(), space(tmp_path, SPACE), seed=0)
    many = {
        f"model.{name}": Range(1, 200) for name in ("stalk_dim", "hidden_channels", "num_layers")
    }
    with pytest.raises(ConfigError, match="at most 1,000,000 combinations; the space has 8,000,000"):  # fmt: skip
        grid_points(recipe(), Space(many), seed=0)


# --- networks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nact = ['gelu', 'gulp']", "model.act = 'gulp' fits no network: `act` must be"),
        ("[model]\nlearner = ['mlp', 'tree']", "model.learner = 'tree' fits no network: `learner` must be"),
        ("[model]\nstalk_dim = [0, 2]", "model.stalk_dim = 0 fits no network: `stalk_dim` must be"),
        ("[model]\ndropout = { low = 0.5, high = 1.5 }", "model.dropout = 1.5 fits no network: `dropout` must be"),
        ("[model]\nscale = ['none']\nstalk_dim = [1, 2]", "model.scale = 'none' fits no network"),
    ],
)  # fmt: skip
def test_values_that_fit_no_network_are_found_at_once(tmp_path: Path, text: str, message: str) -> None:  # fmt: skip
    with pytest.raises(ConfigError, match=re.escape(message)):
        make_plan(recipe(), space(tmp_path, text), node_dataset(), [0])


def test_values_that_fit_some_networks_are_kept(tmp_path: Path) -> None:
    base = small_recipe("bunn")
    text = (
        "[model]\nnum_bundles = [4, 1]\nhidden_channels = [8, 2]"  # 4 bundles of 2 need 8 channels
    )
    plan = make_plan(base, space(tmp_path, text, base), node_dataset(), [0], sampler="grid")
    assert len(plan.grid) == 4
