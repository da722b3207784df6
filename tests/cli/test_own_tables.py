"""A user's own tables: trained on, measured, predicted, also for people the run has never met."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
from cli.program import OLD, SMALL, Program, records, snapshot, write_tables

from coopsheaf.cli import main
from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.run import load_run


def read_csv(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def train(nodes: Path, edges: Path, *more: object, target: str = "label") -> tuple[object, ...]:
    return ("train", "--nodes", nodes, "--edges", edges, "--target", target, *more, *SMALL)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables and a run on them; read only."""
    folder = tmp_path_factory.mktemp("trained")
    words = train(*write_tables(folder), "--epochs", 40, "--out", folder / "run", "--results", folder / "results")  # fmt: skip
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 0
    return folder


def test_a_run_holds_all_that_is_needed(trained: Path) -> None:
    names = sorted(path.name for path in (trained / "run").iterdir())
    assert names == ["model.safetensors", "run.json"]
    info = json.loads((trained / "run" / "run.json").read_text("utf-8"))
    assert info["status"] == "finished"
    assert info["class_names"] == ["old, wise", "young"]
    assert [column["name"] for column in info["encoder"]["columns"]] == ["age", "kind"]
    assert info["tables"]["nodes"] == str(trained / "nodes.csv")
    assert info["tables"]["targets"]["columns"] == ["label"]
    assert info["tables"]["parts"] == ["part"]  # it says train, val and test: no feature
    assert len(info["dataset_checksum"]) == 64
    assert info["versions"].keys() >= {"coopsheaf", "python", "torch", "torch_geometric", "numpy"}
    assert info["result"]["scores"]["val"] > 0.8
    (record,) = records(trained / "results")
    assert record.dataset == "own-nodes"
    assert record.test == info["result"]["scores"]["test"]


def test_training_says_what_it_reads_and_where_it_writes(program: Program, tmp_path: Path) -> None:
    out = program.ok(*train(*write_tables(tmp_path), "--epochs", 2))
    for text in (
        "task: binary ('old, wise', 'young'); 54 nodes labelled, 6 not",
        "split: column 'part': 30/11/13 nodes to train, validate and test",
        "of the edges between different nodes have their reverse; the graph is kept directed",
        "1 categorical feature columns: 'kind'",
        "direction stored",
        "run: runs/csnn-own-nodes-0   record: results/csnn-own-nodes.jsonl",
    ):
        assert text in out
    assert Path("runs/csnn-own-nodes-0/model.safetensors").exists()
    assert len(records()) == 1


def test_evaluate_finds_the_scores_of_training(program: Program, trained: Path) -> None:
    out = program.ok("evaluate", trained / "run")
    scores = load_run(trained / "run").info["result"]["scores"]
    for part in ("train", "val", "test"):
        line = next(line for line in out.splitlines() if f" {part} " in line)
        assert line.count(f"{scores[part]:.4f}") == 2


def test_evaluate_on_new_tables(program: Program, trained: Path, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, 40, seed=5, prefix="q", unlabelled=3)
    out = program.ok("evaluate", trained / "run", "--nodes", nodes, "--edges", edges)
    (line,) = [line for line in out.splitlines() if line.startswith("37 labelled nodes: auroc ")]
    assert float(line.split()[-1]) > 0.8


def test_evaluate_needs_labels(program: Program, trained: Path, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, 40, target=None)
    error = program("evaluate", trained / "run", "--nodes", nodes, "--edges", edges).error
    assert f"{nodes}: there must be labels to compare with in column 'label'" in error


def test_predictions_of_the_training_nodes(program: Program, trained: Path) -> None:
    program.ok("predict", trained / "run", "-o", "out.csv")
    header, *rows = read_csv(Path("out.csv"))
    assert header[1:] == ["prediction", "p(old, wise)", "p(young)"]
    assert [row[0] for row in rows] == [f"p{i}" for i in range(60)]
    for row in rows:
        probabilities = [float(cell) for cell in row[2:]]
        assert sum(probabilities) == pytest.approx(1, abs=2e-6)
        assert row[1] == ("old, wise" if probabilities[0] > 0.5 else "young")
    # Naming the same tables gives the same answers.
    nodes, edges = trained / "nodes.csv", trained / "edges.csv"
    program.ok("predict", trained / "run", "--nodes", nodes, "--edges", edges, "-o", "again.csv")
    assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()


def test_predictions_of_new_nodes(program: Program, trained: Path, tmp_path: Path) -> None:
    """Other people, some of a kind never seen, without a column of labels."""
    kinds = ("red", "green", "violet")
    nodes, edges = write_tables(tmp_path, 30, seed=9, prefix="new-", kinds=kinds, target=None)
    before = snapshot(trained)
    out = program.ok("predict", trained / "run", "--nodes", nodes, "--edges", edges, "-o", "o.csv")
    violet = nodes.read_text("utf-8").count("violet")
    assert f"column 'kind': {violet} cells have a category not seen in training" in out
    assert "30 predictions: o.csv" in out
    ages = {row[0]: int(row[1]) for row in read_csv(nodes)[1:]}
    rows = read_csv(Path("o.csv"))[1:]
    assert [row[0] for row in rows] == [f"new-{i}" for i in range(30)]
    chances = {row[0]: float(row[2]) for row in rows}
    wise, young = [[chances[p] for p in ages if (ages[p] > OLD) == old] for old in (True, False)]
    assert sum(a > b for a in wise for b in young) > 0.8 * len(wise) * len(young)
    assert snapshot(trained) == before


def test_an_output_file_is_not_overwritten(program: Program, trained: Path) -> None:
    Path("out.csv").write_text("mine")
    assert "out.csv: exists already; use --force" in program("predict", trained / "run", "-o", "out.csv").error  # fmt: skip
    assert Path("out.csv").read_text() == "mine"
    program.ok("predict", trained / "run", "-o", "out.csv", "--force")
    assert Path("out.csv").read_text("utf-8").startswith("person,prediction")


def test_a_folder_with_a_run_is_not_overwritten(program: Program, trained: Path) -> None:
    before = snapshot(trained)
    words = train(trained / "nodes.csv", trained / "edges.csv", "--out", trained / "run")
    assert "holds a run already; continue it with --resume" in program(*words).error
    assert "holds another run" in program(*words, "--resume", "--epochs", 7).error
    assert snapshot(trained) == before
    assert not Path("results").exists()


def test_the_same_tables_read_another_way_are_another_run(program: Program, tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    program.ok(*train(*tables, "--epochs", 2, "--out", "run"))
    for more in (("--undirected",), ("--features", "age"), ("--split-column", "part"), ("--weight", "strength")):  # fmt: skip
        words = train(*tables, "--epochs", 2, "--out", "run", "--resume", *more)
        assert "holds another run" in program(*words).error


def test_a_finished_run_is_recorded_once(program: Program, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "run", tmp_path / "run")
    tables = (trained / "nodes.csv", trained / "edges.csv")
    words = train(*tables, "--epochs", 40, "--out", tmp_path / "run", "--resume")
    first, second = program.ok(*words), program.ok(*words)
    assert first == second
    assert len(records()) == 1


def test_changed_tables_are_noticed(program: Program, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    info = json.loads((tmp_path / "copy/run/run.json").read_text("utf-8"))
    info["tables"] |= {name: str(tmp_path / f"copy/{name}.csv") for name in ("nodes", "edges")}
    (tmp_path / "copy/run/run.json").write_text(json.dumps(info))
    program.ok("evaluate", tmp_path / "copy/run")
    with open(tmp_path / "copy/nodes.csv", "a") as file:
        file.write("zoe,33,red,,young\n")
    for words in (("evaluate",), ("predict", "-o", "out.csv")):
        error = program(words[0], tmp_path / "copy/run", *words[1:]).error
        assert "the data of this run has changed since" in error
    assert not Path("out.csv").exists()


def test_real_targets(program: Program, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, target="height")
    out = program.ok(*train(nodes, edges, "--epochs", 3, "--out", "run", target="height"))
    assert "task: regression" in out
    assert "MAE train" in out
    assert "mae" in program.ok("evaluate", "run")
    program.ok("predict", "run", "--nodes", nodes, "--edges", edges, "-o", "out.csv")
    header, *rows = read_csv(Path("out.csv"))
    assert header[1:] == ["prediction"]
    run = load_run(Path("run"))
    assert len(rows) == 60
    assert all(0 < abs(float(row[1])) < 100 for row in rows)
    assert run.info["out_channels"] == 1


def test_three_classes(program: Program, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    program.ok(*train(nodes, edges, "--epochs", 3, "--out", "run", target="kind"))
    program.ok("predict", "run", "-o", "out.csv")
    header, *rows = read_csv(Path("out.csv"))
    assert header[1:] == ["prediction", "p(blue)", "p(green)", "p(red)"]
    names = ["blue", "green", "red"]
    for row in rows:
        probabilities = [float(cell) for cell in row[2:]]
        assert sum(probabilities) == pytest.approx(1, abs=2e-6)
        assert row[1] == names[probabilities.index(max(probabilities))]


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_tensors(folder / "model.safetensors")[0]


def differ(a: Path, b: Path) -> bool:
    ours, theirs = tensors(a), tensors(b)
    return any(not torch.equal(ours[name], theirs[name]) for name in ours)


def test_every_option_reaches_the_training(program: Program, tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    text = tables[0].read_text("utf-8")
    tables[0].write_text(text.replace("part", "phase", 1))  # a name that no split has by custom
    common = ("--epochs", 3, "--features", "age")
    program.ok(*train(*tables, *common, "--out", "plain"))
    program.ok(*train(*tables, *common, "--out", "again"))
    assert not differ(Path("plain"), Path("again"))
    for number, more in enumerate(
        (
            ("--weight", "strength"),
            ("--undirected",),
            ("--class-weights",),
            ("--split-column", "phase"),
            ("--seed", 7),
            ("--set", "train.lr=0.5"),
        )
    ):
        out = program.ok(*train(*tables, *common, "--out", f"run{number}", *more))
        assert differ(Path("plain"), Path(f"run{number}")), more
        if more == ("--undirected",):
            assert "all are used both ways" in out
            assert "direction undirected" in out
        if more == ("--split-column", "phase"):
            assert "column 'phase'" in out
        program.ok("evaluate", f"run{number}")


def test_columns_are_found_by_name(program: Program, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    lines = nodes.read_text("utf-8").splitlines()
    turned = ["n," + lines[0], *(f"{i},{line}" for i, line in enumerate(lines[1:]))]
    nodes.write_text("\n".join(turned) + "\n")
    more = ("--id", "person", "--features", "age", "kind", "--categorical", "age")
    program.ok(*train(nodes, edges, "--epochs", 2, "--out", "run", *more))
    encoder = load_run(Path("run")).info["encoder"]["columns"]
    assert [(column["name"], column["kind"]) for column in encoder] == [("age", "categorical"), ("kind", "categorical")]  # fmt: skip
    program.ok("predict", "run", "-o", "out.csv")
    assert [row[0] for row in read_csv(Path("out.csv"))[:2]] == ["person", "p0"]


def test_a_split_without_a_test_part(program: Program, tmp_path: Path) -> None:
    """The test score is undefined, which neither ends a command nor breaks one that follows."""
    nodes, edges = write_tables(tmp_path)
    nodes.write_text(nodes.read_text("utf-8").replace(",test", ",val"))
    words = train(nodes, edges, "--epochs", 2, "--out", "run", "--split-column", "part")
    assert "test nan" in program.ok(*words)
    assert "test nan" in program.ok(*words, "--resume")
    assert "nan" in program.ok("evaluate", "run")
    (record,) = records()
    assert record.test is None


def test_tables_of_other_models(program: Program, tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    for model in ("gcn-plain", "mlp"):
        words = ("train", "--nodes", tables[0], "--edges", tables[1], "--target", "label", "--model", model)  # fmt: skip
        program.ok(*words, "--epochs", 2, "--out", model, "--weight", "strength")
        program.ok("predict", model, "-o", f"{model}.csv")


def test_weights_count_in_predictions_too(program: Program, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    program.ok(*train(nodes, edges, "--epochs", 3, "--out", "run", "--weight", "strength"))
    program.ok("predict", "run", "-o", "own.csv")
    words = ("predict", "run", "--nodes", nodes, "--edges", edges, "-o")
    program.ok(*words, "same.csv")
    assert Path("same.csv").read_bytes() == Path("own.csv").read_bytes()
    header, *rows = edges.read_text("utf-8").splitlines()
    heavier = [",".join([*row.split(",")[:2], "9"]) for row in rows]
    edges.write_text("\n".join([header, *heavier]) + "\n")
    program.ok(*words, "heavier.csv")
    assert Path("heavier.csv").read_bytes() != Path("own.csv").read_bytes()
    edges.write_text("\n".join(line.rsplit(",", 1)[0] for line in [header, *rows]) + "\n")
    assert f"{edges} has no column 'strength' (wanted as the edge weight)" in program(*words, "no.csv").error  # fmt: skip


def test_columns_may_come_in_another_order(program: Program, trained: Path, tmp_path: Path) -> None:
    program.ok("predict", trained / "run", "-o", "out.csv")
    turned = tmp_path / "turned.csv"
    with turned.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(row[::-1] for row in read_csv(trained / "nodes.csv"))
    edges = trained / "edges.csv"
    program.ok("predict", trained / "run", "--nodes", turned, "--edges", edges, "-o", "again.csv")
    assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
