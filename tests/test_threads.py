"""Every thread of PyTorch's is reached, once each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from coopsheaf import threads


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_a_function_is_called_once_in_each_thread() -> None:
    seen: list[int] = []
    threads.on_every_thread(lambda: seen.append(threading.get_ident()))
    assert len(set(seen)) == len(seen) == 2
    assert threading.get_ident() in seen


def test_one_thread_calls_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(threads, "parallel_loop", lambda: None)  # an older PyTorch
    threads.on_every_thread(lambda: seen.append(threading.get_ident()))
    assert seen == [threading.get_ident()]


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("linux", "libtorch_cpu.so"),
        ("darwin", "libtorch_cpu.dylib"),
        ("win32", "torch_cpu.dll"),
    ],
)
def test_the_loop_is_looked_for_on_every_platform(
    platform: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def load(path: str) -> Any:
        opened.append(Path(path))
        raise OSError

    monkeypatch.setattr(threads.sys, "platform", platform)
    monkeypatch.setattr(threads.ctypes, "CDLL", load)
    assert threads.parallel_loop.__wrapped__() is None
    assert opened == [Path(torch.__file__).parent / "lib" / name]
