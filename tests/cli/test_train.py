"""Datasets by name: settings from the command line, splits, folders, records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from cli.program import SMALL, Program, records
from published import REAL_DATA, needs_real_data

from coopsheaf.cli.show import parse_splits
from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.run import load_run

TEXAS = ("train", "texas", "--data-dir", REAL_DATA, "--epochs", 2, *SMALL)


@needs_real_data
def test_splits_each_have_their_run_and_record(program: Program) -> None:
    out = program.ok(*TEXAS, "--splits", "0,3-4")
    assert "texas: 183 nodes, 558 directed edges, 1703 features, multiclass" in out
    assert "direction undirected, self-loops remove, features raw" in out
    assert [line.split(":")[0] for line in out.splitlines() if "accuracy train" in line] == [
        "split 0",
        "split 3",
        "split 4",
    ]
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "csnn-texas-0",
        "csnn-texas-3",
        "csnn-texas-4",
    ]
    found = records()
    assert [record.split for record in found] == [0, 3, 4]
    assert {record.config_hash for record in found} == {found[0].config_hash}
    for record in found:
        run = load_run(Path(f"runs/csnn-texas-{record.split}"))
        assert record.test == run.info["result"]["scores"]["test"]
        assert record.config == run.info["recipe"]


@needs_real_data
def test_evaluate_and_predict_by_name(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program.ok(*TEXAS, "--out", "run", "--splits", 1)
    monkeypatch.setenv("COOPSHEAF_DATA", str(REAL_DATA))
    assert "csnn on texas, split 1" in program.ok("evaluate", "run")
    program.ok("predict", "run", "-o", "out.csv")
    lines = Path("out.csv").read_text("utf-8").splitlines()
    assert len(lines) == 184
    assert lines[1].startswith("0,")
    words = ("predict", "run", "-o", "no.csv", "--nodes", "a.csv", "--edges", "b.csv")
    assert "this run was trained on texas, not on tables" in program(*words).error
    assert not Path("no.csv").exists()


@needs_real_data
def test_settings_are_typed_and_reach_the_run(program: Program) -> None:
    settings = (
        "model.num_layers=1", "model.dropout=0.25", "model.left_weights=false", "model.norm=layer",
        "model.semantics=released", "train.optimizer=adamw", "train.clip=1", "data.direction=stored",
    )  # fmt: skip
    words = [word for setting in settings for word in ("--set", setting)]
    out = program.ok(*TEXAS, *words, "--out", "run")
    assert "direction stored" in out
    recipe = load_run(Path("run")).recipe
    assert recipe.model.num_layers == 1
    assert recipe.model.dropout == 0.25
    assert recipe.model.left_weights is False
    assert recipe.model.norm == "layer"
    assert recipe.train.optimizer == "adamw"
    assert recipe.train.clip == 1.0
    assert isinstance(recipe.train.clip, float)
    assert recipe.data.direction == "stored"
    (record,) = records()
    assert record.semantics == "released"
    assert record.processing["direction"] == "stored"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.stalk_dims=4", "--set model.stalk_dims: unknown setting 'stalk_dims' (did you mean 'stalk_dim'?); there are hidden_channels, num_layers,"),
        ("model.stalk_dim=four", "--set model.stalk_dim must be a whole number; got 'four'"),
        ("model.left_weights=maybe", "must be true or false; got 'maybe'"),
        ("modell.stalk_dim=4", "must look like section.field=value, with a section of model, data, train"),
        ("model", "must look like section.field=value"),
        ("train.lr=nan", "`lr` must be finite and not negative; got nan"),
        ("train.epochs=0", "`epochs` must be at least 1; got 0"),
        ("train.seed=9999999999", "`seed` must be below 2**32"),
        ("train.optimizer=sgb", "`optimizer` must be one of 'adam', 'adamw', 'sgd'; got 'sgb'"),
        ("model.semantics=mine", "`semantics` must be one of 'paper', 'released'"),
        ("model.stalk_dim=0", "`stalk_dim` must be an integer of at least 1; got 0"),
        ("model.act=nothing", "`act` must be an activation or its name"),
        ("data.direction=sideways", "`direction` must be one of 'stored', 'reversed', 'undirected', 'rows'; got 'sideways'"),
    ],
)  # fmt: skip
@needs_real_data
def test_wrong_settings_are_explained(program: Program, setting: str, message: str) -> None:
    error = program("train", "texas", "--data-dir", REAL_DATA, "--set", setting).error
    assert message in error
    assert not Path("runs").exists()
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give either the name of a dataset"),
        (("texas", "--nodes", "a.csv"), "give either the name of a dataset"),
        (("--nodes", "a.csv"), "--nodes and --edges go together"),
        (("--edges", "a.csv"), "--nodes and --edges go together"),
        (("texas", "--target", "label"), "go with --nodes and --edges, not with the name of a dataset"),
        (("texass",), "(did you mean 'texas'?)"),
        (("csnn/peptides-func",), "got 'csnn/peptides-func': say `coopsheaf train peptides-func --model csnn`"),
        (("gcn/texass",), "got 'gcn/texass': there is no dataset 'texass' (did you mean 'texas'?)"),
        (("texas", "--model", "gcnn"), "`model` must be one of 'csnn'"),
        (("texas", "--recipe", "csnn/tolokerz"), "there is no recipe 'csnn/tolokerz' (did you mean 'csnn/tolokers'"),
        (("texas", "--recipe", "gone.toml"), "gone.toml: cannot be read (No such file or directory)"),
        (("texas", "--threads", "0"), "--threads must be at least 1; got 0"),
        (("texas", "--data-dir", "gone"), "`data_dir` must be an existing folder; got 'gone'"),
        (("--nodes", "a.csv", "--edges", "b.csv", "--set", "data.direction=undirected"), "for tables there are --undirected"),
    ],
)  # fmt: skip
def test_wrong_commands_are_explained(
    program: Program, words: tuple[str, ...], message: str
) -> None:
    error = program("train", *words).error
    assert message in error
    assert len(error) < 150 or "/" not in words[0]  # no list of all datasets
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("text", "splits"),
    [("0", [0]), ("0-3", [0, 1, 2, 3]), ("0,2,5-7", [0, 2, 5, 6, 7]), (" 1, 2 ", [1, 2]), ("3,3,2-3", [3, 2])],
)  # fmt: skip
def test_splits_are_read(text: str, splits: list[int]) -> None:
    assert parse_splits(text, 10) == splits


@pytest.mark.parametrize("text", ["", "a", "-1", "1-", "0--2", "1.5", "3-1", "10", "0-10", "0-99999999999999", "1;2"])  # fmt: skip
def test_wrong_splits_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--splits must"):
        parse_splits(text, 10)


@needs_real_data
def test_one_folder_holds_one_run(program: Program) -> None:
    assert "--out takes one run" in program(*TEXAS, "--splits", "0-1", "--out", "run").error
    assert list(Path().iterdir()) == []


@needs_real_data
def test_a_recipe_file(program: Program) -> None:
    Path("mine.toml").write_text(
        '[recipe]\nname = "mine"\nsource = "me"\n[model]\nname = "mlp"\nhidden_channels = 4\n'
        '[data]\nname = "cornell"\n[train]\nepochs = 2\n'
    )
    out = program.ok("train", "texas", "--recipe", "mine.toml", "--data-dir", REAL_DATA)
    assert "texas: 183 nodes" in out
    assert "mlp: recipe mine (me)" in out
    assert Path("runs/mlp-texas-0").is_dir()
    (record,) = records()
    assert (record.recipe, record.semantics) == ("mine", "")
    Path("wrong.toml").write_text('[model]\nname = "csnn"\nstalk = 4\n')
    error = program("train", "texas", "--recipe", "wrong.toml", "--data-dir", REAL_DATA).error
    assert "wrong.toml: [model]: unknown setting 'stalk'" in error


@needs_real_data
def test_a_loss_that_explodes_leaves_no_run_behind(program: Program) -> None:
    error = program("train", "texas", "--data-dir", REAL_DATA, "--epochs", 30, "--model", "mlp", "--set", "train.lr=1e30", "--out", "run").error  # fmt: skip
    assert "the loss became" in error
    assert not Path("run").exists()
    assert not Path("results").exists()
    program.ok("train", "texas", "--data-dir", REAL_DATA, "--epochs", 2, "--model", "mlp", "--out", "run")  # fmt: skip


@needs_real_data
def test_an_interrupted_run_is_continued(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of a run that stopped after two epochs, then --resume."""
    from coopsheaf.cli import training

    words = (*TEXAS, "--epochs", 6)
    program.ok(*words, "--out", "whole")
    real, count = training.run_split, iter(range(99))

    def stopped(*args: object, **options: object) -> object:
        return real(*args, **{**options, "should_stop": lambda: next(count) == 1})

    monkeypatch.setattr(training, "run_split", stopped)
    done = program(*words, "--out", "pieces", "--results", "other")
    assert done.code == 130
    assert "stopped after epoch 2; the state is in pieces" in done.err
    assert "--resume" in done.err
    assert not Path("other").exists()
    info = json.loads(Path("pieces/run.json").read_text("utf-8"))
    assert info["status"] == "interrupted"
    assert "the run has not ended" in program("evaluate", "pieces").error
    program.ok(*words, "--out", "pieces", "--resume", "--results", "other")
    whole, pieces = (load_run(Path(name)) for name in ("whole", "pieces"))
    for key in ("scores", "history", "best_epoch", "epochs"):
        assert whole.info["result"][key] == pieces.info["result"][key]
    ours, theirs = (load_tensors(Path(n) / "model.safetensors")[0] for n in ("whole", "pieces"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert len(records(Path("other"))) == 1
