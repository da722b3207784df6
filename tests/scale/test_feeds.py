"""Mini-batches: what a step sees, what is shared between processes, what evaluation gives."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from train.small import graph_dataset, node_dataset, recipe, with_edge_features

from coopsheaf import CSNN, Graph
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.nn import record_maps
from coopsheaf.scale.feeds import BatchFeed, make_batch_feed
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.build import build_model
from coopsheaf.train.feed import NodeFeed
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.run import run_split
from coopsheaf.zoo.plain import PlainGCN

pytest.importorskip("pymetis")

CPU = torch.device("cpu")
KINDS = {
    "clusters": BatchConfig("clusters", size=2, parts=8),
    "neighbours": BatchConfig("neighbours", size=7, fanouts="2"),
    "nodes": BatchConfig("nodes", size=15),
    "ranges": BatchConfig("ranges", size=2, parts=8),
}
HALOS = {
    "clusters": replace(KINDS["clusters"], halo=True),
    "neighbours": BatchConfig("neighbours", size=7, fanouts="-1"),
    "nodes": replace(KINDS["nodes"], halo=True),
    "ranges": replace(KINDS["ranges"], halo=True),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def weighted(dataset: NodeDataset) -> NodeDataset:
    weight = torch.rand(dataset.num_edges, generator=torch.Generator().manual_seed(1))
    return replace(dataset, edge_weight=weight)


DATA = node_dataset(n=60)
WEIGHTED = weighted(DATA)
FEATURED = with_edge_features(WEIGHTED)


def feed(config: BatchConfig, dataset: NodeDataset = DATA, **options: Any) -> BatchFeed:
    options = {"seed": 3, "device": CPU, "dtype": torch.float64, **options}
    return make_batch_feed(dataset, 0, config, **options)


def model(**options: Any) -> CSNN:
    torch.manual_seed(0)
    return CSNN(5, 4, 2, 3, stalk_dim=2, **options).double()


@EACH
@pytest.mark.parametrize("dataset", [DATA, WEIGHTED], ids=["plain", "weighted"])
def test_every_training_node_is_in_one_step_of_an_epoch(kind: str, dataset: NodeDataset) -> None:
    net, source = model(), feed(KINDS[kind], dataset)
    batches = list(source.batches(net, 1))
    nodes = torch.cat([batch.nodes for batch in batches])
    assert sorted(nodes.tolist()) == dataset.train[0].nonzero().flatten().tolist()
    assert len(batches) > 2
    for batch in batches:
        assert torch.equal(batch.subgraph.nodes[batch.place], batch.nodes)
        ends = batch.subgraph.nodes[batch.subgraph.graph.edge_index]
        assert torch.equal(ends, dataset.edge_index[:, batch.subgraph.edge])
    steps = list(source.steps(net, 1))
    assert torch.equal(torch.cat([y for _, y in steps]), dataset.y[nodes])
    assert all(logits.shape == (len(y), 3) for logits, y in steps)


@EACH
@pytest.mark.parametrize("dataset", [DATA, WEIGHTED], ids=["plain", "weighted"])
def test_with_a_halo_the_steps_are_exact(kind: str, dataset: NodeDataset) -> None:
    net = model(learner="sage-node-norm").eval()
    source = feed(HALOS[kind], dataset)
    whole = NodeFeed(dataset, 0, device=CPU, dtype=torch.float64).forward(net)
    count = 0
    for batch, (logits, _) in zip(source.batches(net, 0), source.steps(net, 0), strict=True):
        assert_close(logits, whole[batch.nodes], rtol=0, atol=1e-10)
        count += len(logits)
    assert count == int(dataset.train[0].sum())
    assert source.summary(net)["edges_kept"] == 1.0


@EACH
def test_without_one_they_are_not(kind: str) -> None:
    net, source = model().eval(), feed(KINDS[kind])
    whole = NodeFeed(DATA, 0, device=CPU, dtype=torch.float64).forward(net)
    batch, (logits, _) = next(source.batches(net, 0)), next(source.steps(net, 0))
    assert (logits - whole[batch.nodes]).abs().max() > 1e-6
    assert 0 < source.summary(net)["edges_kept"] < 1


@EACH
@pytest.mark.parametrize("net", ["csnn", "global", "gcn"])
def test_evaluation_sees_the_whole_graph(kind: str, net: str) -> None:
    nets = {
        "csnn": lambda: model(learner="sage-projected"),
        "global": lambda: model(learner="sage-graph-norm"),
        "gcn": lambda: PlainGCN(5, 4, 2, 3).double(),
    }
    network = nets[net]().eval()
    data = WEIGHTED if net == "csnn" else DATA
    config = replace(KINDS[kind], chunk=13)
    want = NodeFeed(data, 0, device=CPU, dtype=torch.float64).outputs(network)
    got = feed(config, data).outputs(network)
    for part, (logits, y) in want.items():
        assert_close(got[part][0], logits, rtol=0, atol=1e-10)
        assert torch.equal(got[part][1], y)


@EACH
def test_processes_share_every_step(kind: str) -> None:
    net = model()

    def seen(size: int, **options: int) -> list[list[int]]:
        batches = feed(replace(KINDS[kind], size=size), **options).batches(net, 2)
        return [sorted(batch.nodes.tolist()) for batch in batches]

    ranks = [seen(2, rank=rank, world_size=3) for rank in range(3)]
    assert len({len(batches) for batches in ranks}) == 1
    assert [sorted([*chain(*row)]) for row in zip(*ranks, strict=True)] == seen(6)


@EACH
def test_the_first_process_evaluates(kind: str) -> None:
    net = model().eval()
    assert feed(KINDS[kind], rank=1, world_size=2).outputs(net) == {}
    assert set(feed(KINDS[kind], rank=0, world_size=2).outputs(net)) == {"train", "val", "test"}


@EACH
def test_epochs_differ_and_repeat(kind: str) -> None:
    net, source = model(), feed(KINDS[kind])

    def nodes(epoch: int) -> list[list[int]]:
        return [batch.subgraph.nodes.tolist() for batch in source.batches(net, epoch)]

    assert (
        nodes(0)
        == nodes(0)
        == [b.subgraph.nodes.tolist() for b in feed(KINDS[kind]).batches(net, 0)]
    )
    assert nodes(0) != nodes(1)


def test_clusters_keep_the_edges_between_them() -> None:
    net = model()
    one = feed(replace(KINDS["clusters"], size=1)).summary(net)["edges_kept"]
    half, everything = (feed(replace(KINDS["clusters"], size=size)).summary(net) for size in (4, 8))
    assert one < half["edges_kept"] < everything["edges_kept"] == 1.0
    assert everything == {
        "kind": "clusters", "size": 8, "parts": 8, "steps": 1, "nodes_per_step": 60,
        "edges_per_step": 180, "edges_kept": 1.0,
    }  # fmt: skip


def test_batches_without_training_nodes_are_left_out() -> None:
    train = torch.zeros(2, 60, dtype=torch.bool)
    train[:, 5] = True
    net = model()
    for kind in ("clusters", "nodes"):
        steps = list(feed(replace(KINDS[kind], size=1), replace(DATA, train=train)).steps(net, 0))
        assert [len(y) for _, y in steps] == [1]


@pytest.mark.parametrize(
    ("kind", "task"), [*((kind, "multiclass") for kind in KINDS), ("nodes", "regression")]
)
def test_runs_train_and_resume_on_batches(kind: str, task: str, tmp_path: Path) -> None:
    data = node_dataset(n=60, task=task)
    settings = replace(recipe(epochs=3), batch=KINDS[kind])
    told: list[dict[str, Any]] = []
    run, result = run_split(settings, data, out=tmp_path / "a", announce=told.append)
    assert result.epochs == 3
    assert told == [run.info["batches"]]
    assert told[0]["kind"] == kind
    stops = iter([False, True])
    run_split(settings, data, out=tmp_path / "b", should_stop=lambda: next(stops))
    again, resumed = run_split(settings, data, out=tmp_path / "b", resume=True)
    assert resumed.history == result.history
    for name, value in run.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])


def test_a_pack_feeds_like_the_dataset_in_it(tmp_path: Path) -> None:
    packed = read_pack(write_pack(WEIGHTED, tmp_path / "pack"))
    net = model()
    for one, two in zip(
        feed(KINDS["nodes"], WEIGHTED).steps(net, 0), feed(KINDS["nodes"], packed).steps(net, 0),
        strict=True,
    ):  # fmt: skip
        assert torch.equal(one[0], two[0])
    assert feed(KINDS["nodes"], packed).graph is packed.graph


@pytest.mark.parametrize(
    ("config", "network", "message"),
    [
        (BatchConfig("clusters", parts=61), {}, "`batch.parts` must be at most 60, the nodes; got 61"),
        (BatchConfig("neighbours", fanouts="3,3"), {}, "`batch.fanouts` must be one number, or 4, .* got 2"),
        (BatchConfig("neighbours"), {"learner": "sage-graph-norm"}, "averages over all nodes"),
        (BatchConfig("neighbours"), {"learner": "sage-node-norm", "semantics": "released"}, "needs `semantics` 'paper' or 'messages'"),
        (BatchConfig("nodes", halo=True), {"learner": "sage-graph-norm"}, "averages over all nodes"),
        (BatchConfig("nodes", parts=3), {}, "`batch.parts` goes with"),
        (BatchConfig(), {}, "`config` must have a kind of batches"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_settings(config: BatchConfig, network, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        feed(config).summary(model(**network))


def test_many_graphs_have_batches_of_their_own() -> None:
    settings = replace(recipe(), batch=BatchConfig("nodes"))
    with pytest.raises(ValueError, match=r"`batch` cuts one graph into parts; .* has 24 graphs"):
        make_feed(graph_dataset(), 0, settings, CPU)


def test_models_that_need_both_directions_are_not_given_one() -> None:
    settings = replace(default_recipe("nsd-diag"), batch=BatchConfig("neighbours"))
    with pytest.raises(ValueError, match="which 'nsd-diag' does not take; choose 'clusters'"):
        make_feed(DATA, 0, settings, CPU)


def test_splits_are_checked() -> None:
    with pytest.raises(ValueError, match="`split` must be between 0 and 1 for small; got 2"):
        make_batch_feed(DATA, 2, KINDS["nodes"], seed=0, device=CPU, dtype=torch.float32)
    empty = replace(DATA, train=torch.zeros_like(DATA.train))
    with pytest.raises(ValueError, match="split 0 of small has no training nodes"):
        feed(KINDS["nodes"], empty)


def test_released_maps_of_single_nodes_are_sampled_along_the_edges() -> None:
    net = model(semantics="released").eval()
    source = feed(BatchConfig("neighbours", size=7, fanouts="-1"))
    whole = NodeFeed(DATA, 0, device=CPU, dtype=torch.float64).forward(net)
    for batch, (logits, _) in zip(source.batches(net, 0), source.steps(net, 0), strict=True):
        assert_close(logits, whole[batch.nodes], rtol=0, atol=1e-10)


def test_the_model_is_that_of_the_recipe() -> None:
    settings = replace(recipe(), batch=KINDS["nodes"])
    assert isinstance(build_model(settings, DATA), CSNN)
    assert isinstance(make_feed(DATA, 0, settings, CPU), BatchFeed)
    assert isinstance(make_feed(DATA, 0, recipe(), CPU), NodeFeed)


@EACH
def test_with_a_halo_steps_on_edges_with_features_are_exact(kind: str) -> None:
    net = model(learner="sage-node-norm", edge_channels=2).eval()
    source = feed(HALOS[kind], FEATURED)
    whole = NodeFeed(FEATURED, 0, device=CPU, dtype=torch.float64).forward(net)
    for batch, (logits, _) in zip(source.batches(net, 0), source.steps(net, 0), strict=True):
        assert_close(logits, whole[batch.nodes], rtol=0, atol=1e-10)


@EACH
def test_a_part_is_given_the_means_of_the_whole_graph(kind: str) -> None:
    """Also without a halo, and of samples: the maps of the first layer are exact."""
    net, source = model(edge_channels=2).eval(), feed(KINDS[kind], FEATURED)
    with record_maps(net) as maps:
        NodeFeed(FEATURED, 0, device=CPU, dtype=torch.float64).forward(net)
        next(source.steps(net, 0))
    nodes = next(source.batches(net, 0)).subgraph.nodes
    assert len(nodes) < FEATURED.num_nodes
    for whole, part in zip(maps[0], maps[2], strict=True):  # two layers each
        assert_close(part.scale, whole.scale[nodes], rtol=0, atol=1e-12)


@EACH
def test_evaluation_sees_the_features_of_all_edges(kind: str) -> None:
    net = model(learner="sage-projected", edge_channels=2).eval()
    want = NodeFeed(FEATURED, 0, device=CPU, dtype=torch.float64).outputs(net)
    got = feed(replace(KINDS[kind], chunk=13), FEATURED).outputs(net)
    for part, (logits, _) in want.items():
        assert_close(got[part][0], logits, rtol=0, atol=1e-10)


def test_ones_own_network_is_given_the_rows_of_the_edges_of_a_part() -> None:
    class Own(nn.Module):
        def forward(self, x: Tensor, graph: Graph, edge_attr: Tensor, **rest: object) -> Tensor:
            self.seen = edge_attr
            return x

    net, source = Own(), feed(KINDS["nodes"], FEATURED)
    next(source.steps(net, 0))
    edges = next(source.batches(net, 0)).subgraph.edge
    assert FEATURED.edge_attr is not None
    assert torch.equal(net.seen, FEATURED.edge_attr.double()[edges])


@EACH
def test_what_an_evaluation_computes_beside_an_epoch(kind: str) -> None:
    net, source = model(), feed(KINDS[kind])
    trained = sum(batch.subgraph.nodes.numel() for batch in source.batches(net, 0))
    share = source.evaluation_share(net, ("val",))
    assert share == pytest.approx(DATA.num_nodes / trained, rel=0.1)
    assert tuple(source.outputs(net, ("val",))) == ("val",)
