"""Summaries of actions: every node is counted once, in the right group."""

from __future__ import annotations

import math

import pytest
import torch
from analysis.cooperation import fixed, maps_of, scaled
from analysis.networks import ring
from graphs import ODD_GRAPHS, graphs, path, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis import (
    NodeGroups,
    degree_bins,
    group_nodes,
    node_homophily,
    read_actions,
    summarise_actions,
)
from coopsheaf.analysis.action_summary import GROUPINGS, homophily_bins

Y = torch.tensor([0, 0, 1, 1, -1])


def four() -> object:
    """One node of each action."""
    return read_actions(scaled([1, 0, 1, 0], [1, 1, 0, 0]), randn(4, 5), path(4))


# Counting.


def test_all_nodes_together() -> None:
    summary = summarise_actions(four())
    (row,) = summary.rows
    assert (row.layer, row.group, row.nodes) == (0, "all", 4)
    assert row.counts == (1, 1, 1, 1)
    assert row.shares == (0.25,) * 4
    assert row.source_scale == row.target_scale == 0.5
    assert summary.header[:3] == ["layer", "group", "nodes"]
    assert summary.table[0][:5] == ["1", "all", "4", "25.0 %", "25.0 %"]
    assert all(len(line) == len(summary.header) for line in summary.table)


def test_groups_and_layers() -> None:
    one, two = maps_of([1.0, 0, 1, 1, 1]), maps_of([1.0] * 5)
    report = read_actions(fixed([(one, two), (two, one)]), randn(5, 5), ring(5))
    summary = summarise_actions(report, group_nodes("class", ring(5), y=Y, class_names=("a", "b")))
    assert [(row.layer, row.group, row.nodes) for row in summary.rows] == [
        (0, "a", 2),
        (0, "b", 2),
        (1, "a", 2),
        (1, "b", 2),
    ]
    assert [row.counts for row in summary.rows] == [
        (1, 1, 0, 0),
        (2, 0, 0, 0),
        (1, 0, 1, 0),
        (2, 0, 0, 0),
    ]
    want = report.layers[1].listening[:2].mean()
    assert summary.rows[2].listening == pytest.approx(float(want))
    assert summary.by == "class"


@settings(deadline=None, max_examples=30)
@given(graph=graphs(), seed=st.integers(0, 10**6), by=st.sampled_from(sorted(GROUPINGS)))
def test_nobody_is_counted_twice_or_forgotten(graph: Graph, seed: int, by: str) -> None:
    n, generator = graph.num_nodes, torch.Generator().manual_seed(seed)
    y, predicted = torch.randint(-1, 3, (2, n), generator=generator)
    part = torch.randint(0, 4, (n,), generator=generator)
    parts = {name: part == k for k, name in enumerate(("train", "val", "test"))}
    groups = group_nodes(by, graph, y=y, predicted=predicted, parts=parts)
    report = read_actions(scaled([1.0] * n, [1.0] * n), randn(n, 5), graph)
    rows = summarise_actions(report, groups).rows
    assert sum(row.nodes for row in rows) == int((groups.index >= 0).sum())
    assert all(sum(row.counts) == row.nodes > 0 for row in rows)
    assert int(groups.index.max()) < len(groups.names) == len(set(groups.names))


# Groups.


def test_homophily_by_hand() -> None:
    # 0 - 1 - 2 - 3 - 4, labels 0 0 1 1 ?
    got = node_homophily(path(5), Y)
    assert got[:4].tolist() == [1, 0.5, 0.5, 1]
    assert math.isnan(got[4])


def test_homophily_counts_neighbours_either_way_and_no_loops() -> None:
    edges = torch.tensor([[0, 0, 1, 2], [0, 1, 2, 2]])
    assert node_homophily(edges, torch.tensor([0, 0, 1])).tolist() == [1, 0.5, 0]


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_homophily_is_what_a_loop_over_edges_gives(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    y = torch.arange(n) % 3 - (torch.arange(n) == 4).long() * 5
    y = y.clamp(min=-1)
    want = []
    for i in range(n):
        met = [
            int(y[u] == y[v])
            for u, v in edges.T.tolist()
            if u != v and i in (u, v) and y[u] >= 0 and y[v] >= 0
        ]
        want.append(sum(met) / len(met) if met else math.nan)
    got = node_homophily(edges, y, num_nodes=n)
    assert_close(got, torch.tensor(want, dtype=torch.float64), equal_nan=True)


def test_homophily_bins_have_their_ends() -> None:
    groups = homophily_bins(path(5), Y)
    assert groups.names == ("0–0.25", "0.25–0.5", "0.5–0.75", "0.75–1")
    assert groups.index.tolist() == [3, 2, 2, 3, -1]
    assert homophily_bins(path(5), Y, bins=1).index.tolist() == [0, 0, 0, 0, -1]


def test_degrees_up_to_powers_of_two() -> None:
    degrees = [0, 1, 2, 3, 4, 5, 8, 9, 17]
    n = len(degrees)
    target = torch.repeat_interleave(torch.arange(n), torch.tensor(degrees))
    groups = degree_bins(torch.stack([torch.zeros_like(target), target]), num_nodes=n)
    assert groups.names == ("0", "1", "2", "3–4", "5–8", "9–16", "17–32")
    assert groups.index.tolist() == [0, 1, 2, 3, 3, 4, 4, 5, 6]
    assert degree_bins(torch.empty(2, 0, dtype=torch.int64), num_nodes=2).names == ("0",)


def test_correctness_leaves_out_what_is_not_known() -> None:
    groups = group_nodes("correctness", path(5), y=Y, predicted=torch.tensor([0, 1, 1, 0, 0]))
    assert groups.names == ("correct", "wrong")
    assert groups.index.tolist() == [0, 1, 0, 1, -1]


def test_parts_of_a_split() -> None:
    train, test = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 1, 0]]).bool()
    groups = group_nodes("part", path(5), parts={"train": train, "test": test})
    assert groups.names == ("train", "test")
    assert groups.index.tolist() == [0, 0, -1, 1, -1]


def test_classes_without_a_name_are_numbered() -> None:
    assert group_nodes("class", path(5), y=Y, class_names=("a",)).names == ("a", "1")
    assert group_nodes("class", path(5), y=Y, class_names=("a", "b", "c")).names == ("a", "b", "c")


# At the edge.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "colour"}, "`by` must be one of 'class', 'degree'"),
        ({"by": "class"}, "`y` must hold a class number per node; got None"),
        (
            {"by": "class", "y": torch.zeros(4).long()},
            r"`y` must be an int64 tensor of shape \(5,\)",
        ),
        ({"by": "homophily", "y": torch.zeros(5)}, "`y` must be an int64 tensor"),
        ({"by": "homophily", "y": Y, "bins": 0}, "`bins` must be an integer of at least 1"),
        ({"by": "correctness", "y": Y}, "`predicted` must hold a class number per node"),
        ({"by": "part"}, "`parts` must hold at least one mask"),
        ({"by": "part", "parts": {"all": torch.ones(5)}}, "`parts` must hold boolean masks"),
    ],
)
def test_what_is_missing_is_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        group_nodes(edge_index=path(5), **options)


def test_groups_of_another_graph() -> None:
    groups = NodeGroups("x", ("a",), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="`groups` must hold one group per node of the report, 4"):
        summarise_actions(four(), groups)
