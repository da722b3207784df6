"""Settings of mini-batches. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from coopsheaf.checks import check_choice, check_int

KINDS = {
    "clusters": "groups of nodes with few edges between them (METIS), several in a batch",
    "neighbours": "training nodes and neighbours sampled around them",
    "nodes": "random nodes and the edges among them",
    "ranges": "runs of consecutive nodes, several in a batch: for packs in community order",
}

# What goes only with some kinds.
_ONLY = {
    "parts": ("clusters", "ranges"),
    "fanouts": ("neighbours",),
    "halo": ("clusters", "nodes", "ranges"),
}

CLUSTER_NODES = 500  # nodes of a cluster or range, about, if their number is not set
SIZES = {"clusters": 10, "neighbours": 512, "nodes": 5000, "ranges": 10}
FANOUTS = "5"
PREFETCH = 1
CHUNK = 1 << 14


@dataclass(frozen=True)
class BatchConfig:
    """How a graph is cut into the batches of a step; the whole graph in one step if not set.

    Args:
        kind: ``"clusters"``, ``"neighbours"``, ``"nodes"`` or ``"ranges"``.
        size: clusters, training nodes, nodes or ranges in a batch: 10, 512, 5000 or 10 if not set.
        parts: number of clusters or ranges; one per 500 nodes if not set.
        fanouts: neighbours sampled per node: one number for all hops or one per hop, separated by
            commas, -1 for all of them; 5 if not set.
        halo: add all nodes that the outputs of a batch depend on: exact outputs and larger batches.
        chunk: nodes at a time when outputs of the whole graph are computed; 16,384 if not set.
        prefetch: batches that are prepared in a thread while a step computes, 1 if not set; 0 for
            none. Changes nothing but time and memory.
    """

    # None by default: then the hashes of recorded settings stay what they are.
    kind: str | None = None
    size: int | None = None
    parts: int | None = None
    fanouts: str | None = None
    halo: bool | None = None
    chunk: int | None = None
    prefetch: int | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_choice("kind", self.kind, KINDS)
        for name in ("size", "parts", "chunk"):
            if getattr(self, name) is not None:
                check_int(name, getattr(self, name), minimum=1)
        if self.prefetch is not None:
            check_int("prefetch", self.prefetch, minimum=0)
        if self.fanouts is not None:
            parse_fanouts(self.fanouts)

    @property
    def is_set(self) -> bool:
        """Whether there is anything to do: with settings but no kind, that is an error."""
        if self == BatchConfig():
            return False
        if self.kind is None:
            raise ValueError(
                f"`batch.kind` must be one of {', '.join(map(repr, KINDS))} if other settings of "
                "batch are given; got none"
            )
        for name, kinds in _ONLY.items():
            if getattr(self, name) is not None and self.kind not in kinds:
                raise ValueError(
                    f"`batch.{name}` goes with `batch.kind` {' or '.join(map(repr, kinds))}; "
                    f"got {self.kind!r}"
                )
        return True


def parse_fanouts(text: str) -> tuple[int, ...]:
    """``"10,5,-1"`` as numbers."""
    try:
        numbers = tuple(int(word) for word in text.split(","))
    except ValueError:
        numbers = (0,)
    if not all(number >= 1 or number == -1 for number in numbers):
        raise ValueError(
            "`fanouts` must be whole numbers of at least 1, or -1 for all, separated by commas; "
            f"got {text!r}"
        )
    return numbers
