"""What reading tables decided, stored and restored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import load_tables
from coopsheaf.data.tables.schema import TableSchema

NODES = {
    "name": list("abcdefghij"),
    "split": ["train"] * 6 + ["val", "test"] * 2,
    "age": list(range(10)),
    "label": ["x", "y"] * 5,
}
EDGES = {"u": list("abc"), "v": list("bcd"), "w": [1, 2, 3], "kind": ["p", "q", "p"]}
SCHEMA = load_tables(
    NODES, EDGES, target="label", weight="w", edge_features=["kind"], undirected=True,
    self_loops="remove", duplicates="merge",
).schema  # fmt: skip
LINKS = load_tables(NODES, EDGES, task="link", drop=["label"]).schema


@pytest.mark.parametrize("schema", [SCHEMA, LINKS])
def test_round_trip(schema: TableSchema) -> None:
    stored = json.loads(json.dumps([schema.to_json(), schema.encoder.to_json()]))
    assert TableSchema.from_json(*stored) == schema


def test_what_is_kept() -> None:
    assert (SCHEMA.id, SCHEMA.source, SCHEMA.edge_target, SCHEMA.weight) == ("name", "u", "v", "w")
    assert SCHEMA.parts == ("split",)
    assert SCHEMA.edge_features == ("kind",)
    assert (SCHEMA.undirected, SCHEMA.self_loops, SCHEMA.duplicates) == (True, "remove", "merge")
    assert (LINKS.task, LINKS.targets) == ("link", None)


JUNK = [None, 0, 1.5, True, "", "what", [], [1], {}, {"a": 1}]


@pytest.mark.parametrize("field", sorted(SCHEMA.to_json()))
@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_mangled_fields_are_one_line(field: str, junk: Any) -> None:
    stored = json.loads(json.dumps(SCHEMA.to_json()))
    stored[field] = junk
    try:
        schema = TableSchema.from_json(stored, SCHEMA.encoder.to_json())
    except DataError as error:
        assert len(str(error).splitlines()) == 1
    else:  # it can be what it is
        assert json.loads(json.dumps(schema.to_json()))[field] == junk
        assert isinstance(junk, str | bool | list | None)


@pytest.mark.parametrize("field", sorted(SCHEMA.to_json()))
def test_every_field_is_needed(field: str) -> None:
    stored = json.loads(json.dumps(SCHEMA.to_json()))
    del stored[field]
    with pytest.raises(DataError, match=f"{field} cannot be 'None'"):
        TableSchema.from_json(stored, SCHEMA.encoder.to_json())


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_something_else_is_no_schema(junk: Any) -> None:
    with pytest.raises(DataError):
        TableSchema.from_json(junk, SCHEMA.encoder.to_json())
    with pytest.raises(DataError):
        TableSchema.from_json(SCHEMA.to_json(), junk)


def test_a_task_goes_with_its_targets() -> None:
    stored = SCHEMA.to_json() | {"task": "regression"}
    with pytest.raises(DataError, match="task"):
        TableSchema.from_json(stored, SCHEMA.encoder.to_json())
    with pytest.raises(DataError, match="task"):
        TableSchema.from_json(SCHEMA.to_json() | {"targets": None}, SCHEMA.encoder.to_json())
