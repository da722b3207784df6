"""Readers of tables of molecules."""

from __future__ import annotations

import csv
import gzip
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import (
    REAL_DATA,
    SMILES,
    mangled,
    needs_real_data,
    peptides_func_text,
    peptides_struct_text,
    write_peptides_split,
    write_text_gz,
)

from coopsheaf.data import peptides
from coopsheaf.data.errors import DataError
from coopsheaf.data.peptides import (
    ATOM_CODES,
    BOND_CODES,
    TARGETS,
    molecule,
    read_labels,
    read_peptides_func,
    read_peptides_struct,
    read_split,
    read_targets,
)


def rdkit() -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")


def test_a_table_of_labels(tmp_path: Path) -> None:
    rdkit()
    table = write_text_gz(tmp_path / "func.csv.gz", peptides_func_text())
    parts = read_peptides_func([table, write_peptides_split(tmp_path / "split.pickle")])
    assert len(parts.graphs) == len(SMILES)
    assert sorted(torch.cat([parts.train, parts.val, parts.test]).tolist()) == list(
        range(len(SMILES))
    )
    for number, graph in enumerate(parts.graphs):
        assert graph.y.tolist() == [[(number + k) % 2 for k in range(10)]]
        assert graph.x.shape[1] == 9
        assert graph.edge_attr.shape == (graph.edge_index.shape[1], 3)
        assert graph.is_undirected()


def test_a_table_of_targets_is_standardised_over_all_graphs(tmp_path: Path) -> None:
    rdkit()
    before = csv.field_size_limit()
    table = write_text_gz(tmp_path / "struct.csv.gz", peptides_struct_text(TARGETS))
    parts = read_peptides_struct([table, write_peptides_split(tmp_path / "split.pickle")])
    y = torch.cat([graph.y for graph in parts.graphs])
    assert y.shape == (len(SMILES), 11)
    assert torch.allclose(y.mean(0), torch.zeros(11), atol=1e-6)
    assert torch.allclose(y.std(0), torch.ones(11))
    assert csv.field_size_limit() == before


def test_the_codes_of_a_molecule() -> None:
    rdkit()
    graph = molecule("C[C@H](N)C(=O)[O-]")
    assert graph is not None
    # number, chirality, degree with hydrogens, charge, hydrogens, radicals, hybrid, aromatic, ring
    assert graph.x.tolist() == [
        [5, 0, 4, 5, 3, 0, 2, 0, 0],
        [5, 2, 4, 5, 1, 0, 2, 0, 0],
        [6, 0, 3, 5, 2, 0, 2, 0, 0],
        [5, 0, 3, 5, 0, 0, 1, 0, 0],
        [7, 0, 1, 5, 0, 0, 1, 0, 0],
        [7, 0, 1, 4, 0, 0, 1, 0, 0],
    ]
    assert graph.edge_index.tolist() == [
        [0, 1, 1, 2, 1, 3, 3, 4, 3, 5],
        [1, 0, 2, 1, 3, 1, 4, 3, 5, 3],
    ]
    # type, stereo, conjugated
    assert graph.edge_attr[::2].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1]]
    assert torch.equal(graph.edge_attr[::2], graph.edge_attr[1::2])


def test_rings_double_bonds_and_single_atoms() -> None:
    rdkit()
    ring, trans, atom = (molecule(text) for text in ("c1ccccc1", "F/C=C/F", "[Na+]"))
    assert ring is not None
    assert trans is not None
    assert atom is not None
    assert (ring.x[:, 7:] == 1).all()
    assert (ring.edge_attr == torch.tensor([3, 0, 1])).all()
    assert trans.edge_attr[:, 1].tolist() == [0, 0, 2, 2, 0, 0]
    assert atom.edge_index.shape == (2, 0)
    assert atom.edge_attr.shape == (0, 3)
    assert molecule("not a molecule") is None


def test_a_value_outside_of_a_list_has_the_last_code() -> None:
    assert [len(values) + 1 for _, values in ATOM_CODES] == [119, 5, 12, 12, 10, 6, 6, 3, 3]
    assert peptides._atom_codes([0, "CHI_ALLENE", 11, 6, 9, 5, "S", True, False]) == [
        118,
        4,
        11,
        11,
        9,
        5,
        5,
        1,
        0,
    ]
    assert peptides._bond_codes(["DATIVE", "STEREOE", False]) == [4, 2, 0]
    assert len(BOND_CODES) == 3


@needs_real_data
def test_the_real_table_has_the_published_counts() -> None:
    smiles, _, y = read_labels(REAL_DATA / "lrgb/peptide_multi_class_dataset.csv.gz")
    assert len(smiles) == 15_535
    assert y.shape == (15_535, 10)
    assert y.sum(0).tolist() == [1378, 545, 995, 969, 9745, 3077, 1662, 2866, 299, 4044]
    split = read_split(REAL_DATA / "lrgb/splits_random_stratified_peptide.pickle", len(smiles))
    assert [len(part) for part in split] == [10_873, 2_331, 2_331]
    assert torch.equal(torch.cat(split).sort().values, torch.arange(15_535))


@needs_real_data
def test_the_first_real_molecules_are_read() -> None:
    rdkit()
    smiles, *_ = read_labels(REAL_DATA / "lrgb/peptide_multi_class_dataset.csv.gz")
    limits = torch.tensor([119, 5, 12, 12, 10, 6, 6, 2, 2]), torch.tensor([5, 6, 2])
    nodes = edges = 0
    for text in smiles[:50]:
        graph = molecule(text)
        assert graph is not None
        assert graph.is_undirected()
        assert not graph.has_self_loops()
        assert (graph.x < limits[0]).all()
        assert (graph.edge_attr < limits[1]).all()
        # In these, each letter is an atom, except for hydrogens.
        assert graph.num_nodes == sum(letter in "CNOScnos" for letter in text)
        nodes, edges = nodes + graph.num_nodes, edges + graph.num_edges
    assert 100 < nodes / 50 < 200
    assert 2.0 < edges / nodes < 2.1


def test_without_rdkit_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rdkit", "rdkit.Chem"):
        monkeypatch.setitem(sys.modules, name, None)
    table = write_text_gz(tmp_path / "func.csv.gz", peptides_func_text())
    with pytest.raises(DataError, match=r"coopsheaf\[molecules\]"):
        read_peptides_func([table, write_peptides_split(tmp_path / "split.pickle")])


FUNC = peptides_func_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must have the column smiles, labels; found nothing"),
        (
            FUNC.replace("labels", "y"),
            "must have the column labels; found , smiles, peptide_seq, y",
        ),
        (FUNC.replace(",smiles", ";smiles"), "must have the column smiles"),
        (FUNC.splitlines()[0] + "\n", "must have a line for each molecule; found none"),
        (FUNC + "7,C\n", "line 8 must have 5 columns"),
        (FUNC + "7,C,A,[],1,2\n", "line 8 must have 5 columns"),
        (
            FUNC + '7,C,A,"[1, 0]",1\n',
            r"line 8: labels must be 10 zeros and ones; found '\[1, 0\]'",
        ),
        (FUNC.replace("[1, 0", "[2, 0", 1), "line 3: labels must be 10 zeros and ones"),
        (FUNC.replace("[1, 0", "[1; 0", 1), "line 3: labels must be a list of numbers"),
        (FUNC + '7,C,A,"' + "[" * 100_000 + '",1\n', "labels must be a list of numbers"),
        (FUNC + "7,C,A,\"__import__('os')\",1\n", "labels must be a list of numbers"),
        (FUNC + '7,"C,A', "must be a gzip-compressed table"),
    ],
)
def test_a_broken_table_of_labels_is_named_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    path = write_text_gz(tmp_path / "func.csv.gz", text)
    with pytest.raises(DataError, match=words) as error:
        read_labels(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_table_must_be_compressed_whole_and_utf_8(tmp_path: Path) -> None:
    path = write_text_gz(tmp_path / "func.csv.gz", FUNC)
    valid = path.read_bytes()
    for data in (valid[:-10], valid[: len(valid) // 2], b"", FUNC.encode(), b"\x1f\x8b\x08"):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"func\.csv\.gz: must "):
            read_labels(path)
    path.write_bytes(gzip.compress(FUNC.encode() + b"\xff\xfe,"))
    with pytest.raises(DataError, match="table of UTF-8 text"):
        read_labels(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("smiles,length_a\nC,1\n", "must have the column Inertia_mass_a, Inertia_mass_b"),
        (
            ",".join(["smiles", *TARGETS]) + "\nC" + ",1" * 11 + "\n",
            "two or more molecules; found 1",
        ),
        (",".join(["smiles", *TARGETS]) + ("\nC" + ",1" * 11) * 2 + "\n", "targets must vary"),
        (
            ",".join(["smiles", *TARGETS]) + "\nC" + ",a" * 11 + "\n",
            "line 2: targets must be numbers",
        ),
        (
            ",".join(["smiles", *TARGETS]) + "\nC" + ",nan" * 11 + "\n",
            "line 2: targets must be finite",
        ),
        (
            ",".join(["smiles", *TARGETS]) + "\nC" + ",1e308" * 11 + "\nC" + ",-1e308" * 11,
            "moderate size",
        ),
    ],
)
def test_a_broken_table_of_targets_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = write_text_gz(tmp_path / "struct.csv.gz", text)
    with pytest.raises(DataError, match=words):
        read_targets(path)


def test_a_text_that_is_no_molecule_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rdkit()
    table = write_text_gz(tmp_path / "func.csv.gz", FUNC.replace("c1ccccc1O", "c1ccccc"))
    with pytest.raises(DataError, match="line 3: smiles must be a SMILES string; found 'c1ccccc'"):
        read_peptides_func([table, write_peptides_split(tmp_path / "split.pickle")])
    said = capfd.readouterr().err  # nothing of rdkit
    assert said == "converting 6 molecules of func.csv.gz (kept for the next time)\n"


@pytest.mark.parametrize(
    "text",
    [
        FUNC.replace("c1ccccc1O", "", 1),  # no atoms
        FUNC.replace("\n", "\n\n", 1).replace("c1ccccc1O", "c1", 1),  # an empty line
        FUNC.replace("AAA", '"A\nA"', 1).replace("c1ccccc1O", "c1", 1),  # a row of two
    ],
)
def test_molecules_and_labels_are_on_the_same_line(tmp_path: Path, text: str) -> None:
    """What an editor shows: of the file, counted from 1, where the row ends."""
    rdkit()
    split = write_peptides_split(tmp_path / "split.pickle")
    named = []
    for content in (text, text.replace("[1, 0", "[7, 0", 1)):  # the labels of the same row
        table = write_text_gz(tmp_path / "func.csv.gz", content)
        with pytest.raises(DataError, match=r"line \d+: ") as error:
            read_peptides_func([table, split])
        named.append(str(error.value).removeprefix(f"{table}: ").partition(":")[0])
    row = next(k for k, line in enumerate(text.splitlines(), 1) if "[1, 0" in line)
    assert named == [f"line {row}"] * 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1, 2], "must hold a dictionary with train, val, test; found list"),
        ({"train": [0], "val": [1]}, "must hold a dictionary with train, val, test"),
        ({"train": [0], "val": [1], "test": [6]}, "test must hold positions 0 to 5"),
        ({"train": [0], "val": [1], "test": [-1]}, "test must hold positions 0 to 5"),
        ({"train": [0], "val": [1], "test": [1]}, "the parts must be disjoint"),
        (
            {"train": [0.5], "val": [1], "test": [2]},
            "train must be a list of positions; found float64",
        ),
        (
            {"train": np.zeros((2, 2), dtype=int), "val": [1], "test": [2]},
            "train must be a list of positions",
        ),
        ({"train": [[1], [1, 2]], "val": [1], "test": [2]}, "must be lists of positions"),
    ],
)
def test_a_broken_split_is_named(tmp_path: Path, content: object, words: str) -> None:
    path = tmp_path / "split.pickle"
    path.write_bytes(pickle.dumps(content, protocol=4))
    with pytest.raises(DataError, match=words):
        read_split(path, 6)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), inside=st.booleans())
def test_mangled_tables_give_labels_or_one_error(
    tmp_path: Path, data: st.DataObject, inside: bool
) -> None:
    text = FUNC.encode()
    content = (
        gzip.compress(data.draw(mangled(text)))
        if inside
        else data.draw(mangled(gzip.compress(text)))
    )
    path = tmp_path / "func.csv.gz"
    path.write_bytes(content)
    try:
        read_labels(path)
    except DataError as error:
        assert "func.csv.gz" in str(error)
        assert "\n" not in str(error)
