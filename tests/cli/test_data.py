"""``coopsheaf data``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.program import Program, snapshot
from published import REAL_DATA, needs_real_data

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.data.registry import list_datasets

TEXAS = [file.path for file in DATASETS["texas"].files]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with texas and chameleon in it."""
    target = tmp_path / "data"
    for path in (*TEXAS, "platonov/chameleon_filtered.npz"):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REAL_DATA / path, target / path)
    return target


def row(out: str, name: str) -> list[str]:
    for line in out.splitlines():
        cells = [cell.strip() for cell in line.strip("│┃ ").split("│")]
        if cells[0] == name:
            return cells
    raise AssertionError(f"no row {name!r}")


def test_the_list_has_every_name(program: Program) -> None:
    out = program.ok("data", "list")
    for name in list_datasets():
        made = DATASETS[name].generate is not None
        assert row(out, name)[4] == ("generated" if made else "no")
    assert row(out, "tolokers")[1:4] == ["11,758", "519,000", "auroc"]
    assert "substitute" in " ".join(row(out, "roman-empire-substitute")[5:])


@needs_real_data
def test_the_list_says_what_is_here_and_what_is_damaged(program: Program, folder: Path) -> None:
    with open(folder / "platonov/chameleon_filtered.npz", "r+b") as file:
        file.truncate(1000)
    out = program.ok("data", "list", "--data-dir", folder)
    assert row(out, "texas")[4] == "yes"
    assert row(out, "chameleon")[4] == "damaged"
    assert row(out, "tolokers")[4] == "no"
    assert "must be an existing folder" in program("data", "list", "--data-dir", "gone").error


@needs_real_data
def test_info(program: Program, folder: Path) -> None:
    out = program.ok("data", "info", "texas", "--data-dir", folder)
    for text in ("licence:", "task: multiclass, metric: accuracy", "direction undirected", f"file {TEXAS[0]} (here)", "nodes: 183", "splits: 10"):  # fmt: skip
        assert text in out
    assert "nodes: 10000" in program.ok("data", "info", "minesweeper-generated")
    out = program.ok("data", "info", "tolokers")
    assert "file platonov/tolokers.npz (missing): https://" in out
    assert "(did you mean 'texas'?)" in program("data", "info", "texs").error


@needs_real_data
def test_verify(program: Program, folder: Path) -> None:
    out = program.ok("data", "verify", "--data-dir", folder)
    assert out == "chameleon: as published\ntexas: as published\n" or out == (
        "texas: as published\nchameleon: as published\n"
    )
    assert program.ok("data", "verify", "texas", "--data-dir", folder) == "texas: as published\n"
    error = program("data", "verify", "film", "--data-dir", folder).error
    assert "film: all files must be on this machine to be verified; missing geom-gcn/film" in error


def test_nothing_to_verify(program: Program) -> None:
    assert "no dataset is on this machine" in program("data", "verify").error


@needs_real_data
def test_import(program: Program, folder: Path, cache: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    before = snapshot(folder)
    out = program.ok("data", "import", folder)
    for path in TEXAS:
        assert f"imported: {path}\n" in out
        assert (cache / path).read_bytes() == (folder / path).read_bytes()
    assert f"unknown: {folder / 'notes.txt'}" in out
    assert program.ok("data", "verify", "texas", "chameleon").count("as published") == 2
    assert f"present: {TEXAS[0]}\n" in program.ok("data", "import", folder)
    assert snapshot(folder) == before
    assert "must be an existing folder; got 'gone'" in program("data", "import", "gone").error


@needs_real_data
def test_fetch_finds_what_is_here(program: Program, folder: Path) -> None:
    out = program.ok("data", "fetch", "texas", "--data-dir", folder)
    assert out.splitlines() == [str(folder / path) for path in TEXAS]


@pytest.mark.parametrize("words", [("data", "fetch"), ("train",)], ids=" ".join)
def test_offline_names_the_file_and_where_to_put_it(
    program: Program, words: tuple[str, ...], cache: Path
) -> None:
    file = DATASETS["tolokers"].files[0]
    error = program(*words, "tolokers").error
    for text in (file.path, str(file.url), str(file.sha256), str(cache / file.path), "COOPSHEAF_OFFLINE", "$COOPSHEAF_DATA"):  # fmt: skip
        assert text in error
    assert not cache.exists()


def test_fetch_wants_a_name(program: Program) -> None:
    assert "name at least one dataset" in program("data", "fetch").error


@needs_real_data
def test_an_import_that_skips_says_so_at_the_end(program: Program, folder: Path) -> None:
    with open(folder / "platonov/chameleon_filtered.npz", "r+b") as file:
        file.truncate(1000)
    done = program("data", "import", folder)
    assert "skipped: " in done.out
    assert done.error == f"{folder}: 1 file(s) were skipped, see above"


def test_an_import_of_nothing_is_an_error(program: Program, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/notes.txt").write_text("mine")
    done = program("data", "import", tmp_path / "notes")
    assert "holds no file of a dataset" in done.error
