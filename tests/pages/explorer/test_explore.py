"""What stands on a page is what the network says, for every kind of network and task."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from pages.explorer.pages import array, board_dataset, data_of, named_dataset, train
from train.small import node_dataset, recipe

from coopsheaf.analysis.actions import read_actions
from coopsheaf.analysis.explain import explain_node
from coopsheaf.pages.explorer import explore
from coopsheaf.pages.explorer.content import MOST_CLASSES
from coopsheaf.train.run import Run, run_split

BOARD = board_dataset()


@pytest.fixture(scope="module")
def run() -> Run:
    return train(BOARD)


def test_the_numbers_of_all_nodes_and_edges(run: Run) -> None:
    made = explore(run, BOARD, split=1)
    page = data_of(made.html)
    assert (made.num_nodes, made.num_edges, made.layout, made.has_actions) == (
        30,
        178,
        "grid",
        True,
    )
    assert made.notes == ()
    report = read_actions(run.model, BOARD.x, BOARD.edge_index)
    assert page["actions"]["threshold"] == pytest.approx(report.threshold)
    assert page["actions"]["counts"] == report.counts.tolist()
    for told, layer in zip(page["actions"]["layers"], report.layers, strict=True):
        for name in ("source_scale", "target_scale", "broadcasting", "listening"):
            assert np.allclose(array(told[name]), getattr(layer, name), rtol=1e-6)
        assert array(told["action"]).tolist() == layer.action.tolist()
        assert np.allclose(array(told["flow"]), layer.flow, rtol=1e-3)
        assert np.allclose(array(told["turn"]) / 255, layer.from_identity, atol=0.5 / 255)
    assert array(page["edges"]["source"]).tolist() == BOARD.edge_index[0].tolist()
    assert array(page["edges"]["target"]).tolist() == BOARD.edge_index[1].tolist()
    nodes = page["nodes"]
    assert array(nodes["x"]).tolist() == [i % 6 for i in range(30)]
    assert array(nodes["y"]).tolist() == [i // 6 for i in range(30)]
    degree = torch.bincount(BOARD.edge_index[0]).tolist()
    assert array(nodes["in_degree"]).tolist() == array(nodes["out_degree"]).tolist() == degree
    parts = array(nodes["part"])
    for number, part in enumerate((BOARD.train, BOARD.val, BOARD.test), start=1):
        assert (parts == number).tolist() == part[1].tolist()


def test_predictions_and_how_often_they_are_right(run: Run) -> None:
    (target,) = data_of(explore(run, BOARD).html)["targets"]
    with torch.no_grad():
        chance = run.model(BOARD.x, BOARD.edge_index).softmax(-1)
    likely, predicted = chance.max(-1)
    assert target["classes"] == ["red", "green", "blue"]
    assert array(target["truth"]).tolist() == BOARD.y.tolist()
    assert array(target["predicted"]).tolist() == predicted.tolist()
    assert np.allclose(array(target["probability"]), likely)
    tables = target["confusion"]["tables"]
    for part, mask in (("all", torch.ones(30, dtype=torch.bool)), ("test", BOARD.test[0])):
        wanted = torch.zeros(3, 3, dtype=torch.int64)
        for truth, guess in zip(BOARD.y[mask], predicted[mask], strict=True):
            wanted[truth, guess] += 1
        assert tables[part] == wanted.tolist()


def test_histograms_count_every_node(run: Run) -> None:
    histograms = data_of(explore(run, BOARD).html)["actions"]["histograms"]
    assert histograms["high"] > 0
    for layer in histograms["layers"]:
        assert sum(layer["source"]) == sum(layer["target"]) == 30


def test_groups_of_nodes_add_up(run: Run) -> None:
    groupings = {
        each["by"]: each["rows"] for each in data_of(explore(run, BOARD).html)["groupings"]
    }
    assert list(groupings) == ["class", "correctness", "homophily", "degree", "part"]
    for by in ("class", "correctness", "degree", "part"):
        for layer in (0, 1):
            rows = [row for row in groupings[by] if row["layer"] == layer]
            assert sum(row["nodes"] for row in rows) == 30
            assert all(sum(row["counts"]) == row["nodes"] for row in rows)


def test_curve_and_settings(run: Run) -> None:
    page = data_of(explore(run, BOARD).html)
    assert page["title"] == "csnn on board"
    training = page["training"]
    assert [row[0] for row in training["history"]] == [1, 2, 3]
    assert training["columns"] == ["epoch", "loss", "train", "val", "test"]
    assert training["scores"] == pytest.approx(run.info["result"]["scores"])
    assert training["scores_here"] == pytest.approx(training["scores"])
    rows = {title["title"]: dict(title["rows"]) for title in page["settings"]}
    assert rows["Data"]["checksum (sha256)"] == "abc"
    assert rows["Recipe: model"]["stalk_dim"] == "2"
    assert rows["Recipe: train"]["lr"] == "0.02"
    assert {"coopsheaf", "torch", "python"} <= set(rows["Versions"])


def test_the_same_page_every_time(run: Run) -> None:
    assert explore(run, BOARD, explain=[3]).html == explore(run, BOARD, explain=[3]).html


def test_a_part_of_the_graph_has_the_numbers_of_the_whole(run: Run) -> None:
    whole = data_of(explore(run, BOARD).html)
    made = explore(run, BOARD, center=14, hops=1)
    part = data_of(made.html)
    ids = array(part["nodes"]["id"])
    assert ids.tolist() == [7, 8, 9, 13, 14, 15, 19, 20, 21]
    assert part["graph"]["notes"] == list(made.notes) == ["Shown are the 9 of 30 nodes within 1 hops of node 14."]  # fmt: skip
    assert (made.num_nodes, made.num_edges) == (9, 40)
    for name in ("listening", "action"):
        all_of_them = array(whole["actions"]["layers"][1][name])
        assert array(part["actions"]["layers"][1][name]).tolist() == all_of_them[ids].tolist()
    assert array(part["nodes"]["in_degree"]).tolist() == array(whole["nodes"]["in_degree"])[ids].tolist()  # fmt: skip
    assert part["actions"]["counts"] == whole["actions"]["counts"]
    # Edges are numbered by what is shown.
    ends = {(s, t) for s, t in BOARD.edge_index.T.tolist() if s in ids and t in ids}
    shown = zip(
        ids[array(part["edges"]["source"])], ids[array(part["edges"]["target"])], strict=True
    )
    assert {(int(s), int(t)) for s, t in shown} == ends


def test_too_many_edges_are_left_out_and_it_is_said(run: Run) -> None:
    made = explore(run, BOARD, max_edges=100)
    page = data_of(made.html)
    assert made.num_edges == page["edges"]["count"] == 100
    assert made.notes == ("Drawn are 100 of 178 edges: the strongest of each node, then of all.",)
    assert page["graph"]["edges"] == 178


def test_explanations(run: Run) -> None:
    page = data_of(explore(run, BOARD, explain=[14, 3, 14]).html)
    assert [why["node"] for why in page["explanations"]] == [14, 3]
    why, wanted = page["explanations"][0], explain_node(run.model, BOARD.x, BOARD.edge_index, 14)
    assert why["value"] == pytest.approx(wanted.value)
    assert np.allclose(array(why["attribution"]), wanted.attribution, rtol=1e-5, atol=1e-9)
    assert [row["node"] for row in why["rows"]] == wanted.top()
    assert [tuple(path["nodes"]) for path in why["paths"]] == [path.nodes for path in wanted.paths]
    names = {0: "red", 1: "green", 2: "blue"}
    score = wanted.score
    assert (
        why["score"] == f"the logit of {names[score.output]} minus that of {names[score.against]}"
    )


def test_explained_nodes_must_be_shown(run: Run) -> None:
    with pytest.raises(ValueError, match="`explain` must hold nodes that are shown; got 29, which is not among the 4 around 0"):  # fmt: skip
        explore(run, BOARD, center=0, hops=1, explain=[29])
    # Unless the first of them may be the centre itself.
    page = data_of(explore(run, BOARD, max_nodes=4, explain=[29]).html)
    assert array(page["nodes"]["id"]).tolist() == [22, 23, 28, 29]
    assert page["explanations"][0]["node"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"center": 30}, r"`center` must hold indices of the 30 nodes, in \[0, 30\); got 30"),
        ({"explain": [-1]}, r"`explain` must hold indices of the 30 nodes"),
        ({"hops": 2}, "`hops` goes with `center`, a node to count from; got 2 alone"),
        ({"hops": -1, "center": 2}, "`hops` must be"),
        ({"max_nodes": 0}, "`max_nodes` must be"),
        ({"max_edges": -1}, "`max_edges` must be"),
        ({"threshold": -1.0}, "`threshold` must be finite and positive; got -1.0"),
    ],
)
def test_bad_options(run: Run, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore(run, BOARD, **options)  # type: ignore[arg-type]


def test_other_features_are_refused(run: Run) -> None:
    with pytest.raises(ValueError, match=r"`dataset` must have the 5 features .* got 4"):
        explore(run, replace(BOARD, x=BOARD.x[:, :4]))


def test_stages_are_told_in_order(run: Run) -> None:
    told = []

    @contextmanager
    def stage(line: str):  # type: ignore[no-untyped-def]
        told.append(line)
        yield

    explore(run, BOARD, stage=stage)
    assert [line.split()[0] for line in told] == ["reading", "laying", "explaining", "writing"]


def test_networks_without_actions() -> None:
    data = node_dataset()
    made = explore(train(data, "gcn-plain"), data, explain=[2])
    page = data_of(made.html)
    assert not made.has_actions
    assert made.layout == "forces"
    assert page["actions"] is None
    assert page["groupings"] == []
    assert page["silence"].startswith("The model gcn-plain has no actions")
    assert page["explanations"][0]["rows"][0]["diffusion"] is None
    assert page["explanations"][0]["paths"] == []


def test_cognn() -> None:
    data = node_dataset()
    page = data_of(explore(train(data, "cognn"), data).html)
    assert page["actions"]["family"] == "cognn"
    assert page["actions"]["most_frequent_of"] == 100
    layer = page["actions"]["layers"][0]
    assert layer["turn"] is None
    assert array(layer["source_scale"]).max() <= 1


def test_regression() -> None:
    data = node_dataset(task="regression")
    y = data.y.clone()
    y[4] = torch.nan
    data = replace(data, y=y, train=data.train.clone().index_fill_(1, torch.tensor([4]), False))
    run = train(data)
    page = data_of(explore(run, data, explain=[2]).html)
    (target,) = page["targets"]
    assert target["kind"] == "numbers"
    truth = array(target["truth"])
    assert np.isnan(truth[4])
    assert np.allclose(np.delete(truth, 4), np.delete(y.numpy(), 4))
    with torch.no_grad():
        out = run.model(data.x, data.edge_index).squeeze(1)
    assert np.allclose(array(target["predicted"]), out)
    assert [each["by"] for each in page["groupings"]] == ["degree", "part"]
    assert page["explanations"][0]["score"] == "the predicted value"
    assert page["training"]["metric"] == "MAE"


def test_two_classes_and_unknown_ones() -> None:
    data = node_dataset(task="binary")
    y = data.y.clone()
    y[:3] = -1
    masks = {name: getattr(data, name).clone() for name in ("train", "val", "test")}
    for mask in masks.values():
        mask[:, :3] = False
    data = replace(data, y=y, class_names=("free", "mine"), **masks)
    page = data_of(explore(train(data), data, explain=[1]).html)
    (target,) = page["targets"]
    assert target["classes"] == ["free", "mine"]
    assert array(target["truth"])[:3].tolist() == [-1, -1, -1]
    assert sum(map(sum, target["confusion"]["tables"]["all"])) == 37
    assert page["explanations"][0]["score"] == "the logit of mine against free"


def test_several_labels_are_several_targets() -> None:
    data = node_dataset()
    y = torch.stack([(data.y == k).float() for k in range(3)], dim=1)
    y[0, 1] = torch.nan
    data = replace(data, y=y, task="multilabel", metric="ap", class_names=("a", "b", "c"))
    page = data_of(explore(train(data), data, explain=[1]).html)
    assert [target["name"] for target in page["targets"]] == ["a", "b", "c"]
    assert array(page["targets"][1]["truth"])[0] == -1
    assert page["targets"][2]["classes"] == ["no", "yes"]
    assert page["explanations"][0]["score"].startswith("the logit of ")


def test_many_classes_share_a_row() -> None:
    data = node_dataset(120)
    y = torch.arange(120) % 40
    data = replace(data, y=y, train=torch.ones_like(data.train))
    page = data_of(explore(train(data), data).html)
    (target,) = page["targets"]
    assert len(target["classes"]) == 40
    confusion = target["confusion"]
    assert len(confusion["classes"]) == MOST_CLASSES
    assert confusion["classes"][-1] == "all others"
    assert sum(map(sum, confusion["tables"]["all"])) == 120
    assert sum(confusion["tables"]["all"][-1]) == 3 * (40 - MOST_CLASSES + 1)


def test_weights_and_the_released_direction() -> None:
    data = node_dataset()
    data = replace(data, edge_weight=torch.rand(data.num_edges))
    run = train(data)
    page = data_of(explore(run, data).html)
    report = read_actions(run.model, data.x, data.edge_index, edge_weight=data.edge_weight)
    assert np.allclose(array(page["actions"]["layers"][0]["flow"]), report.layers[0].flow, rtol=1e-3, atol=1e-7)  # fmt: skip
    # Information flows against the listed edges there, and so do the arrows.
    run.model.semantics = "released"
    for conv in run.model.convs:
        conv.semantics = "released"
    turned = data_of(explore(run, data).html)
    assert array(turned["edges"]["source"]).tolist() == data.edge_index[1].tolist()


@pytest.mark.parametrize(
    "option", ["model.semantics=messages", "model.block=prenorm", "model.step=wave"]
)
def test_options_of_csnn(option: str) -> None:
    """Actions, flows and the strongest paths are those of the analysis, in arrows as listed."""
    data = node_dataset()
    run = run_split(recipe(epochs=3).set(option), data)[0]
    page = data_of(explore(run, data, explain=[2]).html)
    report = read_actions(run.model, data.x, data.edge_index)
    assert page["actions"]["counts"] == report.counts.tolist()
    for told, layer in zip(page["actions"]["layers"], report.layers, strict=True):
        assert np.allclose(array(told["flow"]), layer.flow, rtol=1e-3, atol=1e-7)
    assert array(page["edges"]["source"]).tolist() == data.edge_index[0].tolist()
    (shown,) = page["explanations"]
    assert shown["rows"][0]["diffusion"] is not None
    assert page["settings"]


def test_names_are_text_and_not_long() -> None:
    data = named_dataset()
    made = explore(train(data), data, center=3, explain=[3])
    page = data_of(made.html)
    assert page["nodes"]["names"][0] == data.node_ids[0]
    assert page["nodes"]["names"][3].endswith("… (10,000 characters)")
    assert len(page["nodes"]["names"][3]) < 600
    assert all(len(name) < 100 for name in page["targets"][0]["classes"])
    assert len(made.html) < 200_000


def test_a_graph_without_edges_and_one_node() -> None:
    data = node_dataset()
    data = replace(data, edge_index=data.edge_index[:, :0])
    page = data_of(explore(train(data), data).html)
    assert page["edges"]["count"] == 0
    assert page["actions"]["counts"][0][3] == 40  # everybody is alone
    only = explore(train(data), data, center=5, hops=0)
    assert (only.num_nodes, only.num_edges) == (1, 0)
