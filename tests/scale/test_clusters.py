"""Clusters: every node in one, few edges between them, kept and checked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, generator

from coopsheaf import Graph
from coopsheaf.data.errors import DataError
from coopsheaf.scale.clusters import cluster_nodes, graph_digest, partition

pytest.importorskip("pymetis")


def groups(count: int = 4, size: int = 30) -> Graph:
    """Dense groups with one edge from each to the next."""
    pairs = [
        torch.randint(0, size, (2, 6 * size), generator=generator(k)) + k * size
        for k in range(count)
    ]
    bridges = torch.stack([torch.arange(count) * size, (torch.arange(count) + 1) % count * size])
    return Graph(bidirected(torch.cat([*pairs, bridges], dim=1)), count * size)


GROUPS = groups()


def test_clusters_are_the_groups() -> None:
    clusters = cluster_nodes(GROUPS, 4, seed=1)
    assert clusters.shape == (120,)
    assert torch.bincount(clusters).tolist() == [30] * 4
    cut = (clusters[GROUPS.source] != clusters[GROUPS.target]).sum()
    assert cut <= 8
    assert torch.equal(clusters, cluster_nodes(GROUPS, 4, seed=1))


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_odd_graphs(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    for parts in {1, min(2, n), n}:
        clusters = cluster_nodes(Graph(edges, n), parts)
        assert clusters.shape == (n,)
        assert int(clusters.min()) >= 0
        assert int(clusters.max()) < parts


def test_direction_does_not_matter() -> None:
    half = Graph(GROUPS.edge_index[:, : GROUPS.num_edges // 2], 120)
    assert torch.equal(cluster_nodes(half, 4), cluster_nodes(half.reverse(), 4))
    assert torch.equal(cluster_nodes(half, 4), cluster_nodes(GROUPS, 4))


def test_they_are_kept_in_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = partition(GROUPS, 4, seed=1)
    (file,) = (cache / "partitions").iterdir()
    monkeypatch.setattr("coopsheaf.scale.clusters.cluster_nodes", None)  # not called again
    assert torch.equal(partition(GROUPS, 4, seed=1), first)
    with pytest.raises(TypeError):  # another number is another partition
        partition(GROUPS, 5, seed=1)
    assert file.name.startswith("clusters-4-")


def test_a_partition_of_another_graph_is_refused(tmp_path: Path) -> None:
    partition(GROUPS, 4, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    other = Graph(GROUPS.edge_index[:, 1:], 120)
    partition(other, 4, folder=tmp_path)
    (other_file,) = set(tmp_path.iterdir()) - {file}
    other_file.write_bytes(file.read_bytes())
    with pytest.raises(DataError, match=r"clusters of another graph, number or seed; delete it"):
        partition(other, 4, folder=tmp_path)
    assert graph_digest(other) != graph_digest(GROUPS)
    assert graph_digest(Graph(GROUPS.edge_index, 121)) != graph_digest(GROUPS)


@pytest.mark.parametrize("content", [b"", b"no tensors", b"\x08" + bytes(40)])
def test_a_damaged_partition_is_refused(content: bytes, tmp_path: Path) -> None:
    partition(GROUPS, 4, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged \(.*\); delete it to compute it again"):
        partition(GROUPS, 4, folder=tmp_path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (0, "`parts` must be an integer of at least 1; got 0"),
        (121, "`parts` must be at most the number of nodes, 120; got 121"),
    ],
)
def test_bad_numbers_of_clusters(parts: int, message: str, tmp_path: Path) -> None:
    for call in (cluster_nodes, lambda graph, parts: partition(graph, parts, folder=tmp_path)):
        with pytest.raises(ValueError, match=message):
            call(GROUPS, parts)


def test_without_metis_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ValueError, match=r"pip install 'coopsheaf\[partition\]'"):
        partition(GROUPS, 4, folder=tmp_path)
    assert not list(tmp_path.iterdir())
