"""The literature's long-range networks as recipes run them: sizes, and runs on many graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from train.test_many_graphs import dataset

from coopsheaf.models.registry import make_settings
from coopsheaf.predictions import graph_outputs
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import DataConfig, Recipe
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.run import load_run, run_split

# Parameters of the published settings, func and struct; `test_sizes_of_the_equations` counts them.
COUNTS = {
    "drew": (498_610, 492_226),
    "san": (499_902, 500_003),
    "exphormer": (445_850, 425_883),
    "graph-vit": (559_502, 559_631),
    "graph-mixer": (395_598, 395_727),
}


@pytest.mark.parametrize("name", COUNTS)
def test_published_settings_have_their_sizes(name: str) -> None:
    for number, (data, outputs) in enumerate((("peptides-func", 10), ("peptides-struct", 11))):
        recipe = load_recipe(f"{name}/{data}")
        network = recipe.model.build(
            9,
            outputs,
            graph_level=True,
            edge_channels=0 if recipe.data.bonds is None else 3,
            pe_channels=20,
        )
        count = sum(parameter.numel() for parameter in network.parameters())
        assert count == COUNTS[name][number]
        assert recipe.model.pe_kind == recipe.data.pe
        page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
        assert f"{count:,}" in page


def test_sizes_of_the_equations() -> None:
    """By hand: layers, encoders of 174 codes of atoms and 13 of bonds, places, readout."""
    for d, layers, out, number in ((130, 7, 10, 0), (175, 5, 11, 1)):
        matrices = layers * (layers + 1) // 2
        count = matrices * (d * d + d) + 174 * (d - 16) + 624 + d * out + out
        assert count == COUNTS["drew"][number]
    for out, number in ((10, 0), (11, 1)):
        layer = 7 * 100**2 + 100**2 + 100 + 4 * 100**2 + 300 + 400
        count = 4 * layer + 174 * 80 + 1300 + (32 + 16 * 20 + 20) + 100 + 101 * out
        assert count == COUNTS["san"][number]
    for d, layers, virtual, out, number in ((64, 8, 1, 10, 0), (88, 4, 6, 11, 1)):
        layer = 5 * (d * d + d) + 4 * d + 6 * d + 4 * d * d + 4 * d * d + 3 * d
        rest = 174 * (d - 16) + 13 * d + 624 + 3 * d * virtual + d * out + out
        assert layers * layer + rest == COUNTS["exphormer"][number]
    d = 128
    inside = 4 * (3 * d * d + d + 4 * d + 1) + 3 * (d * d + 2 * d)
    for out, number in ((10, 0), (11, 1)):
        ends = (16 + 8) * d + 4 * d + 187 * d + d * d + 2 * d + d * out + out
        attention = 2 * (4 * (d * d + d) + 4 * d + 4 * d * d + 3 * d)
        assert inside + ends + attention == COUNTS["graph-vit"][number]
        across, along = 2 * 32 * 4 * d + 4 * d + 32, d * d + d // 2 + d
        mixer = 2 * (4 * d + across + along) + 2 * d
        assert inside + ends + mixer == COUNTS["graph-mixer"][number]


SMALL: dict[str, dict[str, Any]] = {
    "drew": {"pe_width": 4, "nu": 1},
    "san": {"pe_width": 4, "pe_steps": 16},
    "exphormer": {"pe_width": 4, "num_virtual": 2},
    "graph-vit": {"num_patches": 4, "pe_steps": 16},
    "graph-mixer": {"num_patches": 4, "mixer_dropout": 0.5},
}


def recipe(name: str) -> Recipe:
    settings = {"hidden_channels": 8, "num_layers": 2, "pe_kind": "rwse"} | SMALL[name]
    train = TrainConfig(epochs=2, lr=0.01, batch_size=5, schedule="plateau", plateau_patience=20)
    return Recipe(name, make_settings(name, **settings), DataConfig(pe="rwse"), train)


@pytest.mark.parametrize("name", SMALL)
def test_a_run_is_trained_kept_and_loaded(name: str, tmp_path: Path) -> None:
    data = dataset("rwse", edges=0 if name == "drew" else 3)
    run, result = run_split(recipe(name), data, out=tmp_path / "run")
    assert result.epochs == 2
    again = load_run(tmp_path / "run")
    assert torch.equal(graph_outputs(again, data), graph_outputs(run, data))


@pytest.mark.parametrize("name", ["graph-vit", "graph-mixer"])
def test_runs_with_one_seed_are_one_run(name: str) -> None:
    """Patches of training are drawn from the run's seed."""
    data = dataset("rwse")
    outputs = [graph_outputs(run_split(recipe(name), data)[0], data) for _ in range(2)]
    assert torch.equal(*outputs)


def test_features_of_edges_that_drew_cannot_use_are_refused() -> None:
    with pytest.raises(ValueError, match=r"drew cannot use edge features \(3 columns\)"):
        run_split(recipe("drew"), dataset("rwse"))
