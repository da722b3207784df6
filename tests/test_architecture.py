"""Imports point one way: from what people use down to the tensors, never back."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import coopsheaf

ROOT = Path(coopsheaf.__file__).parent
LAB = Path(__file__).parents[1] / "lab"

# The house from the ground up: a room may import from itself and from the rooms before it.
FLOORS = [
    "checks",
    "config",
    "deprecation",
    "extras",
    "files",
    "lazy",
    "memory",
    "notebook",
    "schema",
    "tensor_checks",
    "threads",
    "sheaves.edges",
    "sheaves.places",
    "sheaves.graph",
    "sheaves.many_graphs",
    "sheaves.edge_list",
    "sheaves.maps",
    "sheaves.kernels",
    "sheaves.draws",
    "sheaves.base",
    "sheaves.sheaf",
    "sheaves.operator",
    "sheaves.laplacian",
    "sheaves.coboundaries",
    "sheaves.constructions",
    "sheaves.frames",
    "sheaves.connections",
    "sheaves.from_networkx",
    "sheaves.adjacency",
    "sheaves.nonlinear",
    "sheaves.polynomials",
    "sheaves.waves",
    "sheaves.eigenpairs",
    "sheaves.spectral",
    "sheaves.orthogonal",
    "sheaves.diffusion",
    "sheaves",
    "nn",
    "models",
    "zoo",
    "compat",
    "data",
    "train",
    "scale",
    "predictions",
    "report",
    "sweep",
    "compare",
    "analysis",
    "figures",
    "pages",
    "estimators",
    "export",
    "cli",
]

# The registry reaches the zoo by name, lazily. What reads the maps and actions of trained networks
# has to know those that have any; nobody else imports a network of the zoo.
READERS_OF_THE_ZOO = {"zoo", "analysis"}

MODULES = sorted(ROOT.rglob("*.py"))
BESIDE = sorted(LAB.rglob("*.py"))


def room(name: str) -> str:
    """The innermost room of the list that a module is in, without the package's name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in FLOORS:
            return ".".join(parts[:length])
    raise AssertionError(f"add {name!r} to the list of rooms")


def own_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported(tree: ast.AST) -> set[str]:
    """The names of modules that a file imports, whichever way it spells it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if is_module(inner) else node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_up_the_list(path: Path) -> None:
    name = own_name(path)
    if name in ("", "__init__", "__main__"):
        return  # they stand above all rooms
    own = room(name)
    for other in imported(ast.parse(path.read_text(encoding="utf-8"))):
        assert other.partition(".")[0] != "lab", f"{name} imports the laboratory"
        if not other.startswith("coopsheaf.") or "__" in other:
            continue
        there = room(other.removeprefix("coopsheaf."))
        assert FLOORS.index(there) <= FLOORS.index(own), f"{name} imports {other}"
        if there == "zoo":
            assert own in READERS_OF_THE_ZOO, f"{name} imports {other}"


@pytest.mark.parametrize("room", ["reading", "columns", "targets"])
def test_tables_are_read_before_they_mean_anything(room: str) -> None:
    """Inside of ``data/tables``: cells, then features, then targets, then whole graphs."""
    order = ["reading", "columns", "targets"]
    allowed = tuple(f"coopsheaf.data.tables.{name}" for name in order[: order.index(room) + 1])
    for path in (ROOT / "data" / "tables" / room).glob("*.py"):
        for other in imported(ast.parse(path.read_text(encoding="utf-8"))):
            if other.startswith("coopsheaf.data.tables"):
                assert other.startswith(allowed), f"{path.name} imports {other}"


@pytest.mark.parametrize("path", [*MODULES, *BESIDE], ids=lambda path: "/".join(path.parts[-3:]))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 420


def test_every_room_is_in_the_list() -> None:
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    listed = {floor.partition(".")[0] for floor in FLOORS}
    assert rooms - {"__init__", "__main__"} == listed


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after some code."""
    code = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_csnn_brings_nothing_of_the_zoo() -> None:
    modules = loaded_by("from coopsheaf import CSNN; CSNN(4, 8, 2, 3)")
    assert "coopsheaf.models.csnn" in modules
    assert not {name for name in modules if name.startswith("coopsheaf.zoo")}


def test_the_mathematics_knows_nothing_of_learning() -> None:
    modules = loaded_by("from coopsheaf import FlatSheaf, in_laplacian, spectrum")
    above = ("nn", "models", "zoo", "data", "train", "scale")
    assert not {name for name in modules if name.startswith(tuple(f"coopsheaf.{a}" for a in above))}


def test_a_run_on_a_whole_graph_needs_neither_samplers_nor_csnn() -> None:
    code = """
import torch
from torch_geometric.data import Data
from coopsheaf.data import from_data
from coopsheaf.train import default_recipe, run_split
x, edges = torch.randn(12, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
data = from_data(Data(x=x, edge_index=edges, y=torch.arange(12) % 2))
run_split(default_recipe("gcn-plain").set("train.epochs=1"), data)
"""
    modules = loaded_by(code)
    assert "coopsheaf.zoo.plain.network" in modules
    unwanted = ("coopsheaf.scale", "coopsheaf.models.csnn", "coopsheaf.nn.csnn_conv", "pymetis")
    assert not {name for name in modules if name.startswith(unwanted)}
