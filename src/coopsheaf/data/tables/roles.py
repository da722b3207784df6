"""Which column is what: by its name first, by its place only where no name tells."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.reading.table import NODE, SOURCE, TARGET

ID_NAMES = ("id", "node", "node_id", "nodeid", "node id")
# Source before target. Of knowledge graphs, head before tail.
END_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("head", "tail"),
    ("u", "v"),
    ("source", "destination"),
    ("src", "dest"),
    ("sender", "receiver"),
    ("source_id", "target_id"),
    ("source_node", "target_node"),
    ("src_id", "dst_id"),
    ("from_id", "to_id"),
    ("from_node", "to_node"),
)
# What pandas and pyarrow call an index without a name, once or several times saved.
_ROW_NUMBERS = re.compile(r"(?:unnamed: ?\d+(?:\.\d+)*|__index_level_\d+__)?", re.IGNORECASE)
# What an edge has beside its ends: never one of them by its place, if others are there.
NO_ENDS = ("id", "edge", "edge_id", "edgeid", "edge id", "index", "weight", "weights", "w")


def counts_rows(name: str) -> bool:
    """Whether a name is what programs call a column of row numbers."""
    return _ROW_NUMBERS.fullmatch(name.strip()) is not None


def find_id(table: str, names: Sequence[str], taken: Collection[str]) -> str:
    """The column of node ids: ``id``, ``node`` or ``node_id``, else the first that is free.

    Args:
        table: its name in a message.
        names: of the columns.
        taken: columns with another role.
    """
    if NODE in names:
        return NODE
    free = [name for name in names if name not in taken and not counts_rows(name)]
    spelled = {_key(name): name for name in reversed(free)}
    for wanted in ID_NAMES:
        if wanted in spelled:
            return spelled[wanted]
    if not free:
        raise DataError(
            f"{table}: a column must name the nodes; its columns are {show_list(names)}, and none "
            "of them is free: add one called id"
        )
    return free[0]


def find_ends(
    table: str,
    names: Sequence[str],
    source: str | None,
    target: str | None,
    taken: Collection[str] = (),
) -> tuple[str, str]:
    """The columns with the two ends of the edges.

    Args:
        source, target: those that were named.
    """
    if source is not None and target is not None:
        return source, target
    if SOURCE in names and TARGET in names:
        return source or SOURCE, target or TARGET
    given = source or target
    free = [n for n in names if n not in taken and not counts_rows(n) and n != given]
    spelled = {_key(name): name for name in reversed(names)} | {_key(n): n for n in free[::-1]}
    spelled |= {_key(given): given} if given else {}
    for first, second in END_NAMES:
        pair = (spelled.get(first, ""), spelled.get(second, ""))
        if "" not in pair and (source or pair[0], target or pair[1]) == pair:
            _refuse_taken(table, pair, taken)
            return pair
    wanted = 2 if given is None else 1
    likely = [name for name in free if _key(name) not in NO_ENDS]
    free = likely if len(likely) >= wanted else free
    if len(free) < wanted:
        raise DataError(
            f"{table}: two columns must name the ends of the edges; its columns are "
            f"{show_list(names)}"
        )
    ends = (source or free[0], target or free[wanted - 1])
    _refuse_contradiction(table, ends)
    if given is None:
        _refuse_half(table, ends, free)
    return ends


def _key(name: str) -> str:
    return name.strip().lower()


def _sides() -> tuple[set[str], set[str]]:
    """The names of sources and those of targets."""
    return {pair[0] for pair in END_NAMES}, {pair[1] for pair in END_NAMES}


def _refuse_half(table: str, ends: tuple[str, str], free: Sequence[str]) -> None:
    """One end has its name and the other could be any of several columns."""
    known = [_key(name) in side for name, side in zip(ends, _sides(), strict=True)]
    if len(free) > 2 and known[0] != known[1]:
        named, other = (0, 1) if known[0] else (1, 0)
        raise DataError(
            f"{table}: the ends of the edges must both be named; column {show(ends[named])} is "
            f"one, and the other may be any of "
            f"{show_list([name for name in free if name != ends[named]])}: give "
            f"{'--source' if other == 0 else '--edge-target'}"
        )


def _refuse_taken(table: str, ends: tuple[str, str], taken: Collection[str]) -> None:
    """Columns that are the ends by their names, and something else by an option."""
    for name in ends:
        if name in taken:
            raise DataError(
                f"{table}: column {show(name)} names an end of the edges and cannot be their "
                "weight, time, graph or feature: name another, or give --source and --edge-target"
            )


def _refuse_contradiction(table: str, ends: tuple[str, str]) -> None:
    """A name that means the other end than its place would make of it."""
    meant = _sides()
    for side, name in enumerate(ends):
        if _key(name) in meant[1 - side] - meant[side]:
            raise DataError(
                f"{table}: the ends of the edges must be named or come first; column {show(name)} "
                f"stands for the other end than its place says beside {show(ends[1 - side])}: give "
                "--source and --edge-target"
            )


def say_ends(
    ends: tuple[str, str],
    used: Collection[str],
    names: Sequence[str],
    id: str = NODE,
    *,
    hint: str = " (--weight or --edge-features would use one)",
) -> str:
    """What was decided about the columns of the edge table.

    Args:
        id: the column of node ids.
        hint: how a column that is not used would be; a later reading has no say in that.
    """
    text = f"edges: from column {show(ends[0])} to column {show(ends[1])}"
    if SOURCE in ends:
        text = "edges: as the graph has them"
        if id != NODE:
            text = f"edges: the numbers of the array are ids of column {show(id)}, not places"
    unused = [name for name in names if name not in used and name not in ends]
    if not unused:
        return text
    hint = "" if all(map(counts_rows, unused)) else hint
    return f"{text}; not used: {show_list(unused)}{hint}"
