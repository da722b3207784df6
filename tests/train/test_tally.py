"""What an epoch's steps add up to, and who waits for the device."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from synchronising import Synchronisations
from torch import Tensor, nn
from torch.testing import assert_close
from torch.utils._pytree import tree_map_only
from train.small import graph_dataset, link_dataset, node_dataset, recipe

from coopsheaf.data.dataset import PARTS
from coopsheaf.data.links import AnyDataset
from coopsheaf.models.registry import MODELS, make_settings
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels import diagonal, sparse
from coopsheaf.train.build import build_model
from coopsheaf.train.engine import Plain
from coopsheaf.train.evaluation import evaluate_together
from coopsheaf.train.feed import NodeFeed
from coopsheaf.train.loop import train_epoch
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.tally import Tally, finite_gradients
from coopsheaf.train.task import Task
from coopsheaf.train.world import World

# Shapes without values: code takes the ways of an accelerator, and nothing can be read.
DEVICE = torch.device("meta")


def tally(*steps: tuple[float, float], epoch: int = 1) -> Tally:
    found = Tally(epoch, recipe().train)
    for loss, mass in steps:
        found.add(torch.tensor(loss), mass)
    return found


def world() -> World:
    return World(Plain())


def test_the_mean_is_over_samples() -> None:
    assert tally((1.0, 1.0), (4.0, 2.0)).mean(world()) == 3.0
    mixed = tally((1.0, 1.0))
    mixed.add(torch.tensor(4.0), torch.tensor(2))  # as it is counted on a device
    mixed.add(torch.tensor(9.0), 0.0)
    assert mixed.mean(world()) == 3.0


def test_sums_are_those_of_reading_every_loss() -> None:
    """To the last bit, in double precision."""
    losses, total, count = torch.rand(50, generator=torch.Generator().manual_seed(0)), 0.0, 0.0
    for k, loss in enumerate(losses):
        total, count = total + loss.item() * (k + 0.1), count + k + 0.1
    steps = [(loss.item(), k + 0.1) for k, loss in enumerate(losses)]
    assert tally(*steps).mean(world()) == total / count


def test_a_loss_that_is_not_finite_is_noticed() -> None:
    with pytest.raises(ValueError, match="the loss became nan in epoch 2"):
        tally((1.0, 1.0), (math.nan, 1.0)).mean(world())
    with pytest.raises(ValueError, match="the loss became nan in epoch 2"):
        tally().mean(world())


def test_gradients_of_the_first_step_alone_are_looked_at() -> None:
    layer = nn.Linear(2, 1)
    assert finite_gradients(layer) is None
    layer(torch.full((1, 2), torch.inf)).sum().backward()
    first = tally(epoch=0)
    first.look_at(layer)
    first.add(torch.tensor(1.0), 1.0)
    with pytest.raises(ValueError, match="before the first step"):
        first.mean(world())
    later = tally((1.0, 1.0))
    later.look_at(layer)
    assert later.mean(world()) == 1.0


# Waiting.


def undirected(n: int = 40, task: str = "multiclass") -> AnyDataset:
    """Every edge both ways and no loops, as NSD needs it."""
    data = node_dataset(n, task)
    source, target = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].unique(dim=1)
    edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    return replace(data, edge_index=edges)


def made_for(name: str, **sizes: int | str) -> Recipe:
    sizes = {"hidden_channels": 4, "num_layers": 2} | sizes
    return replace(recipe(), model_name=name, model=make_settings(name, **sizes))


def waits(settings: Recipe, dataset: AnyDataset, task: Task, epoch: int = 1) -> list[dict]:
    """What an epoch and an evaluation wait for, on a graph that is prepared."""
    model, feed = build_model(settings, dataset), make_feed(dataset, 0, settings, DEVICE)
    if isinstance(feed, NodeFeed):
        # What networks derive from a graph once, with values.
        known = make_feed(dataset, 0, settings, torch.device("cpu"))
        known.outputs(model, PARTS)
        move = partial(tree_map_only, Tensor, lambda part: part.to(DEVICE))
        feed.graph._memo.update(move(known.graph._memo))
    model.to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    weight = torch.ones(3, device=DEVICE) if settings.train.class_weights else None
    with Synchronisations() as step:
        train_epoch(model, feed, task, optimizer, world(), settings.train, weight, epoch)
    with Synchronisations() as evaluation, torch.no_grad():
        evaluate_together(model, feed, task, world(), PARTS)
    return [dict(step.found), dict(evaluation.found)]


MULTICLASS = Task("multiclass", "accuracy")


@pytest.mark.parametrize("options", [{}, {"clip": 1.0}, {"class_weights": True}], ids=str)
def test_a_step_of_csnn_waits_for_nothing(options: dict) -> None:
    """One copy at the end of an epoch for each kind of number that it asks for."""
    epoch, evaluation = waits(recipe(**options), node_dataset(), MULTICLASS)
    assert epoch == {"_to_copy to the host": 1 + len(options)}
    assert evaluation == {"_local_scalar_dense": 4}  # three scores and a loss
    first, _ = waits(recipe(**options), node_dataset(), MULTICLASS, epoch=0)
    assert first == epoch | {"_local_scalar_dense": 1}  # were its gradients finite?


LEARNERS = ["mlp", "sage-graph-norm", "sage-node-norm", "sage-projected", "sage-embedded"]


@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_no_learner_waits(learner: str, semantics: str) -> None:
    settings = recipe()
    options = {"hidden_channels": 4, "num_layers": 2, "learner": learner, "semantics": semantics}
    settings = replace(settings, model=make_settings("csnn", **options))
    assert waits(settings, node_dataset(), MULTICLASS)[0] == {"_to_copy to the host": 1}


# What has to divide the channels, and settings of networks that are looked at with others.
SIZES: dict[str, dict[str, int | str]] = {
    "gat-plain": {"num_heads": 2}, "gat": {"num_heads": 2}, "gat-sep": {"num_heads": 2},
    "gt": {"num_heads": 2}, "gt-sep": {"num_heads": 2}, "copresheaf": {"num_heads": 2},
    "bunn": {"num_bundles": 2}, "polynsd": {"num_hops": 2},
}  # fmt: skip

# These cut the graph anew in every step of training, on the host.
CUT_ON_THE_HOST = ("graph-vit", "graph-mixer")

# Normalised by square roots of d x d blocks that are no multiples of the identity: these have
# eigenvalues, and whether they were found is something that PyTorch waits for.
EIGENVALUES = {
    "nsd-general", "quiver-nsd", "jdsnn", "risnn", "onda", "onda-directional",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in MODELS if name not in CUT_ON_THE_HOST])
def test_no_step_of_a_network_waits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one graph; of eigenvalues our operator shows a mode nothing, so calls are counted."""
    asked = []

    def inverse_sqrt(*arguments: object) -> object:
        asked.append(name)
        return known(*arguments)

    known = diagonal._inverse_sqrt
    monkeypatch.setattr(diagonal, "_inverse_sqrt", inverse_sqrt)
    settings = made_for(name, **SIZES.get(name, {}))
    assert waits(settings, undirected(), MULTICLASS)[0] == {"_to_copy to the host": 1}
    assert bool(asked) == (name in EIGENVALUES)


@pytest.mark.parametrize("maps", ["diagonal", "orthogonal"])
@pytest.mark.parametrize("name", ["quiver-nsd", "risnn", "onda"])
def test_simpler_maps_have_no_eigenvalues(
    name: str, maps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagonal, "_inverse_sqrt", None)  # not to be called
    settings = made_for(name, maps=maps)
    assert waits(settings, undirected(), MULTICLASS)[0] == {"_to_copy to the host": 1}


@pytest.mark.parametrize("name", ["gcn-lrgb", "gine", "gatedgcn"])
def test_networks_for_small_graphs_wait_for_no_batch(name: str) -> None:
    options = {"hidden_channels": 8, "num_layers": 2, "pool": "mean"}
    settings = replace(recipe(batch_size=3), model_name=name, model=make_settings(name, **options))
    found = waits(settings, graph_dataset(), Task("multilabel", "ap"))[0]
    assert found == {"_to_copy to the host": 2}


def test_targets_that_are_not_known_are_left_out_without_waiting() -> None:
    epoch, _ = waits(recipe(), node_dataset(task="regression"), Task("regression", "mae"))
    assert epoch == {"_to_copy to the host": 2}  # losses, and how many were known


@pytest.mark.parametrize("batch_size", [12, 3])
def test_batches_of_graphs_are_sent_without_waiting(batch_size: int) -> None:
    """However many steps there are, an epoch waits as often."""
    data = graph_dataset()
    settings = replace(recipe(batch_size=batch_size), model=make_settings("csnn", hidden_channels=4, num_layers=2, pool="mean"))  # fmt: skip
    assert waits(settings, data, Task("multilabel", "ap"))[0] == {"_to_copy to the host": 2}


def test_links_are_sent_without_waiting() -> None:
    assert waits(recipe(), link_dataset(), Task("link", "mrr"))[0] == {"_to_copy to the host": 2}


@pytest.mark.parametrize("kind", ["clusters", "nodes", "neighbours"])
def test_mini_batches_are_sent_without_waiting(kind: str) -> None:
    settings = recipe().set(f"batch.kind={kind}", "batch.size=2" if kind == "clusters" else "batch.size=8")  # fmt: skip
    assert waits(settings, node_dataset(), MULTICLASS)[0] == {"_to_copy to the host": 1}


def test_the_sparse_products_wait_for_nothing() -> None:
    """Inside of our operators a mode sees nothing, so they are looked at by themselves."""
    graph = Graph(torch.randint(0, 9, (2, 30)), 9).to(DEVICE)
    for b in (1, 3):
        x, blocks = torch.empty(9, b, 4, device=DEVICE), torch.empty(30, b, b, device=DEVICE)
        with Synchronisations() as seen:
            sparse._multiply(x, blocks, *graph.by_target)
            sparse._sample(x, x, *graph.by_target)
        assert not seen.found


def test_the_counter_sees_what_waits() -> None:
    x = torch.ones(4, device=DEVICE)
    asked: dict[str, object] = {
        "_local_scalar_dense": lambda: bool(x.sum() > 0),
        "equal": lambda: torch.equal(x, x),
        "nonzero": lambda: x.nonzero(),
        "index by a mask": lambda: x[x > 0],
        "_to_copy to the host": lambda: x.cpu(),
        "_to_copy to the device, waiting": lambda: torch.ones(3).to(DEVICE),
        "bincount": lambda: torch.bincount(x.long()),
        "masked_select": lambda: x.masked_select(x > 0),
    }
    for name, ask in asked.items():
        with Synchronisations() as seen:
            ask()  # type: ignore[operator]
        assert list(seen.found) == [name]
    with Synchronisations() as seen:
        torch.ones(3).to(DEVICE, non_blocking=True)
        bool(torch.ones(1))  # the host's own
        (x * 2).sum(), x[torch.zeros(2, dtype=torch.int64, device=DEVICE)]
    assert not seen.found


# What stands in on a device gives what the host gives.


class Elsewhere(Tensor):
    """A tensor of the CPU that says it is not."""

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return False


@pytest.mark.parametrize("kind", ["multilabel", "regression", "link"])
def test_the_loss_of_known_targets_is_the_same_there(kind: str) -> None:
    task = Task(kind, {"multilabel": "ap", "regression": "mae", "link": "mrr"}[kind])
    logits, y = torch.randn(6, 3, requires_grad=True), torch.rand(6, 3).round()
    y[0, 0] = y[4, 2] = math.nan
    here, there = task.loss(logits, y), task.loss(logits, y.as_subclass(Elsewhere))
    assert_close(there.as_subclass(Tensor), here)
    for one, other in zip(torch.autograd.grad(here, logits), torch.autograd.grad(there, logits), strict=True):  # fmt: skip
        assert_close(other.as_subclass(Tensor), one)
    mass = task.mass(y.as_subclass(Elsewhere))
    assert isinstance(mass, Tensor)
    assert mass == task.mass(y) == 16
    nothing = torch.full((2, 3), math.nan).as_subclass(Elsewhere)
    assert task.loss(logits[:2], nothing) == 0
