"""Freed memory that is kept: no page is asked for twice."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import torch
from coopsheaf import memory

if sys.argv[1] != "not":
    assert memory.keep_freed_memory()
size = 8 << 20
for _ in range(20):  # until there are large enough pieces
    torch.ones(size)
if sys.argv[1] == "ease":
    assert not memory.ease_memory()  # there is plenty
    held = memory.resident_bytes()
    memory.machine_bytes = lambda: held
    assert memory.ease_memory()
    assert memory.resident_bytes() < held - 50e6
    assert not memory.ease_memory()  # nothing is kept any more
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    torch.ones(size)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc only")
def test_what_was_freed_is_used_again_until_memory_is_tight() -> None:
    def faults(how: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert faults("keep") < 100
    assert faults("not") > 1000
    assert faults("ease") > 1000


@pytest.mark.parametrize("before", [False, True])
def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    from coopsheaf import memory

    monkeypatch.setattr(memory, "_keeping", before)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda name: object())
    assert memory.keep_freed_memory() is False


def test_the_environment_can_say_no(monkeypatch: pytest.MonkeyPatch) -> None:
    from coopsheaf.memory import keep_freed_memory

    monkeypatch.setenv("COOPSHEAF_KEEP_MEMORY", "0")
    assert keep_freed_memory() is False
