"""P2: a node with T_i = 0 receives nothing, a node with S_k = 0 is heard by nobody."""

from __future__ import annotations

import pytest
import torch
from graphs import path, randn
from hypothesis import given
from hypothesis import strategies as st
from paper.networks import bare_csnn, seeded, set_maps
from paper.operators import (
    DIFFUSIONS,
    EXACT,
    FEW,
    blocks,
    depends,
    neighbours,
    paper_order,
    random_pair,
    released_order,
    silenced,
    simple,
    simple_graphs,
)
from torch import Tensor, nn

from coopsheaf import CSNN, Graph, record_maps
from coopsheaf.nn import MLPLearner

orders = pytest.mark.parametrize("name", DIFFUSIONS)


@orders
@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99), data=st.data())
def test_zero_maps_give_zero_rows_and_columns(
    name: str, graph: Graph, seed: int, data: st.DataObject
) -> None:
    """T_i = 0 makes row i zero, S_k = 0 makes column k zero, in row k too; exactly."""
    nodes = st.sets(st.integers(0, graph.num_nodes - 1))
    deaf, mute = data.draw(nodes), data.draw(nodes)
    source, target = random_pair(graph.num_nodes, 2, seed)
    linked = depends(DIFFUSIONS[name](graph, silenced(source, mute), silenced(target, deaf)))
    assert not linked[list(deaf)].any()
    assert not linked[:, list(mute)].any()


@orders
@pytest.mark.parametrize("node", range(4))
def test_only_that_row_and_that_column_vanish(name: str, node: int) -> None:
    """One T_i = 0 empties row i alone, one S_k = 0 empties column k alone."""
    graph = Graph(path(4))
    source, target = random_pair(4, 2)
    others = [i for i in range(4) if i != node]
    rows = depends(DIFFUSIONS[name](graph, source, silenced(target, [node]))).any(1)
    assert not rows[node]
    assert rows[others].all()
    columns = depends(DIFFUSIONS[name](graph, silenced(source, [node]), target)).any(0)
    assert not columns[node]
    assert columns[others].all()


@pytest.mark.parametrize("normalization", [None, "augmented", "plain"])
@pytest.mark.parametrize("order", [paper_order, released_order])
def test_zero_maps_among_general_maps(order: object, normalization: str | None) -> None:
    """Rows and columns vanish for any matrices as maps, conformal or not."""
    graph = simple(5, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)])
    source, target = randn(5, 3, 3, seed=1), randn(5, 3, 3, seed=2)
    source[1], target[3] = 0, 0
    linked = depends(order(graph, source, target, normalization))
    assert not linked[3].any()
    assert not linked[:, 1].any()
    if normalization != "plain":  # which also takes the ears of a mute node; see P4
        assert linked[[0, 1, 2, 4]].any(1).all()
        assert linked[:, [0, 2, 3, 4]].any(0).all()


@orders
def test_a_deaf_neighbour_still_broadcasts(name: str) -> None:
    """T_k = 0 does not keep k from being heard: block (i, k) stays non-zero."""
    source, target = random_pair(4, 2, seed=3)
    i, k = 1, 2
    parts = blocks(DIFFUSIONS[name](Graph(path(4)), source, silenced(target, [k])))
    assert parts[i, k].abs().max() > 1e-2


def test_what_a_deaf_neighbour_sends() -> None:
    """On a path, P_ik = -(deg(i) t_i² + deg(k) s_k²) T_iᵀ S_k and R_ik = -deg(i) s_i² T_iᵀ S_k."""
    graph, i, k = Graph(path(4)), 1, 2
    source, target = random_pair(4, 2, seed=3)
    message = target.to_dense()[i].mT @ source.to_dense()[k]
    factor = 2 * target.scale[i] ** 2 + 2 * source.scale[k] ** 2
    target = silenced(target, [k])
    sent = blocks(paper_order(graph, source, target))[i, k]
    torch.testing.assert_close(sent, -factor * message, **EXACT)
    sent = blocks(released_order(graph, source, target))[i, k]
    torch.testing.assert_close(sent, -2 * source.scale[i] ** 2 * message, **EXACT)


def written_out(lists: list[list[int]], source: Tensor, target: Tensor, x: Tensor) -> Tensor:
    """P X node by node: Σ over N(i) and N(j), every degree the length of its list."""
    out = torch.zeros_like(x)
    for i, around in enumerate(lists):
        heard = sum((target[i].mT @ source[j] @ x[j] for j in around), torch.zeros_like(x[i]))
        inner = len(around) * source[i].mT @ source[i] @ x[i] - heard
        out[i] = len(around) * target[i].mT @ target[i] @ inner
        for j in around:
            value = len(lists[j]) * source[j].mT @ source[j] @ x[j]
            for u in lists[j]:
                value = value - target[j].mT @ source[u] @ x[u]
            out[i] -= target[i].mT @ source[j] @ value
    return out


@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99), data=st.data())
def test_degrees_still_count_a_mute_neighbour(graph: Graph, seed: int, data: st.DataObject) -> None:
    """With S_k = 0 only the terms in x_k vanish; node k stays in every N(i) and so in deg(i)."""
    n = graph.num_nodes
    mute = data.draw(st.sets(st.integers(0, n - 1)))
    x, lists = randn(n, 2, 3, seed=seed), neighbours(graph)
    source, target = random_pair(n, 2, seed)
    source = silenced(source, mute)
    expected = written_out(lists, source.to_dense(), target.to_dense(), x)
    torch.testing.assert_close(paper_order(graph, source, target) @ x, expected, **EXACT)
    # The same with any matrices as maps.
    source_maps, target_maps = randn(n, 2, 2, seed=seed + 1), randn(n, 2, 2, seed=seed + 2)
    source_maps[list(mute)] = 0
    expected = written_out(lists, source_maps, target_maps, x)
    torch.testing.assert_close(paper_order(graph, source_maps, target_maps) @ x, expected, **EXACT)


def test_dropping_the_mute_neighbour_from_the_sums_is_another_operator() -> None:
    """The printed sums over N(i) without k, which also lower deg(i), do not give (P X)_i."""
    graph, k = Graph(path(4)), 2
    source, target = random_pair(4, 2, seed=5)
    source = silenced(source, [k])
    x = randn(4, 2, 1, seed=6)
    lists = [[j for j in around if j != k] for around in neighbours(graph)]
    printed = written_out(lists, source.to_dense(), target.to_dense(), x)
    difference = (paper_order(graph, source, target) @ x - printed).abs().amax((1, 2))
    assert (difference[[1, 3]] > 1e-3).all()  # the neighbours of k


ZERO_AT_ZERO = {"gelu": nn.GELU(), "relu": nn.ReLU(), "tanh": nn.Tanh(), "identity": None}


@pytest.mark.parametrize("act", ZERO_AT_ZERO)
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
def test_a_deaf_node_keeps_its_own_feature(act: str, semantics: str) -> None:
    """With T_i = 0 and σ(0) = 0 a whole layer gives x_i' = (1 + ε) x_i, exactly."""
    n, d, h = 40, 3, 2

    def build() -> CSNN:
        options = {"act": ZERO_AT_ZERO[act], "semantics": semantics, "scale": "rectified"}
        return CSNN(4, h, 1, d * h, stalk_dim=d, learner=MLPLearner(16), **options)

    model = seeded(build, seed=2)
    model.readout = nn.Identity()
    with torch.no_grad():
        model.epsilons[0].copy_(randn(d, 1, seed=3))
        x = randn(n, 4, seed=4)
        before = model.act(model.encoder(x)).reshape(n, d, h)
        mlp = model.convs[0].target_learner.learner
        # max(0, 1 + raw) with raw = -1 at the median: half of the nodes do not listen.
        mlp.layers[-1].bias[-1] -= 1 + mlp(before.flatten(1), None)[:, -1].median()
        with record_maps(model) as maps:
            after = model(x, path(n)).reshape(n, d, h)
    deaf = maps[0].target.scale == 0
    assert 0.4 * n < deaf.sum() < 0.6 * n
    kept = (1 + torch.tanh(model.epsilons[0])) * before
    assert torch.equal(after[deaf], kept[deaf])
    moved = (after != kept).flatten(1).any(1)
    assert torch.equal(moved, ~deaf)


def test_an_activation_that_is_not_zero_at_zero_moves_a_deaf_node() -> None:
    """With a sigmoid the deaf node is shifted by σ(0) = 1/2."""
    model = bare_csnn(4, 2, 1, 1, act=torch.sigmoid)
    conv, ones = model.convs[0], torch.ones(4, dtype=torch.float64)
    angles = randn(4, 1, seed=1)
    set_maps(conv.source_learner, ones, angles)
    set_maps(conv.target_learner, torch.tensor([1.0, 0.0, 1.0, 1.0]), angles)
    x = randn(4, 2, seed=2)
    after = model(x, path(4))
    torch.testing.assert_close(after[1], torch.sigmoid(x[1]) - 0.5, **EXACT)


def test_learned_positive_scales_never_vanish() -> None:
    """The paper's scale lies in (0, 10]: the four actions are limits, not values."""
    model = seeded(lambda: CSNN(4, 2, 2, 3, stalk_dim=3), seed=1)
    with record_maps(model) as maps, torch.no_grad():
        model(30 * randn(50, 4, seed=1), path(50))
    for layer in maps:
        for scale in (layer.source.scale, layer.target.scale):
            assert (scale > 0).all()
            assert (scale <= 10 + 1e-12).all()
