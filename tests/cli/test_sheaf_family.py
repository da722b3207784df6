"""The sheaf family through the commands, each with as little as it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program, records
from cli.test_heterophily import SPACE, write_tables

from coopsheaf.data.dataset import Processing
from coopsheaf.data.directed_communities import directed_communities
from coopsheaf.data.pack import write_pack
from coopsheaf.models.kinship import sheaf_systems
from coopsheaf.models.registry import MODELS
from coopsheaf.sweep.space import choose, load_space
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.records import find_records

NAMES = [name for name in sheaf_systems() if name != "csnn"]  # which all other tests are about
EACH = pytest.mark.parametrize("name", NAMES)
FEW = {"polynsd": {"num_hops": 2}, "bunn": {"num_bundles": 2}}
QUICK = ("dsnn", "polynsd")  # of searches; all of them take half a minute
UNDIRECTED = [name for name in NAMES if not MODELS[name].directed]


def write_graph(name: str, num_splits: int = 1) -> tuple[list[str], dict[str, int]]:
    """A small graph as a network wants it; few settings as words and by name."""
    way = "stored" if MODELS[name].directed else "undirected"
    data = directed_communities(40, 80, num_splits=num_splits).process(Processing(direction=way))
    write_pack(data, "graph")
    settings = {"hidden_channels": 4} | FEW.get(name, {})
    if name.startswith("conn"):  # frames have no more dimensions than there are features
        settings["stalk_dim"] = data.num_features
    words = [("--set", f"model.{key}={value}") for key, value in settings.items()]
    return [word for pair in words for word in pair], settings


@EACH
def test_it_trains_predicts_is_explained_and_recorded(program: Program, name: str) -> None:
    """On stored directions where they count, both ways where they must not be seen."""
    given, settings = write_graph(name)
    few = (*given, "--set", "train.epochs=2")
    program.ok("train", "pack:graph", "--model", name, *few, "--out", "run")
    program.ok("predict", "run", "--output", "predictions.csv")
    assert len(Path("predictions.csv").read_text("utf-8").splitlines()) == 41
    program.ok("explain", "run")
    assert Path("run/explorer.html").exists()
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    Path("mine.toml").write_text(
        f'[model]\nname = "{name}"\n{lines}[data]\nname = "pack:graph"\n[train]\nepochs = 2\n'
    )
    program.ok("bench", "mine.toml", "--splits", "0")
    assert [(record.model, record.epochs) for record in records()] == [(name, 2)] * 2


@EACH
def test_its_settings_are_those_of_a_space(tmp_path: Path, name: str) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    base = default_recipe(name, "texas")
    found = load_space(base, space)
    point, _ = choose(base, found, lambda setting, choices: choices.values[-1])
    assert (point.train.lr, point.model.hidden_channels) == (0.2, 8)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.thorough) for n in NAMES]
)
def test_it_is_searched(program: Program, name: str) -> None:
    """One trial on two splits; what is found is a recipe that trains."""
    pytest.importorskip("optuna")
    given, settings = write_graph(name, num_splits=2)
    Path("space.toml").write_text("[train]\nlr = [0.1, 0.2]\n")
    words = ("--model", name, "--space", "space.toml", "--trials", 1, "--splits", "0,1")
    few = ("--epochs", 2, "--threads", 1, *given)
    assert "trial 0: " in program.ok("sweep", "pack:graph", *words, *few)
    [file] = Path("sweeps").glob("*/best.toml")
    found = load_recipe(str(file))
    assert found.model_name == name
    assert found.train.lr in (0.1, 0.2)
    assert all(getattr(found.model, key) == value for key, value in settings.items())
    program.ok("train", "pack:graph", "--recipe", file, "--set", "train.epochs=1", "--out", "run")


@EACH
def test_it_is_compared(program: Program, name: str) -> None:
    own = (*write_tables(40), "--target", "label")
    # Frames of local PCA want as many features as a stalk has dimensions.
    rows = [f"{i},{20 + i % 7},{i * i % 11},{i % 5},{'yn'[i % 3 > 0]}" for i in range(40)]
    Path("nodes.csv").write_text("\n".join(["id,age,size,rank,label", *rows]))
    width = 32 if name == "bunn" else 8  # a multiple of what its bundles have
    quick = ("--folds", "3", "--trials", "1", "--epochs", "1", "--set")
    quick = (*quick, f"model.hidden_channels={width}")
    said = program.ok("compare", *own, *quick, "--models", name, "mlp", "--out", "c")
    assert name in said
    assert len(find_records(Path("c/records"))) == 6


# ---- What they cannot use: one line, exit code 2


@pytest.mark.parametrize("name", UNDIRECTED)
def test_one_way_edges_are_refused_where_both_ways_are_needed(program: Program, name: str) -> None:
    data = directed_communities(40, 80, num_splits=1).process(Processing(direction="stored"))
    write_pack(data, "graph")
    few = ("--set", "model.hidden_channels=4", "--set", "train.epochs=1")
    stalks = ("--set", f"model.stalk_dim={data.num_features}") if "conn" in name else ()
    said = program("train", "pack:graph", "--model", name, *few, *stalks, "--out", "run").error
    assert "`edge_index` must hold every edge both ways" in said
    assert not Path("run").exists()


@pytest.mark.parametrize("name", ["conn-nsd", "conn-nsd-node-random"])
def test_stalks_larger_than_features_are_refused(program: Program, name: str) -> None:
    data = directed_communities(40, 80, num_splits=1).process(Processing(direction="undirected"))
    write_pack(data, "graph")
    p = data.num_features
    larger = ("--set", f"model.stalk_dim={p + 1}", "--set", "train.epochs=1")
    said = program("train", "pack:graph", "--model", name, *larger, "--out", "run").error
    assert f"`stalk_dim` must be at most the number of features, {p}" in said
    assert f"got {p + 1}" in said
    assert not Path("run").exists()
