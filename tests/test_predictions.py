"""Predictions of a run, from Python as from the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cli.program import SMALL, Program, write_tables
from torch_geometric.data import Data
from train.small import graph_dataset, link_dataset, node_dataset, recipe, with_edge_features

from coopsheaf import predict, predict_links
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.predictions import node_outputs, score, shield
from coopsheaf.train import load_run, run_data, train

pytest_plugins = ("cli.conftest",)


def test_classes_have_names_and_probabilities() -> None:
    data = node_dataset()
    run = train(data, recipe=recipe(epochs=2))
    found = predict(run, data)
    assert found.ids == tuple(map(str, range(40)))
    assert found.probabilities is not None
    assert found.probabilities.shape == (40, 3)
    best = found.probabilities.argmax(1).tolist()
    assert list(found.values) == [found.class_names[k] for k in best]
    with torch.no_grad():
        logits = run.model(data.x, data.edge_index)
    assert torch.allclose(found.probabilities.float(), logits.softmax(1), atol=1e-6)
    assert found.to_csv().splitlines()[0] == "id,prediction,p(0),p(1),p(2)"


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("task", ["multiclass", "regression"])
def test_the_order_of_a_pack_is_not_seen(task: str, named: bool, tmp_path: Path) -> None:
    data = with_edge_features(node_dataset(task=task))
    if named:
        data = replace(data, node_ids=tuple(f"node {7 * i % 40}" for i in range(40)))
    run = train(data, recipe=recipe(epochs=3))
    packs = [
        read_pack(write_pack(data, tmp_path / order, order=order))
        for order in ("stored", "community")
    ]
    assert packs[1].order is not None
    assert not torch.equal(packs[1].order, torch.arange(40))
    plain, ordered = (predict(run, pack) for pack in packs)
    assert plain.ids == ordered.ids == (data.node_ids or tuple(map(str, range(40))))
    if plain.probabilities is not None and ordered.probabilities is not None:
        assert plain.values == ordered.values
        assert torch.allclose(plain.probabilities, ordered.probabilities, atol=1e-5)
    else:
        assert ordered.values == pytest.approx(plain.values, abs=1e-4)
    one, two = (score(run, pack) for pack in packs)
    assert two.value == pytest.approx(one.value, abs=1e-5)
    assert two.labelled == one.labelled


def test_numbers_are_numbers() -> None:
    data = node_dataset(task="regression")
    found = predict(train(data, recipe=recipe(epochs=2)), data)
    assert found.probabilities is None
    heading, first, *_ = found.to_csv().splitlines()
    assert heading == "id,prediction"
    assert float(first.split(",")[1]) == found.values[0]


CELLS = {
    "=1+1": "'=1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "-2+3": "'-2+3",
    "\t=1": "'\t=1",
    "-5": "-5",
    "+49.5": "+49.5",
    "-.5e-3": "-.5e-3",
    "-inf": "-inf",
    "plain": "plain",
    "a=b": "a=b",
    "": "",
}


@pytest.mark.parametrize("cell", CELLS)
def test_no_cell_is_a_formula(cell: str) -> None:
    assert shield(cell) == CELLS[cell]


def test_formulas_are_written_as_text_unless_asked_for(program: Program) -> None:
    nodes, edges = write_tables(Path(), prefix="=1+")
    words = ("--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 1, "--out", "run")
    program.ok("train", *words, *SMALL)
    assert "60 cells begin as formulas do" in program.ok("predict", "run", "-o", "out.csv")
    lines = Path("out.csv").read_text("utf-8").splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == ["person", "'=1+0", "'=1+1"]
    assert "formulas" not in program.ok("predict", "run", "-o", "raw.csv", "--raw")
    exact = Path("raw.csv").read_text("utf-8").splitlines()
    assert [line.removeprefix("'") for line in lines] == exact


def test_python_and_the_command_line_agree(program: Program) -> None:
    nodes, edges = write_tables(Path())
    words = ("--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2, "--out", "run")
    program.ok("train", *words, *SMALL)
    program.ok("predict", "run", "-o", "out.csv")
    run = load_run(Path("run"))
    assert predict(run, run_data(run).dataset).to_csv() == Path("out.csv").read_text("utf-8")


def test_other_data_is_refused() -> None:
    run = train(node_dataset(), recipe=recipe(epochs=1))
    with pytest.raises(ValueError, match="the run predicts nodes; the data is for whole graphs"):
        predict(run, graph_dataset())


def test_features_of_edges_are_seen_and_must_be_as_many() -> None:
    data = with_edge_features(node_dataset())
    run = train(data, recipe=recipe(epochs=2))
    with torch.no_grad():
        logits = run.model(data.x, data.edge_index, edge_attr=data.edge_attr)
    assert torch.allclose(node_outputs(run, data), logits, atol=1e-6)
    message = r"^the data has 0 features of edges; the model was trained with 2$"
    with pytest.raises(ValueError, match=message):
        predict(run, node_dataset())
    with pytest.raises(ValueError, match=r"2 features of edges; the model was trained with 0"):
        predict(train(node_dataset(), recipe=recipe(epochs=1)), data)


def test_runs_on_edges_with_features_from_the_command_line(program: Program) -> None:
    write_pack(with_edge_features(node_dataset()), "pack")
    words = ("pack:pack", "--epochs", 3)
    error = program("train", *words, "--model", "gcn", "--out", "gcn").error
    assert error.startswith(
        "gcn cannot use edge features (columns amount, hour); leave them out or"
    )
    program.ok("train", *words, *SMALL, "--out", "run")
    run = load_run(Path("run"))
    assert run.info["edge_channels"] == run.model.edge_channels == 2
    rows = program.ok("evaluate", "run").splitlines()
    first = rows[: next(place for place, row in enumerate(rows) if "better" in row)]
    scores = [
        re.findall(r"\d\.\d{4}", row) for row in first if re.search(r"(train|val|test) ", row)
    ]
    assert len(scores) == 3
    assert all(now == then for now, then in scores), "as at training"
    program.ok("predict", "run", "-o", "out.csv")
    data = run_data(run).dataset
    assert predict(run, data).to_csv() == Path("out.csv").read_text("utf-8")
    program.ok("explain", "run", "--explain", 3)
    assert Path("run/explorer.html").exists()
    program.ok("figures", "run", "--output", "figures")


def test_runs_that_do_not_say_were_trained_without(tmp_path: Path) -> None:
    train(node_dataset(), recipe=recipe(epochs=1), out=tmp_path)
    info = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert info.pop("edge_channels") == 0
    assert "edge features" not in info["identity"]
    (tmp_path / "run.json").write_text(json.dumps(info), "utf-8")
    run = load_run(tmp_path)
    assert node_outputs(run, node_dataset()).shape == (40, 3)


def test_a_run_with_features_of_edges_is_another_run(tmp_path: Path) -> None:
    train(node_dataset(), recipe=recipe(epochs=1), out=tmp_path)
    data = with_edge_features(node_dataset())
    with pytest.raises(ValueError, match="holds another run"):
        train(data, recipe=recipe(epochs=1), out=tmp_path, resume=True)


@pytest.mark.parametrize("undirected", [False, True])
def test_pairs_are_scored(tmp_path: Path, undirected: bool) -> None:
    data = link_dataset(undirected=undirected)
    run = train(data, recipe=recipe(epochs=3), out=tmp_path / "run")
    pairs = torch.tensor([[0, 7, 7, 1], [7, 0, 39, 1]])
    found = predict_links(run, data, pairs)
    assert (found.sources, found.targets) == (("0", "7", "7", "1"), ("7", "0", "39", "1"))
    with torch.no_grad():
        logits = run.model(data.x, data.edge_index, *pairs.unsqueeze(-1))
    assert torch.allclose(found.scores.float(), logits.sigmoid()[:, 0], atol=1e-6)
    there, back = found.scores[:2].tolist()
    assert (there == pytest.approx(back, rel=1e-5)) == undirected
    heading, first, *rest = found.to_csv().splitlines()
    assert heading == "source,target,score"
    assert first == f"0,7,{found.scores[0].item():.6f}"
    assert len(rest) == 3
    again = predict_links(load_run(tmp_path / "run"), data, pairs)
    assert torch.equal(again.scores, found.scores)


def test_pairs_of_a_new_graph_are_scored_with_all_its_edges() -> None:
    run = train(link_dataset(), recipe=recipe(epochs=2))
    other = node_dataset(12)
    pairs = torch.stack([torch.arange(12), torch.arange(12).flip(0)])
    found = predict_links(run, other, pairs)
    with torch.no_grad():
        logits = run.model(other.x, other.edge_index, *pairs.unsqueeze(-1))
    assert torch.allclose(found.scores.float(), logits.sigmoid()[:, 0], atol=1e-6)
    data = Data(x=other.x, edge_index=other.edge_index)
    assert torch.equal(predict_links(run, data, pairs).scores, found.scores)
    fewer = Data(x=other.x, edge_index=other.edge_index[:, :5])
    assert not torch.equal(predict_links(run, fewer, pairs).scores, found.scores)
    assert predict_links(run, other, pairs[:, :0]).to_csv() == "source,target,score\n"


def test_bad_pairs_are_refused() -> None:
    data = link_dataset()
    run = train(data, recipe=recipe(epochs=1))
    with pytest.raises(ValueError, match="`pairs` must hold nodes 0 to 39; pair 1 is"):
        predict_links(run, data, torch.tensor([[0, 1], [1, 40]]))
    with pytest.raises(ValueError, match=r"`pairs` must be an int64 tensor of shape \(2, k\)"):
        predict_links(run, data, torch.zeros(2, 3))
    with pytest.raises(ValueError, match="predict_links scores links"):
        predict(run, data)
    nodes = train(node_dataset(), recipe=recipe(epochs=1))
    with pytest.raises(ValueError, match="`run` must be one for links; its task is 'multiclass'"):
        predict_links(nodes, data, torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(ValueError, match="the data has 4 features; the model was trained with 5"):
        predict_links(run, Data(x=data.x[:, :4], edge_index=data.edge_index), torch.zeros(2, 1).long())  # fmt: skip
