"""Published files for tests: the real ones where they are, and small ones of the same formats."""

from __future__ import annotations

import gzip
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import strategies as st

# Read before any test changes the environment. Nobody looks for files anywhere else: what a test
# finds must not depend on what happens to lie beside the checkout.
_GIVEN = os.environ.get("COOPSHEAF_DATA")
REAL_DATA = Path(_GIVEN or "COOPSHEAF_DATA is not set")
if _GIVEN and not REAL_DATA.is_dir():
    raise ValueError(f"$COOPSHEAF_DATA must be an existing folder; got {_GIVEN!r}")

needs_real_data = pytest.mark.skipif(
    not _GIVEN,
    reason="needs published files: set COOPSHEAF_DATA to a folder that has them",
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def split_masks(n: int, splits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(splits, n)`` masks of half, a quarter and a quarter of the nodes."""
    part = np.stack([rng(seed).permutation(n) * 4 // n for seed in range(splits)])
    return part < 2, part == 2, part == 3


def platonov_arrays(n: int = 20, features: int = 6, classes: int = 3) -> dict[str, np.ndarray]:
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    train, val, test = split_masks(n, 10)
    return {
        "node_features": rng(1).normal(size=(n, features)).astype(np.float32),
        "node_labels": np.arange(n) % classes,
        "edges": pairs[rng(2).permutation(len(pairs))[: 3 * n]],
        "train_masks": train,
        "val_masks": val,
        "test_masks": test,
    }


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def write_geom_gcn(folder: Path, n: int = 12, features: int = 5, splits: int = 2) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    values = rng(3).integers(0, 2, (n, features))
    nodes = ["node_id\tfeature\tlabel"]
    nodes += [f"{i}\t{','.join(map(str, values[i]))}\t{i % 3}" for i in rng(4).permutation(n)]
    edges = ["node_id\tnode_id", "0\t0", "1\t2", "1\t2", "2\t1"]
    edges += [f"{i}\t{(i * 5 + 1) % n}" for i in range(n)]
    paths = [folder / "edges.txt", folder / "nodes.txt"]
    paths[0].write_text("\n".join(edges) + "\n")
    paths[1].write_text("\n".join(nodes) + "\n")
    masks = split_masks(n, splits)
    for number in range(splits):
        names = ("train_mask", "val_mask", "test_mask")
        arrays = {
            name: mask[number].astype(np.uint8) for name, mask in zip(names, masks, strict=True)
        }
        paths.append(write_npz(folder / f"split_{number}.npz", arrays))
    return paths


def fb100_profile(n: int = 30) -> np.ndarray:
    """``(n, 7)`` codes; the second column is the gender, 0 where it is not told."""
    columns = [rng(5 + k).integers(0, 4, n) * 10 for k in range(7)]
    columns[1] = np.arange(n) % 3
    return np.stack(columns, axis=1).astype(np.uint16)


def write_fb100(path: Path, n: int = 30, *, compress: bool = True, **changes: object) -> Path:
    upper = np.triu(rng(6).random((n, n)) < 0.2, 1)
    adjacency = scipy.sparse.csc_matrix((upper | upper.T).astype(float))
    content = {"A": adjacency, "local_info": fb100_profile(n), **changes}
    kept = {name: value for name, value in content.items() if value is not None}
    scipy.io.savemat(path, kept, do_compression=compress)
    return path


def write_object_array(path: Path, entries: list[object]) -> Path:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    np.save(path, array, allow_pickle=True)
    return path


def write_fb100_splits(path: Path, n: int = 30, splits: int = 5) -> Path:
    labelled = np.flatnonzero(fb100_profile(n)[:, 1] > 0)
    entries: list[object] = []
    for seed in range(splits):
        order = labelled[rng(seed).permutation(len(labelled))].tolist()
        half, quarter = len(order) // 2, len(order) // 4
        entries.append(
            {
                "train": order[:half],
                "valid": order[half : half + quarter],
                "test": order[half + quarter :],
            }
        )
    return write_object_array(path, entries)


SMILES = ("CC(=O)N[C@@H](C)C(=O)O", "c1ccccc1O", "C", "NCC(=O)[O-]", "F/C=C/F", "OP(O)(O)=O")


def write_text_gz(path: Path, text: str) -> Path:
    with gzip.open(path, "wb") as stream:
        stream.write(text.encode())
    return path


def peptides_func_text() -> str:
    lines = [",smiles,peptide_seq,labels,identifier"]
    for number, smiles in enumerate(SMILES):
        labels = [(number + k) % 2 for k in range(10)]
        lines.append(f'{number},{smiles},AAA,"{labels}",{number}')
    return "\n".join(lines) + "\n"


def peptides_struct_text(targets: tuple[str, ...]) -> str:
    values = rng(7).normal(5.0, 3.0, (len(SMILES), len(targets)))
    lines = [",".join(["", "smiles", "self_dist_matrix", *targets])]
    matrix = '"' + "[0.0, 1.5]," * 30_000 + '"'  # longer than the csv module allows by itself
    for number, smiles in enumerate(SMILES):
        lines.append(
            ",".join([str(number), smiles, matrix, *(repr(float(v)) for v in values[number])])
        )
    return "\n".join(lines) + "\n"


def write_peptides_split(path: Path, count: int = len(SMILES)) -> Path:
    order = rng(8).permutation(count)
    parts = {"train": order[: count - 2], "val": order[-2:-1], "test": order[-1:]}
    path.write_bytes(pickle.dumps(parts, protocol=4))
    return path


@st.composite
def mangled(draw: st.DrawFn, data: bytes) -> bytes:
    """Valid bytes after some accidents: cut, overwritten, repeated or with bytes in between."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["cut", "set", "insert", "repeat", "drop"]))
        some = draw(st.binary(min_size=1, max_size=8))
        if kind == "cut":
            data = data[:at]
        elif kind == "set":
            data = data[:at] + some + data[at + len(some) :]
        elif kind == "insert":
            data = data[:at] + some + data[at:]
        elif kind == "repeat":
            data = data[: at + 20] + data[at:]
        else:
            data = data[:at] + data[at + len(some) :]
    return data


def saved(write: Callable[[Path], object], folder: Path, name: str) -> bytes:
    """The bytes of a valid file."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / name)
    return (folder / name).read_bytes()


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()
