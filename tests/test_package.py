"""The package from outside: its public names, and the wheel away from the checkout."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import coopsheaf
from coopsheaf.train.recipes import tomllib

ROOT = Path(__file__).parent.parent


def run(code: str, *, cwd: Path, path: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(path or "")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_is_there() -> None:
    for name in coopsheaf.__all__:
        assert getattr(coopsheaf, name) is not None
    assert set(coopsheaf.__all__) <= set(dir(coopsheaf))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        coopsheaf.nonsense  # noqa: B018


def test_importing_the_package_is_light_and_silent(tmp_path: Path) -> None:
    out = run("import sys, coopsheaf; print('torch' in sys.modules)", cwd=tmp_path)
    assert out == "False\n"


def test_submodules_are_reached_from_the_package(tmp_path: Path) -> None:
    code = "import coopsheaf; coopsheaf.compat.from_released; coopsheaf.nn.MLPLearner"
    run(code, cwd=tmp_path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend itself: no network, no build environment."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"import hatchling.build as b; print(b.build_wheel({str(folder)!r}))"
    return folder / run(code, cwd=ROOT).strip().splitlines()[-1]


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"coopsheaf", f"coopsheaf-{coopsheaf.__version__}.dist-info"}
    assert "coopsheaf/py.typed" in names
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert sources <= set(names)
    licences = f"coopsheaf-{coopsheaf.__version__}.dist-info/licenses/LICENSE"
    assert licences in names


def test_recipes_grids_and_pages_are_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = ROOT / "src" / "coopsheaf"
    others = {
        path for path in package.rglob("*") if path.suffix in (".toml", ".js", ".css", ".html")
    }
    homes = {path.parent.name for path in others if path.suffix == ".toml"}
    assert homes == {"recipes", "grids"}
    assert {".toml", ".js", ".css"} <= {path.suffix for path in others}
    assert {str(path.relative_to(ROOT / "src")) for path in others} <= names
    assert "coopsheaf/models/recipes/csnn.toml" in names
    assert not [name for name in names if name.startswith("lab/") or "__pycache__" in name]


def test_the_source_holds_what_the_tests_and_readers_need(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("sdist")
    code = f"import hatchling.build as b; print(b.build_sdist({str(folder)!r}))"
    archive = folder / run(code, cwd=ROOT).strip().splitlines()[-1]
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    for name in ("pyproject.toml", "src/coopsheaf/py.typed", "docs/architecture.md", "LICENSE"):
        assert name in names
    assert {name.split("/")[0] for name in names} >= {"src", "tests", "lab", "docs", "examples"}


# Names to import that are not the name of what is installed.
DISTRIBUTIONS = {
    "torch_geometric": "torch-geometric",
    "lightning_fabric": "lightning-fabric",
    "sklearn": "scikit-learn",
    "mlflow": "mlflow-skinny",
    "huggingface_hub": "huggingface-hub",
}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared(requirements: list[str]) -> set[str]:
    names = (re.match(r"[\w-]+", requirement) for requirement in requirements)
    return {name[0].lower().replace("_", "-") for name in names if name}


def imported_by(path: Path) -> set[str]:
    """The distributions that a module imports, those for type checkers alone aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped |= {inner for line in node.body for inner in ast.walk(line)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "load_extra":
            name = node.args[0]
            assert isinstance(name, ast.Constant), "an extra is loaded by its name"
            found.add(str(name.value).partition(".")[0])
    found -= {*sys.stdlib_module_names, "coopsheaf", "tomllib"}
    return {DISTRIBUTIONS.get(name, name) for name in found}


def test_what_is_imported_is_declared() -> None:
    """Everything that is imported when a module is, and everything that is imported later."""
    package = ROOT / "src" / "coopsheaf"
    imported = set().union(*(imported_by(path) for path in package.rglob("*.py")))
    needed, extras = declared(project()["dependencies"]), project()["optional-dependencies"]
    optional = {
        name
        for extra, names in extras.items()
        if extra not in ("dev", "docs")
        for name in declared(names)
    }
    assert imported <= needed | optional
    # onnx itself is what onnxscript and onnxruntime are about; PyTorch imports it.
    assert (needed | optional) - imported == {"onnx"}
    assert not needed & optional


def test_every_lower_bound_is_stated_and_the_tested_versions_are_pinned() -> None:
    needed, extras = project()["dependencies"], project()["optional-dependencies"]
    pinned = declared((ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:])
    for requirement in (*needed, *(one for names in extras.values() for one in names)):
        assert re.match(r"[\w\[\]-]+>=\d", requirement), requirement
        (name,) = declared([requirement])
        assert name in pinned | {"tomli"}, name
    for names in extras.values():  # the same bound wherever it stands
        for requirement in names:
            twice = [
                r
                for other in extras.values()
                for r in other
                if declared([r]) == declared([requirement])
            ]
            assert set(twice) == {requirement}


def test_the_project_says_where_it_lives() -> None:
    urls = project()["urls"]
    assert set(urls) == {"Homepage", "Documentation", "Repository", "Changelog", "Issues"}
    assert all(url.startswith("https://github.com/coopsheaf/coopsheaf") for url in urls.values())
    assert project()["license"] == "MIT"
    assert not [line for line in project()["classifiers"] if line.startswith("License")]


def test_the_wheel_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site"
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
            "--disable-pip-version-check", "--target", str(installed), str(wheel),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    code = """
import coopsheaf, torch
model = coopsheaf.CSNN(4, 8, 2, 3, learner="sage-projected")
edges = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 3]])
out = model(torch.randn(5, 4), edges)
out.sum().backward()
print(coopsheaf.__file__, tuple(out.shape), coopsheaf.__version__)
"""
    out = run(code, cwd=tmp_path, path=installed)
    assert str(installed) in out
    assert "(5, 3)" in out
    assert coopsheaf.__version__ in out
