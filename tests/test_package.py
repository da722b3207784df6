"""The package from outside: its public names, and the wheel away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import coopsheaf

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
