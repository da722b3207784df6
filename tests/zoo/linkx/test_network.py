"""LINKX against its equation and PyG's network; it belongs to one graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.nn
from allocations import LargestTensor
from cli.program import subprogram, write_tables
from graphs import ODD_GRAPHS, generator, randn, random_weight
from torch.testing import assert_close
from train.small import node_dataset
from zoo.dense import adjacency

from coopsheaf import Graph, make_model
from coopsheaf.nn import AdjacencyLinear
from coopsheaf.predictions import node_outputs
from coopsheaf.train import load_run, train
from coopsheaf.train.run_info import CheckpointError
from coopsheaf.zoo.linkx import LINKX

N, EDGES = ODD_GRAPHS["random-directed"]


def build(n: int = N, num_layers: int = 1, **options: Any) -> LINKX:
    torch.manual_seed(0)
    return LINKX(5, 6, num_layers, 3, num_nodes=n, **options).double().eval()


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equation(name: str, weighted: bool) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(n), randn(n, 5).requires_grad_()
    weight = random_weight(edges.shape[1]) if weighted else None
    a = adjacency(n, edges, weight)
    links = a @ model.links.weight + model.links.bias
    features = x @ model.features.weight.T + model.features.bias
    joined = torch.cat([links, features], 1) @ model.join.weight.T + model.join.bias
    (last,) = model.readout.lins
    want = (joined + links + features).relu() @ last.weight.T + last.bias
    got = model(x, edges, weight)
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_it_is_pygs_network(num_layers: int) -> None:
    ours, x = build(num_layers=num_layers), randn(N, 5)
    theirs = torch_geometric.nn.LINKX(N, 5, 6, 3, num_layers, dropout=0.5).double().eval()
    first, second = ours.join.weight.detach().split(6, dim=1)
    state = {
        "edge_lin.weight": ours.links.weight,
        "edge_lin.bias": ours.links.bias,
        "node_mlp.lins.0.weight": ours.features.weight,
        "node_mlp.lins.0.bias": ours.features.bias,
        "cat_lin1.weight": first,
        "cat_lin1.bias": ours.join.bias,
        "cat_lin2.weight": second,
        "cat_lin2.bias": torch.zeros(6),
    }
    for key, value in ours.readout.state_dict().items():
        part, index, name = key.split(".")
        state[f"final_mlp.{part}.{index}." + ("module." if part == "norms" else "") + name] = value
    theirs.load_state_dict(state)
    assert_close(ours(x, EDGES), theirs(x, EDGES), rtol=0, atol=1e-12)


def test_renaming_the_nodes_needs_other_weights() -> None:
    model, x = build(), randn(N, 5)
    names = torch.randperm(N, generator=generator(1))
    old, want = names.argsort(), model(x, EDGES)
    assert not torch.allclose(model(x[old], names[EDGES]), want[old])
    with torch.no_grad():
        model.links.weight.copy_(model.links.weight[old].clone())
    assert_close(model(x[old], names[EDGES]), want[old], rtol=0, atol=1e-12)


def test_nothing_has_the_size_of_all_pairs_or_of_edges_times_width() -> None:
    n, m, h = 120, 3000, 16
    graph = Graph(torch.randint(0, n, (2, m), generator=generator(0)), n)
    model, x = LINKX(5, h, 1, 3, num_nodes=n), torch.randn(n, 5)
    with LargestTensor() as seen:
        model(x, graph).sum().backward()
    assert seen.numel <= max(2 * m, 2 * n * h), seen.where


def test_a_run_is_kept_and_refuses_other_graphs(tmp_path: Path) -> None:
    data = replace(node_dataset(), checksum="abc")
    run = train(data, "linkx", settings={"train.epochs": 2}, out=tmp_path / "run")
    assert run.info["num_nodes"] == data.num_nodes
    again = load_run(tmp_path / "run")
    assert torch.equal(node_outputs(again, data), node_outputs(run, data))
    with pytest.raises(CheckpointError, match=r"linkx knows every node .* got other data"):
        node_outputs(again, replace(data, checksum="abd"))
    nodes = torch.arange(data.num_nodes - 1)
    keep = (data.edge_index < data.num_nodes - 1).all(0)
    smaller = replace(
        data,
        x=data.x[nodes],
        y=data.y[nodes],
        edge_index=data.edge_index[:, keep],
        edge_weight=None,
        **{part: getattr(data, part)[:, nodes] for part in ("train", "val", "test")},
    )
    with pytest.raises(CheckpointError, match=f"no other; got a graph of {len(nodes)} nodes"):
        node_outputs(again, smaller)


def test_the_command_line_refuses_another_graph_in_one_line(tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2)
    done = subprogram(*words, "--model", "linkx", "--out", "run", cwd=tmp_path)
    assert done.code == 0, done.err
    done = subprogram("predict", "run", "-o", "out.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    lines = Path(nodes).read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "other.csv").write_text("".join(lines[:-1]), "utf-8")
    gone = lines[-1].split(",")[0]
    rows = Path(edges).read_text("utf-8").splitlines(keepends=True)
    kept = [row for row in rows if gone not in row.strip().split(",")[:2]]
    (tmp_path / "less.csv").write_text("".join(kept), "utf-8")
    words = ("--nodes", "other.csv", "--edges", "less.csv", "-o", "two.csv")
    done = subprogram("predict", "run", *words, cwd=tmp_path)
    assert done.code == 2
    assert "linkx knows every node of the graph that it was trained on" in done.err
    words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2)
    batches = ("--set", "batch.kind=neighbours", "--out", "parts")
    done = subprogram(*words, "--model", "linkx", *batches, cwd=tmp_path)
    assert done.code == 2
    assert "error: `batch.kind` must be left out: linkx knows every node of one graph" in done.err


def test_how_it_starts_and_what_it_says() -> None:
    torch.manual_seed(0)
    layer = AdjacencyLinear(400, 8)
    assert 0.04 < layer.weight.abs().max() <= 0.05
    assert layer.bias.abs().max() <= 0.05
    assert repr(layer) == "AdjacencyLinear(400, 8)"
    assert repr(build()) == "LINKX(5, 6, num_layers=1, out_channels=3, num_nodes=9)"
    with pytest.raises(ValueError, match="`pool` must be None"):
        build(pool="mean")
    with pytest.raises(ValueError, match="`num_nodes` must be an integer of at least 1; got 0"):
        build(0)
    with pytest.raises(ValueError, match="`num_nodes` must be given: linkx"):
        make_model("linkx", 5, 3)
