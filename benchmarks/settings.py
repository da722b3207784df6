"""The graphs and the published settings that the benchmarks of the training step share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from baseline import BaselineCSNN
from torch import Tensor, nn
from torch_geometric.nn import GCN

import coopsheaf
from coopsheaf.nn import MLPLearner, ProjectedSAGELearner


def skewed_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """Each pair (u, v) drawn with odds w_u w_v for log-normal weights w, ``(2, num_pairs)``.

    The spread and the cap give about the degrees of tolokers (median 30, mean 88, largest 2,138);
    pairing every node once with a drawn partner leaves hardly anybody isolated, as there.
    """
    quantiles = (torch.arange(num_nodes, dtype=torch.float64) + 0.5) / num_nodes
    weights = (1.65 * torch.special.ndtri(quantiles)).clamp(max=4.9).exp()
    weights = weights[torch.randperm(num_nodes)]

    def draw(count: int) -> Tensor:
        return torch.multinomial(weights, 2 * count, replacement=True).view(2, count)

    partners = torch.multinomial(weights, num_nodes, replacement=True)
    return fill_up(torch.stack([torch.arange(num_nodes), partners]), draw, num_nodes, num_pairs)


def grid_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """A square grid in which every cell touches the eight around it, ``(2, num_pairs)``."""
    cell = torch.arange(num_nodes).view(math.isqrt(num_nodes), -1)
    right = cell[:, :-1], cell[:, 1:]
    down = cell[:-1], cell[1:]
    diagonal = cell[:-1, :-1], cell[1:, 1:]
    other_diagonal = cell[:-1, 1:], cell[1:, :-1]
    sides = zip(right, down, diagonal, other_diagonal, strict=True)
    return torch.stack([torch.cat([part.flatten() for part in side]) for side in sides])


def text_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """A chain of words, and links between words a few places apart, ``(2, num_pairs)``."""

    def draw(count: int) -> Tensor:
        first = torch.randint(num_nodes, (count,))
        gap = 1 + torch.empty(count).geometric_(0.25).long()
        return torch.stack([first, (first + gap).clamp(max=num_nodes - 1)])

    words = torch.arange(num_nodes)
    return fill_up(torch.stack([words[:-1], words[1:]]), draw, num_nodes, num_pairs)


def fill_up(pairs: Tensor, draw: Callable[[int], Tensor], num_nodes: int, total: int) -> Tensor:
    """Draw until there are ``total`` distinct pairs u < v: no loops, no pair twice."""
    codes = torch.empty(0, dtype=torch.int64)
    while True:
        low, high = pairs.amin(0), pairs.amax(0)
        codes = torch.cat([codes, (low * num_nodes + high)[low < high]]).unique()
        if codes.numel() == total:
            return torch.stack([codes // num_nodes, codes % num_nodes])
        pairs = draw(total - codes.numel())


@dataclass(frozen=True)
class Setting:
    """A graph's size and the hyper-parameters published for it."""

    pairs: Callable[[int, int], Tensor]  # generates the edges
    num_nodes: int
    num_pairs: int
    both_ways: bool
    sizes: tuple[int, int, int, int]  # features, channels, layers, outputs
    model: dict[str, Any]
    learner: dict[str, int]  # what the baseline calls the learner of the model
    optimizer: dict[str, float]
    input_dropout: float = 0.2

    def make_graph(self) -> coopsheaf.Graph:
        pairs = self.pairs(self.num_nodes, self.num_pairs)
        assert pairs.shape == (2, self.num_pairs)
        edge_index = torch.cat([pairs, pairs.flip(0)], dim=1) if self.both_ways else pairs
        return coopsheaf.Graph(edge_index, self.num_nodes)

    def make_model(self) -> coopsheaf.CSNN:
        drops = {"input_dropout": self.input_dropout, "dropout": 0.2}
        return coopsheaf.CSNN(*self.sizes, **drops, **self.model)

    def make_baseline(self) -> nn.Module:
        """The same network the ordinary way, with the parameters that a CSNN starts from."""
        state = self.make_model().state_dict()
        options = self.model | {"learner": self.learner}
        drops = {"input_dropout": self.input_dropout, "dropout": 0.2}
        return BaselineCSNN(*self.sizes, **drops, **options).load(state)

    def make_gcn(
        self, width: int | None = None, layers: int | None = None, *, cached: bool = False
    ) -> nn.Module:
        """PyG's GCN, as wide and as deep as the CSNN unless said otherwise."""
        features, channels, depth, outputs = self.sizes
        width, layers = width or channels * self.model["stalk_dim"], layers or depth
        return GCN(features, width, layers, outputs, dropout=0.2, act="gelu", cached=cached)

    def products(self) -> list[tuple[int, int, int]]:
        """Rows, inputs and outputs of every matrix product of the CSNN, its d×d ones left out."""
        d, found = self.model["stalk_dim"], []
        for name, module in self.make_model().named_modules():
            if isinstance(module, nn.Linear) and not name.endswith(".left"):
                rows = self.num_nodes * (d if name.endswith(".right") else 1)
                found.append((rows, module.in_features, module.out_features))
        return found


def random_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """Any two nodes with equal odds, ``(2, num_pairs)``."""

    def draw(count: int) -> Tensor:
        return torch.randint(num_nodes, (2, count))

    return fill_up(draw(num_pairs), draw, num_nodes, num_pairs)


def random_setting(num_nodes: int) -> Setting:
    """A random graph of ten edges per node with the network of ``scaling.py``: MLP learners."""
    return Setting(
        random_pairs, num_nodes=num_nodes, num_pairs=10 * num_nodes, both_ways=True,
        sizes=(16, 32, 2, 5), model={"stalk_dim": 3, "learner": MLPLearner(32)},
        learner={"hidden": 32}, optimizer={"lr": 0.01},
    )  # fmt: skip


SAGE_5X64, SAGE_3X32 = ProjectedSAGELearner(64, 5), ProjectedSAGELearner(32, 3)

SETTINGS = {
    "tolokers": Setting(
        skewed_pairs, num_nodes=11_758, num_pairs=519_000, both_ways=True, sizes=(10, 32, 2, 1),
        model={"stalk_dim": 3, "learner": MLPLearner(32), "left_weights": False},
        learner={"hidden": 32}, optimizer={"lr": 0.02, "weight_decay": 1e-8},
    ),
    "minesweeper": Setting(
        grid_pairs, num_nodes=10_000, num_pairs=39_402, both_ways=True, sizes=(7, 32, 5, 1),
        model={"stalk_dim": 3, "learner": SAGE_5X64, "left_weights": False, "norm": "layer"},
        learner={"hidden": 64, "layers": 5}, optimizer={"lr": 0.002, "weight_decay": 1e-7},
    ),
    "roman-empire": Setting(
        text_pairs, num_nodes=22_662, num_pairs=32_927, both_ways=False, sizes=(300, 32, 5, 18),
        model={"stalk_dim": 4, "learner": SAGE_3X32},
        learner={"hidden": 32, "layers": 3}, optimizer={"lr": 0.02, "weight_decay": 1e-7},
    ),
    "texas": Setting(
        skewed_pairs, num_nodes=183, num_pairs=279, both_ways=True, sizes=(1703, 16, 2, 5),
        model={"stalk_dim": 2, "learner": MLPLearner(32), "left_weights": False,
               "right_weights": False},
        learner={"hidden": 32}, optimizer={"lr": 0.01, "weight_decay": 0.01}, input_dropout=0.5,
    ),
    "random-1e5": random_setting(10_000),
    "random-3e5": random_setting(31_600),
    "random-1e6": random_setting(100_000),
}  # fmt: skip
