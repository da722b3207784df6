"""Which column is what: by its name first, by its place only where no name tells."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list

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
# Tables that are made of a graph have these columns: nobody has to look for them.
NODE, SOURCE, TARGET = "<node>", "<source>", "<target>"
_ROW_NUMBERS = re.compile(r"(?:unnamed: ?\d+)?", re.IGNORECASE)


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
    spelled = {name.lower(): name for name in reversed(free)}
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
    spelled = {name.lower(): name for name in reversed(names)} | {n.lower(): n for n in free[::-1]}
    spelled |= {given.lower(): given} if given else {}
    for first, second in END_NAMES:
        pair = (spelled.get(first, ""), spelled.get(second, ""))
        if "" not in pair and (source or pair[0], target or pair[1]) == pair:
            _refuse_taken(table, pair, taken)
            return pair
    wanted = 2 if given is None else 1
    if len(free) < wanted:
        raise DataError(
            f"{table}: two columns must name the ends of the edges; its columns are "
            f"{show_list(names)}"
        )
    ends = (source or free[0], target or free[wanted - 1])
    _refuse_contradiction(table, ends)
    return ends


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
    meant = [{pair[side] for pair in END_NAMES} for side in (0, 1)]
    for side, name in enumerate(ends):
        if name.lower() in meant[1 - side] - meant[side]:
            raise DataError(
                f"{table}: the ends of the edges must be named or come first; column {show(name)} "
                f"stands for the other end than its place says beside {show(ends[1 - side])}: give "
                "--source and --edge-target"
            )


def say_ends(
    ends: tuple[str, str],
    used: Collection[str],
    names: Sequence[str],
    hint: str = " (--weight or --edge-features would use one)",
) -> str:
    """What was decided about the columns of the edge table.

    Args:
        hint: how a column that is not used would be; a later reading has no say in that.
    """
    text = f"edges: from column {show(ends[0])} to column {show(ends[1])}"
    if SOURCE in ends:
        text = "edges: as the graph has them"
    unused = [name for name in names if name not in used and name not in ends]
    if not unused:
        return text
    hint = "" if all(map(counts_rows, unused)) else hint
    return f"{text}; not used: {show_list(unused)}{hint}"
