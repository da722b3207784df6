"""Which column is what: names before places, and nothing that contradicts its name."""

from __future__ import annotations

import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.roles import (
    END_NAMES,
    NODE,
    SOURCE,
    TARGET,
    counts_rows,
    find_ends,
    find_id,
    say_ends,
)


@pytest.mark.parametrize("name", ["", " ", "Unnamed: 0", "unnamed: 3", "Unnamed: 0.1", "__index_level_0__"])  # fmt: skip
def test_names_of_row_numbers(name: str) -> None:
    assert counts_rows(name)


@pytest.mark.parametrize("name", ["unnamed", "0", "index", "id", "Unnamed: x"])
def test_other_names_count_nothing(name: str) -> None:
    assert not counts_rows(name)


@pytest.mark.parametrize(
    ("names", "taken", "id"),
    [
        (["age", "id"], [], "id"),
        (["age", "Node_ID"], [], "Node_ID"),
        (["node", "id"], [], "id"),
        (["age", " Node "], [], " Node "),
        (["Unnamed: 0", "name", "age"], [], "name"),
        (["label", "name"], ["label"], "name"),
        (["id", "name"], ["id"], "name"),
        (["ID", "id"], [], "ID"),
        (["id", NODE], [], NODE),
    ],
)
def test_the_column_of_ids(names: list[str], taken: list[str], id: str) -> None:
    assert find_id("nodes.csv", names, taken) == id


def test_no_column_is_left_for_ids() -> None:
    with pytest.raises(
        DataError, match=r"nodes.csv: a column must name the nodes; .*add one called id"
    ):
        find_id("nodes.csv", ["Unnamed: 0", "label"], ["label"])


@pytest.mark.parametrize("pair", END_NAMES)
@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_every_known_pair_in_any_case_and_order(pair: tuple[str, str], spell: object) -> None:
    source, target = (spell(name) for name in pair)  # type: ignore[operator]
    assert find_ends("e", [target, "x", source], None, None) == (source, target)
    assert find_ends("e", ["Unnamed: 0", source, target, "x"], None, None) == (source, target)


@pytest.mark.parametrize(
    ("names", "source", "target", "ends"),
    [
        (["a", "b", "w"], None, None, ("a", "b")),
        (["", "a", "b"], None, None, ("a", "b")),
        (["edge_id", "a", "b"], None, None, ("a", "b")),
        (["id", "weight", "a", "b"], None, None, ("a", "b")),
        (["id", "index"], None, None, ("id", "index")),  # there is nothing else
        (["source", "b"], None, None, ("source", "b")),
        (["source", "b", "weight"], None, None, ("source", "b")),
        (["a", "dst"], None, None, ("a", "dst")),
        (["a", "b", "c"], "b", None, ("b", "a")),
        (["a", "b", "c"], None, "a", ("b", "a")),
        (["target", "source"], "target", "source", ("target", "source")),  # said by the user
        (["to", "from", "a"], "from", None, ("from", "to")),
        ([TARGET, SOURCE], None, None, (SOURCE, TARGET)),
    ],
)  # fmt: skip
def test_ends(
    names: list[str], source: str | None, target: str | None, ends: tuple[str, str]
) -> None:
    assert find_ends("e", names, source, target) == ends


@pytest.mark.parametrize(
    ("names", "source", "message"),
    [
        (["target", "b"], None, "e: .* column 'target' stands for the other end .*: give --source and --edge-target"),
        (["a", "source"], None, "column 'source' stands for the other end"),
        (["kind", "src", "target"], None, "column 'src' stands for the other end"),
        (["source", "kind", "node"], None, "column 'source' is one, and the other may be any of 'kind', 'node': give --edge-target"),
        (["kind", "dst", "node"], None, "column 'dst' is one, .* 'kind', 'node': give --source"),
        (["a"], None, "e: two columns must name the ends of the edges; its columns are 'a'"),
        (["Unnamed: 0", "a"], None, "two columns must name the ends"),
        (["a"], "a", "two columns must name the ends"),
    ],
)  # fmt: skip
def test_ends_that_nobody_can_know(names: list[str], source: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_ends("e", names, source, None)


def test_columns_with_another_role_are_no_ends() -> None:
    assert find_ends("e", ["w", "a", "b"], None, None, taken=["w"]) == ("a", "b")


def test_what_is_said() -> None:
    names = ["a", "b", "w", "when"]
    said = say_ends(("a", "b"), ["a", "b", "when"], names)
    assert said.startswith("edges: from column 'a' to column 'b'; not used: 'w'")
    assert say_ends(("a", "b"), names, names) == "edges: from column 'a' to column 'b'"
    assert say_ends((SOURCE, TARGET), [], [SOURCE, TARGET]) == "edges: as the graph has them"
    unnamed = say_ends(("a", "b"), [], ["Unnamed: 0", "a", "b"])
    assert unnamed.endswith("not used: 'Unnamed: 0'")
