"""What commands import before they begin: PyTorch and PyG, and little beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli.program import SMALL, subprogram, write_tables
from train.small import node_dataset

from coopsheaf.train.recipes import default_recipe
from coopsheaf.train.run import run_split

# Engines, metrics, searches and drawings that only some commands need.
HEAVY = (
    "lightning", "lightning_fabric", "pytorch_lightning", "torchmetrics", "optuna", "sqlalchemy",
    "matplotlib", "networkx", "scipy", "pandas", "sklearn", "rdkit", "pymetis", "onnx",
    "onnxruntime", "onnxscript", "sympy", "torch._dynamo", "torch._inductor", "torch.onnx",
)  # fmt: skip

# PyTorch and PyG may have imported some themselves: what counts is what we add.
WATCHED = f"""
import atexit, sys
import torch, torch_geometric.data, torch_geometric.nn
before = set(sys.modules)
def tell():
    added = sorted(name for name in {HEAVY!r} if name in sys.modules and name not in before)
    sys.stderr.write("added:" + ",".join(added))
atexit.register(tell)
from coopsheaf.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, and a run on them."""
    folder = tmp_path_factory.mktemp("startup")
    nodes, edges = write_tables(folder)
    words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--out", "run")
    done = subprogram(*words, "--epochs", 1, *SMALL, cwd=folder, python=("-c", WATCHED))
    assert done.code == 0, done.err
    (folder / "said.txt").write_text(done.err, encoding="utf-8")
    return folder


def test_training_adds_nothing_heavy(folder: Path) -> None:
    assert (folder / "said.txt").read_text(encoding="utf-8").endswith("added:")


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "run", "-o", "out.csv"),
        ("evaluate", "run"),
        ("explain", "run", "-o", "page.html"),
    ],
    ids=lambda words: words[0],
)
def test_using_a_run_adds_nothing_heavy(words: tuple[str, ...], folder: Path) -> None:
    done = subprogram(*words, cwd=folder, python=("-c", WATCHED))
    assert done.code == 0, done.err
    assert done.err.endswith("added:"), done.err


def test_half_precision_asks_for_fabric() -> None:
    """The check above would see it. (A CSNN multiplies in bfloat16 by itself.)"""
    made = default_recipe("gcn-plain").set("train.epochs=1").set("train.precision=bf16")
    run, _ = run_split(made, node_dataset(), device="cpu")
    assert run.info["status"] == "finished"
    assert "lightning_fabric" in sys.modules
