"""``coopsheaf explain``: a page from a run's folder, its data found again or given anew."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from cli.program import SMALL, Program, snapshot, write_tables
from pages.explorer.pages import array, data_of
from published import REAL_DATA, needs_real_data
from train.small import graph_dataset, recipe

from coopsheaf.pages.explorer import build
from coopsheaf.pages.explorer.layout import lay_out
from coopsheaf.train.run import run_split

TRAIN = ("--epochs", 2, *SMALL)


@pytest.fixture
def run(program: Program) -> Path:
    """A run on tables of people with names."""
    nodes, edges = write_tables(Path("tables"))
    program.ok("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--out", "run", *TRAIN)  # fmt: skip
    return Path("run")


def test_a_page_from_a_folder(program: Program, run: Path) -> None:
    before = snapshot(run)
    out = program.ok("explain", run, "-o", "sub/page.html")
    page = Path("sub/page.html")
    text = page.read_text("utf-8")
    lines = out.splitlines()
    assert lines[0] == "60 nodes and 180 edges, laid out by forces"
    assert lines[1].startswith("page: sub/page.html (0.")
    assert lines[1].endswith(" MB)")
    assert lines[2] == f"open it in a browser: {page.resolve().as_uri()}"
    assert len(lines) == 3
    content = data_of(text)
    assert content["title"] == "csnn on own-nodes"
    assert content["nodes"]["names"][:2] == ["p0", "p1"]
    assert content["targets"][0]["classes"] == ["old, wise", "young"]
    assert (
        str(Path.cwd()) not in text
    )  # the page may be passed on: it does not say where it was made
    assert snapshot(run) == before


def test_it_lies_in_the_run_unless_told_otherwise(program: Program, run: Path) -> None:
    program.ok("explain", run)
    page = run / "explorer.html"
    assert page.exists()
    first = page.read_bytes()
    error = program("explain", run).error
    assert error == "run/explorer.html: exists already; use --force to overwrite it"
    program.ok("explain", run, "--force")
    assert page.read_bytes() == first


def test_nodes_by_name_and_what_is_left_out(program: Program, run: Path) -> None:
    out = program.ok(
        "explain", run, "-o", "p.html", "--center", "p7", "--hops", 1, "--explain", "p7"
    )
    content = data_of(Path("p.html").read_text("utf-8"))
    count = content["nodes"]["count"]
    assert 1 < count < 60
    note = f"Shown are the {count} of 60 nodes within 1 hops of node p7."
    assert note in out.splitlines()
    assert content["graph"]["notes"] == [note]
    assert content["nodes"]["names"][content["explanations"][0]["node"]] == "p7"
    out = program.ok("explain", run, "-o", "q.html", "--max-nodes", 10, "--max-edges", 5, "--explain", "3", "--center", "3")  # fmt: skip
    assert "Shown are 10 of 60 nodes: those nearest to node p3." in out
    assert "Drawn are 5 of " in out


def test_the_columns_that_moved_a_prediction_are_said(program: Program, run: Path) -> None:
    out = program.ok("explain", run, "-o", "p.html", "--explain", "p7", "p3")
    page = data_of(Path("p.html").read_text("utf-8"))
    first, _ = page["explanations"]
    value = f"{first['value']:+.4g}"
    assert f"why 'p7': the logit of young against old, wise is {value}" in out
    assert "why 'p3': " in out
    for header in ("whose", "column", "value", "attribution", "diffusion", "learners", "muted"):
        assert header in out
    own, heard = first["columns"]
    assert (own["part"], heard["part"]) == ("own", "neighbours")
    assert len(own["rows"]) > 1
    for row in own["rows"]:
        line = next(line for line in out.splitlines() if "own" in line and row["name"] in line)
        assert f"{row['attribution']:+.4g}" in line
        assert f"{row['muted']:+.4g}" in line
        assert row["value"] in line


def test_columns_that_matter_for_all_nodes(program: Program, run: Path) -> None:
    out = program.ok("explain", run, "-o", "p.html", "--importance", "all", "--repeats", 3)
    found = data_of(Path("p.html").read_text("utf-8"))["importance"]
    assert f"{found['metric']} on all labelled nodes is {found['score']:.4f}; by how much" in out
    assert "(mean and deviation of 3)" in out
    drops = [row["drop"] for row in found["rows"]]
    assert drops == sorted(drops, reverse=True)
    for row in found["rows"]:
        line = next(line for line in out.splitlines() if f" {row['name']} " in line)
        assert f"{row['drop']:+.4f}" in line
        assert f"{row['spread']:.4f}" in line
    program.ok("explain", run, "-o", "q.html")
    assert data_of(Path("q.html").read_text("utf-8"))["importance"] is None


def test_importance_of_new_tables_needs_labels(program: Program, run: Path) -> None:
    nodes, edges = write_tables(Path("new"), 25, seed=4, prefix="q", target=None)
    tables = ("--nodes", nodes, "--edges", edges)
    error = program("explain", run, "-o", "p.html", *tables, "--importance", "all").error
    assert error == "there must be labelled nodes to score; all labelled nodes: there are none"
    nodes, edges = write_tables(Path("labelled"), 25, seed=4, prefix="q")
    tables = ("--nodes", nodes, "--edges", edges)
    program.ok("explain", run, "-o", "q.html", *tables, "--importance", "all", "--repeats", 1)
    shown = data_of(Path("q.html").read_text("utf-8"))["importance"]
    assert shown["where"] == "all labelled nodes"


def test_new_tables_are_read_like_the_old(program: Program, run: Path) -> None:
    nodes, edges = write_tables(Path("new"), 25, seed=4, prefix="q", target=None)
    program.ok("explain", run, "-o", "p.html", "--nodes", nodes, "--edges", edges)
    content = data_of(Path("p.html").read_text("utf-8"))
    assert content["graph"]["nodes"] == 25
    assert set(array(content["targets"][0]["truth"]).tolist()) == {-1}
    data = next(each for each in content["settings"] if each["title"] == "Data")
    assert ["shown", "other data than it was trained on"] in data["rows"]
    nodes, edges = write_tables(Path("labelled"), 25, seed=4, prefix="q", unlabelled=5)
    program.ok("explain", run, "-o", "q.html", "--nodes", nodes, "--edges", edges)
    truth = array(data_of(Path("q.html").read_text("utf-8"))["targets"][0]["truth"])
    assert (truth[:5] == -1).all()
    assert (truth[5:] >= 0).all()


def test_data_that_changed_is_refused(program: Program, run: Path) -> None:
    write_tables(Path("tables"), seed=1)
    assert "the data of this run has changed since" in program("explain", run).error
    assert not (run / "explorer.html").exists()


def test_regressions_and_networks_without_actions(program: Program) -> None:
    nodes, edges = write_tables(Path("tables"), target="height")
    tables = ("--nodes", nodes, "--edges", edges, "--target", "height")
    program.ok("train", *tables, "--out", "run", *TRAIN)
    program.ok("explain", "run", "--explain", "p1")
    assert data_of(Path("run/explorer.html").read_text("utf-8"))["targets"][0]["kind"] == "numbers"
    program.ok("train", *tables, "--model", "gcn-plain", "--epochs", 2, "--out", "plain")
    program.ok("explain", "plain")
    assert data_of(Path("plain/explorer.html").read_text("utf-8"))["actions"] is None


@needs_real_data
def test_datasets_by_name(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.ok("train", "texas", "--data-dir", REAL_DATA, "--out", "run", *TRAIN)
    out = program.ok("explain", "run", "--data-dir", REAL_DATA, "--explain", "0", "5")
    assert out.startswith("183 nodes and 558 edges, laid out by forces\n")
    assert "csnn on texas" in Path("run/explorer.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--center", "nobody"), "--center must be a node, a name or a number from 0 to 59; got 'nobody'"),
        (("--explain", "60"), "--explain must be a node, a name or a number from 0 to 59; got '60'"),
        (("--explain", "²"), "--explain must be a node, a name or a number from 0 to 59; got '²'"),
        (("--hops", "2"), "--hops goes with --center, the node to count from"),
        (("--hops", "-1", "--center", "p1"), "`--hops` must be an integer of at least 0; got -1"),
        (("--max-nodes", "0"), "`--max-nodes` must be an integer of at least 1; got 0"),
        (("--max-edges", "-1"), "`--max-edges` must be an integer of at least 0; got -1"),
        (("--repeats", "0"), "`--repeats` must be an integer of at least 1; got 0"),
        (("--threshold", "0"), "`threshold` must be finite and positive; got 0.0"),
        (("--nodes", "a.csv"), "--nodes and --edges go together: a table of nodes and one of edges"),
        (("--center", "p1", "--hops", "0", "--explain", "p2"), "`explain` must hold nodes that are shown; got p2, which is not among the 1 around p1"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(program: Program, run: Path, words: tuple[str, ...], message: str) -> None:  # fmt: skip
    assert program("explain", run, "-o", "page.html", *words).error == message
    assert not Path("page.html").exists()


def test_what_is_no_run_or_predicts_graphs(program: Program) -> None:
    assert "nowhere: not a run" in program("explain", "nowhere").error
    dataset = graph_dataset()
    run_split(recipe(epochs=1), dataset, out=Path("graphs"))
    assert program("explain", "graphs").error == "graphs: predicts whole graphs; explain takes node tasks only"  # fmt: skip


def test_slow_steps_are_announced(program: Program, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    def slow(*arguments: object) -> object:
        time.sleep(2.3)
        return lay_out(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "lay_out", slow)
    done = program("explain", run)
    assert done.code == 0
    assert done.err == "laying out the graph ...\n"
