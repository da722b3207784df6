"""Plain values out of files that anybody may have written: what each key must hold.

A kind is a function that finds the first fault of a value. Kinds are put together to those of
lists and objects, so that a file has one table of its keys, and a new key is one line there.
"""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

LARGEST = 2**53  # whole numbers beyond it are not the same in every program that reads JSON
LONGEST = 100_000  # letters of a text
_HALF_LETTER = re.compile("[\ud800-\udfff]")


class Fault(NamedTuple):
    """What is wrong: the place inside of the value, what must be there, what is."""

    place: str
    rule: str
    value: Any

    def __str__(self) -> str:
        return f"{self.place.lstrip('.')} must be {self.rule}; got {brief(self.value)}"


Kind = Callable[[Any], Fault | None]


def brief(value: Any, limit: int = 60) -> str:
    """A value on one short line, however large it is."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**limit:
        return "a whole number of many digits"
    shown = repr(value[: limit + 1] if isinstance(value, str) else value)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def brief_text(text: str, limit: int = 200) -> str:
    """A message on one line of reasonable length, without letters that cannot be printed."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _is_text(value: str) -> bool:
    """JSON can also say half a letter, which no file name and no terminal takes."""
    return len(value) <= LONGEST and _HALF_LETTER.search(value) is None


def kind(rule: str, holds: Callable[[Any], bool]) -> Kind:
    """The kind of the values for which ``holds`` is true."""
    return lambda value: None if holds(value) else Fault("", rule, value)


def whole(low: int = 0, high: int = LARGEST) -> Kind:
    """A whole number from ``low`` to ``high``."""
    bounds = f"a whole number of at least {low}"
    bounds += "" if high == LARGEST else f" and at most {high}"
    return kind(bounds, lambda v: type(v) is int and low <= v <= high)


def _is_number(value: Any) -> bool:
    if type(value) is int:
        return abs(value) <= LARGEST
    return type(value) is float and math.isfinite(value)


number = kind("a finite number", _is_number)
text = kind(f"text of at most {LONGEST} letters", lambda v: type(v) is str and _is_text(v))
truth = kind("true or false", lambda v: type(v) is bool)
anything: Kind = lambda value: None  # noqa: E731
an_object = kind("an object", lambda v: isinstance(v, dict))


def one_of(choices: Iterable[str]) -> Kind:
    """One of some texts."""
    known = tuple(choices)
    return kind(f"one of {', '.join(known)}", lambda v: type(v) is str and v in known)


def or_null(inner: Kind) -> Kind:
    """The same, or nothing."""

    def find(value: Any) -> Fault | None:
        fault = None if value is None else inner(value)
        return fault and fault._replace(rule=f"{fault.rule}, or null")

    return find


def either(*kinds: Kind) -> Kind:
    """A value of one of several kinds."""

    def find(value: Any) -> Fault | None:
        faults = [kind(value) for kind in kinds]
        if None in faults:
            return None
        rules = (fault.rule for fault in faults if fault is not None)
        return Fault("", " or ".join(rules), value)

    return find


def many(inner: Kind, *, most: int | None = None) -> Kind:
    """A list of values of one kind."""

    def find(value: Any) -> Fault | None:
        if not isinstance(value, list):
            return Fault("", "a list", value)
        if most is not None and len(value) > most:
            return Fault("", f"a list of at most {most}", value)
        for position, item in enumerate(value):
            fault = inner(item)
            if fault is not None:
                return fault._replace(place=f"[{position}]{fault.place}")
        return None

    return find


def each(inner: Kind) -> Kind:
    """An object with any keys, and values of one kind."""

    def find(value: Any) -> Fault | None:
        if not isinstance(value, dict):
            return Fault("", "an object", value)
        for key, item in value.items():
            fault = inner(item)
            if fault is not None:
                return fault._replace(place=f".{brief(key)[1:-1]}{fault.place}")
        return None

    return find


def keys(required: Mapping[str, Kind], optional: Mapping[str, Kind] | None = None) -> Kind:
    """An object with known keys; others are left alone (:func:`unknown_keys` names them)."""
    known = {**required, **(optional or {})}

    def find(value: Any) -> Fault | None:
        if not isinstance(value, dict):
            return Fault("", "an object", value)
        for key, inner in known.items():
            if key not in value:
                if key in required:
                    raise Missing(key)
                continue
            fault = inner(value[key])
            if fault is not None:
                return fault._replace(place=f".{key}{fault.place}")
        return None

    return find


class Missing(Exception):
    """A key that has to be there is not."""


def find_fault(value: Any, inner: Kind) -> str | None:
    """The first fault of a value in words; ``None`` if there is none."""
    try:
        fault = inner(value)
    except Missing as error:
        return f"it lacks {str(error)!r}"
    return None if fault is None else str(fault) if fault.place else f"it{fault}"


def unknown_keys(value: Mapping[str, Any], *known: Iterable[str]) -> list[str]:
    """The keys of an object that no table of keys has, as they may be printed."""
    names = {name for table in known for name in table}
    return [brief(key) for key in value if key not in names]


def of_hint(hint: Any) -> Kind:
    """The kind of a field of a dataclass of plain values, read off its type."""
    plain: dict[Any, Kind] = {int: whole(-LARGEST), float: number, str: text, bool: truth}
    if hint in plain:
        return plain[hint]
    if hint is Any:
        return anything
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [of_hint(part) for part in inner if part is not type(None)]
        found = kinds[0] if len(kinds) == 1 else either(*kinds)
        return or_null(found) if type(None) in inner else found
    if origin is dict:
        return each(of_hint(inner[1]))
    if origin in (list, tuple):
        return many(of_hint(inner[0]))
    raise AssertionError(f"no kind for {hint}")


def read_json(path: Path, limit: int) -> Any:
    """The JSON in a file of at most ``limit`` bytes.

    Raises:
        ValueError: it is larger, not a file, or not JSON; says why.
        OSError: it cannot be read.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("it is no regular file")
    with path.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit >> 20} MB")
    return json.loads(content.decode("utf-8"))
