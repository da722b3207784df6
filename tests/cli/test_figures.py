"""``coopsheaf figures``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli.program import SMALL, Program, snapshot, write_tables

from coopsheaf.cli import main

pytest.importorskip("matplotlib")

OF_RUN = ["run-actions", "run-scales", "run-sensitivity", "run-spectra"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three models on tables; read only."""
    folder = tmp_path_factory.mktemp("trained")
    nodes, edges = write_tables(folder)
    for model, more in (("csnn", SMALL), ("cognn", ()), ("mlp", ())):
        words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2)
        places = ("--out", folder / model, "--results", folder / "results")
        weight = ("--weight", "strength") if model == "csnn" else ()
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in (*words, "--model", model, *weight, *more, *places)])
        assert caught.value.code == 0
    return folder


def names(folder: Path, kind: str = "svg") -> list[str]:
    assert {path.suffix for path in folder.iterdir()} == {f".{kind}"}
    return sorted(path.stem for path in folder.iterdir())


def test_a_run_is_drawn(program: Program, trained: Path) -> None:
    before = snapshot(trained)
    program.ok("figures", trained / "csnn", "--output", "out", "--format", "png")
    assert names(Path("out"), "png") == OF_RUN
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in Path("out").iterdir())
    assert snapshot(trained) == before


def test_a_cooperative_network_without_maps_has_no_spectra(program: Program, trained: Path) -> None:
    program.ok("figures", trained / "cognn", "-o", "out", "--format", "pdf")
    assert names(Path("out"), "pdf") == OF_RUN[:-1]


def test_what_is_there_is_not_overwritten_unasked(program: Program, trained: Path) -> None:
    Path("out").mkdir()
    Path("out/run-scales.svg").write_text("mine")
    error = program("figures", trained / "cognn", "-o", "out").error
    assert error == "out/run-scales.svg: exists already; use --force to overwrite it"
    assert names(Path("out")) == ["run-scales"]
    assert Path("out/run-scales.svg").read_text() == "mine"
    program.ok("figures", trained / "cognn", "-o", "out", "--force")
    assert names(Path("out")) == OF_RUN[:-1]
    assert Path("out/run-scales.svg").read_text("utf-8").startswith("<?xml")


def test_wrong_calls_are_explained(program: Program, trained: Path) -> None:
    Path("file").write_text("x")
    for words, message in (
        (
            (trained / "csnn", "-o", "a", "--format", "gif"),
            "`--format` must be one of 'svg', 'pdf', 'png'; got 'gif'",
        ),
        (("nothing", "-o", "a"), "nothing: not a run (there is no run.json in it)"),
        ((trained / "mlp", "-o", "a"), "must be a CSNN or a CO-GNN to have actions; got"),
        ((trained / "csnn", "-o", "file"), "file: must be a folder; there is a file of this name"),
        (
            (trained / "csnn", "-o", "file/deeper"),
            "file: must be a folder; there is a file of this name",
        ),
    ):
        assert message in program("figures", *words).error
    assert [path.name for path in Path().iterdir()] == ["file"]
    assert Path("file").read_text() == "x"


def test_without_matplotlib_it_says_what_to_install(
    program: Program, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = program("figures", trained / "csnn", "-o", "out").error
    assert "pip install 'coopsheaf[viz]'" in error
    assert not Path("out").exists()
