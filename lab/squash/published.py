"""What was published about NeighborsMatch, as shares of training examples. Imports no PyTorch.

CSNN's paper plots its own curve and says in words that it "reaches perfect accuracy for all tested
r"; the depths run to 8, and "perfect" was a running training accuracy of at least 0.999. The
curves of GCN, GIN, GAT and GGNN are those of Alon & Yahav (ICLR 2021), read off their figure:
good to about two hundredths. BuNN's and NSD's numbers stand in the text of CSNN's paper, the
latter below chance at depth 4.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedCurve:
    """Training accuracy by depth.

    Args:
        model: a name of ``TREE_MODELS``.
        accuracy: share of training examples by depth.
        source: where it stands.
        exact: whether it is printed as a number, rather than read off a figure.
    """

    model: str
    accuracy: dict[int, float]
    source: str
    exact: bool


_FIGURE = "figure of Alon & Yahav (ICLR 2021), read off"

PUBLISHED_CURVES: dict[str, PublishedCurve] = {
    curve.model: curve
    for curve in (
        PublishedCurve("gcn", {2: 1.0, 3: 1.0, 4: 0.70, 5: 0.19}, _FIGURE, False),
        PublishedCurve("gin", {2: 1.0, 3: 1.0, 4: 0.77, 5: 0.29}, _FIGURE, False),
        PublishedCurve("gat", {2: 1.0, 3: 1.0, 4: 1.0, 5: 0.41}, _FIGURE, False),
        PublishedCurve("ggnn", {2: 1.0, 3: 1.0, 4: 1.0, 5: 0.60}, _FIGURE, False),
        PublishedCurve(
            "nsd", {2: 1.0, 3: 0.91, 4: 0.05}, "text of Ribeiro et al. (ICLR 2026)", True
        ),
        PublishedCurve(
            "bunn",
            {2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0, 6: 1.0, 7: 0.71, 8: 0.42},
            "Bamberger et al. (ICLR 2025), quoted by Ribeiro et al. (ICLR 2026)",
            True,
        ),
        PublishedCurve(
            "csnn", dict.fromkeys(range(2, 9), 1.0), "text of Ribeiro et al. (ICLR 2026)", True
        ),
    )
}


def find_published(model: str, depth: int) -> float | None:
    """The published training accuracy of a model at a depth, if there is one."""
    curve = PUBLISHED_CURVES.get(model)
    return None if curve is None else curve.accuracy.get(depth)
