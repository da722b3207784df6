"""The optional wheel of compiled kernels: installed, missing, and where nothing can compile it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coopsheaf.sheaves.kernels import KERNELS

ROOT = Path(__file__).parents[1]

STEP = """
import torch
from coopsheaf import CSNN, Graph
from coopsheaf.sheaves.kernels import active_kernel
torch.manual_seed(0)
edges = torch.randint(0, 9, (2, 30))
for learner in ("mlp", "sage-projected", "sage-graph-norm", "sage-embedded"):
    model = CSNN(4, 6, 2, 3, learner=learner, dropout=0.2)
    model(torch.randn(9, 4), Graph(edges, 9)).sum().backward()
print(active_kernel())
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_without_the_wheel_everything_works() -> None:
    assert run(f"import sys\nsys.modules['coopsheaf_kernels'] = None\n{STEP}") == "factored"


# As where neither is installed: not found, rather than found and broken.
ABSENT = """
import importlib.machinery, sys

class Without:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("triton", "coopsheaf_kernels"):
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target)

others = [finder for finder in sys.meta_path if finder is not importlib.machinery.PathFinder]
sys.meta_path[:] = [*others, Without]
"""
CHECK = """
import importlib.util
from coopsheaf.sheaves.kernels import KERNELS, on_cuda
assert importlib.util.find_spec("triton") is importlib.util.find_spec("coopsheaf_kernels") is None
assert not on_cuda.has_triton() and "native" not in KERNELS
"""


def test_without_triton_and_the_wheel_everything_works() -> None:
    assert run(ABSENT + STEP + CHECK) == "factored"


@pytest.mark.skipif("native" not in KERNELS, reason="coopsheaf-kernels is not installed")
def test_with_the_wheel_it_is_used() -> None:
    assert run(STEP) == "native"


@pytest.mark.skipif("native" not in KERNELS, reason="coopsheaf-kernels is not installed")
def test_one_wheel_serves_every_python() -> None:
    wheel = importlib.metadata.distribution("coopsheaf-kernels").read_text("WHEEL")
    assert wheel is not None
    assert "Tag: py3-none-" in wheel
    assert not importlib.metadata.requires("coopsheaf-kernels")  # not even PyTorch


@pytest.mark.skipif(sys.platform == "win32", reason="make is not there")
def test_without_a_compiler_make_goes_on_and_says_so(tmp_path: Path) -> None:
    for name in ("torch", "installed-dev"):
        (tmp_path / name).touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    target = str(tmp_path / "installed-kernels")
    words = ["make", "-o", str(tmp_path / "installed-dev"), f"VENV={tmp_path}", target]
    done = subprocess.run(
        [*words, "CXX=no-such-compiler"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "no C++ compiler: coopsheaf-kernels is not built" in done.stdout
    assert (tmp_path / "installed-kernels").exists()


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="it is not built there")
def test_without_a_compiler_pip_says_what_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "77", reason="builds the wheel")
    sources = tmp_path / "native"
    ignore = shutil.ignore_patterns("build", "*.egg-info")
    shutil.copytree(ROOT / "native", sources, ignore=ignore)
    words = ["-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index"]
    done = subprocess.run(
        [sys.executable, *words, "--target", str(tmp_path / "there"), str(sources)],
        env={**os.environ, "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    told = [line for line in (done.stdout + done.stderr).splitlines() if "needs a C++" in line]
    assert len(told) == 1
    assert told[0].strip() == (
        "coopsheaf-kernels needs a C++ compiler, and there is no 'no-such-compiler': install g++ or "
        "clang++, or name one in CXX; coopsheaf works without this package"
    )
    assert "Traceback" not in done.stdout + done.stderr
