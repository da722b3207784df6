"""``python -m lab squash`` and ``python -m lab noisy-path``."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program

from lab.squash.records import PLACE, read_squash_records

SQUASH = ("squash", "--depths", "2", "--models", "gcn", "--minutes", "0.02")


def test_points_are_run_recorded_shown_and_skipped(laboratory: Program) -> None:
    Path("page.md").write_text(f"# page\n<!-- {PLACE}: begin -->\n<!-- {PLACE}: end -->\n")
    out = laboratory.ok(*SQUASH, "--figure", "depth.svg", "--document", "page.md")
    (record,) = read_squash_records(Path("results/squash"))
    assert (record.model, record.depth, record.budget, record.minutes) == ("gcn", 2, "short", 0.02)
    assert "GCN, r = 2: train" in out
    assert Path("depth.svg").read_text().count("published") >= 1
    assert "| GCN | 2 |" in Path("page.md").read_text()
    assert "recorded already" in laboratory.ok(*SQUASH)
    assert "GCN" in laboratory.ok("squash", "--report")
    assert len(read_squash_records(Path("results/squash"))) == 1


def test_settings_of_csnn_multiply(laboratory: Program) -> None:
    laboratory.ok(
        "squash", "--depths", "2", "--models", "csnn", "--minutes", "0.001",
        "--directions", "to-root", "bidirected", "--learners", "mlp", "sage",
    )  # fmt: skip
    found = [(r.direction, r.learner) for r in read_squash_records(Path("results/squash"))]
    assert found == [(d, x) for d in ("to-root", "bidirected") for x in ("mlp", "sage")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--depths", "1"), "--depths must go from low to high, between 2 and 8"),
        (("--depths", "2-9"), "--depths must go from low to high, between 2 and 8"),
        (("--depths", "5-2"), "--depths must go from low to high"),
        (("--depths", "two"), "--depths must look like"),
        (("--models", "gnn"), "`--models` must be one of 'gcn', 'gin'"),
        (("--directions", "sideways"), "`--directions` must be one of 'as-released'"),
        (("--learners", "gat"), "`--learners` must be one of 'sage'"),
        (("--semantics", "mine"), "`--semantics` must be one of 'paper'"),
        (("--budget", "huge"), "`--budget` must be one of 'short'"),
        (("--minutes", "0"), "`minutes` must be a positive number"),
        (("--seed", "-1"), "`seed` must be an integer of at least 0"),
        (("--figure", "depth.txt"), "--figure must end in .svg"),
        (("--report",), "results/squash: holds no points yet"),
        (("--threads", "0"), "--threads must be at least 1"),
    ],
)
def test_bad_input_is_one_line(laboratory: Program, words: tuple[str, ...], message: str) -> None:
    assert message in laboratory("squash", *words).error
    assert not Path("runs").exists()


def test_the_noisy_path(laboratory: Program) -> None:
    words = ("noisy-path", "--seeds", "2", "--steps", "3", "--figure", "path.svg")
    out = laboratory.ok(*words)
    assert "of 2 seeds" in out
    assert "layer 3" in Path("path.svg").read_text()
    before = Path("results/squash/noisy-path.jsonl").read_text()
    assert len(before.splitlines()) == 2
    laboratory.ok(*words)
    assert Path("results/squash/noisy-path.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", "0"), "--seeds must be at least 1"),
        (("--learner", "gat"), "`--learner` must be one of"),
        (("--steps", "0"), "`steps` must be an integer of at least 1"),
        (("--figure", "x.doc"), "--figure must end in"),
    ],
)
def test_bad_input_of_the_noisy_path(
    laboratory: Program, words: tuple[str, ...], message: str
) -> None:
    assert message in laboratory("noisy-path", *words).error


def test_a_figure_that_cannot_be_drawn_is_refused_first(
    laboratory: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.squash.commands.find_spec", lambda name: None)
    for command in ("squash", "noisy-path"):
        error = laboratory(command, "--figure", "x.svg").error
        assert error == "--figure needs matplotlib: pip install 'coopsheaf[viz]'"
