"""Peptides with places of nodes and features of bonds, as they are loaded and kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from data.test_registry import forget_checksums
from published import (
    SMILES,
    peptides_func_text,
    peptides_struct_text,
    write_peptides_split,
    write_text_gz,
)

from coopsheaf.data import load_dataset
from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.encodings import laplacian_eigenpairs, random_walks
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import cache_dir
from coopsheaf.data.graph_store import remember_encodings
from coopsheaf.data.peptides import TARGETS, bond_features
from coopsheaf.data.processing import Processing
from coopsheaf.data.registry import DATASETS
from coopsheaf.data.synthetic import minesweeper

pytest.importorskip("rdkit", reason="rdkit is not installed")
NAMES = ("peptides-func", "peptides-struct")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset whose files are in ``tmp_path``."""
    found: str = request.param
    text = peptides_func_text() if found == "peptides-func" else peptides_struct_text(TARGETS)
    (tmp_path / "lrgb").mkdir()
    write_text_gz(tmp_path / DATASETS[found].files[0].path, text)
    write_peptides_split(tmp_path / DATASETS[found].files[1].path)
    forget_checksums(monkeypatch, found)
    return found


def load(name: str, folder: Path, **processing: str) -> GraphDataset:
    dataset = load_dataset(name, folder, **processing)  # type: ignore[arg-type]
    assert isinstance(dataset, GraphDataset)
    return dataset


def test_places_are_those_of_each_graph_and_computed_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, encode in {"rwse": random_walks, "lappe": laplacian_eigenpairs}.items():
        dataset = load(name, tmp_path, pe=kind)
        assert (dataset.pe_channels, dataset.edge_channels) == (20, 0)
        assert dataset.processing.pe == kind
        for graph in dataset.graphs:
            want = encode(graph.edge_index, graph.num_nodes)
            assert torch.equal(graph.pe.isnan(), want.isnan())
            assert torch.equal(graph.pe.nan_to_num(), want.nan_to_num())
    monkeypatch.setattr("coopsheaf.data.registry.encode_graphs", None)
    again = load(name, tmp_path, pe="lappe")
    assert torch.equal(again.graphs[0].pe.nan_to_num(), dataset.graphs[0].pe.nan_to_num())
    assert load(name, tmp_path).pe_channels == 0


def test_bonds_are_codes_or_columns(name: str, tmp_path: Path) -> None:
    plain, codes = load(name, tmp_path), load(name, tmp_path, bonds="codes")
    columns = load(name, tmp_path, bonds="one-hot", pe="rwse")
    assert (plain.edge_channels, codes.edge_channels, columns.edge_channels) == (0, 3, 13)
    for one, two, three in zip(plain.graphs, codes.graphs, columns.graphs, strict=True):
        assert torch.equal(one.edge_attr, two.edge_attr.long())
        assert three.edge_attr.sum(1).tolist() == [3.0] * three.num_edges
        parts = three.edge_attr.split([5, 6, 2], dim=1)
        assert torch.equal(torch.stack([part.argmax(1) for part in parts], 1), one.edge_attr)


def test_molecules_without_bonds_and_with_few_atoms_are_whole(name: str, tmp_path: Path) -> None:
    number = SMILES.index("C")
    graph = load(name, tmp_path, pe="lappe", bonds="one-hot").graphs[number]
    assert (graph.num_nodes, graph.num_edges) == (1, 0)
    assert graph.edge_attr.shape == (0, 13)
    assert graph.pe[0, [0, 10]].abs().tolist() == [1.0, 0.0]
    assert bool(graph.pe[0, [*range(1, 10), *range(11, 20)]].isnan().all())
    assert load(name, tmp_path, pe="rwse").graphs[number].pe.tolist() == [[0.0] * 20]


def test_other_processing_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`pe` must be one of 'rwse', 'lappe'; got 'laplace'"):
        load(name, tmp_path, pe="laplace")
    with pytest.raises(ValueError, match="`bonds` must be one of 'codes', 'one-hot'"):
        load(name, tmp_path, bonds="all")
    with pytest.raises(ValueError, match="`processing` of 'peptides-"):
        load(name, tmp_path, pe="rwse", direction="undirected")


@pytest.mark.parametrize("setting", [{"pe": "rwse"}, {"bonds": "codes"}])
def test_one_graph_has_neither(setting: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"`(pe|bonds)` must be left out for one graph"):
        minesweeper(height=4, width=4).process(Processing(**setting))  # type: ignore[arg-type]


def test_a_text_that_is_no_molecule_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    path = tmp_path / DATASETS[name].files[0].path
    text = peptides_func_text() if name == "peptides-func" else peptides_struct_text(TARGETS)
    write_text_gz(path, text.replace("NCC(=O)[O-]", "NCC(=O"))
    with pytest.raises(DataError, match=r"line 5: smiles must be a SMILES .* found 'NCC\(=O'"):
        load(name, tmp_path, pe="rwse")
    assert not list(cache_dir().glob("converted/*"))


def test_a_code_of_a_bond_that_nobody_knows_is_named() -> None:
    codes = torch.tensor([[0, 0, 0], [0, 6, 0]])
    with pytest.raises(ValueError, match="0 to 5 in column 1; got 6 in row 1"):
        bond_features(codes, "one-hot")


def test_damaged_or_foreign_encodings_are_made_again() -> None:
    pe = torch.randn(5, 4)

    def refuse() -> torch.Tensor:
        raise AssertionError("what is kept is not computed again")

    assert torch.equal(remember_encodings("key", [2, 3], lambda: pe), pe)
    assert torch.equal(remember_encodings("key", [2, 3], refuse), pe)
    with pytest.raises(AssertionError):
        remember_encodings("key", [2, 4], refuse)  # of other graphs
    file = cache_dir() / "converted" / "key" / "pe.npy"
    file.write_bytes(file.read_bytes()[:-1])
    assert torch.equal(remember_encodings("key", [2, 3], lambda: pe), pe)
    assert torch.equal(remember_encodings("key", [2, 3], refuse), pe)
