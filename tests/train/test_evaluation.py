"""How often a run is evaluated, on what, and what that leaves behind."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch.profiler import profile
from train.small import graph_dataset, link_dataset, node_dataset, recipe

from coopsheaf import CSNN
from coopsheaf.data.dataset import PARTS
from coopsheaf.nn import MLPLearner, ProjectedSAGELearner
from coopsheaf.train import default_recipe
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.evaluation import epochs_between, evaluate
from coopsheaf.train.feed import GraphFeed, NodeFeed
from coopsheaf.train.links import LinkFeed
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.task import Task

CPU = torch.device("cpu")


def graph_feed() -> GraphFeed:
    return GraphFeed(graph_dataset(), batch_size=5, seed=0, device=CPU, dtype=torch.float32)


@pytest.mark.parametrize(
    ("share", "settings", "every"),
    [
        (1.0, {"epochs": 300, "patience": 50}, 3),  # one graph: a third of a step, a tenth of all
        (1.0, {"epochs": 300}, 3),
        (1.0, {"epochs": 100}, 2),  # a run has 50 evaluations
        (1.0, {"epochs": 49}, 1),
        (1.0, {"epochs": 2000, "patience": 25}, 2),  # and a patience ten
        (1.0, {"epochs": 2000, "patience": 5}, 1),
        (1 / 3, {"epochs": 2000}, 1),
        (0.34, {"epochs": 2000}, 2),
        (4.0, {"epochs": 2000}, 12),
        (0.01, {"epochs": 2000}, 1),
        (4.0, {"epochs": 2000, "schedule": "plateau"}, 1),
    ],
)
def test_auto_follows_from_counts_alone(share: float, settings: dict, every: int) -> None:
    assert epochs_between(TrainConfig(eval_every="auto", **settings), lambda: share) == every


def test_a_number_is_that_number_and_nobody_counts() -> None:
    def count() -> float:
        raise AssertionError

    assert epochs_between(TrainConfig(eval_every=7, epochs=10), count) == 7


def test_what_an_evaluation_computes_for_each_that_is_trained_on() -> None:
    model = torch.nn.Identity()
    whole = NodeFeed(node_dataset(), 0, device=CPU, dtype=torch.float32)
    links = LinkFeed(link_dataset(), seed=0, device=CPU, dtype=torch.float32)
    assert whole.evaluation_share(model, PARTS) == links.evaluation_share(model, PARTS) == 1
    assert graph_feed().evaluation_share(model, ("val",)) == 6 / 12
    assert graph_feed().evaluation_share(model, PARTS) == 24 / 12


def test_auto_is_for_data_without_a_protocol() -> None:
    assert default_recipe("csnn").train.eval_every == "auto"
    assert default_recipe("csnn", "texas").train.eval_every == 1


def test_auto_counts_patience_in_epochs_and_is_said_in_the_run(tmp_path: Path) -> None:
    settings = recipe(epochs=500, patience=30, eval_every="auto")
    _, result = run_split(settings, node_dataset(), out=tmp_path / "run")
    assert result.eval_every == 3
    assert [row[0] for row in result.history] == list(range(3, result.epochs + 1, 3))
    assert 30 <= result.epochs - result.best_epoch < 33
    assert load_run(tmp_path / "run").info["result"]["eval_every"] == 3


def test_auto_resumes_to_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coopsheaf.train.evaluation.EVALUATIONS", 2)
    settings = recipe(epochs=14, eval_every="auto")
    _, whole = run_split(settings, node_dataset())
    assert [row[0] for row in whole.history] == [3, 6, 9, 12, 14]
    for _ in range(14):
        _, pieces = run_split(
            settings, node_dataset(), out=tmp_path, resume=True, should_stop=lambda: True
        )
    assert pieces.epochs == 14
    assert (pieces.history, pieces.scores) == (whole.history, whole.scores)


def test_many_graphs_are_trained_by_validation_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other parts are scored once, where validation was best; on request at all epochs."""
    asked, outputs = [], GraphFeed.outputs

    def watched(feed: GraphFeed, model: torch.nn.Module, parts: tuple[str, ...]) -> dict:
        asked.append(tuple(parts))
        return outputs(feed, model, parts)

    monkeypatch.setattr(GraphFeed, "outputs", watched)
    _, short = run_split(recipe(epochs=8, batch_size=5), graph_dataset())
    once = [("val", "test")]  # for the summary of all metrics
    assert asked == [("val",)] * 8 + [("train", "test")] + once
    asked.clear()
    _, full = run_split(recipe(epochs=8, batch_size=5, eval_parts="all"), graph_dataset())
    assert asked == [PARTS] * 8 + once
    best = full.history[full.best_epoch - 1]
    assert short.scores == full.scores == dict(zip(PARTS, best[2:], strict=True))
    assert len({row[4] for row in full.history}) > 1, "the epoch matters"
    for row, complete in zip(short.history, full.history, strict=True):
        assert (row[:2], row[3]) == (complete[:2], complete[3])
        assert math.isnan(row[2]) and math.isnan(row[4])  # noqa: PT018


def test_an_interrupted_run_of_many_graphs_has_no_test_score_yet(tmp_path: Path) -> None:
    settings = recipe(epochs=4, batch_size=5)
    _, result = run_split(settings, graph_dataset(), out=tmp_path, should_stop=lambda: True)
    assert math.isnan(result.scores["test"])
    assert result.scores["val"] == result.history[0][3]


def test_only_the_parts_that_are_asked_for_are_computed() -> None:
    data, task = node_dataset(), Task("multiclass", "accuracy")
    feed = NodeFeed(data, 0, device=CPU, dtype=torch.float32)
    model = CSNN(5, 4, 2, 3, stalk_dim=2)
    whole = evaluate(model, feed, task)
    assert tuple(whole) == PARTS
    assert evaluate(model, feed, task, ("val",)) == {"val": whole["val"]}
    links = LinkFeed(link_dataset(), seed=0, device=CPU, dtype=torch.float32)
    assert tuple(links.parts) == ("val", "test", "train")


def test_graphs_of_validation_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    feed, model = graph_feed(), CSNN(4, 4, 1, 2, stalk_dim=2, pool="mean")
    first = feed.outputs(model, ("val",))["val"]
    monkeypatch.setattr("coopsheaf.train.feed.ManyGraphs.take", None)
    again = feed.outputs(model, ("val",))["val"]
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])  # noqa: PT018
    with pytest.raises(TypeError):
        feed.outputs(model, ("test",))


def peak_floats(model: CSNN, feed: NodeFeed) -> float:
    """The most memory that an evaluation holds at once, in rows of the features of a layer."""
    task = Task("multiclass", "accuracy")
    evaluate(model, feed, task)  # what the graph remembers is made once
    with profile(profile_memory=True) as found:
        evaluate(model, feed, task)
    held = most = 0
    for event in found.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most / (4 * feed.x.shape[0] * model.stalk_dim * model.hidden_channels)


@pytest.mark.parametrize(
    "learner", [MLPLearner(8), ProjectedSAGELearner(8, 3)], ids=["mlp", "sage"]
)
def test_an_evaluation_keeps_nothing_of_the_layers_behind_it(learner: object) -> None:
    feed = NodeFeed(node_dataset(400), 0, device=CPU, dtype=torch.float32)
    saved = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    peaks = []
    for layers in (2, 6):
        model = CSNN(5, 16, layers, 3, stalk_dim=3, learner=learner, dropout=0.2)
        with torch.autograd.graph.saved_tensors_hooks(keep, keep):
            peaks.append(peak_floats(model, feed))
    assert not saved
    assert 1 < peaks[0] < 12
    assert peaks[1] == pytest.approx(peaks[0], rel=0.02)
