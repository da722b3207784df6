"""Known files of any folder are copied into the cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from published import REAL_DATA, needs_real_data, write_fb100

from coopsheaf.data.errors import DataError
from coopsheaf.data.importing import import_folder, known_files
from coopsheaf.data.registry import load


@needs_real_data
def test_files_are_known_by_their_content(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "downloads"
    (folder / "sub").mkdir(parents=True)
    shutil.copyfile(REAL_DATA / "platonov/chameleon_filtered.npz", folder / "sub/renamed.bin")
    shutil.copyfile(REAL_DATA / "fb100/Reed98.mat", folder / "Reed98.mat")
    (folder / "notes.txt").write_text("mine")
    (folder / "tolokers.npz").write_bytes(b"damaged")
    outcome = import_folder(folder)
    assert set(outcome.imported) == {"platonov/chameleon_filtered.npz", "fb100/Reed98.mat"}
    assert outcome.present == ()
    assert outcome.unknown == (folder / "notes.txt",)
    assert len(outcome.skipped) == 1
    assert outcome.skipped[0].startswith(
        f"{folder / 'tolokers.npz'}: must have a published checksum"
    )
    assert load("chameleon").num_features == 2_325
    assert load("reed98").num_features == 745
    again = import_folder(folder)
    assert again.imported == ()
    assert set(again.present) == set(outcome.imported)


@needs_real_data
def test_one_file_may_belong_in_two_places(tmp_path: Path, cache: Path) -> None:
    name = "out1_node_feature_label.txt"
    shutil.copyfile(REAL_DATA / "geom-gcn/texas" / name, tmp_path / name)
    assert set(import_folder(tmp_path).imported) == {
        f"geom-gcn/texas/{name}",
        f"geom-gcn/cornell/{name}",
    }
    assert (cache / "geom-gcn/cornell" / name).exists()


@needs_real_data
def test_a_whole_data_folder_can_be_imported(tmp_path: Path) -> None:
    outcome = import_folder(REAL_DATA / "geom-gcn", tmp_path / "copy")
    assert len(outcome.imported) == 60
    assert outcome.skipped == outcome.present == outcome.unknown == ()
    assert load("texas", tmp_path / "copy").checksum == load("texas", REAL_DATA).checksum
    assert not list((tmp_path / "copy").rglob("*.part"))


def test_a_file_without_published_checksum_is_known_by_its_name(
    tmp_path: Path, cache: Path
) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    write_fb100(folder / "Penn94.mat")
    (folder / "peptide_structure_dataset.csv.gz").write_bytes(b"not the published one")
    outcome = import_folder(folder)
    assert outcome.imported == ("fb100/Penn94.mat",)
    assert (cache / "fb100/Penn94.mat.sha256").exists()
    assert "peptide_structure_dataset.csv.gz: must have a published checksum" in outcome.skipped[0]
    write_fb100(folder / "Penn94.mat", 31)
    (cache / "fb100/Penn94.mat").unlink()
    assert "as at its first use" in import_folder(folder).skipped[0]
    assert not (cache / "fb100/Penn94.mat").exists()


def test_a_damaged_file_in_the_cache_is_reported(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    write_fb100(folder / "Penn94.mat")
    import_folder(folder)
    (cache / "fb100/Penn94.mat").write_bytes(b"damaged")
    assert "as at its first use" in import_folder(folder).skipped[0]


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    write_fb100(folder / "Penn94.mat")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    outcome = import_folder(folder, blocked)
    assert outcome.imported == ()
    assert "must be writable; " in outcome.skipped[0]


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="`folder` must be an existing folder"):
        import_folder(tmp_path / "gone")


def test_every_known_file_has_a_place() -> None:
    files = known_files()
    assert len(files) > 60
    assert all(
        path == file.path and ".." not in path and not path.startswith("/")
        for path, file in files.items()
    )
