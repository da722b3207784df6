"""Draws among the pairs that no edge joins."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
import torch
from graphs import generator
from hypothesis import given, settings
from hypothesis import strategies as st

from coopsheaf.data import non_edges
from coopsheaf.data.non_edges import NonEdges

#  0 → 1, 0 → 1 again, 0 → 3, 2 → 2; six nodes: 0 has no edge to 2, 4, 5, and 2 to all but itself.
EDGES = torch.tensor([[0, 0, 0, 2], [1, 1, 3, 2]])


def test_counts_leave_out_edges_and_the_node_itself() -> None:
    assert NonEdges(EDGES, 6).count.tolist() == [3, 5, 5, 5, 5, 5]


def test_every_set_of_non_edges_is_equally_likely() -> None:
    drawn = NonEdges(EDGES, 6).draw(torch.zeros(6000, dtype=torch.int64), 2, generator(0))
    sets = Counter(tuple(sorted(row)) for row in drawn.tolist())
    assert set(sets) == set(combinations((2, 4, 5), 2))
    assert all(count == pytest.approx(2000, abs=150) for count in sets.values())


def test_a_source_with_too_few_has_all_of_them_equally_often() -> None:
    drawn = NonEdges(EDGES, 6).draw(torch.tensor([0, 1]), 5, generator(0))
    assert sorted(Counter(drawn[0].tolist()).values()) == [1, 2, 2]
    assert sorted(drawn[1].tolist()) == [0, 2, 3, 4, 5]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8))), st.data())
def test_no_draw_is_an_edge(n: int, pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    listed = {(i % n, j % n) for i, j in pairs} | {(i, i) for i in range(n)}
    edge_index = torch.tensor([(i % n, j % n) for i, j in pairs], dtype=torch.int64)
    found = NonEdges(edge_index.reshape(-1, 2).T, n)
    free = {i: {j for j in range(n) if (i, j) not in listed} for i in range(n)}
    assert found.count.tolist() == [len(free[i]) for i in range(n)]
    source = torch.tensor([i for i in range(n) if free[i]], dtype=torch.int64)
    number = data.draw(st.integers(1, n))
    for i, row in zip(source.tolist(), found.draw(source, number, generator(1)), strict=True):
        assert set(row.tolist()) <= free[i]
        assert len(set(row.tolist())) == min(number, len(free[i]))


def test_sources_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(non_edges, "ROWS", 2)
    source = torch.tensor([0, 1, 2, 3, 0])
    drawn = NonEdges(EDGES, 6).draw(source, 3, generator(0))
    assert drawn.shape == (5, 3)
    assert sorted(drawn[4].tolist()) == [2, 4, 5]
