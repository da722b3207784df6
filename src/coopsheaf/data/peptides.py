"""Peptides-func and Peptides-struct of the Long Range Graph Benchmark (Dwivedi et al. 2022):
tables of SMILES strings with ten yes/no labels or eleven real targets, and one split."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from coopsheaf.data.compressed import open_gzip
from coopsheaf.data.errors import DataError
from coopsheaf.data.progress import show_progress
from coopsheaf.data.tensors import GraphTensors, reading, rule
from coopsheaf.data.unpickle import load_pickle
from coopsheaf.extras import MissingExtra, load_extra
from coopsheaf.nn.encoders import BOND_VOCABULARY, check_codes

LABELS = (
    "antifungal", "cell-cell communication", "anticancer", "drug delivery vehicle",
    "antimicrobial", "antiviral", "antihypertensive", "antibacterial", "antiparasitic", "toxic",
)  # fmt: skip
TARGETS = (
    "Inertia_mass_a", "Inertia_mass_b", "Inertia_mass_c",
    "Inertia_valence_a", "Inertia_valence_b", "Inertia_valence_c",
    "length_a", "length_b", "length_c", "Spherocity", "Plane_best_fit",
)  # fmt: skip

# The integer codes of the Open Graph Benchmark: a value's place in its list, and the place after
# the last for everything that is not in the list.
ATOM_CODES: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("atomic number", tuple(range(1, 119))),
    (
        "chirality",
        ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER"),
    ),
    ("degree", tuple(range(11))),
    ("formal charge", tuple(range(-5, 6))),
    ("hydrogens", tuple(range(9))),
    ("radical electrons", tuple(range(5))),
    ("hybridisation", ("SP", "SP2", "SP3", "SP3D", "SP3D2")),
    ("aromatic", (False, True)),
    ("in a ring", (False, True)),
)
BOND_CODES: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("type", ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")),
    (
        "stereo",
        ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY"),
    ),
    ("conjugated", (False, True)),
)
Coder = Callable[[Sequence[object]], list[int]]


class Molecules(NamedTuple):
    """A table of molecules, row by row."""

    smiles: list[str]
    lines: list[int]  # of the file, where each row ends
    y: Tensor  # (graphs, k)


def read_peptides_func(paths: Sequence[Path]) -> GraphTensors:
    """Read the table and the split; each graph has ``y (1, 10)`` of zeros and ones.

    Args:
        paths: ``.csv.gz`` with columns ``smiles`` and ``labels``; pickle of the split.
    """
    table, split = paths
    return _assemble(table, split, read_labels(table))


def read_peptides_struct(paths: Sequence[Path]) -> GraphTensors:
    """Read the table and the split; each graph has ``y (1, 11)`` of real numbers.

    The targets are standardised over the whole set, as the benchmark does: errors are in units of
    their (sample) standard deviation.

    Args:
        paths: ``.csv.gz`` with columns ``smiles`` and those of ``TARGETS``; pickle of the split.
    """
    table, split = paths
    return _assemble(table, split, read_targets(table))


def read_labels(path: Path) -> Molecules:
    """The SMILES strings and ``(graphs, 10)`` zeros and ones."""
    smiles, lines, rows = [], [], []
    for line, row in _rows(path, ("smiles", "labels")):
        with reading(path, f"a table; line {line}: labels must be a list of numbers"):
            labels = json.loads(row["labels"])
        is_list = isinstance(labels, list) and all(label in (0, 1) for label in labels)
        holds = is_list and len(labels) == len(LABELS)
        text = f"line {line}: labels must be {len(LABELS)} zeros and ones"
        rule(path, holds, text, repr(row["labels"][:60]))
        smiles.append(row["smiles"])
        lines.append(line)
        rows.append(labels)
    rule(path, len(rows) > 0, "must have a line for each molecule", "none")
    return Molecules(smiles, lines, torch.tensor(rows, dtype=torch.float32))


def read_targets(path: Path) -> Molecules:
    """The SMILES strings and ``(graphs, 11)`` targets of zero mean and unit deviation."""
    smiles, lines, rows = [], [], []
    for line, row in _rows(path, ("smiles", *TARGETS)):
        try:
            values = [float(row[target]) for target in TARGETS]
        except ValueError as error:
            raise DataError(f"{path}: line {line}: targets must be numbers; {error}") from error
        holds = bool(np.isfinite(values).all())
        rule(path, holds, f"line {line}: targets must be finite", values)
        smiles.append(row["smiles"])
        lines.append(line)
        rows.append(values)
    rule(path, len(rows) > 1, "must have a line for each of two or more molecules", len(rows))
    y = np.array(rows)
    with np.errstate(all="ignore"):
        deviation = y.std(axis=0, ddof=1)
        y = ((y - y.mean(axis=0)) / deviation).astype(np.float32)
    fine = np.isfinite(deviation) & np.isfinite(y).all(axis=0)
    odd = [name for name, is_fine in zip(TARGETS, fine, strict=True) if not is_fine]
    rule(path, not odd, "targets must vary and be of moderate size", f"others in {', '.join(odd)}")
    return Molecules(smiles, lines, torch.from_numpy(y))


def read_split(path: Path, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Positions of the graphs for training, validation and test, out of ``count``."""
    content = load_pickle(path)
    keys = ("train", "val", "test")
    holds = isinstance(content, dict) and all(key in content for key in keys)
    rule(path, holds, f"must hold a dictionary with {', '.join(keys)}", type(content).__name__)
    parts = []
    for key in keys:
        with reading(path, "lists of positions"):
            part = np.asarray(content[key])
        holds = part.ndim == 1 and part.dtype.kind in "iu"
        rule(path, holds, f"{key} must be a list of positions", f"{part.dtype} {part.shape}")
        inside = part.size == 0 or (int(part.min()) >= 0 and int(part.max()) < count)
        rule(path, inside, f"{key} must hold positions 0 to {count - 1}", "others")
        parts.append(part.astype(np.int64))
    every = np.concatenate(parts)
    rule(path, len(np.unique(every)) == len(every), "the parts must be disjoint", "one twice")
    train, val, test = (torch.from_numpy(part) for part in parts)
    return train, val, test


def molecule(smiles: str) -> Data | None:
    """The graph of a SMILES string, or ``None`` if it is not one. Needs rdkit.

    Returns:
        ``x (atoms, 9)`` and ``edge_attr (2 · bonds, 3)``, codes as in ``ATOM_CODES`` and
        ``BOND_CODES``, and ``edge_index (2, 2 · bonds)`` with each bond one way, then the other.
    """
    parsed = _chemistry().MolFromSmiles(smiles)
    if parsed is None:
        return None
    x = [_atom_codes(_atom_values(atom)) for atom in parsed.GetAtoms()]
    ends, attributes = [], []
    for bond in parsed.GetBonds():
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        codes = _bond_codes(_bond_values(bond))
        ends += [(i, j), (j, i)]
        attributes += [codes, codes]
    return Data(
        x=torch.tensor(x, dtype=torch.int64).reshape(-1, len(ATOM_CODES)),
        edge_index=torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        edge_attr=torch.tensor(attributes, dtype=torch.int64).reshape(-1, len(BOND_CODES)),
    )


def bond_features(codes: Tensor, kind: str) -> Tensor:
    """Codes of bonds as features of edges.

    Args:
        codes: ``(m, 3)`` integers, as in ``BOND_CODES``.
        kind: ``"codes"`` for the same numbers, ``"one-hot"`` for a column per code.

    Returns:
        ``(m, 3)`` or ``(m, 13)`` float32.
    """
    codes = check_codes("edge_attr", codes, BOND_VOCABULARY)
    if kind == "codes":
        return codes.float()
    columns = zip(codes.unbind(1), BOND_VOCABULARY, strict=True)
    return torch.cat([one_hot(column, size) for column, size in columns], dim=1).float()


def _assemble(table: Path, split: Path, found: Molecules) -> GraphTensors:
    count = len(found.smiles)
    train, val, test = read_split(split, count)
    graphs = []
    note = f"converting {count:,} molecules of {table.name} (kept for the next time)"
    with _quiet_chemistry(), show_progress("molecules", note, count) as advance:
        for text, line, y in zip(found.smiles, found.lines, found.y.split(1), strict=True):
            graph = molecule(text)
            advance(1)
            holds = graph is not None and graph.x.shape[0] > 0
            rule(table, holds, f"line {line}: smiles must be a SMILES string", repr(text[:60]))
            assert graph is not None
            graph.y = y
            graphs.append(graph)
    return GraphTensors(graphs, train, val, test)


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a compressed table with their line numbers; only ``columns`` are looked at."""
    with (
        reading(path, "a gzip-compressed table of UTF-8 text"),
        io.TextIOWrapper(open_gzip(path), encoding="utf-8", newline="") as stream,
        _long_fields(),
    ):
        reader = csv.DictReader(stream, strict=True)
        header = reader.fieldnames or []
        missing = [column for column in columns if column not in header]
        found = ", ".join(header[:20])[:200] or "nothing"
        rule(path, not missing, f"must have the column {', '.join(missing)}", found)
        for row in reader:
            line = reader.line_num
            cells = {column: row[column] for column in columns}
            whole = None not in row and None not in cells.values()
            rule(path, whole, f"line {line} must have {len(header)} columns", "more or fewer")
            yield line, cells


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """The structure table has a column of distance matrices, a megabyte each."""
    before = csv.field_size_limit(1 << 28)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _chemistry() -> Any:
    try:
        return load_extra("rdkit.Chem", "the peptides datasets need")  # it reads SMILES strings
    except MissingExtra as error:
        raise DataError(str(error)) from error


@contextlib.contextmanager
def _quiet_chemistry() -> Iterator[None]:
    """Keep rdkit from writing about molecules that it cannot read."""
    _chemistry()
    from rdkit import rdBase

    with rdBase.BlockLogs():
        yield


def _coder(lists: tuple[tuple[str, tuple[object, ...]], ...]) -> Coder:
    tables: list[Mapping[object, int]] = [
        {value: code for code, value in enumerate(values)} for _, values in lists
    ]

    def codes(values: Sequence[object]) -> list[int]:
        return [table.get(v, len(table)) for table, v in zip(tables, values, strict=True)]

    return codes


_atom_codes = _coder(ATOM_CODES)
_bond_codes = _coder(BOND_CODES)


def _atom_values(atom: Any) -> list[object]:
    return [
        atom.GetAtomicNum(),
        str(atom.GetChiralTag()),
        atom.GetTotalDegree(),
        atom.GetFormalCharge(),
        atom.GetTotalNumHs(),
        atom.GetNumRadicalElectrons(),
        str(atom.GetHybridization()),
        atom.GetIsAromatic(),
        atom.IsInRing(),
    ]


def _bond_values(bond: Any) -> list[object]:
    return [str(bond.GetBondType()), str(bond.GetStereo()), bond.GetIsConjugated()]
