"""Values and gradients of the Triton kernels, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton: pip install 'coopsheaf[triton]'")  # fmt: skip
def test_the_kernels_compute_what_the_reference_computes() -> None:
    """In a process of its own: the interpreter is chosen when Triton is imported."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name("interpreted.py"))],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
