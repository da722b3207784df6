"""Runs that are trained in one pass are the runs that they would have been alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from graphs import generator
from models.test_all import SMALL
from torch.testing import assert_close
from train.small import graph_dataset, node_dataset, recipe, with_edge_features

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves.connections import connection_maps
from coopsheaf.sheaves.kernels import KERNELS, use_kernel
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split
from coopsheaf.train.run_schema import check_info
from coopsheaf.train.together.run import Ended, Job, run_together, runs_at_once

ALONE = {"ggnn"}  # PyTorch has no GRU of many runs
# Actions, and edges that patches are cut without, are drawn from PyTorch's generator, which all runs share.
NOISY = {"cognn", "graph-vit", "graph-mixer"}


def both_ways(dataset: NodeDataset) -> NodeDataset:
    edges = dataset.edge_index[:, dataset.edge_index[0] < dataset.edge_index[1]].unique(dim=1)
    return replace(dataset, edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def compare(jobs: list[Job], dataset: NodeDataset, **tolerance: float) -> list[Ended]:
    """Train together and one by one; everything that came of it must agree."""
    found = run_together(jobs, dataset)
    assert found is not None
    for job, ended in zip(jobs, found, strict=True):
        run, result = run_split(job.recipe, dataset, job.split)
        assert ended.run is not None, ended.trouble
        assert (ended.result.epochs, ended.result.best_epoch) == (result.epochs, result.best_epoch)
        got, want = (
            torch.tensor(one.history, dtype=torch.float64) for one in (ended.result, result)
        )
        assert_close(got, want, equal_nan=True, **tolerance)
        assert_close(dict(ended.run.model.state_dict()), dict(run.model.state_dict()), **tolerance)
        assert ended.run.info["summary"].keys() == run.info["summary"].keys()
    return found


EXACT = {"rtol": 1e-8, "atol": 1e-9}
SINGLE = {"rtol": 1e-3, "atol": 1e-5}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_network_is_trained_as_it_is_alone(name: str) -> None:
    """Double precision; dropout is drawn as in a run alone where a network draws it as CSNN does."""
    settings, _ = SMALL[name]
    known = make_settings(name)
    rates = ("dropout", "input_dropout", "hop_dropout", "attention_dropout")
    off = {key: 0.0 for key in rates if hasattr(known, key)}
    model = make_settings(name, **settings | off)
    train = TrainConfig(epochs=3, lr=0.02, weight_decay=1e-3, precision="64", seed=5)
    base, dataset = Recipe(name, model, train=train), both_ways(node_dataset())
    jobs = [Job(base, 0), Job(replace(base, train=replace(train, seed=9)), 1)]
    if name in ALONE:
        with pytest.raises(ValueError, match=f"{name} cannot be trained together .*one by one"):
            run_together(jobs, dataset)
        return
    if name in NOISY:
        first, second = run_together(jobs, dataset) or []
        assert first.result.history != second.result.history
        return
    compare(jobs, dataset, **EXACT)


def test_what_is_found_of_a_graph_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection of local PCA takes longer than an epoch, and does not depend on the run."""
    found = []

    def counted(*args: Any, **options: Any) -> Any:
        found.append(1)
        return connection_maps(*args, **options)

    monkeypatch.setattr("coopsheaf.zoo.conn.network.connection_maps", counted)
    model = make_settings("conn-nsd", hidden_channels=4, stalk_dim=2)
    base = Recipe("conn-nsd", model, train=TrainConfig(epochs=2))
    dataset = both_ways(node_dataset())
    run_together([Job(base, 0), Job(base, 1)], dataset)
    assert len(found) == 1


@pytest.mark.parametrize("kernel", sorted({"factored", "native"} & set(KERNELS)))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"learner": "sage-projected", "left_weights": False},
        {"learner": "sage-graph-norm", "norm": "layer", "right_weights": False},
        {"semantics": "released", "norm": "batch", "act": "relu"},
        {"semantics": "messages", "orthogonal": "cayley", "scale": "rectified", "jk": "cat"},
        {"orthogonal": "identity", "scale": "unit", "act": "tanh"},
    ],
    ids=lambda settings: settings.get("learner", settings.get("semantics", str(len(settings)))),
)
def test_csnn_with_every_kernel_and_its_own_masks(kernel: str, settings: dict[str, Any]) -> None:
    options = {"hidden_channels": 4, "num_layers": 2, "stalk_dim": 2} | settings
    model = make_settings("csnn", dropout=0.3, input_dropout=0.4, **options)
    for precision, tolerance in (("64", EXACT), ("32", SINGLE)):
        train = TrainConfig(epochs=6, lr=0.01, precision=precision, weight_decay=1e-3)
        base = Recipe("csnn", model, train=train)
        jobs = [Job(replace(base, train=replace(train, seed=seed)), seed % 2) for seed in range(3)]
        with use_kernel(kernel):
            compare(jobs, node_dataset(), **tolerance)


@pytest.mark.parametrize(
    "train",
    [
        {"patience": 4, "epochs": 40},
        {"optimizer": "adamw", "weight_decay": 0.1, "map_weight_decay": 0.5},
        {"schedule": "plateau", "plateau_patience": 1, "epochs": 15},
        {"schedule": "cosine", "warmup": 3},
        {"optimizer": "sgd", "patience": 3, "epochs": 20},
        {"clip": 0.01, "select": "loss"},
        {"stop": "mean", "patience": 2, "epochs": 40, "eval_every": 2},
        {"class_weights": True, "metric": "macro_f1"},
        {"eval_every": "auto", "epochs": 100, "patience": 30},
    ],
    ids=lambda train: "-".join(map(str, [*train, *train.values()][:3])),
)
def test_every_setting_of_training_does_what_it_does_alone(train: dict[str, Any]) -> None:
    base = recipe(precision="64", **train)
    jobs = [
        Job(base, 0),
        Job(base.set("train.seed=3", "train.lr=0.1"), 0),
        Job(base.set("train.weight_decay=0.02"), 1),
    ]
    compare(jobs, node_dataset(60), **EXACT)


@pytest.mark.parametrize("task", ["binary", "regression", "multiclass", "multilabel"])
def test_every_task_weights_and_edge_features(task: str) -> None:
    kind = "multiclass" if task == "multilabel" else task
    dataset = with_edge_features(node_dataset(60, task=kind))
    weight = torch.rand(60, generator=generator(4)) + 0.1
    if task == "multilabel":
        y = (torch.rand(60, 2, generator=generator(6)) < 0.5).float()
        y[3, 1] = float("nan")
        dataset = replace(dataset, y=y, task=task, metric="ap", class_names=())
    else:
        dataset = replace(dataset, sample_weight=weight)
    base = recipe(precision="64", epochs=5, class_weights=task == "binary")
    compare([Job(base, 0), Job(base, 1)], dataset, **EXACT)


def test_a_run_that_diverges_ends_and_the_others_go_on() -> None:
    base = recipe(precision="64")
    jobs = [Job(base, 0), Job(base.set("train.lr=1e200"), 0), Job(base, 1)]
    first, lost, last = run_together(jobs, node_dataset()) or []
    assert lost.run is None
    assert "lower `train.lr` (it is 1e+200)" in lost.trouble
    for ended in (first, last):
        alone = run_split(base, node_dataset(), ended.job.split)[1]
        got, want = (torch.tensor(one.history).double() for one in (ended.result, alone))
        assert_close(got, want, rtol=1e-6, atol=1e-6)


def test_runs_say_how_they_were_made() -> None:
    base, dataset = recipe(), node_dataset()
    ended, *_ = run_together([Job(base, 0), Job(base, 1)], dataset, extra={"data_dir": None}) or []
    assert ended.run is not None
    info = ended.run.info
    assert info["together"] == 2
    assert "data_dir" in info
    assert check_info(info) == ()
    assert info["config_hash"] == base.hash()
    alone, _ = run_split(base, dataset, 0)
    assert "together" not in alone.info
    assert alone.info["identity"] == info["identity"]


def test_it_can_be_stopped() -> None:
    seen: list[int] = []
    jobs = [Job(recipe(), 0), Job(recipe(), 1)]
    found = run_together(
        jobs,
        node_dataset(),
        report=lambda state: seen.append(state.epoch),
        should_stop=lambda: len(seen) == 3,
    )
    assert found is None
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "dataset", "rule"),
    [
        (("train.precision=bf16",), node_dataset(), "`train.precision` must be 32 or 64"),
        (("train.compile=true",), node_dataset(), "`train.compile` is for runs alone"),
        (("batch.kind=nodes", "batch.size=8"), node_dataset(), "sees the whole graph"),
        ((), graph_dataset(), "about the nodes of one graph, which small-graphs is not"),
        (("model.checkpoint_layers=true",), node_dataset(), "csnn cannot be trained together"),
    ],
)
def test_what_cannot_be_done_together_is_said_in_a_line(settings, dataset, rule) -> None:
    with pytest.raises(ValueError, match="together") as error:
        run_together([Job(recipe().set(*settings), 0)] * 2, dataset)
    assert rule in str(error.value)
    assert str(error.value).endswith("train them one by one (leave --together out)")
    assert "\n" not in str(error.value)


def test_runs_of_one_pass_have_one_shape() -> None:
    other = recipe().set("model.hidden_channels=8")
    with pytest.raises(ValueError, match=r"same settings but for train.seed, train.lr"):
        run_together([Job(recipe(), 0), Job(other, 0)], node_dataset())


def test_how_many_runs_a_pass_holds() -> None:
    assert runs_at_once(node_dataset()) == 32
    assert runs_at_once(graph_dataset()) == 1
    large = node_dataset(20)
    large = replace(large, edge_index=large.edge_index.repeat(1, 100_000))
    assert runs_at_once(large) == 2


def test_scores_of_many_seeds_have_the_same_distribution() -> None:
    """Features that are mostly zero: masks are others than alone, and so are the numbers."""
    n, columns = 80, 96
    rng = generator(8)
    y = torch.randint(0, 3, (n,), generator=rng)
    likely = torch.rand(3, columns, generator=rng) ** 6  # words that classes like
    x = (torch.rand(n, columns, generator=rng) < 0.5 * likely[y]).float()
    assert (x != 0).double().mean() < 1 / 8
    edges = torch.randint(0, n, (2, 3 * n), generator=rng)
    parts = torch.rand(1, n, generator=rng)
    masks = parts < 0.4, (parts >= 0.4) & (parts < 0.7), parts >= 0.7
    dataset = NodeDataset("words", x, edges, y, *masks, "multiclass", "accuracy")
    settings = {"hidden_channels": 4, "stalk_dim": 2, "input_dropout": 0.5, "dropout": 0.3}
    base = Recipe("csnn", make_settings("csnn", **settings), train=TrainConfig(epochs=15, lr=0.02))
    jobs = [Job(base.set(f"train.seed={seed}"), 0) for seed in range(20)]
    together = [ended.result for ended in run_together(jobs, dataset) or []]
    alone = [run_split(job.recipe, dataset)[1] for job in jobs]
    assert len(together) == len(alone) == 20
    assert together[0].history[-1] != alone[0].history[-1]
    for number in (
        lambda result: result.scores["val"],
        lambda result: result.scores["test"],
        lambda result: result.history[-1][1],  # the last loss
    ):
        a, b = (torch.tensor([number(one) for one in runs]).double() for runs in (alone, together))
        error = ((a.var() + b.var()) / 20).sqrt()
        assert error > 0
        assert (a.mean() - b.mean()).abs() < 3 * error
        assert 1 / 4 < a.std() / b.std() < 4
