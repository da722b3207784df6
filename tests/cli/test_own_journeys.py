"""From own tables to predictions, for every task and every form that tables have."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import SMALL, Program

from coopsheaf.train.checkpoint import load_tensors, save_tensors
from coopsheaf.train.run import load_run

Rows = list[dict[str, object]]
N = 40


def people(**columns: object) -> Rows:
    """Forty people; more columns are functions of their number."""
    rng = random.Random(0)
    rows: Rows = []
    for i in range(N):
        row: dict[str, object] = {"id": f"p{i}", "age": rng.randint(18, 80), "kind": "xyz"[i % 3]}
        rows.append(row | {name: value(i) for name, value in columns.items()})  # type: ignore[operator]
    return rows


def friends(n: int = N, **columns: object) -> Rows:
    rng = random.Random(1)
    pairs = [(i, (i + k) % n) for i in range(n) for k in (1, 7)] + [(3, 3)]
    return [
        {"source": f"p{i}", "target": f"p{j}", "strength": f"{rng.random():.2f}"}
        | {name: value(i) for name, value in columns.items()}  # type: ignore[operator]
        for i, j in pairs
    ]


def write(rows: Rows, path: str, names: list[str] | None = None) -> str:
    names = names or list(rows[0])
    text = "\n".join([",".join(names), *(",".join(str(row[n]) for n in names) for row in rows)])
    data = (text + "\n").encode()
    Path(path).write_bytes(gzip.compress(data) if path.endswith(".gz") else data)
    return path


def read(path: str = "out.csv") -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def tables(nodes: Rows, edges: Rows | None = None) -> tuple[str, ...]:
    return ("--nodes", write(nodes, "n.csv"), "--edges", write(edges or friends(), "e.csv"))


def train(program: Program, *words: object) -> str:
    return program.ok("train", *words, "--epochs", 2, "--out", "run", *SMALL)


def count_labelled(out: str, what: str) -> int:
    """Of all parts that `evaluate` keeps apart."""
    return sum(int(count) for count in re.findall(rf"^(\d+) labelled {what} ", out, re.MULTILINE))


def scores_are_found_again(program: Program) -> None:
    """``evaluate`` reads the same tables again and measures what training measured."""
    scores = load_run(Path("run")).info["result"]["scores"]
    out = program.ok("evaluate", "run")
    for part in ("train", "val", "test"):
        line = next(line for line in out.splitlines() if f" {part} " in line)
        assert line.count(f"{scores[part]:.4f}") == 2, out


def both_ways(program: Program, *given: object) -> list[list[str]]:
    """Predictions on the run's own data and on the same tables given anew: equal."""
    program.ok("predict", "run", "-o", "out.csv", "--force")
    program.ok("predict", "run", *given, "-o", "again.csv", "--force")
    assert read("again.csv") == read("out.csv")
    return read()


def test_classes(program: Program) -> None:
    given = tables(people(label=lambda i: "ab"[i % 2]))
    out = train(program, *given, "--target", "label")
    assert out.count("node ids: column 'id'") == 1
    assert "edges: from column 'source' to column 'target'; not used: 'strength'" in out
    scores_are_found_again(program)
    header, *rows = both_ways(program, *given)
    assert header == ["id", "prediction", "p(a)", "p(b)"]
    assert [row[0] for row in rows] == [f"p{i}" for i in range(N)]
    out = program.ok("predict", "run", *given, "-o", "o.csv")
    assert "--weight" not in out  # which is no option of predict
    assert "label" not in out  # nor are the labels looked at
    out = program.ok("evaluate", "run", *given)
    assert count_labelled(out, "nodes") == 40
    assert "labelled nodes that the run was trained on: " in out
    assert "the names of those of the run's training and validation part" in out
    program.ok("explain", "run", "-o", "page.html")


def test_two_targets(program: Program) -> None:
    given = tables(people(height=lambda i: i / 7, weight=lambda i: "" if i == 3 else i * 1.1))
    out = train(program, *given, "--target", "height", "weight", "--task", "regression")
    assert "MAE train" in out
    scores_are_found_again(program)
    header, *rows = both_ways(program, *given)
    assert header == ["id", "prediction(height)", "prediction(weight)"]
    assert len({row[2] for row in rows}) > 1
    out = program.ok("evaluate", "run", *given)
    assert count_labelled(out, "nodes") == 40
    assert "labelled nodes of its test part: mae" in out
    program.ok("explain", "run", "-o", "page.html")


@pytest.mark.parametrize("form", ["list", "columns"])
def test_several_labels_at_once(program: Program, form: str) -> None:
    if form == "list":
        lists = ("a|b", "a", "b|c", "c")
        given = tables(people(tags=lambda i: lists[i % 4]))
        words, names = ("--target", "tags", "--task", "multilabel"), ["a", "b", "c"]
    else:
        given = tables(people(a=lambda i: i % 2, b=lambda i: int(i % 3 == 0)))
        words, names = ("--target", "a", "b", "--task", "multilabel"), ["a", "b"]
    train(program, *given, *words)
    scores_are_found_again(program)
    header, *rows = both_ways(program, *given)
    assert header == ["id", "prediction", *(f"p({name})" for name in names)]
    for row in rows:
        likely = [n for n, p in zip(names, row[2:], strict=True) if float(p) > 0.5]
        assert row[1] == "|".join(likely)


def test_folds_are_splits(program: Program) -> None:
    given = tables(people(label=lambda i: "ab"[i % 2], fold=lambda i: i // 2 % 4))
    words = ("train", *given, "--target", "label", "--epochs", 1, *SMALL)
    out = program.ok(*words, "--splits", "0-2")
    assert [f"split {k}: " in out for k in range(4)] == [True, True, True, False]
    assert out.count("node ids") == 1
    program.ok("evaluate", "runs/csnn-own-n-2")
    assert "4" in program(*words, "--splits", "4").error


def groups() -> tuple[str, ...]:
    """Twenty graphs of four nodes in a ring, whose ids repeat."""
    rng = random.Random(2)
    nodes: Rows = [{"graph": f"g{g}", "id": f"p{i}", "size": rng.randint(1, 9)} for g in range(20) for i in range(4)]  # fmt: skip
    edges: Rows = [{"graph": f"g{g}", "source": f"p{i}", "target": f"p{(i + 1) % 4}"} for g in range(20) for i in range(4)]  # fmt: skip
    graphs: Rows = [{"graph": f"g{g}", "toxic": "yn"[g % 2]} for g in range(20)]
    return ("--nodes", write(nodes, "n.csv"), "--edges", write(edges, "e.csv"), "--graphs", write(graphs, "g.csv"))  # fmt: skip


def test_whole_graphs(program: Program) -> None:
    given = groups()
    assert "20 graphs, 80 nodes in all" in train(program, *given, "--target", "toxic")
    scores_are_found_again(program)
    header, *rows = both_ways(program, *given)
    assert header == ["graph", "prediction", "p(n)", "p(y)"]
    assert [row[0] for row in rows] == [f"g{g}" for g in range(20)]
    out = program.ok("evaluate", "run", *given)
    assert count_labelled(out, "graphs") == 20
    assert "labelled graphs of its test part: auroc" in out
    assert "give --graphs" in program("predict", "run", *given[:4], "-o", "o.csv").error
    assert "explain takes node tasks only" in program("explain", "run").error
    assert "whole graphs" in program("data", "pack", *given, "--target", "toxic", "-o", "p").error
    assert "--pairs" in program("predict", "run", "--pairs", "e.csv", "-o", "o.csv").error


@pytest.mark.parametrize("more", [(), ("--time", "when")])
def test_links(program: Program, more: tuple[str, ...]) -> None:
    given = tables(people(), friends(when=lambda i: f"2024-01-{i % 28 + 1:02d}"))
    out = train(program, *given, "--task", "link", *more)
    assert "links: " in out
    scores_are_found_again(program)
    pairs = write([{"target": "p2", "source": "p1"}, {"target": "p1", "source": "p2"}], "pairs.csv")
    program.ok("predict", "run", "--pairs", pairs, "-o", "out.csv")
    header, *rows = read()
    assert header == ["source", "target", "score"]
    assert [row[:2] for row in rows] == [["p1", "p2"], ["p2", "p1"]]  # by name, not by place
    assert program.ok("predict", "run", *given, "--pairs", pairs, "-o", "new.csv")
    assert [row[:2] for row in read("new.csv")] == [row[:2] for row in read()]
    error = program("predict", "run", "-o", "o.csv").error
    assert error == "run: predicts links; give --pairs, a table of pairs to score"
    stranger = write([{"source": "p1", "target": "nobody"}], "bad.csv")
    error = program("predict", "run", "--pairs", stranger, "-o", "o.csv").error
    assert "bad.csv, line 2, column 'target'" in error
    assert "new tables have no links set apart" in program("evaluate", "run", *given).error
    assert "a task of links" in program("data", "pack", *given, "--task", "link", "-o", "p").error


def test_edges_with_features_and_weights(program: Program) -> None:
    labelled = people(label=lambda i: "ab"[i % 2])
    given = tables(labelled, friends(amount=lambda i: i * 3))
    words = ("--target", "label", "--edge-features", "amount", "--weight", "strength")
    train(program, *given, *words)
    assert load_run(Path("run")).info["tables"]["weight"] == "strength"
    scores_are_found_again(program)
    before = both_ways(program, *given)
    changed = write(friends(amount=lambda i: -i), "e.csv")
    program.ok("predict", "run", *given[:2], "--edges", changed, "-o", "changed.csv")
    assert read("changed.csv") != before
    without = write(friends(), "e.csv")
    error = program("predict", "run", *given[:2], "--edges", without, "-o", "o.csv").error
    assert "e.csv has no column 'amount' (wanted as a feature of edges)" in error
    write(friends(amount=lambda i: i * 3), "e.csv")
    error = program("train", *given, *words[:4], "--model", "gcn-plain", "--out", "gcn").error
    assert "edge" in error
    assert not Path("gcn").exists()


def test_options_for_edges_and_labels(program: Program) -> None:
    """A network that takes no self-loops, labels that mean none, columns left out, words."""
    given = tables(
        people(
            label=lambda i: "ab?"[i % 3].replace("?", "-1"),
            secret=lambda i: i % 3,
            note=lambda i: f"likes {'tea' if i % 2 else 'milk'} and {'bread' if i % 5 else 'rice'}",
        )
    )
    words = ("train", *given, "--target", "label", "--drop", "secret", "kind", "--text", "note", "--unlabelled", "-1", "--model", "nsd-diag", "--epochs", 1)  # fmt: skip
    assert "--self-loops remove" in program(*words, "--out", "run").error
    assert "--undirected" in program(*words, "--out", "run", "--self-loops", "remove").error
    out = program.ok(*words, "--out", "run", "--self-loops", "remove", "--undirected")
    assert "1 edges join a node to itself" in out
    assert "13 not" in out
    info = load_run(Path("run")).info
    assert [column["name"] for column in info["encoder"]["columns"]] == ["age", "note"]
    assert info["class_names"] == ["a", "b"]
    scores_are_found_again(program)
    both_ways(program, *given)


@pytest.mark.parametrize("form", ["gz", "tsv", "parquet", "feather"])
def test_files_of_other_kinds(program: Program, form: str) -> None:
    labelled = people(label=lambda i: "ab"[i % 2])
    given = tables(labelled)
    train(program, *given, "--target", "label")
    program.ok("predict", "run", "-o", "out.csv")
    if form == "gz":
        other = (write(labelled, "n.csv.gz"), write(friends(), "e.csv.gz"))
    elif form == "tsv":
        for name in ("n", "e"):
            Path(f"{name}.tsv").write_text(Path(f"{name}.csv").read_text().replace(",", "\t"))
        other = ("n.tsv", "e.tsv")
    else:
        pandas = pytest.importorskip("pandas")
        for name in ("n", "e"):
            getattr(pandas.read_csv(f"{name}.csv"), f"to_{form}")(f"{name}.{form}")
        other = (f"n.{form}", f"e.{form}")
    program.ok("predict", "run", "--nodes", other[0], "--edges", other[1], "-o", "again.csv")
    assert read("again.csv") == read("out.csv")
    program.ok("train", "--nodes", other[0], "--edges", other[1], "--target", "label", "--epochs", 2, "--out", "other", *SMALL)  # fmt: skip
    program.ok("predict", "other", "-o", "other.csv")
    assert read("other.csv") == read("out.csv")


def test_columns_are_stored_by_name(program: Program) -> None:
    """Turned round together with their names, columns mean the same."""
    labelled = people(label=lambda i: "ab"[i % 2])
    given = tables(labelled)
    train(program, *given, "--target", "label")
    stored = json.loads(Path("run/run.json").read_text("utf-8"))["tables"]
    assert (stored["id"], stored["source"], stored["edge_target"]) == ("id", "source", "target")
    program.ok("predict", "run", "-o", "out.csv")
    write(labelled, "n.csv", ["label", "kind", "age", "id"])
    write([{"": i, **row} for i, row in enumerate(friends())], "e.csv", ["", "strength", "target", "source"])  # fmt: skip
    program.ok("predict", "run", *given, "-o", "again.csv")
    assert read("again.csv") == read("out.csv")


def test_runs_of_former_versions(program: Program) -> None:
    """They kept only what had been asked for; a column of split words was a feature to them."""
    given = tables(
        people(label=lambda i: "ab"[i % 2], part=lambda i: ("train", "val", "test")[i * 7 % 3])
    )
    train(program, *given, "--target", "label", "--features", "age", "kind", "part")
    program.ok("predict", "run", "-o", "out.csv")
    info = json.loads(Path("run/run.json").read_text("utf-8"))
    files = {role: info["tables"][role] for role in ("nodes", "edges")}
    asked = {
        "target": "label", "id": "id", "features": None, "categorical": [], "split": None,
        "source": None, "edge_target": None, "weight": None, "task": None, "undirected": False,
        "seed": info["tables"]["options"]["seed"],
    }  # fmt: skip
    sums = "".join(hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files.values())
    whole = hashlib.sha256(sums.encode()).hexdigest()
    text = json.dumps([whole, asked], sort_keys=True)
    info |= {"tables": files | asked, "dataset_checksum": hashlib.sha256(text.encode()).hexdigest()}
    info["identity"] = info["identity"].rpartition("/")[0] + f"/{info['dataset_checksum']}"
    tensors, _ = load_tensors(Path("run/model.safetensors"))
    save_tensors(Path("run/model.safetensors"), tensors, {"identity": info["identity"]})
    Path("run/run.json").write_text(json.dumps(info))
    scores_are_found_again(program)
    before = read()
    assert both_ways(program, *given) == before
    assert count_labelled(program.ok("evaluate", "run", *given), "nodes") == 40


def test_a_pack_of_own_tables(program: Program) -> None:
    Path("some/folder").mkdir(parents=True)
    labelled = people(label=lambda i: "ab"[i % 2])
    nodes, edges = write(labelled, "some/folder/n.csv"), write(friends(), "some/folder/e.csv")
    given = ("--nodes", nodes, "--edges", edges)
    train(program, *given, "--target", "label")
    program.ok("data", "pack", *given, "--target", "label", "-o", "packs/mine")
    assert "nodes: 40" in program.ok("data", "info", "pack:packs/mine")
    program.ok("train", "pack:packs/mine", "--epochs", 2, "--out", "packed", *SMALL)
    program.ok("predict", "run", "-o", "out.csv")
    program.ok("predict", "packed", "-o", "own.csv")
    program.ok("predict", "packed", *given, "-o", "new.csv")
    assert read("own.csv") == read("new.csv") == read("out.csv")
    program.ok("evaluate", "packed")
    assert "--set data.* is for datasets by name" in program("data", "pack", *given, "--target", "label", "-o", "x", "--set", "data.direction=stored").error  # fmt: skip


def test_a_pipe_and_standard_input(program: Program) -> None:
    """As a process of its own, in a shell."""
    given = tables(people(label=lambda i: "ab"[i % 2]))
    write(friends(), "e.csv.gz")
    small = " ".join(SMALL)
    line = f"{sys.executable} -m coopsheaf train --nodes - --edges <(zcat e.csv.gz) --target label --epochs 1 --out run {small} < n.csv"  # fmt: skip
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "node ids: column 'id'" in done.stdout
    assert "edges: from column 'source' to column 'target'" in done.stdout
    assert "split 0: epoch 1/1" in done.stderr  # plain lines where there is no terminal
    assert "\x1b" not in done.stdout + done.stderr
    assert load_run(Path("run")).info["tables"]["nodes"] is None
    program.ok("train", *given, "--target", "label", "--epochs", 1, "--out", "files", *SMALL)
    for run in ("run", "files"):
        program.ok("predict", run, *given, "-o", f"{run}.csv")
    assert read("run.csv") == read("files.csv")
    error = program("evaluate", "run").error
    assert error == (
        "the tables that this run was trained on came through a pipe or from memory; give them "
        "with --nodes and --edges"
    )


def test_a_sweep_reads_files_only(program: Program) -> None:
    pytest.importorskip("optuna")
    given = tables(people(label=lambda i: "ab"[i % 2]))
    os.mkfifo("pipe")
    for words, path in ((("--nodes", "-", *given[2:]), "-"), ((*given[:2], "--edges", "pipe"), "pipe")):  # fmt: skip
        error = program("sweep", *words, "--target", "label", "--model", "csnn").error
        assert "must be a file that can be read several times" in error
        assert f"{path} is a pipe: write it to a file first" in error
