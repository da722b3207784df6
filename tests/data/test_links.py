"""Edges split into links to learn from and links to find."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
import torch
from graphs import generator
from torch import Tensor

from coopsheaf.data import DataError, LinkDataset, split_links
from coopsheaf.data.dataset import PARTS

N = 30
X = torch.randn(N, 4, generator=generator(0))
EDGES = torch.randint(0, N, (2, 150), generator=generator(1))  # repeats and self-loops among them
TIME = torch.randint(0, 60, (150,), generator=generator(2)).double()


def pairs(edges: Tensor) -> list[tuple[int, int]]:
    return list(zip(*edges.tolist(), strict=True))


def ring(n: int) -> Tensor:
    return torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("time", [None, TIME])
def test_every_link_is_in_one_part_and_messages_travel_on_training_links_alone(
    undirected: bool, time: Tensor | None
) -> None:
    dataset, rows, _ = split_links(X, EDGES, time=time, undirected=undirected, seed=3)
    whole = {(i, j) for i, j in pairs(EDGES) if i != j}
    if undirected:
        whole |= {(j, i) for i, j in whole}
    parts = {part: pairs(getattr(dataset, part)) for part in PARTS}
    assert sorted(chain(*parts.values())) == sorted(whole)  # each once
    messages = pairs(dataset.edge_index)
    assert len(set(messages)) == len(messages)
    assert {(i, j) for i, j in messages if i != j} == set(parts["train"])
    if undirected:
        assert all((j, i) in parts[part] for part in PARTS for i, j in parts[part])
        assert not {(j, i) for part in ("val", "test") for i, j in parts[part]} & set(messages)
    # Positions lead back to the list that was given.
    for (i, j), row in zip(messages, rows.tolist(), strict=True):
        listed = tuple(EDGES[:, row].tolist())
        assert (i, j) == listed or (undirected and (j, i) == listed)


@pytest.mark.parametrize("undirected", [False, True])
def test_negatives_are_no_edges_of_the_whole_graph(undirected: bool) -> None:
    dataset = split_links(X, EDGES, undirected=undirected, negatives=10).dataset
    whole = set(pairs(EDGES)) | (set(pairs(EDGES.flip(0))) if undirected else set())
    for part in ("val", "test"):
        source, target = dataset.candidates(part)
        assert torch.equal(torch.stack([source[:, 0], target[:, 0]]), getattr(dataset, part))
        assert target.shape == (len(source), 11)
        for i, row in zip(source[:, 0].tolist(), target[:, 1:].tolist(), strict=True):
            assert len(set(row)) == 10
            assert not {(i, k) for k in row} & whole
            assert i not in row


def test_shares_are_those_asked_for() -> None:
    dataset = split_links(X, ring(N), ratios=(0.5, 0.3, 0.2)).dataset
    assert [getattr(dataset, part).shape[1] for part in PARTS] == [15, 9, 6]


def test_later_links_are_for_test() -> None:
    time = torch.randperm(N, generator=generator(4)).double()
    dataset, _, notes = split_links(X, ring(N), time=time, seed=9, negatives=5)
    when = dict(zip(pairs(ring(N)), time.tolist(), strict=True))
    times = {part: sorted(when[pair] for pair in pairs(getattr(dataset, part))) for part in PARTS}
    assert times == {"train": list(range(24)), "val": [24, 25, 26], "test": [27, 28, 29]}
    assert notes[-1] == (
        "links split by time: 24 for train, 3 for val, 3 for test; train goes up to 23, val up to 26"
    )


def test_links_of_one_time_stay_together_where_they_can() -> None:
    time = torch.tensor([1.0] * 23 + [2.0] * 4 + [3.0] * 3)  # 24 of 30 would be one too many
    dataset, _, notes = split_links(X, ring(N), time=time, negatives=5)
    assert [getattr(dataset, part).shape[1] for part in PARTS] == [23, 4, 3]
    assert len(notes) == 1
    dataset, _, notes = split_links(X, ring(N), time=torch.tensor([1.0] * 27 + [2.0] * 3))
    assert [getattr(dataset, part).shape[1] for part in PARTS] == [24, 3, 3]
    assert notes[0].startswith("links of time 1 are too many for one part: the seed divides them")


def test_of_equal_edges_the_first_counts() -> None:
    edges = torch.tensor([[0, 1, 2, 0, 1], [1, 2, 3, 1, 0]])
    weight, time = torch.arange(5.0), torch.tensor([9, 2, 3, 1, 0])  # 0 → 1 at 9 and, earlier, at 1
    x = torch.ones(6, 1)
    dataset, rows, notes = split_links(x, edges, weight, time=time)
    assert notes[0] == "1 edges are repeats of others: of equal edges the first in time counts"
    assert pairs(dataset.edge_index) == [(0, 1), (1, 0)]
    assert rows.tolist() == [3, 4]
    assert dataset.edge_weight is not None
    assert dataset.edge_weight.tolist() == [3, 4]
    # Undirected, 0 – 1 is one link, from time 0 on, and goes both ways with one weight.
    dataset, rows, notes = split_links(x, edges, weight, time=time, undirected=True)
    assert sorted(pairs(dataset.edge_index)) == [(0, 1), (1, 0)]
    assert rows.tolist() == [4, 4]
    assert notes[1] == "2 edges have another weight than the first of their link, which counts"


def test_self_loops_carry_messages_but_not_from_the_future() -> None:
    loops = torch.tensor([[5, 7], [5, 7]])
    edges = torch.cat([ring(N), loops], dim=1)
    for undirected in (False, True):
        dataset, _, notes = split_links(X, edges, undirected=undirected)
        assert [pair for pair in pairs(dataset.edge_index) if pair[0] == pair[1]] == [
            (5, 5),
            (7, 7),
        ]
        assert "2 self-loops are never asked for" in notes
    time = torch.cat([torch.arange(N), torch.tensor([23, 24])])  # training ends at 23
    messages = pairs(split_links(X, edges, time=time).dataset.edge_index)
    assert (5, 5) in messages
    assert (7, 7) not in messages


def test_the_seed_decides_and_names_the_data() -> None:
    def of(**options: object) -> LinkDataset:
        return split_links(X, EDGES, **options).dataset  # type: ignore[arg-type]

    one, again, other = of(seed=1), of(seed=1), of(seed=2)
    for name in (*PARTS, "val_negatives", "test_negatives", "edge_index"):
        assert torch.equal(getattr(one, name), getattr(again, name)), name
    assert one.val.tolist() != other.val.tolist()
    sums = [of(**options).checksum for options in ({}, {"seed": 1}, {"time": TIME},
        {"undirected": True}, {"negatives": 9}, {"ratios": (0.6, 0.2, 0.2)}, {"metric": "ap"}, {"checksum": "abc"})]  # fmt: skip
    assert len(set(sums)) == len(sums)
    assert of().checksum == sums[0]
    changed = split_links(X + 1, EDGES).dataset
    assert changed.checksum != sums[0]
    # What was read names the data, whatever the last bit of a feature.
    assert split_links(X + 1, EDGES, checksum="abc").dataset.checksum == sums[-1]


def test_a_small_graph_has_fewer_negatives() -> None:
    dataset, _, notes = split_links(torch.ones(6, 1), ring(6))
    assert dataset.val_negatives.shape == (1, 4)
    assert notes[-1] == "links are ranked against 4 non-edges each: no source has more"


def test_few_non_edges_are_repeated_and_that_is_said() -> None:
    hub = torch.stack([torch.zeros(15, dtype=torch.int64), torch.arange(1, 16)])
    edges = torch.cat([ring(20), hub], dim=1)  # node 0 has no edge to the last four
    dataset, _, notes = split_links(torch.ones(20, 1), edges, ratios=(0.2, 0.4, 0.4), negatives=5)
    few = sum(int((pair[0] == 0).sum()) for pair in (dataset.val, dataset.test))
    assert notes[-1] == f"{few} links have sources with fewer than 5 non-edges: these repeat"
    assert set(dataset.val_negatives[dataset.val[0] == 0].flatten().tolist()) <= {16, 17, 18, 19}


def test_links_of_nodes_that_know_everybody_are_left_out() -> None:
    star = torch.stack([torch.zeros(19, dtype=torch.int64), torch.arange(1, 20)])
    with pytest.raises(DataError, match=r"the links of val must have sources that lack an edge .*"):
        split_links(torch.ones(20, 1), star)
    dataset, _, notes = split_links(torch.ones(20, 1), star, undirected=True)
    assert dataset.val.shape == (2, 2)
    assert 0 not in dataset.val[0].tolist()
    assert "2 links of val are left out: their sources have no non-edges" in notes


def test_bad_arguments_are_said_in_one_line() -> None:
    x = torch.ones(5, 1)
    with pytest.raises(DataError, match=r"at least three edges between different nodes.*got 2"):
        split_links(x, torch.tensor([[0, 1, 2, 0], [1, 2, 2, 1]]))
    with pytest.raises(DataError, match="`time` must be 5 numbers, one per edge; got"):
        split_links(x, ring(5), time=torch.zeros(4))
    with pytest.raises(DataError, match="`time` must be finite; edge 2 has nan"):
        split_links(x, ring(5), time=torch.tensor([0, 1, float("nan"), 3, 4]))
    with pytest.raises(ValueError, match="`ratios` must be three positive numbers"):
        split_links(x, ring(5), ratios=(0.9, 0.1, 0.0))
    with pytest.raises(ValueError, match="`negatives` must be an integer of at least 1; got 0"):
        split_links(x, ring(5), negatives=0)
    with pytest.raises(ValueError, match="`metric` must be one of 'auroc', 'ap', 'mrr', 'hits@1'"):
        split_links(x, ring(5), metric="accuracy")
    with pytest.raises(ValueError, match="`edge_index` must hold node indices below"):
        split_links(x, ring(6))
    dataset = split_links(x, ring(5)).dataset
    with pytest.raises(ValueError, match=r"`val` must be an int64 tensor of shape \(2, k\)"):
        replace(dataset, val=dataset.val[:, :0])
    with pytest.raises(ValueError, match=r"`val_negatives` must be .* \(1, K\), K at least 1"):
        replace(dataset, val_negatives=dataset.val_negatives[:, :0])
    with pytest.raises(ValueError, match="`test` must hold nodes 0 to 4; got 5 to 6"):
        replace(dataset, test=dataset.test * 0 + torch.tensor([[5], [6]]))
