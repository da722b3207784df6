"""Networks that score pairs, and runs on links."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from graphs import generator, randn
from torch.testing import assert_close
from train.small import link_dataset, recipe

from coopsheaf.data import LinkDataset, split_links
from coopsheaf.models.network import Network
from coopsheaf.models.registry import list_models
from coopsheaf.report.tables import layout
from coopsheaf.train import links, load_run, train
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.build import build_model
from coopsheaf.train.links import LinkDecoder, LinkFeed, LinkNetwork
from coopsheaf.train.loop import evaluate
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.run import run_split
from coopsheaf.train.runner import bench
from coopsheaf.train.task import Task

CPU = torch.device("cpu")
CHANCE = sum(1 / rank for rank in range(1, 52)) / 51  # mean reciprocal rank among 51, 0.089


def feed_of(dataset: LinkDataset, seed: int = 0) -> LinkFeed:
    return LinkFeed(dataset, seed=seed, device=CPU, dtype=torch.float32)


def test_a_directed_score_is_a_bilinear_form() -> None:
    decoder, z = LinkDecoder(6, undirected=False).double(), randn(5, 6)
    with torch.no_grad():
        decoder.bias.fill_(0.5)
    source, target = torch.tensor([[0], [3]]), torch.tensor([[1, 2, 0], [0, 4, 3]])
    assert decoder.target is not None
    a, b = (linear.weight for linear in (decoder.source, decoder.target))
    p, q = (linear.bias for linear in (decoder.source, decoder.target))
    scores = (z @ a.T + p) @ (z @ b.T + q).T / 6**0.5 + 0.5  # (5, 5)
    assert_close(decoder(z, source, target), scores[source, target])
    assert_close(decoder(z, target, target), scores[target, target])
    assert scores[0, 1] != scores[1, 0]


def test_an_undirected_score_is_symmetric_and_may_join_the_unlike() -> None:
    decoder, z = LinkDecoder(8, undirected=True).double(), randn(9, 8)
    scores = decoder(z, torch.arange(9)[:, None], torch.arange(9).expand(9, 9))
    assert_close(scores, scores.T)
    assert decoder.diagonal is not None
    assert decoder.diagonal.tolist() == [-1, 1, 1, 1, -1, 1, 1, 1]
    ends = z @ decoder.source.weight.T + decoder.source.bias
    assert_close(scores, (ends * decoder.diagonal) @ ends.T / 8**0.5)
    assert torch.linalg.eigvalsh(scores).min() < 0  # a Gram matrix would have none below zero


def test_pairs_go_in_pieces_with_the_same_values_and_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoder, z = LinkDecoder(4, undirected=False).double(), randn(7, 4).requires_grad_()
    source = torch.randint(0, 7, (9, 1), generator=generator(0))
    target = torch.randint(0, 7, (9, 3), generator=generator(1))
    whole = decoder(z, source, target)
    parameters = [z, *decoder.parameters()]
    wanted = torch.autograd.grad(whole.square().sum(), parameters)
    monkeypatch.setattr(links, "PAIRS", 6)
    pieces = decoder(z, source, target)
    assert torch.equal(pieces, whole)
    for got, want in zip(
        torch.autograd.grad(pieces.square().sum(), parameters), wanted, strict=True
    ):
        assert_close(got, want)


@pytest.mark.parametrize("name", ["csnn", "nsd-general", "gcn", "cognn", "bunn", "mlp"])
def test_networks_of_all_families_embed_nodes(name: str) -> None:
    assert name in list_models()
    dataset = link_dataset(20, undirected=True)
    model = build_model(default_recipe(name).set("model.hidden_channels=32"), dataset)
    assert isinstance(model, LinkNetwork)
    assert isinstance(model.network, Network)
    for _, (logits, y) in feed_of(dataset).outputs(model.eval()).items():
        assert logits.shape == y.shape
        assert logits.isfinite().all()


@pytest.mark.parametrize("undirected", [False, True])
def test_a_step_asks_for_links_first_and_non_edges_of_training_after(undirected: bool) -> None:
    dataset = link_dataset(undirected=undirected)
    feed, shape = feed_of(dataset), (dataset.train.shape[1], 3)
    known = set(zip(*dataset.train.tolist(), strict=True))
    asked = set()
    for epoch in range(100):
        source, target = feed.pairs(epoch)
        assert source.shape == target.shape == shape
        assert torch.equal(torch.stack([source[:, 0], target[:, 0]]), dataset.train)
        assert torch.equal(source[:, 1], source[:, 0])
        drawn = torch.stack([source[:, 1:].flatten(), target[:, 1:].flatten()])
        asked |= set(zip(*drawn.tolist(), strict=True))
    assert not asked & known
    assert len(asked) == 40 * 39 - len(known)  # all others, sooner or later
    # What is to be found later is not spared: that would give it away.
    assert asked >= set(zip(*torch.cat([dataset.val, dataset.test], 1).tolist(), strict=True))
    ((logits, y),) = feed.steps(build_model(recipe(), dataset), 0)
    assert logits.shape == y.shape == shape
    assert y[:, 0].eq(1).all()
    assert y[:, 1:].eq(0).all()
    assert not y.requires_grad


def test_training_negatives_depend_on_seed_and_epoch_alone() -> None:
    dataset = link_dataset()
    feed = feed_of(dataset)
    first = torch.stack(feed.pairs(3))
    torch.manual_seed(99)
    feed.pairs(5)
    assert torch.equal(torch.stack(feed.pairs(3)), first)
    assert torch.equal(torch.stack(feed_of(dataset).pairs(3)), first)
    assert not torch.equal(torch.stack(feed.pairs(4)), first)
    assert not torch.equal(torch.stack(feed_of(dataset, seed=1).pairs(3)), first)


def test_an_evaluation_ranks_against_the_negatives_of_the_dataset() -> None:
    dataset = link_dataset()
    model = build_model(recipe(), dataset).eval()
    outputs = feed_of(dataset).outputs(model)
    with torch.no_grad():
        for part in ("val", "test"):
            wanted = model(dataset.x, dataset.edge_index, *dataset.candidates(part))
            assert_close(outputs[part][0], wanted)
    assert outputs["train"][0].shape == (dataset.train.shape[1], 1 + dataset.val_negatives.shape[1])


def test_edge_weights_reach_the_network() -> None:
    dataset = link_dataset()
    weight = torch.rand(dataset.num_edges, generator=generator(5))
    weighted = replace(dataset, edge_weight=weight)
    model = build_model(recipe(), weighted).eval()
    pairs = dataset.candidates("val")
    with torch.no_grad():
        wanted = model(dataset.x, dataset.edge_index, *pairs, edge_weight=weight)
        without = model(dataset.x, dataset.edge_index, *pairs)
    assert not torch.allclose(wanted, without)
    feed = feed_of(weighted)
    assert_close(feed.outputs(model)["val"][0], wanted)
    ((logits, _),) = feed.steps(model, 0)
    step = model(dataset.x, dataset.edge_index, *feed.pairs(0), edge_weight=weight)
    assert_close(logits, step)


@pytest.mark.parametrize(("model", "width"), [("csnn", 8), ("gcn", 32)])
def test_a_planted_graph_is_learned(model: str, width: int) -> None:
    """Links of a ring lattice, hidden from the network, lead to nodes that are near."""
    dataset = link_dataset(120, undirected=True)
    settings = {"model.hidden_channels": width, "model.dropout": 0, "train.epochs": 50}
    run = train(dataset, model, settings=settings | {"train.lr": 0.02})
    assert run.scores["test"] > 2 * CHANCE
    area = Task("link", "auroc").score(*feed_of(dataset).outputs(run.model)["test"])
    assert area > 0.75


def test_direction_is_learned() -> None:
    """Every link goes from the first half of the nodes to the second."""
    edges = torch.randint(0, 30, (2, 250), generator=generator(0)) + torch.tensor([[0], [30]])
    x = torch.randn(60, 4, generator=generator(1))
    x[:30, 0] += 2
    dataset = split_links(x, edges).dataset
    run = train(dataset, recipe=recipe(epochs=30))
    source, target = dataset.test.unsqueeze(-1)
    with torch.no_grad():
        forth = run.model(x, dataset.edge_index, source, target)
        back = run.model(x, dataset.edge_index, target, source)
    assert forth.mean() > back.mean() + 1
    assert (forth > back).double().mean() > 0.9


@pytest.mark.parametrize("undirected", [False, True])
def test_a_run_reads_back(tmp_path: Path, undirected: bool) -> None:
    dataset = link_dataset(undirected=undirected)
    _, result = run_split(recipe(epochs=3), dataset, out=tmp_path / "run")
    back = load_run(tmp_path / "run")
    assert (back.info["level"], back.info["task"], back.info["metric"]) == ("link", "link", "mrr")
    assert back.info["undirected"] == undirected
    assert isinstance(back.model, LinkNetwork)
    assert back.model.decoder.undirected == undirected
    feed = make_feed(dataset, 0, back.recipe, CPU)
    assert evaluate(back.model, feed, back.task) == result.scores == back.scores
    _, repeated = run_split(recipe(epochs=3), dataset, out=tmp_path / "run", resume=True)
    assert repeated == result


def test_an_interrupted_run_ends_the_same(tmp_path: Path) -> None:
    settings, dataset = recipe(epochs=9, precision="64"), link_dataset()
    run_split(settings, dataset, out=tmp_path / "whole")
    for stop in (2, 3):
        ask = iter([False] * stop + [True]).__next__
        _, result = run_split(
            settings, dataset, out=tmp_path / "pieces", resume=True, should_stop=ask
        )
        assert result.interrupted
    run_split(settings, dataset, out=tmp_path / "pieces", resume=True)
    first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "pieces"))  # fmt: skip
    assert first == second
    histories = [
        json.loads((tmp_path / name / "run.json").read_text())["result"]["history"]
        for name in ("whole", "pieces")
    ]
    assert histories[0] == histories[1]


def test_another_split_is_another_run(tmp_path: Path) -> None:
    run_split(recipe(epochs=1), link_dataset(seed=0), out=tmp_path / "run")
    with pytest.raises(ValueError, match="holds another run"):
        run_split(recipe(epochs=1), link_dataset(seed=1), out=tmp_path / "run", resume=True)


def test_records_and_tables(tmp_path: Path) -> None:
    settings = recipe(epochs=2)
    options = {"results": tmp_path / "results", "work": tmp_path / "work"}
    (outcome,) = bench(settings, link_dataset(), [0], **options)
    assert outcome.record.metric == "mrr"
    (again,) = bench(settings, link_dataset(), [0], **options)
    assert again.skipped
    (table,) = layout([outcome.record])
    assert table.metrics == ("MRR, %",)
    (cell,) = table.lines[0].cells
    assert cell.text == f"{100 * (outcome.record.test or 0):.2f}"


def refused(settings: Recipe, match: str, split: int = 0) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        run_split(settings, link_dataset(), split)
    assert "\n" not in str(caught.value)


def test_what_links_are_not_trained_with_is_refused() -> None:
    batches = replace(recipe(), batch=BatchConfig(kind="nodes"))
    refused(batches, "`batch` is for node tasks: .* leave `batch.kind` out, got 'nodes'")
    refused(recipe(class_weights=True), "`class_weights` needs classes; the task is 'link'")
    refused(recipe(), "`split` must be 0 for the links of links; got 1", split=1)
    with pytest.raises(ValueError, match="by one process; got 2 processes"):
        make_feed(link_dataset(), 0, recipe(), CPU, world_size=2)


def test_sources_with_edges_to_all_others_have_nothing_to_be_told_from() -> None:
    dataset = link_dataset(20)
    hub = torch.stack([torch.zeros(19, dtype=torch.int64), torch.arange(1, 20)])
    with pytest.raises(ValueError, match="the training links of links must have sources that lack"):
        feed_of(replace(dataset, train=hub))
    mixed = torch.cat([hub, torch.tensor([[3], [4]])], 1)
    source, target = feed_of(replace(dataset, train=mixed)).pairs(0)
    assert source[:, 0].tolist() == [3]
    assert target[:, 0].tolist() == [4]
