"""What comes over the one edge between two cliques, in one pass of the operator: docs/long-range.md.

u and v are the ends of the bridge, of degree N; the others of their cliques have N - 1.
"""

from __future__ import annotations

import math

import pytest
import torch
from graphs import generator, random_orthogonal
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.data.barbell import barbell_edges
from coopsheaf.sheaves import in_laplacian, message_diffusion, out_laplacian, paper_diffusion
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.orthogonal import ExpScale
from coopsheaf.sheaves.sheaf import FlatSheaf

SIZES = pytest.mark.parametrize("n", [10, 20, 50])
LARGEST = float(ExpScale()(torch.full((1, 1), 99.0, dtype=torch.float64)))
D = 2


def barbell(n: int) -> tuple[Graph, int, int]:
    return Graph(barbell_edges(n), 2 * n), 0, n


def maps(scale: Tensor, seed: int) -> ConformalMaps:
    return ConformalMaps(scale, random_orthogonal(len(scale), D, seed))


def drawn(n: int, spread: float, seed: int) -> Tensor:
    """Scales as a network has them, from next to nothing to the largest."""
    raw = spread * torch.randn(2 * n, 1, generator=generator(seed), dtype=torch.float64)
    return ExpScale()(raw)


def sizes(operator: Operator) -> Tensor:
    """The norms of all blocks, ``(n, n)``."""
    n, d = operator.domain
    blocks = operator.to_dense().view(n, d, n, d).transpose(1, 2)
    return torch.linalg.matrix_norm(blocks, ord=2)


def passes(graph: Graph, source: ConformalMaps, target: ConformalMaps) -> tuple[Tensor, Tensor]:
    """The norms of the blocks of both, the first that is applied first."""
    sheaf = FlatSheaf(graph, source, target)
    first = out_laplacian(sheaf, "augmented")
    return sizes(first), sizes(in_laplacian(sheaf, "augmented").T)


def share(heard: Tensor, at: int, of: int) -> float:
    """How much of what a node hears of others comes from one of them."""
    row = heard[at].clone()
    row[at] = 0
    return float(row[of] / row.sum())


def test_the_largest_scale_is_ten() -> None:
    assert pytest.approx(10.0) == LARGEST


@SIZES
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_shares_do_not_depend_on_the_listener(n: int, spread: float) -> None:
    """Blocks are products of a number of the listener and one of the source, in either pass."""
    graph, u, v = barbell(n)
    s, t = drawn(n, spread, 1), drawn(n, spread, 2)
    degree = torch.full((2 * n,), n - 1.0, dtype=torch.float64)
    degree[[u, v]] += 1
    heard = passes(graph, maps(s, 3), maps(t, 4))
    for blocks, mine in zip(heard, (s, t), strict=True):
        loud = s / (degree * mine.square() + 1).sqrt()
        for i, j in ((u, v), (v, u), (u, 1), (1, u), (n + 1, n + 2)):
            weight = t[i] / (degree[i] * mine[i].square() + 1).sqrt() * loud[j]
            assert_close(blocks[i, j], weight, rtol=1e-9, atol=0)
        others = loud[1:n].sum()
        assert share(blocks, u, v) == pytest.approx(float(loud[v] / (loud[v] + others)))


@SIZES
def test_at_unit_scale_the_bridge_is_one_neighbour_of_many(n: int) -> None:
    graph, u, v = barbell(n)
    one = torch.ones(2 * n, dtype=torch.float64)
    source, target = maps(one, 0), maps(one, 1)
    for blocks in passes(graph, source, target):
        assert float(blocks[u, v]) == pytest.approx(1 / (n + 1))
        assert share(blocks, u, v) < 1 / n
    whole = sizes(paper_diffusion(graph, source, target))
    assert float(whole[u, v]) == pytest.approx(2 * n / (n + 1) ** 2)  # two ways, nobody between


@SIZES
def test_over_three_hops_it_compounds(n: int) -> None:
    """The mean of the other clique, at a node that is not at the bridge, after three messages."""
    graph, _, _ = barbell(n)
    one = torch.ones(2 * n, dtype=torch.float64)
    eye = torch.eye(1, dtype=torch.float64).expand(2 * n, 1, 1)
    plain = ConformalMaps(one, eye)
    message = -message_diffusion(graph, plain, plain).to_dense()
    there = torch.zeros(2 * n, dtype=torch.float64)
    there[n + 1 :] = 1
    arrived = float((message @ message @ message @ there)[1])
    assert arrived == pytest.approx((n - 1) / (n * (n + 1) ** 2))
    assert arrived < 1 / (n + 1) ** 2
    stayed = float((message @ message @ message @ (1 - there))[1])
    assert stayed > 80 * arrived


@SIZES
def test_in_the_first_pass_nobody_can_shout(n: int) -> None:
    """Degrees have the source's own scale: louder than 1 is hardly louder at all."""
    graph, u, v = barbell(n)
    t = drawn(n, 3.0, 5)
    for loudness in (1.0, 3.0, LARGEST):
        s = torch.ones(2 * n, dtype=torch.float64)
        s[v] = loudness
        assert share(passes(graph, maps(s, 0), maps(t, 1))[0], u, v) < 1 / n
    for seed in range(5):  # whatever the bridge does, as long as the others are not below 1
        s = drawn(n, 3.0, seed).clamp(min=1)
        t = drawn(n, 3.0, seed + 50)
        assert share(passes(graph, maps(s, 0), maps(t, 1))[0], u, v) < 1 / n


@SIZES
@pytest.mark.parametrize("wanted", [0.5, 0.9])
def test_room_is_made_by_silence(n: int, wanted: float) -> None:
    """For a share p of the first pass the others together have (1 - p) / p of the bridge's."""
    graph, u, v = barbell(n)
    loud = LARGEST / math.sqrt(n * LARGEST**2 + 1)
    quiet = loud * (1 - wanted) / wanted / (n - 1)
    scale = quiet / math.sqrt(1 - (n - 1) * quiet**2)
    s = torch.full((2 * n,), scale, dtype=torch.float64)
    s[[u, v]] = LARGEST
    one = torch.ones(2 * n, dtype=torch.float64)
    first, _ = passes(graph, maps(s, 0), maps(one, 1))
    assert share(first, u, v) == pytest.approx(wanted) == share(first, v, u)
    assert scale < (1 - wanted) / wanted / (n - 1) / math.sqrt(n) * 1.01


@SIZES
def test_the_second_pass_can_be_opened_in_both_directions(n: int) -> None:
    """Loud nodes that hardly listen are not held by their degree: the operator forbids nothing."""
    graph, u, v = barbell(n)
    s = torch.ones(2 * n, dtype=torch.float64)
    t = s.clone()
    s[[u, v]], t[[u, v]] = LARGEST, 1 / math.sqrt(n)
    _, second = passes(graph, maps(s, 0), maps(t, 1))
    for i, j in ((u, v), (v, u)):
        assert float(second[i, j]) == pytest.approx(LARGEST / 2 / math.sqrt(n))
        loud = LARGEST / math.sqrt(2)
        assert share(second, i, j) == pytest.approx(loud / (loud + (n - 1) / math.sqrt(n)))
        assert share(second, i, j) > 0.5
    # Nothing of that size is to be had at more: it is the most that both ends can give each other.
    for seed in range(5):
        s, t = drawn(n, 3.0, seed), drawn(n, 3.0, seed + 50)
        _, second = passes(graph, maps(s, 0), maps(t, 1))
        both = float(second[u, v] * second[v, u]) ** 0.5
        assert both <= LARGEST / 2 / math.sqrt(n) * (1 + 1e-9)


@SIZES
def test_a_softmax_gives_an_edge_all_there_is(n: int) -> None:
    for gap, share_of_bridge in ((0.0, 1 / (n + 1)), (math.log(n), 0.5), (40.0, 1.0)):
        scores = torch.zeros(n + 1, dtype=torch.float64)  # N - 1 of the clique, itself, the bridge
        scores[-1] = gap
        assert float(torch.softmax(scores, 0)[-1]) == pytest.approx(share_of_bridge)
