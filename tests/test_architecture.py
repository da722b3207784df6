"""Imports point one way: from the models down to the tensors, never back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import coopsheaf

ROOT = Path(coopsheaf.__file__).parent

# The house from the ground up: a room may import from itself and from the rooms before it.
FLOORS = [
    "checks",
    "config",
    "files",
    "memory",
    "tensor_checks",
    "graph",
    "kernels",
    "sheaf",
    "operator",
    "laplacian",
    "spectral",
    "orthogonal",
    "diffusion",
    "nn",
    "models",
    "compat",
    "data",
    "scale",
    "train",
    "bench",
    "analysis",
    "estimator",
    "cli",
]
MODULES = sorted(ROOT.rglob("*.py"))


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else name


def imported(tree: ast.AST) -> set[str]:
    """The names of our own modules that a file imports, whichever way it spells it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute"
            found.add(node.module)
            if node.module == "coopsheaf":
                found |= {f"coopsheaf.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("coopsheaf.") and "__" not in name}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_up_the_list(path: Path) -> None:
    relative = path.relative_to(ROOT)
    if relative in (Path("__init__.py"), Path("__main__.py")):
        return  # they stand above all rooms
    own = relative.parts[0].removesuffix(".py")
    assert own in FLOORS, f"add {own!r} to the list of rooms"
    for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
        assert FLOORS.index(room(name)) <= FLOORS.index(own), f"{relative} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 420


def test_every_room_is_in_the_list() -> None:
    rooms = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    assert rooms - {"__init__", "__main__"} == set(FLOORS)
