"""``coopsheaf data pack`` and training on packs and batches."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import SMALL, Program, records, snapshot

pytest.importorskip("pymetis")

NAME = "minesweeper-generated"
QUICK = (
    *SMALL, "--epochs", "2", "--set", "model.num_layers=1", "--set", "model.learner=mlp",
)  # fmt: skip


@pytest.fixture
def pack(program: Program) -> str:
    out = program.ok("data", "pack", NAME, "-o", "pack")
    assert "pack: " in out
    assert "coopsheaf train pack:pack" in out
    return "pack:pack"


def test_a_pack_is_trained_on_and_found_again(
    program: Program, pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = program.ok("train", pack, *QUICK, "--set", "batch.kind=clusters", "--set", "batch.size=4")
    assert "batches of clusters (size 4, parts 20): 5 steps per epoch" in out
    assert "% of the edges kept" in out
    assert "recipe csnn/minesweeper-generated" in out
    (record,) = records()
    assert (record.dataset, record.config["batch"]) == (NAME, {"kind": "clusters", "size": 4})
    run = Path(f"runs/csnn-{NAME}-0").resolve()
    monkeypatch.chdir(tmp_path)  # the run knows where its pack is
    out = program.ok("evaluate", run)
    assert f"{record.test:.4f}" in out


def test_the_pack_gives_what_the_dataset_gives(program: Program, pack: str) -> None:
    for data, out in ((NAME, "one"), (pack, "two")):
        program.ok("train", data, *QUICK, "--out", out)
    one, two = records()
    assert (one.val, one.test, one.train) == (two.val, two.test, two.train)


def test_packs_are_described_and_kept(program: Program, pack: str) -> None:
    assert "nodes: 10000" in program.ok("data", "info", pack)
    before = snapshot(Path("pack"))
    assert "exists already; use --force" in program("data", "pack", NAME, "-o", "pack").error
    assert snapshot(Path("pack")) == before
    program.ok("data", "pack", NAME, "-o", "pack", "--force", "--set", "data.direction=stored")
    error = program("train", pack, "--set", "data.direction=undirected").error
    assert "`processing` of a pack must be what it was packed with" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "pack:gone"), "gone: not a pack (there is no meta.json in it)"),
        (("data", "info", "pack:gone"), "gone: not a pack"),
        (("data", "pack", "gone", "-o", "new"), "the dataset must be one of"),
        (("train", NAME, "--set", "batch.size=3"), "`batch.kind` must be one of"),
        (("train", NAME, "--set", "batch.kind=clusters", "--set", "batch.size=0"), "`size` must be an integer of at least 1; got 0"),
        (("train", NAME, "--set", "batch.kind=clusters", "--set", "batch.parts=20000"), "`batch.parts` must be at most 10000"),
        (("train", NAME, *QUICK, "--set", "batch.kind=neighbours", "--set", "batch.fanouts=3,3,3"), "`batch.fanouts` must be one number, or 2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_bad_input_is_one_line(program: Program, words: tuple[str, ...], message: str) -> None:
    assert message in program(*words).error
    assert not Path("runs").exists()
    assert not Path("new").exists()


def test_damage_is_one_line(program: Program, pack: str) -> None:
    path = Path("pack/x.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "x.npy: damaged, or of another pack" in program("train", pack, *QUICK).error


def test_a_pack_in_another_order(program: Program) -> None:
    program.ok("data", "pack", NAME, "-o", "near", "--order", "community")
    assert "nodes: 10000" in program.ok("data", "info", "pack:near")
    out = program.ok("train", "pack:near", *QUICK, "--set", "batch.kind=ranges")
    assert "batches of ranges (size 10, parts 20): 2 steps per epoch" in out
    program.ok("predict", f"runs/csnn-{NAME}-0", "-o", "found.csv")
    rows = Path("found.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == [str(i) for i in range(10_000)]
