"""Networks and runs in the layout of the Hub: the same again, and nothing trusted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from graphs import generator
from train.small import node_dataset, recipe

from coopsheaf import CSNN, from_pretrained, make_model, save_pretrained
from coopsheaf.cli import main
from coopsheaf.models.network import Network
from coopsheaf.predictions import predict
from coopsheaf.train.run import Run, run_split
from coopsheaf.train.run_info import CheckpointError

X = torch.randn(12, 5, generator=generator(0))
EDGES = torch.randint(0, 12, (2, 40), generator=generator(1))


def network() -> CSNN:
    torch.manual_seed(0)
    return CSNN(5, 4, 2, 3, stalk_dim=2, dropout=0.3, act="gelu").eval()


@pytest.fixture(scope="module")
def run() -> Run:
    return run_split(recipe(epochs=2), node_dataset())[0]


@pytest.mark.parametrize(
    "make",
    [
        network,
        lambda: CSNN(5, 4, out_channels=None, jk="cat").double(),
        lambda: CSNN(5, 4, 1, 2, pool="sum"),
        lambda: CSNN(5, 4, 1, 2, edge_channels=3),
        lambda: make_model("gcn", 5, 3, hidden_channels=4),
        lambda: make_model("nsd-general", 5, 3, hidden_channels=4, stalk_dim=2),
    ],
)
def test_a_network_is_the_same_again(make, tmp_path: Path) -> None:
    model = make().eval()
    save_pretrained(model, tmp_path / "m")
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"config.json", "model.safetensors", "README.md"}  # fmt: skip
    again = from_pretrained(str(tmp_path / "m"))
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert not again.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    if isinstance(model, CSNN) and not model.edge_channels and model.pool is None:
        x = X.to(next(model.parameters()).dtype)
        assert torch.equal(model(x, EDGES), again(x, EDGES))
    save_pretrained(again, tmp_path / "twice")
    assert (tmp_path / "twice/config.json").read_text() == (tmp_path / "m/config.json").read_text()


def test_a_run_is_the_same_again_and_commands_take_it(run: Run, tmp_path: Path) -> None:
    save_pretrained(run, tmp_path / "m")
    again = from_pretrained(tmp_path / "m")
    assert isinstance(again, Run)
    assert again.scores == run.scores
    assert predict(again, node_dataset()).values == predict(run, node_dataset()).values
    card = (tmp_path / "m/README.md").read_text()
    assert card.startswith("---\nlibrary_name: coopsheaf\ntags:\n")
    for title in ("## Data", "## Metric", "## Intended use", "## Limits"):
        assert title in card
    assert f"| test | {run.scores['test']:.4f} |" in card


def test_a_shared_run_of_tables_predicts_and_names_no_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    rows = "\n".join(f"n{i},{i % 7},{'ab'[i % 2]}" for i in range(40))
    (tmp_path / "nodes.csv").write_text(f"id,size,label\n{rows}\n")
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"n{i},n{(i + 1) % 40}" for i in range(40)))  # fmt: skip
    tables = ("--nodes", tmp_path / "nodes.csv", "--edges", tmp_path / "edges.csv")

    def call(*words: object) -> None:
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        assert caught.value.code == 0, capsys.readouterr().err

    call(
        "train",
        *tables,
        "--target",
        "label",
        "--set",
        "train.epochs=2",
        "--out",
        tmp_path / "run",
        "--results",
        tmp_path / "results",
    )
    from coopsheaf.train.run import load_run

    save_pretrained(load_run(tmp_path / "run"), tmp_path / "shared")
    assert str(tmp_path) not in (tmp_path / "shared/config.json").read_text()
    assert str(tmp_path) in (tmp_path / "run/run.json").read_text()
    for name in ("run", "shared"):
        call("predict", tmp_path / name, *tables, "-o", tmp_path / f"{name}.csv")
    assert (tmp_path / "run.csv").read_text() == (tmp_path / "shared.csv").read_text()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"hidden_channels": 10**9}, "not a network of coopsheaf"),
        ({"num_layers": "two"}, "num_layers must be a whole number"),
        ({"magic": 1}, "unknown setting 'magic'"),
        ({"hidden_channels": 5}, "does not fit the model"),
    ],
)
def test_forged_settings_are_one_line(change: dict, rule: str, tmp_path: Path) -> None:
    save_pretrained(network(), tmp_path / "m")
    path = tmp_path / "m/config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"settings": config["settings"] | change}))
    with pytest.raises(CheckpointError, match=rule) as caught:
        from_pretrained(tmp_path / "m")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"model": "os.system"}, "model must be one that is registered here; got 'os.system'"),
        ({"in_channels": -1}, "in_channels must be a whole number of at least 1"),
        ({"in_channels": 2**31 - 1}, "not a network of coopsheaf|does not fit the model"),
        ({"dtype": "float8"}, "dtype must be one of float32, float64"),
        ({"identity": "other"}, "belongs to another run"),
        ({"auto_map": {"AutoModel": "evil.py"}}, "it has 'auto_map', which this version does not know"),
        ({"settings": 3}, "settings must be an object"),
    ],
)  # fmt: skip
def test_a_forged_config_is_one_line(change: dict, rule: str, tmp_path: Path) -> None:
    save_pretrained(network(), tmp_path / "m")
    path = tmp_path / "m/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=rule) as caught:
        from_pretrained(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_a_forged_run_is_checked_as_every_run(run: Run, tmp_path: Path) -> None:
    save_pretrained(run, tmp_path / "m")
    path = tmp_path / "m/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"in_channels": "many"}))
    with pytest.raises(CheckpointError, match="in_channels must be a whole number"):
        from_pretrained(tmp_path / "m")


def test_what_cannot_be_shared_is_said(run: Run, tmp_path: Path) -> None:
    class Mine(Network):
        def __init__(self) -> None:
            super().__init__(3, 2)

    with pytest.raises(ValueError, match="must be of a registered model"):
        save_pretrained(Mine(), tmp_path / "m")
    with pytest.raises(ValueError, match="`model` must be a Run or a network of this library; got Linear"):  # fmt: skip
        save_pretrained(torch.nn.Linear(2, 2), tmp_path / "m")
    save_pretrained(run, tmp_path / "full")
    with pytest.raises(ValueError, match=r"holds config\.json already"):
        save_pretrained(run, tmp_path / "full")
    with pytest.raises(CheckpointError, match=r"there is no config\.json in it"):
        from_pretrained(tmp_path)


def test_names_on_the_hub(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_pretrained(run, tmp_path / "m")
    with pytest.raises(CheckpointError, match="there is no such folder, and names on the Hub are owner/name"):  # fmt: skip
        from_pretrained("nowhere")
    asked = {}

    class Hub:
        @staticmethod
        def snapshot_download(name: str, **options: object) -> str:
            asked.update(options, name=name)
            return str(tmp_path / "m")

    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub)
    assert isinstance(from_pretrained("somebody/model", revision="v1"), Run)
    assert asked == {"name": "somebody/model", "revision": "v1", "allow_patterns": ["config.json", "model.safetensors", "README.md"]}  # fmt: skip
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ValueError, match=r"'somebody/model' is no folder; names on the Hub need huggingface_hub, which is not installed: pip install 'coopsheaf\[hub\]'"):  # fmt: skip
        from_pretrained("somebody/model")


def test_texts_of_a_stranger_are_no_markup(run: Run) -> None:
    from coopsheaf.train.card import run_card

    info = run.info | {"dataset": "x|<script>alert(1)</script>\n# title"}
    card = run_card(info)
    assert "<script>" not in card
    assert "\n# title" not in card


def test_notebooks_show_tables(run: Run) -> None:
    from coopsheaf import Graph
    from coopsheaf.notebook import table_html

    assert "<td style='text-align:left'>40</td>" in Graph(EDGES, 12)._repr_html_()
    shown = node_dataset()._repr_html_()
    assert "train, val, test" in shown
    assert "accuracy" in shown
    page = run._repr_html_()
    assert "<polyline" in page
    assert f"{run.scores['test']:.4g}" in page
    assert "<b>" not in table_html("<b>", {"<b>": "<b>"})
