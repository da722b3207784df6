"""``coopsheaf bench`` and ``coopsheaf report``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.program import Program, records
from published import REAL_DATA, needs_real_data

from coopsheaf.data.pack import write_pack
from coopsheaf.data.synthetic import contextual_sbm

RECIPE = (
    '[recipe]\nname = "mine"\n[model]\nname = "csnn"\nhidden_channels = 4\nstalk_dim = 2\n'
    '[data]\nname = "texas"\n[train]\nepochs = 2\n'
)


def bench(splits: str = "0-1", *more: object) -> tuple[object, ...]:
    return ("bench", "mine.toml", "--splits", splits, "--data-dir", REAL_DATA, *more)


@needs_real_data
def test_what_is_missing_is_run_and_what_is_recorded_is_skipped(program: Program) -> None:
    Path("mine.toml").write_text(RECIPE)
    out = program.ok(*bench("0-1"))
    assert "recorded already" not in out
    assert "tables: coopsheaf report --results results" in out
    out = program.ok(*bench("0-2"))
    assert [line.endswith("(recorded already)") for line in out.splitlines() if line.startswith("split")] == [True, True, False]  # fmt: skip
    assert [record.split for record in records()] == [0, 1, 2]
    # Another setting or seed is another run; a recipe of another name is not.
    program.ok(*bench("0", "--set", "train.lr=0.5"))
    program.ok(*bench("0", "--set", "train.seed=5"))
    Path("mine.toml").write_text(RECIPE.replace('"mine"', '"yours"'))
    assert "recorded already" in program.ok(*bench("0"))
    found = records()
    assert len(found) == 5
    assert len({record.config_hash for record in found}) == 2  # the seed does not count


@needs_real_data
def test_splits_together(program: Program) -> None:
    Path("mine.toml").write_text(RECIPE)
    out = program.ok(*bench("0-2", "--together"))
    assert [line.split(":")[0] for line in out.splitlines() if line.startswith("split")] == ["split 0", "split 1", "split 2"]  # fmt: skip
    assert [record.together for record in records()] == [3, 3, 3]
    assert program.ok(*bench("0-2")).count("recorded already") == 3
    out = program.ok(*bench("0-1", "--together", "--seeds", "43,50-51"))
    assert out.count("recorded already") == 2
    assert sorted((r.seed, r.split, r.together) for r in records()[3:]) == [(50, 0, 4), (50, 1, 4), (51, 0, 4), (51, 1, 4)]  # fmt: skip
    assert "--seeds goes with --together" in program(*bench("0", "--seeds", "1")).error
    error = program(*bench("3", "--together", "--set", "train.precision=bf16")).error
    assert "`train.precision` must be 32 or 64" in error


@needs_real_data
def test_several_recipes_in_one_go(program: Program) -> None:
    Path("mine.toml").write_text(RECIPE)
    Path("other.toml").write_text(RECIPE.replace("csnn", "mlp").replace("stalk_dim = 2\n", ""))
    program.ok("bench", "mine.toml", "other.toml", "--splits", 0, "--data-dir", REAL_DATA)
    assert [record.model for record in records()] == ["csnn", "mlp"]
    assert sorted(path.name for path in Path("results").glob("*.jsonl")) == [
        "csnn-texas.jsonl",
        "mlp-texas.jsonl",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name at least one recipe"),
        (("csnn/tolokerz",), "there is no recipe 'csnn/tolokerz'"),
        (("gone.toml",), "gone.toml: cannot be read"),
        (("broken.toml",), "broken.toml: not valid TOML"),
        (("csnn/tolokers", "--set", "train.nothing=1"), "unknown setting 'nothing'"),
        (("csnn/tolokers",), "platonov/tolokers.npz is not on this machine"),
    ],
)
def test_wrong_benches_are_explained(
    program: Program, words: tuple[str, ...], message: str
) -> None:
    Path("broken.toml").write_text("[model\n")
    assert message in program("bench", *words).error
    assert [path.name for path in Path().iterdir()] == ["broken.toml"]


@needs_real_data
def test_reports_in_three_formats(program: Program) -> None:
    Path("mine.toml").write_text(RECIPE)
    program.ok(*bench("0-1"))
    for kind, signs in (
        ("markdown", ("| ", "---")),
        ("latex", ("\\begin{tabular}", "\\\\")),
        ("html", ("<table", "</table>")),
    ):
        shown = program.ok("report", "--format", kind)
        assert all(sign in shown for sign in signs)
        assert "texas" in shown
        said = program.ok("report", "--format", kind, "-o", f"out/{kind}.txt")
        assert said == f"2 records: out/{kind}.txt\n"
        assert Path(f"out/{kind}.txt").read_text("utf-8") == shown
    narrowed = program.ok("report", "--datasets", "texas", "--models", "csnn")
    assert "texas" in narrowed


@needs_real_data
def test_wrong_reports_are_explained(program: Program) -> None:
    assert "results: there is no such folder" in program("report").error
    Path("results").mkdir()
    assert "results: holds no records" in program("report").error
    Path("results/a.jsonl").write_text("nonsense\n\n")
    assert "results/a.jsonl, line 1: not a record" in program("report").error
    Path("results/a.jsonl").unlink()
    Path("mine.toml").write_text(RECIPE)
    program.ok(*bench("0"))
    assert "`--format` must be one of 'markdown'" in program("report", "--format", "pdf").error
    assert "`--datasets` must be one of 'texas'; got 'film'" in program("report", "--datasets", "film").error  # fmt: skip
    assert "`--models` must be one of 'csnn'; got 'gat'" in program("report", "--models", "gat").error  # fmt: skip
    Path("taken").mkdir()
    assert "taken: Is a directory" in program("report", "-o", "taken").error
    Path("file").write_text("x")
    assert "file" in program("report", "-o", "file/report.md").error
    assert Path("file").read_text() == "x"


@needs_real_data
def test_a_record_is_verified(program: Program) -> None:
    words = ("--set", "train.epochs=4", "--set", "model.hidden_channels=4", "--threads", 1)
    program.ok("bench", "mlp/texas", "--splits", "0", "--data-dir", REAL_DATA, *words)
    file = Path("results/mlp-texas.jsonl")
    out = program.ok("bench", "--verify", f"{file}:1", "--data-dir", REAL_DATA)
    assert "agrees exactly: the same scores" in out
    record = json.loads(file.read_text()) | {"test": 7.0}
    file.write_text(json.dumps(record) + "\n")
    done = program("bench", "--verify", file, "--data-dir", REAL_DATA)
    assert done.code == 2
    assert "does not agree" in done.err
    assert len(file.read_text().splitlines()) == 1
    assert "leave out all others" in program("bench", "mlp/texas", "--verify", file).error


def test_bad_lines_stop_neither_bench_nor_report(program: Program) -> None:
    write_pack(contextual_sbm(40, 3.0, homophily=0.5, num_features=4, signal=1.0), "graph")
    Path("mine.toml").write_text(RECIPE.replace('"texas"', '"pack:graph"'))
    program.ok("bench", "mine.toml", "--splits", "0")
    (file,) = Path("results").glob("*.jsonl")
    whole = file.read_text("utf-8")
    file.write_text('{"model": 5}\n' + whole + "nonsense\n", encoding="utf-8")
    done = program("bench", "mine.toml", "--splits", "0")
    assert done.code == 0
    assert "recorded already" in done.out
    for line in (
        f"passed over: {file}, line 1: not a record (model must be text",
        f"passed over: {file}, line 3: not a record (Expecting value",
        "passed over, all in all: 2",
    ):
        assert line in done.err
    Path("runs/broken").mkdir(parents=True)
    Path("runs/broken/run.json").write_text("{")
    done = program("report", "--html", "--output", "page.html")
    assert done.code == 0
    assert "1 records: page.html" in done.out
    assert "passed over: runs/broken/run.json: not readable JSON" in done.err
    assert "passed over, all in all: 3" in done.err
