"""Settings of the networks for NeighborsMatch trees: their names and the directions of CSNN."""

from __future__ import annotations

from dataclasses import dataclass

from coopsheaf.checks import check_choice, check_int

# The networks of the experiment, in the order of tables and legends.
TREE_MODELS: dict[str, str] = {
    "gcn": "GCN",
    "gin": "GIN",
    "gat": "GAT",
    "ggnn": "GGNN",
    "nsd": "O(d)-NSD",
    "bunn": "BuNN",
    "csnn": "CSNN",
}


@dataclass(frozen=True)
class Direction:
    """Where information flows in a CSNN on trees.

    Args:
        diffusion: the edges of the sheaf diffusion, as :class:`~lab.squash.trees.Forest`
            names them.
        learner: the edges of the map learners.
        about: one line for tables.
    """

    diffusion: str
    learner: str
    about: str


DIRECTIONS: dict[str, Direction] = {
    "as-released": Direction(
        "to-leaves", "to-root", "diffusion root → leaves, learner leaves → root, self-loops"
    ),
    "to-root": Direction("to-root", "to-root", "both leaves → root, self-loops"),
    "bidirected": Direction("both-ways", "both-ways", "both both ways, no self-loops"),
}

LEARNERS: dict[str, str] = {
    "sage": "GraphSAGE of depth + 1 layers of 32 channels, ReLU, no norm",
    "mlp": "two linear layers at each node, 32 channels, ReLU",
}

SEMANTICS: dict[str, str] = {
    "paper": "the operator of the paper",
    "released": "the operator of the authors' released code",
    "messages": "what the edges of Δ_out carry: one hop, no diagonal",
}


@dataclass(frozen=True)
class TreeModel:
    """A network of the experiment.

    Args:
        name: a name of ``TREE_MODELS``.
        direction: a name of ``DIRECTIONS``; CSNN only, empty for the others.
        learner: ``"sage"`` or ``"mlp"``; CSNN only.
        semantics: ``"paper"``, ``"released"`` or ``"messages"``; CSNN only.
    """

    name: str
    direction: str = ""
    learner: str = ""
    semantics: str = ""

    def __post_init__(self) -> None:
        check_choice("model", self.name, TREE_MODELS)
        if self.name == "csnn":
            check_choice("direction", self.direction, DIRECTIONS)
            check_choice("learner", self.learner, LEARNERS)
            check_choice("semantics", self.semantics, SEMANTICS)
        elif self.direction or self.learner or self.semantics:
            raise ValueError(
                "`direction`, `learner` and `semantics` are settings of csnn; got "
                f"{(self.direction, self.learner, self.semantics)} for {self.name!r}"
            )

    @property
    def label(self) -> str:
        """For tables and legends."""
        if self.name != "csnn":
            return TREE_MODELS[self.name]
        other = "" if self.semantics == "paper" else f", {self.semantics}"
        return f"CSNN {self.direction}, {self.learner}{other}"


def batch_size(name: str, depth: int) -> tuple[int, int]:
    """Trees of a batch and batches of an optimiser step, as published."""
    check_choice("model", name, TREE_MODELS)
    check_int("depth", depth, minimum=2)
    if depth <= 3:
        return 64, 1
    if depth <= 6:
        return 1024, 1
    if name in ("gin", "ggnn"):
        return (1024, 2) if depth == 7 else (512, 4)
    return (2048, 1) if depth == 7 else (1024, 2)
