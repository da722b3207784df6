"""A label that has to travel: from one node of a ring, a path or a tree to another."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from coopsheaf.checks import check_choice, check_int
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.unions import Piece, both_ways, join

DEEPEST_TREE = 12  # 8,191 nodes; each step more doubles them

# (edges, number of nodes, source, target) of a distance
Shape = tuple[Tensor, int, int, int]


def ring(distance: int) -> Shape:
    """A ring of 2r nodes; source and target are opposite each other."""
    n = 2 * distance
    return both_ways([(i, (i + 1) % n) for i in range(n)]), n, distance, 0


def crossed_ring(distance: int) -> Shape:
    """The ring with crosses between the two ways round: node i of one and i ± 1 of the other."""
    n = 2 * distance
    pairs = [(i, (i + 1) % n) for i in range(n)]
    ways = range(1, distance)  # node i of the one way is n - i of the other
    pairs += [(i, n - i - step) for i in ways for step in (-1, 1) if 1 <= i + step < distance]
    return both_ways(pairs), n, distance, 0


def clique_path(distance: int) -> Shape:
    """A clique of r nodes, in which the target is, and r - 1 more on a path from another node of
    it, at whose end the source is."""
    clique = [(i, j) for i in range(distance) for j in range(i)]
    path = [(i, i + 1) for i in range(distance - 1, 2 * distance - 2)]
    return both_ways(clique + path), 2 * distance - 1, 2 * distance - 2, 0


def tree(distance: int) -> Shape:
    """A complete binary tree of depth r; the target is the root, the source its first leaf."""
    if distance > DEEPEST_TREE:
        raise ValueError(
            f"`distance` in a tree must be at most {DEEPEST_TREE}, as nodes double with every "
            f"step; got {distance}: take a ring"
        )
    n = 2 ** (distance + 1) - 1
    return both_ways([(i, (i - 1) // 2) for i in range(1, n)]), n, 2**distance - 1, 0


SHAPES: dict[str, Callable[[int], Shape]] = {
    "ring": ring,
    "crossed-ring": crossed_ring,
    "clique-path": clique_path,
    "tree": tree,
}


def transfer(shape: str = "ring", distance: int = 5, *, num_classes: int = 5) -> NodeDataset:
    """Graph transfer (Bodnar et al., 2021; Di Giovanni et al., ICML 2023): carry a label.

    The source has one of C labels as its features, one-hot; the target has zeros and is asked for
    the label; all other nodes have ones. There is one such graph for each label and no more: parts
    hold the same C graphs, so that this is about finding a way by gradient descent and not about
    generalising. Chance is 1/C. Features and rings are as published; the published sets repeat the
    same C graphs many times. Trees, and the sizes of clique and path, are ours.

    Args:
        shape: ``"ring"``, ``"crossed-ring"``, ``"clique-path"`` or ``"tree"``.
        distance: r, hops from source to target, at least 2.
        num_classes: C, at least 2.
    """
    make = check_choice("shape", shape, SHAPES)
    check_int("distance", distance, minimum=2)
    classes = check_int("num_classes", num_classes, minimum=2)
    edges, n, source, target = make(distance)
    pieces = [_piece(label, classes, edges, n, source, target) for label in range(classes)] * 3
    return join(
        f"{shape}-transfer-{distance}",
        pieces,
        (classes, classes, classes),
        task="multiclass" if classes > 2 else "binary",
        metric="accuracy",
        class_names=tuple(str(label) for label in range(classes)),
        remark="training, validation and test hold the same graphs, one for each label",
    )


def _piece(label: int, classes: int, edges: Tensor, n: int, source: int, target: int) -> Piece:
    x = torch.ones(n, classes)
    x[target] = 0
    x[source] = torch.eye(classes)[label]
    y = torch.full((n,), -1)
    y[target] = label
    return Piece(x, edges, y, y >= 0)
