"""``coopsheaf env`` says what computes."""

from __future__ import annotations

import pytest
from cli.program import Program

from coopsheaf.sheaves.kernels import KERNELS


def lines(text: str) -> dict[str, str]:
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in text.splitlines()}


def test_what_computes_is_said(program: Program) -> None:
    said = lines(program.ok("env"))
    assert {"kernel", "capability", "threads", "memory", "devices", "torch", "Triton"} <= set(said)


@pytest.mark.skipif("native" not in KERNELS, reason="coopsheaf-kernels is not installed")
def test_compiled_kernels_are_named_and_can_be_switched_off(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lines(program.ok("env"))["kernel"].startswith("native: coopsheaf-kernels 0.2.0 (")
    monkeypatch.setattr("coopsheaf.sheaves.kernels._active", None)
    monkeypatch.setenv("COOPSHEAF_KERNEL", "factored")
    said = lines(program.ok("env"))["kernel"]
    assert said.startswith("factored (coopsheaf-kernels 0.2.0")
    assert "COOPSHEAF_KERNEL says otherwise" in said


@pytest.mark.skipif("native" not in KERNELS, reason="coopsheaf-kernels is not installed")
def test_threads_that_are_not_those_of_pytorch_are_said(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "compiled kernels" not in lines(program.ok("env"))["threads"]
    monkeypatch.setattr("coopsheaf.sheaves.kernels.native.uses_threads", lambda: False)
    assert "(compiled kernels: one, since " in lines(program.ok("env"))["threads"]


def test_without_compiled_kernels_it_says_how_to_get_them(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coopsheaf.sheaves.kernels.native.load_library", lambda: None)
    monkeypatch.setattr("coopsheaf.sheaves.kernels._active", None)
    monkeypatch.delenv("COOPSHEAF_KERNEL", raising=False)
    said = lines(program.ok("env"))["kernel"]
    assert said == "factored (coopsheaf-kernels is not installed: pip install ./native)"
