"""Packs of edges that come in pieces: sorted on disk as a graph in memory is sorted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.data import pack_stream
from coopsheaf.data.communities import heterophilic_communities, pack_communities
from coopsheaf.data.errors import DataError
from coopsheaf.data.pack import PackedDataset, read_pack
from coopsheaf.data.pack_stream import stream_pack
from coopsheaf.data.registry import statistics

N = 50


def edges(seed: int = 0, count: int = 400) -> Tensor:
    return torch.randint(N, (2, count), generator=torch.Generator().manual_seed(seed))


def write(folder: Path, pieces: list[Tensor], **options) -> Path:
    mask = torch.ones(1, N, dtype=torch.bool)
    y = torch.arange(N) % 3
    given = {
        "num_nodes": N, "num_edges": 400, "x": torch.arange(2.0 * N).view(N, 2).split(7),
        "num_features": 2, "y": y, "masks": (mask, ~mask, ~mask), "task": "multiclass",
        "metric": "accuracy", "name": "streamed", "class_names": ("a", "b", "c"),
    }  # fmt: skip
    return stream_pack(folder, pieces, **{**given, **options})


def check(packed: PackedDataset, want: Tensor) -> None:
    assert torch.equal(packed.edge_index, want)
    graph = Graph(want, packed.num_nodes)
    assert packed.graph is not None
    for side in ("by_target", "by_source"):
        for a, b in zip(getattr(graph, side), getattr(packed.graph, side), strict=True):
            assert torch.equal(a, b.long())


@pytest.mark.parametrize("bucket", [1 << 22, 50, 8])
def test_it_is_the_sorted_graph(
    bucket: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_stream, "BUCKET", bucket)
    given = edges()
    packed = read_pack(write(tmp_path / "pack", [*given.split(37, dim=1), given[:, :9]]))
    keys = (given[1] * N + given[0]).unique()  # each once
    check(packed, torch.stack([keys % N, keys // N]))
    assert torch.equal(packed.x, torch.arange(2.0 * N).view(N, 2))
    assert packed.y.tolist() == [k % 3 for k in range(N)]
    assert packed.train.all()
    assert not packed.val.any()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pack"]
    assert not (tmp_path / "pack" / "spill").exists()
    assert len(packed.checksum) == 64


@pytest.mark.parametrize(
    "pieces", [[], [torch.empty(2, 0, dtype=torch.int64)]], ids=["no", "empty"]
)
def test_no_edges(pieces: list[Tensor], tmp_path: Path) -> None:
    packed = read_pack(write(tmp_path / "pack", pieces, num_edges=0))
    check(packed, torch.empty(2, 0, dtype=torch.int64))


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (torch.tensor([[0], [N]]), rf"`edges` must be in \[0, {N}\); got 0 to {N}"),
        (torch.tensor([[-1], [0]]), r"`edges` must be in \[0, 50\); got -1 to 0"),
        (torch.zeros(2, 1), r"`edges` must be int64 tensors of shape \(2, k\)"),
        (torch.zeros(3, 1, dtype=torch.int64), r"got torch.int64 of shape \(3, 1\)"),
        (None, "`edges` must be a torch.Tensor; got NoneType"),
    ],
    ids=["large", "negative", "float", "shape", "none"],
)
def test_what_are_no_edges_is_refused(piece, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "pack", [edges(), piece])
    assert not list(tmp_path.iterdir())


def test_one_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[Tensor]:
        yield edges()
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="gone"):
        write(tmp_path / "pack", pieces())  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
    write(tmp_path / "pack", [edges()])
    with pytest.raises(DataError, match="exists already; use --force"):
        write(tmp_path / "pack", [edges(1)])
    assert read_pack(write(tmp_path / "pack", [edges(1)], force=True)).num_edges > 0


def test_no_piece_is_larger_than_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: what is written at once has the size of a bucket, not of the graph."""
    largest = 0
    real = np.ascontiguousarray

    def watched(array, *arguments):
        nonlocal largest
        largest = max(largest, np.size(array))
        return real(array, *arguments)

    monkeypatch.setattr(pack_stream, "BUCKET", 40)
    monkeypatch.setattr("coopsheaf.data.pack_files.np.ascontiguousarray", watched)
    write(tmp_path / "pack", [edges()])
    assert N <= largest < 3 * N  # ptr of all nodes; edges are 400


def test_communities_straight_into_a_pack(tmp_path: Path) -> None:
    size = {"num_nodes": 2000, "num_pairs": 12_000, "community": 200}
    for shuffle in (True, False):
        packed = read_pack(pack_communities(tmp_path / str(shuffle), **size, shuffle=shuffle))
        whole = statistics(heterophilic_communities(**size, shuffle=shuffle))
        found = statistics(packed)
        assert 0.9 * whole["edges"] < found["edges"] <= whole["edges"]
        same = ("nodes", "features", "self_loops", "reciprocated", "class_counts", "split_sizes")
        assert [found[key] for key in same] == [whole[key] for key in same]
        assert abs(found["edge_homophily"] - whole["edge_homophily"]) < 0.02
        source, target = packed.edge_index
        near = (source // 200 == target // 200).double().mean()
        assert near < 0.2 if shuffle else near > 0.85
        centre = torch.stack([packed.x[packed.y == c].mean(0) for c in range(5)])
        assert (centre.norm(dim=1) - 0.5).abs().max() < 0.2
    again = read_pack(pack_communities(tmp_path / "again", **size, shuffle=False))
    assert torch.equal(again.edge_index, packed.edge_index)
    assert torch.equal(again.x, packed.x)
