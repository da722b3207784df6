"""Freed memory that is kept: no page is asked for twice."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

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

    # Five times 32 MB: 80 large pages, or 40,960 ordinary ones.
    assert faults("keep") < 20
    assert faults("not") >= 80
    assert faults("ease") >= 80


LARGE = """
import re
import torch
from pathlib import Path
from coopsheaf import memory

def large():
    text = Path("/proc/self/smaps_rollup").read_text()
    return 1024 * int(re.search(r"AnonHugePages:\\s+(\\d+)", text)[1])

assert memory.keep_freed_memory()
before, held = large(), memory.resident_bytes()
assert held < 1e9  # reaching far takes nothing
kept = torch.ones(32 << 20)  # 128 MB
print(large() - before)
"""


def _has_large_pages() -> bool:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.exists() and "[never]" not in setting.read_text()


@pytest.mark.skipif(not _has_large_pages(), reason="a system without large pages")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc only")
def test_what_is_kept_lies_in_large_pages() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 20 << 20  # all of it, unless memory is in pieces


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
