"""Readers of the two tables and ten splits of the WebKB graphs and film."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import mangled, write_geom_gcn, write_npz

from coopsheaf.data.errors import DataError
from coopsheaf.data.geom_gcn import RELATION_HEADER, read_geom_gcn, read_relations


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return write_geom_gcn(tmp_path / "graph")


def test_the_tables_are_read_as_stored(paths: list[Path]) -> None:
    parts = read_geom_gcn(paths)
    assert parts.x.shape == (12, 5)
    assert set(parts.x.unique().tolist()) == {0.0, 1.0}
    assert parts.y.tolist() == [i % 3 for i in range(12)]
    edges = [tuple(map(int, line.split("\t"))) for line in paths[0].read_text().splitlines()[1:]]
    assert [tuple(edge) for edge in parts.edge_index.T.tolist()] == edges
    assert parts.train.shape == (2, 12)
    assert (parts.train.int() + parts.val.int() + parts.test.int() == 1).all()


def test_the_features_belong_to_the_node_of_their_line(paths: list[Path]) -> None:
    parts = read_geom_gcn(paths)
    for line in paths[1].read_text().splitlines()[1:]:
        node, features, _ = line.split("\t")
        assert parts.x[int(node)].tolist() == [float(value) for value in features.split(",")]


def test_line_ends_of_windows_are_the_same(paths: list[Path]) -> None:
    expected = read_geom_gcn(paths)
    for path in paths[:2]:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert all(torch.equal(a, b) for a, b in zip(read_geom_gcn(paths), expected, strict=True))


def test_a_table_may_list_the_positions_of_its_features(paths: list[Path]) -> None:
    lines = ["node_id\tfeature(feature_amount:9)\tlabel"]
    lines += [f"{i}\t{i % 10},{(i + 3) % 10}\t{i % 3}" for i in range(12)]
    paths[1].write_text("\n".join(lines) + "\n")
    parts = read_geom_gcn(paths, indexed_features=10)
    assert parts.x.shape == (12, 10)
    assert parts.x[4].nonzero().flatten().tolist() == [4, 7]
    with pytest.raises(DataError, match="line 7 must name features 0 to 7; found 5,8"):
        read_geom_gcn(paths, indexed_features=8)


HEAD = "node_id\tfeature\tlabel\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1 must be the header|must have a line for each node|line 1 must have 3 columns"),
        (HEAD, "must have a line for each node; found none"),
        ("a\tb\tc\n0\t1\t0\n", "line 1 must be the header"),
        (HEAD + "0,1,0\n", r"line 2 must have 3 columns; found 1: '0,1,0'"),
        (HEAD + "0 1 0\n", "line 2 must have 3 columns"),
        (HEAD + "0\t1\t0\n\n1\t1\t0\n", "line 3 must have 3 columns"),
        (HEAD + "0\t1\tcourse\n", "line 2: the label must be integers; found 'course'"),
        (HEAD + "x\t1\t0\n", "line 2: the node must be integers; found 'x'"),
        (HEAD + "0\t1;0\t0\n", "line 2: the features must be integers"),
        (HEAD + "0\t\t0\n", "line 2: the features must be integers"),
        (HEAD + "0\t1\t0\n0\t1\t0\n", "line 3 must name a new node; found 0"),
        (HEAD + "0\t1\t0\n2\t1\t0\n", "must number its 2 nodes from 0; found 2"),
        (HEAD + "0\t1,0\t0\n1\t1\t0\n", "line 3 must have 2 features like the first; found 1"),
        (HEAD + f"0\t1\t{10**30}\n", "must be a table of nodes"),
    ],
)
def test_a_broken_node_table_is_named_with_its_line(
    paths: list[Path], text: str, words: str
) -> None:
    paths[1].write_text(text)
    with pytest.raises(DataError, match=words) as error:
        read_geom_gcn(paths)
    assert str(error.value).startswith(str(paths[1]))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node_id\tnode_id\n0\t12\n", r"line 2 must join nodes 0 to 11; found \['0', '12'\]"),
        ("node_id\tnode_id\n0\t-1\n", "line 2 must join nodes 0 to 11"),
        ("node_id\tnode_id\n0,1\n", "line 2 must have 2 columns"),
        ("node_id\tnode_id\n0\t1.5\n", "line 2: the edge must be integers"),
        ("0\t1\n", "line 1 must be the header"),
    ],
)
def test_a_broken_edge_table_is_named_with_its_line(
    paths: list[Path], text: str, words: str
) -> None:
    paths[0].write_text(text)
    with pytest.raises(DataError, match=words) as error:
        read_geom_gcn(paths)
    assert str(error.value).startswith(str(paths[0]))


def test_text_must_be_utf_8_and_there(paths: list[Path]) -> None:
    paths[1].write_bytes(HEAD.encode() + b"0\t1\t\xff\n")
    with pytest.raises(DataError, match=r"nodes\.txt: must be UTF-8 text; byte 26 is not"):
        read_geom_gcn(paths)
    paths[1].unlink()
    with pytest.raises(DataError, match=r"nodes\.txt: must be readable; No such file"):
        read_geom_gcn(paths)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.ones(11, dtype=bool), r"train_mask must have shape \(12,\); found \(11,\)"),
        (np.ones(12), "train_mask must be booleans or 0/1; found float64"),
        (np.full(12, 2), "training masks must be 0 or 1"),
        (np.ones(12, dtype=bool), "the parts of a split must be disjoint"),
    ],
)
def test_a_broken_split_is_named(paths: list[Path], mask: np.ndarray, words: str) -> None:
    with np.load(paths[2]) as archive:
        arrays = {**archive, "train_mask": mask}
    write_npz(paths[2], arrays)
    with pytest.raises(DataError, match=words):
        read_geom_gcn(paths)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), which=st.integers(0, 2), indexed=st.sampled_from([None, 2]))
def test_mangled_files_give_a_graph_or_one_error(
    tmp_path: Path, data: st.DataObject, which: int, indexed: int | None
) -> None:
    paths = write_geom_gcn(tmp_path / "graph", splits=1)
    paths[which].write_bytes(data.draw(mangled(paths[which].read_bytes())))
    try:
        read_geom_gcn(paths, indexed_features=indexed)
    except DataError as error:
        assert str(paths[0].parent) in str(error)
        assert "\n" not in str(error)


def relation_lines(paths: list[Path]) -> list[str]:
    """A file that fits the graph: its edges both ways and two neighbours in space."""
    edges = read_geom_gcn(paths).edge_index.T.tolist()
    pairs = dict.fromkeys(pair for u, v in edges if u != v for pair in ((u, v), (v, u)))
    lines = [f"{u},{v}\tgraph\t{(u + v) % 2}" for u, v in pairs]
    return [*lines, "3,9\tlatent_space\t2", "9,3\tlatent_space\t0"]


@pytest.fixture
def relations(paths: list[Path]) -> Path:
    path = paths[0].parent / "relations.txt"
    path.write_text("\n".join([RELATION_HEADER, *relation_lines(paths)]) + "\n")
    return path


def test_relations_take_the_place_of_the_edges(paths: list[Path], relations: Path) -> None:
    stored = read_geom_gcn(paths)
    parts, attr, names = read_relations(relations, stored)
    found = {}
    for (u, v), row in zip(parts.edge_index.T.tolist(), attr.tolist(), strict=True):
        assert sum(row) == 1
        found[u, v] = names[row.index(1)]
    wanted = {}
    for line in relation_lines(paths):
        pair, space, kind = line.split("\t")
        u, v = map(int, pair.split(","))
        wanted[u, v] = f"{space} {kind}"
    assert found == wanted
    assert not (parts.edge_index[0] == parts.edge_index[1]).any()
    assert torch.equal(parts.x, stored.x)


def test_the_last_line_of_a_pair_holds_and_loops_are_left_out(
    paths: list[Path], relations: Path
) -> None:
    """Divisions are numbered as they are first met, also those that no edge is left in."""
    first = "3,9\tgraph\t3"
    lines = [RELATION_HEADER, first, *relation_lines(paths), "5,5\tgraph\t1"]
    relations.write_text("\n".join(lines) + "\n")
    parts, attr, names = read_relations(relations, read_geom_gcn(paths))
    assert names[0] == "graph 3"
    assert attr[:, 0].sum() == 0
    pairs = [tuple(pair) for pair in parts.edge_index.T.tolist()]
    assert attr[pairs.index((3, 9))].tolist().index(1) == names.index("latent_space 2")
    assert (5, 5) not in pairs
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("3,9 graph 0", "line 2 must have 3 columns"),
        ("3\tgraph\t0", "line 2 must join two nodes, 0 to 11; found '3'"),
        ("3,12\tgraph\t0", "line 2 must join two nodes, 0 to 11; found '3,12'"),
        ("3,x\tgraph\t0", "line 2: the nodes must be integers"),
        ("3,9\tmoon\t0", "line 2 must name a space, graph or latent_space; found 'moon'"),
        ("3,9\tgraph\t4", "line 2 must name a relation, 0 to 3; found 4"),
        ("3,9\tgraph\tnear", "line 2: the relation must be integers"),
        ("3,9\tgraph\t0", "must list every edge of the graph .*; found none from 1 to 2"),
    ],
)
def test_a_broken_file_of_relations_is_named(
    paths: list[Path], relations: Path, line: str, words: str
) -> None:
    relations.write_text(f"{RELATION_HEADER}\n{line}\n")
    with pytest.raises(DataError, match=words) as error:
        read_relations(relations, read_geom_gcn(paths))
    assert str(error.value).startswith(str(relations))


def test_relations_need_their_header_and_lines(paths: list[Path], relations: Path) -> None:
    relations.write_text("node1,node2\n3,9\tgraph\t0\n")
    with pytest.raises(DataError, match="line 1 must"):
        read_relations(relations, read_geom_gcn(paths))
    relations.write_text(f"{RELATION_HEADER}\n")
    with pytest.raises(DataError, match="must have a line for each relation"):
        read_relations(relations, read_geom_gcn(paths))


@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_mangled_relations_give_edges_or_one_error(
    tmp_path: Path, relations: Path, paths: list[Path], data: st.DataObject
) -> None:
    parts, text = read_geom_gcn(paths), "\n".join([RELATION_HEADER, *relation_lines(paths)])
    relations.write_bytes(data.draw(mangled(text.encode())))
    try:
        read_relations(relations, parts)
    except DataError as error:
        assert str(error).startswith(str(relations))
        assert "\n" not in str(error)
