"""The plan of the long-range tasks, its records, what is found inside networks, the document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.registry import load_dataset
from coopsheaf.models.registry import MODELS
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.records import Record
from lab.__main__ import main
from lab.long_range import plan, records, tables
from lab.long_range.inside import by_distance, first_graph, read_inside, spectrum_of
from lab.long_range.plan import CONTESTANTS, TASKS, recipe

DOCUMENT = Path(__file__).parents[3] / "docs" / "long-range.md"
QUICK = "ring-transfer-5"


@pytest.mark.parametrize("task", TASKS)
def test_every_network_reaches_a_hop_further_than_it_must_and_no_more_than_a_layer(
    task: str,
) -> None:
    hops = TASKS[task].hops
    for name, who in CONTESTANTS.items():
        layers = who.layers(hops)
        assert layers * who.hops >= hops + 1, name
        assert (layers - 1) * who.hops < hops + 1, name
        model = recipe(name, task, 0).model
        assert getattr(model, who.depth.removeprefix("model.")) == layers


def test_every_task_of_the_page_is_in_the_plan() -> None:
    groups = ("barbell-", "ring-transfer-", "tree-transfer-", "echo-like-")
    assert {name for name in DATASETS if name.startswith(groups)} == set(TASKS)


def test_a_csnn_has_half_the_layers_of_those_that_hear_their_neighbours() -> None:
    for hops in (3, 5, 35):
        assert 2 * CONTESTANTS["csnn"].layers(hops) == CONTESTANTS["gcn-plain"].layers(hops)


def test_all_are_equally_wide_and_trained_alike() -> None:
    for task in TASKS:
        assert task in DATASETS
        trained = set()
        for name, who in CONTESTANTS.items():
            assert who.model in MODELS
            found = recipe(name, task, 1)
            wide = found.model.hidden_channels * getattr(found.model, "stalk_dim", 1)
            assert wide == plan.WIDTH or name == "bunn"  # whose stalks are inside its width
            assert getattr(found.model, "dropout", 0.0) == 0
            trained.add((str(found.train), str(found.batch), str(found.data)))
        assert len(trained) == 1


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(TASKS[QUICK], settings=("train.epochs=2", "train.select=loss"))
    monkeypatch.setitem(TASKS, QUICK, short)


def run(folder: Path, *more: str) -> int:
    words = ["long-range", "--tasks", QUICK, "--contestants", "csnn-wave", "gcn-plain"]
    with pytest.raises(SystemExit) as end:
        main([*words, "--results", str(folder / "r"), "--work", str(folder / "w"), *more])
    return int(end.value.code or 0)


@pytest.mark.usefixtures("quick")
def test_what_is_recorded_is_found_and_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"<!-- {p}: begin -->\n<!-- {p}: end -->\n" for p in PLACES)
    document = tmp_path / "page.md"
    document.write_text(text, encoding="utf-8")
    assert run(tmp_path, "--look", "--document", str(document)) == 0
    found = records.found(tuple(CONTESTANTS), (QUICK,), (0,), tmp_path / "r")
    assert set(found) == {("csnn-wave", QUICK), ("gcn-plain", QUICK)}
    record = found["gcn-plain", QUICK][0]
    assert (record.epochs, record.seed, record.config["train"]["lr"]) == (2, 0, plan.RATE)
    assert record.versions
    page = document.read_text(encoding="utf-8")
    assert "| gcn-plain | 6 |" in page
    assert f"| {QUICK} | csnn-wave |" in page
    inside = read_inside(tmp_path / "r")
    assert [row.contestant for row in inside] == ["csnn-wave", "gcn-plain"]
    assert [len(row.influence) for row in inside] == [6, 6]
    assert len(inside[0].layers) == 3
    assert inside[1].layers == []
    capsys.readouterr()
    assert run(tmp_path, "--look") == 0
    assert capsys.readouterr().out.count("recorded already") == 2
    assert len(read_inside(tmp_path / "r")) == 2


PLACES = (*tables.PLACES.values(), tables.INFLUENCE_PLACE, tables.SPECTRA_PLACE)


def test_nothing_recorded_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--report") == 2
    assert "holds no records of the plan; train without --report" in capsys.readouterr().err


def test_the_document_has_every_place() -> None:
    page = DOCUMENT.read_text(encoding="utf-8")
    for place in PLACES:
        assert page.count(f"<!-- {place}: begin -->") == 1


def record(metric: str, test: float, seed: int = 0) -> Record:
    return Record("csnn", "d", 0, seed, "paper", metric, None, test, 1, "h")


def test_cells_are_squared_errors_per_cent_and_hops() -> None:
    assert tables.cell([record("rmse", 0.5)], 2) == "0.25 (1)"
    assert tables.cell([record("accuracy", 0.4)] * 3, 0) == "40 ± 0"
    assert tables.cell([record("mae", 2.0), record("mae", 4.0, 1)], 1) == "3.0 ± 1.0 (2)"


@pytest.mark.parametrize("name", ["barbell-10", "barbell-20", "barbell-50"])
def test_what_the_side_says_of_a_barbell(name: str) -> None:
    data = load_dataset(name)
    assert isinstance(data, NodeDataset)
    train, test, right = data.train[0], data.test[0], data.x[:, 0] > 0
    known = torch.where(right, data.y[train & right].mean(), data.y[train & ~right].mean())
    error = (known - data.y)[test].square().mean()
    assert float(error) == pytest.approx(tables.WITHOUT[name], abs=0.005)


@pytest.mark.parametrize("name", ["echo-like-sssp", "echo-like-ecc", "echo-like-diameter"])
def test_what_the_median_says_of_distances(name: str) -> None:
    data = load_dataset(name)
    if isinstance(data, NodeDataset):
        y, train, test = data.y, data.train[0], data.test[0]
    else:
        y, train, test = torch.cat([g.y for g in data.graphs]).squeeze(1), data.train, data.test
    error = (y[test] - y[train].median()).abs().mean()
    assert float(error) == pytest.approx(tables.WITHOUT[name], abs=0.005)


def test_spectra_of_matrices_that_are_known() -> None:
    symmetric = spectrum_of(torch.diag(torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)))
    assert symmetric.real == symmetric.range == (0.0, 3.0)
    assert (symmetric.imaginary, symmetric.departure, symmetric.damping) == (0.0, 0.0, 0.0)
    turn = spectrum_of(torch.tensor([[1.0, -2.0], [2.0, 1.0]], dtype=torch.float64))  # 1 ± 2i
    assert turn.imaginary == pytest.approx(2)
    assert turn.damping == pytest.approx(2)
    jordan = spectrum_of(torch.tensor([[1.0, 4.0], [0.0, 1.0]], dtype=torch.float64))
    assert jordan.range == pytest.approx((-1.0, 3.0))
    assert jordan.departure > 0.5
    assert spectrum_of(-torch.eye(2, dtype=torch.float64)).damping is None


def test_influence_by_distance_is_that_of_a_known_matrix() -> None:
    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor, graph: Graph) -> torch.Tensor:
            near = torch.zeros(4, 4)
            near[graph.target, graph.source] = 1.0
            return near @ near @ x

    path = Graph(torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]]), 4)
    found = by_distance(Twice(), torch.randn(4, 1), path, 0)
    assert_close(torch.tensor(found), torch.tensor([1.0, 0.0, 1.0, 0.0]))


def test_the_first_graph_is_the_first() -> None:
    from coopsheaf.data.transfer import transfer

    data = transfer("ring", 3)
    x, graph = first_graph(data)
    assert_close(x, data.x[:6])
    assert (graph.num_nodes, graph.num_edges) == (6, 12)
