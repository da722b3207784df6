"""What is on its way out works, says so where it is used, and goes when its time has come."""

from __future__ import annotations

import ast
import inspect
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import coopsheaf
from coopsheaf.deprecation import deprecated, renamed_argument

ROOT = Path(coopsheaf.__file__).parent


def old_sum(a: int, b: int) -> int:
    deprecated("coopsheaf.old_sum", instead="coopsheaf.new_sum", removed_in="0.4")
    return a + b


@renamed_argument("width", "channels", removed_in="0.4")
def build(depth: int, *, channels: int = 1) -> tuple[int, int]:
    """Depth and width."""
    return depth, channels


class Layer:
    @renamed_argument("width", "channels", removed_in="0.4")
    def __init__(self, channels: int) -> None:
        self.channels = channels


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_name_that_goes_works_and_says_what_to_use() -> None:
    message = r"`coopsheaf.old_sum` is deprecated and will be gone in coopsheaf 0\.4; use `coopsheaf.new_sum`"  # fmt: skip
    with pytest.warns(FutureWarning, match=message) as caught:
        line, value = here(), old_sum(1, 2)
    assert value == 3
    assert [(item.filename, item.lineno) for item in caught] == [(__file__, line)]


def test_an_argument_that_was_renamed_works_and_says_its_new_name() -> None:
    message = r"the argument `width` of build is deprecated .* coopsheaf 0\.4; use `channels`"
    with pytest.warns(FutureWarning, match=message) as caught:
        line, value = here(), build(3, width=5)
    assert value == (3, 5)
    assert [(item.filename, item.lineno) for item in caught] == [(__file__, line)]


def test_the_new_name_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert build(3, channels=5) == (3, 5)
        assert build(3) == (3, 1)
        assert Layer(4).channels == Layer(channels=4).channels == 4


def test_a_class_is_called_by_its_own_name() -> None:
    with pytest.warns(FutureWarning, match="the argument `width` of Layer is deprecated"):
        assert Layer(width=4).channels == 4  # type: ignore[call-arg]


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="`channels` and `width` of build are one argument"):
        build(3, channels=5, width=5)


def test_what_is_decorated_keeps_its_signature_and_words() -> None:
    assert build.__doc__ == "Depth and width."
    assert list(inspect.signature(build).parameters) == ["depth", "channels"]


def test_every_line_that_uses_it_is_told_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            old_sum(1, 2)
        build(1, width=2)
    assert len(caught) == 2


@pytest.mark.parametrize("code", ["from old_rooms import Part", "import old_rooms\nold_rooms.Part"])
def test_a_package_can_export_an_old_name(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the module's docstring; the warning passes over the machinery of imports."""
    room = types.ModuleType("old_rooms")

    def find(name: str) -> Any:
        if name == "Part":
            deprecated("old_rooms.Part", instead="old_rooms.Subgraph", removed_in="0.4")
            return int
        raise AttributeError(name)

    room.__getattr__ = find  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "old_rooms", room)
    with pytest.warns(FutureWarning, match="`old_rooms.Part` is deprecated") as caught:
        exec(compile(code, "the user's file", "exec"), {})
    assert {item.filename for item in caught} == {"the user's file"}


def removals(source: str) -> list[str]:
    """The versions in which something of a file is to be gone."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    given = [word.value for call in calls for word in call.keywords if word.arg == "removed_in"]
    return [str(value.value) for value in given if isinstance(value, ast.Constant)]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_the_dates_of_removal_are_found() -> None:
    assert removals(Path(__file__).read_text(encoding="utf-8")).count("0.4") >= 3
    assert numbers("0.10.0") > numbers("0.4")


def test_nothing_outstays_its_time() -> None:
    late = [
        f"{path.relative_to(ROOT)}: remove what was to be gone in {version}"
        for path in ROOT.rglob("*.py")
        for version in removals(path.read_text(encoding="utf-8"))
        if numbers(version) <= numbers(coopsheaf.__version__)
    ]
    assert late == []
