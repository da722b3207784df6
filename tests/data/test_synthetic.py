"""Generated tasks: the published file, the counts of the paper, the statistics asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from published import REAL_DATA, needs_real_data
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.synthetic import (
    contextual_sbm,
    grid_edges,
    minesweeper,
    minesweeper_features,
    neighbors_match,
)

MINESWEEPER = REAL_DATA / "platonov" / "minesweeper.npz"


@pytest.fixture(scope="module")
def real() -> dict[str, Tensor]:
    with np.load(MINESWEEPER, allow_pickle=False) as file:
        return {key: torch.from_numpy(file[key]) for key in file.files}


@pytest.fixture(scope="module")
def generated() -> NodeDataset:
    return minesweeper()


# --- minesweeper -----------------------------------------------------------------------------


@needs_real_data
def test_encoding_reproduces_every_feature_of_the_published_file(real: dict[str, Tensor]) -> None:
    features = real["node_features"]
    hidden = features[:, 0] == 1
    ours = minesweeper_features(real["node_labels"] == 1, hidden, real["edges"].T)
    assert torch.equal(ours, features)


@needs_real_data
def test_statistics_are_those_of_the_published_file(
    real: dict[str, Tensor], generated: NodeDataset
) -> None:
    assert torch.equal(generated.edge_index, real["edges"].T)
    assert torch.equal(generated.y.bincount(), real["node_labels"].bincount())
    assert generated.x.dtype == real["node_features"].dtype
    ours, theirs = generated.x.mean(0), real["node_features"].mean(0)
    # Counts of neighbours that share mines are correlated: five deviations of independent draws.
    error = (theirs * (1 - theirs) / 10_000).sqrt() * 2**0.5
    assert ((ours - theirs).abs() <= 5 * error).all()
    assert ours[0] == theirs[0] == 0.5
    same = (generated.y[generated.edge_index[0]] == generated.y[generated.edge_index[1]]).float()
    assert same.mean() == pytest.approx(0.683, abs=0.01)
    for name in ("train", "val", "test"):
        ours, theirs = getattr(generated, name), real[f"{name}_masks"]
        assert ours.shape == theirs.shape
        assert torch.equal(
            (ours & (generated.y == 1)).sum(1), (theirs & (real["node_labels"] == 1)).sum(1)
        )
        assert torch.equal(ours.sum(1), theirs.sum(1))


def test_minesweeper_defaults(generated: NodeDataset) -> None:
    assert (generated.num_nodes, generated.num_edges, generated.num_features) == (10_000, 39_402, 7)
    assert generated.y.bincount().tolist() == [8000, 2000]
    assert (generated.name, generated.task, generated.metric) == (
        "minesweeper-generated",
        "binary",
        "auroc",
    )
    assert torch.equal(generated.x.sum(1), torch.ones(10_000))
    assert (generated.train.long() + generated.val.long() + generated.test.long() == 1).all()
    assert generated.train.sum(1).tolist() == [5000] * 10
    assert len({tuple(mask.nonzero().flatten().tolist()) for mask in generated.train}) == 10
    both_ways = generated.process(Processing(direction="undirected"))
    assert both_ways.num_edges == 2 * 39_402


def test_grid_by_hand() -> None:
    assert grid_edges(2, 3).T.tolist() == [
        [0, 1], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4], [1, 5], [2, 4], [2, 5], [3, 4], [4, 5],
    ]  # fmt: skip


@pytest.mark.parametrize(("height", "width"), [(2, 2), (2, 7), (5, 4)])
def test_grid_joins_nodes_one_step_apart(height: int, width: int) -> None:
    cells = list(itertools.product(range(height), range(width)))
    expected = [
        [i, j]
        for (i, a), (j, b) in itertools.combinations(enumerate(cells), 2)
        if max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1
    ]
    assert grid_edges(height, width).T.tolist() == expected


def test_five_or_more_mines_share_a_column() -> None:
    edges = grid_edges(3, 3)  # node 4 is the centre
    for count in range(9):
        mines = torch.zeros(9, dtype=torch.bool)
        mines[[0, 1, 2, 3, 5, 6, 7, 8][:count]] = True
        x = minesweeper_features(mines, torch.zeros(9, dtype=torch.bool), edges)
        assert int(x[4].argmax()) == 1 + min(count, 5)
        # Being a mine oneself does not show.
        mines[4] = True
        assert torch.equal(
            minesweeper_features(mines, torch.zeros(9, dtype=torch.bool), edges)[4], x[4]
        )


def test_minesweeper_settings() -> None:
    data = minesweeper(height=20, width=30, mine_density=0.1, hidden=0.25, seed=5, num_splits=2)
    assert data.y.sum() == 60
    assert data.x[:, 0].sum() == 150
    assert data.train.shape == (2, 600)
    again = minesweeper(height=20, width=30, mine_density=0.1, hidden=0.25, seed=5, num_splits=2)
    other = minesweeper(height=20, width=30, mine_density=0.1, hidden=0.25, seed=6, num_splits=2)
    assert torch.equal(data.x, again.x)
    assert torch.equal(data.train, again.train)
    assert not torch.equal(data.y, other.y)
    with pytest.raises(ValueError, match="`mine_density` must leave at least three mines"):
        minesweeper(height=3, width=3, mine_density=0.1)


# --- NeighborsMatch --------------------------------------------------------------------------

EXAMPLES = {2: 96, 3: 8_000, 4: 16_000, 5: 32_000, 6: 32_000, 7: 32_000, 8: 32_000}


@pytest.mark.parametrize("depth", EXAMPLES)
def test_counts_and_balance(depth: int) -> None:
    data = neighbors_match(depth)
    nodes, leaves = 2 ** (depth + 1) - 1, 2**depth
    assert data.features.shape == (EXAMPLES[depth], nodes, 2)
    assert data.features.dtype == torch.int16
    assert data.num_classes == leaves + 1
    each = EXAMPLES[depth] // leaves
    assert data.labels.bincount().tolist() == [0] + [each] * leaves
    train = each * 4 // 5
    assert data.labels[data.train].bincount().tolist() == [0] + [train] * leaves
    assert data.labels[data.test].bincount().tolist() == [0] + [each - train] * leaves
    assert torch.equal(
        torch.cat([data.train, data.test]).sort().values, torch.arange(len(data.labels))
    )


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_features_are_keys_and_values(depth: int) -> None:
    data = neighbors_match(depth)
    leaves, x = data.leaves, data.features.long()
    numbers = torch.arange(1, 2**depth + 1)
    assert (x[:, leaves, 0] == numbers).all()
    assert (x[:, leaves, 1].sort(1).values == numbers).all()
    assert (x[:, 0, 1] == 0).all()
    inner = torch.ones(data.num_nodes, dtype=torch.bool)
    inner[leaves], inner[0] = False, False
    assert (x[:, inner] == 0).all()
    found = x[:, leaves, 1].gather(1, x[:, :1, 0] - 1).flatten()
    assert torch.equal(found, data.labels)
    # Each permutation comes with every key once.
    assert torch.equal(
        x[:, 0, 0].view(-1, 2**depth), numbers.expand(data.num_examples // 2**depth, -1)
    )


def test_depth_two_has_every_permutation_once() -> None:
    data = neighbors_match(2)
    values = {tuple(v) for v in data.features[:, data.leaves, 1].tolist()}
    assert values == set(itertools.permutations(range(1, 5)))


def test_depth_three_draws_without_replacement() -> None:
    data = neighbors_match(3)
    assert len({tuple(v) for v in data.features[::8, data.leaves, 1].tolist()}) == 1000


def test_tree_in_pre_order() -> None:
    data = neighbors_match(2)
    edges = data.edge_index.T.tolist()
    assert edges[:6] == [[1, 0], [2, 1], [3, 1], [4, 0], [5, 4], [6, 4]]
    assert edges[6:] == [[i, i] for i in range(7)]
    assert data.leaves.tolist() == [2, 3, 5, 6]


@pytest.mark.parametrize("depth", [3, 5])
def test_every_leaf_is_depth_steps_from_the_root(depth: int) -> None:
    data = neighbors_match(depth)
    n = data.num_nodes
    assert data.edge_index.shape == (2, 2 * n - 1)
    child, parent = data.edge_index[:, : n - 1]
    assert (parent < child).all()
    above = torch.zeros(n, dtype=torch.int64)
    above[child] = parent
    node = data.leaves
    for step in range(depth):
        assert (node > 0).all(), step
        node = above[node]
    assert (node == 0).all()
    assert torch.equal(parent.bincount(minlength=n).unique(), torch.tensor([0, 2]))


def test_neighbors_match_seed() -> None:
    assert torch.equal(neighbors_match(4).features, neighbors_match(4, seed=11).features)
    assert not torch.equal(neighbors_match(4).features, neighbors_match(4, seed=12).features)


def test_to_dataset() -> None:
    data = neighbors_match(2)
    dataset = data.to_dataset()
    assert len(dataset.graphs) == 96
    assert dataset.out_channels == 5
    graph = dataset.graphs[17]
    assert torch.equal(graph.x, data.features[17].long())
    assert graph.y.tolist() == [data.labels[17].item()]
    assert graph.edge_index is data.edge_index
    assert len(dataset.train) == 76
    assert len(dataset.test) == 20


@pytest.mark.parametrize("depth", [1, 13, 2.0])
def test_bad_depth(depth: int) -> None:
    with pytest.raises(ValueError, match="`depth` must be"):
        neighbors_match(depth)


# --- contextual stochastic block model -------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("homophily", [0.0, 0.17, 0.8, 1.0])
@pytest.mark.parametrize("num_classes", [2, 5])
def test_edges_are_as_asked(directed: bool, homophily: float, num_classes: int) -> None:
    data = contextual_sbm(
        501,
        8,
        num_classes=num_classes,
        homophily=homophily,
        num_features=3,
        signal=1.0,
        directed=directed,
    )
    source, target = data.edge_index
    assert data.num_edges == 4008
    assert (source != target).all()
    assert len(torch.unique(source * 501 + target)) == 4008
    same = (data.y[source] == data.y[target]).double().mean().item()
    assert same == pytest.approx(homophily, abs=1e-3)
    assert (data.reciprocated == 1) == (not directed)
    sizes = data.y.bincount()
    assert len(sizes) == num_classes
    assert sizes.max() - sizes.min() <= 1
    assert data.processing.direction == ("stored" if directed else "undirected")


def test_features_carry_the_signal() -> None:
    options = {"num_classes": 3, "homophily": 0.2, "num_features": 20}
    loud = contextual_sbm(3000, 4, signal=10.0, **options)
    quiet = contextual_sbm(3000, 4, signal=0.0, **options)
    centres = torch.stack([loud.x[loud.y == c].mean(0) for c in range(3)])
    assert torch.allclose(centres.norm(dim=1), torch.full((3,), 10.0), atol=0.3)
    assert quiet.x.mean().abs() < 0.02
    assert loud.x.std() > quiet.x.std() > 0.95


def test_degrees_do_not_depend_on_the_node_number() -> None:
    data = contextual_sbm(2000, 10, homophily=0.5, num_features=1, signal=1.0, seed=1)
    degree = data.edge_index[0].bincount(minlength=2000).double()
    halves = degree[:1000].mean(), degree[1000:].mean()
    assert abs(halves[0] - halves[1]) < 0.7
    assert abs(data.y[:1000].double().mean() - 0.5) < 0.06


def test_full_graphs_can_be_drawn() -> None:
    data = contextual_sbm(12, 5, homophily=1.0, num_features=1, signal=1.0)
    assert data.num_edges == 60  # two complete graphs of six nodes
    with pytest.raises(ValueError, match="room for 30"):
        contextual_sbm(12, 6, homophily=1.0, num_features=1, signal=1.0)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"homophily": 1.5}, "`homophily` must be a number in"),
        ({"num_classes": 200}, "`num_nodes` must be at least 3 per class"),
        ({"average_degree": -1.0}, "`average_degree` and `signal` must be finite"),
        ({"signal": float("nan")}, "`average_degree` and `signal` must be finite"),
        ({"seed": -1}, "`seed` must be an integer of at least 0"),
    ],
)
def test_bad_settings(change: dict[str, float], rule: str) -> None:
    settings = {
        "num_nodes": 100,
        "average_degree": 4,
        "homophily": 0.5,
        "num_features": 2,
        "signal": 1.0,
    }
    with pytest.raises(ValueError, match=rule):
        contextual_sbm(**(settings | change))
