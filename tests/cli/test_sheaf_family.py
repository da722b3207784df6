"""The sheaf family through the commands, each with as little as it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program, records
from cli.test_heterophily import SPACE, write_tables

from coopsheaf.data.dataset import Processing
from coopsheaf.data.directed_communities import directed_communities
from coopsheaf.data.pack import write_pack
from coopsheaf.models.registry import MODELS
from coopsheaf.sweep.space import choose, load_space
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.records import find_records

NAMES = (
    "dsnn", "polynsd", "nsp", "onda", "onda-directional", "dnsd", "sheaf-attention", "copresheaf",
    "isn", "conn-nsd", "conn-nsd-edge-random", "conn-nsd-node-random", "quiver-nsd", "nlsd",
)  # fmt: skip
EACH = pytest.mark.parametrize("name", NAMES)


@EACH
def test_it_trains_predicts_is_explained_and_recorded(program: Program, name: str) -> None:
    """On stored directions where they count, both ways where they must not be seen."""
    way = "stored" if MODELS[name].directed else "undirected"
    data = directed_communities(40, 80, num_splits=1).process(Processing(direction=way))
    write_pack(data, "graph")
    settings = {"hidden_channels": 4} | ({"num_hops": 2} if name == "polynsd" else {})
    if name.startswith("conn"):  # frames have no more dimensions than there are features
        settings["stalk_dim"] = data.num_features
    few = [f"model.{key}={value}" for key, value in settings.items()]
    given = [word for setting in (*few, "train.epochs=2") for word in ("--set", setting)]
    program.ok("train", "pack:graph", "--model", name, *given, "--out", "run")
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
def test_it_is_searched(tmp_path: Path, name: str) -> None:
    space = tmp_path / "space.toml"
    space.write_text(SPACE)
    base = default_recipe(name, "texas")
    found = load_space(base, space)
    point, _ = choose(base, found, lambda setting, choices: choices.values[-1])
    assert (point.train.lr, point.model.hidden_channels) == (0.2, 8)


@EACH
def test_it_is_compared(program: Program, name: str) -> None:
    own = (*write_tables(40), "--target", "label")
    # Frames of local PCA want as many features as a stalk has dimensions.
    rows = [f"{i},{20 + i % 7},{i * i % 11},{i % 5},{'yn'[i % 3 > 0]}" for i in range(40)]
    Path("nodes.csv").write_text("\n".join(["id,age,size,rank,label", *rows]))
    quick = ("--folds", "3", "--trials", "1", "--epochs", "1", "--set", "model.hidden_channels=8")
    said = program.ok("compare", *own, *quick, "--models", name, "mlp", "--out", "c")
    assert name in said
    assert len(find_records(Path("c/records"))) == 6
