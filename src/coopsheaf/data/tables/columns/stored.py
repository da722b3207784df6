"""Fields of a stored encoder: files come from strangers, every field is looked at."""

from __future__ import annotations

import base64
import binascii
import math
import sys
from collections.abc import Collection
from typing import Any, NoReturn

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show

_LARGEST = sys.float_info.max


class Stored:
    """An object of a stored encoder whose fields are asked for by name and kind."""

    def __init__(self, fields: object) -> None:
        if not isinstance(fields, dict):
            raise DataError(
                "a stored feature encoder must list its columns as objects; got "
                f"{show(str(fields), 80)}"
            )
        self._fields: dict[Any, Any] = fields

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def part(self, key: str) -> Stored:
        return Stored(self._fields.get(key))

    def text(self, key: str, choices: Collection[str] | None = None) -> str:
        value = self._fields.get(key)
        if isinstance(value, str) and (choices is None or value in choices):
            return value
        self._refuse(key, "a text" if choices is None else f"one of {sorted(choices)}")

    def truth(self, key: str) -> bool:
        value = self._fields.get(key)
        if isinstance(value, bool):
            return value
        self._refuse(key, "true or false")

    def number(self, key: str, low: float = -_LARGEST, high: float = _LARGEST) -> float:
        value = self._fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:  # whole numbers have no largest one
                number = math.inf
            if low <= number <= high:
                return number
        self._refuse(key, f"a number from {low:g} to {high:g}")

    def optional_number(
        self, key: str, low: float = -_LARGEST, high: float = _LARGEST
    ) -> float | None:
        return None if self._fields.get(key) is None else self.number(key, low, high)

    def whole(self, key: str, low: int, high: int) -> int:
        value = self._fields.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self._refuse(key, f"a whole number from {low} to {high}")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts that differ."""
        value = self._fields.get(key)
        texts = value if isinstance(value, list) else [None]
        if all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts):
            return tuple(texts)
        self._refuse(key, "a list of different texts")

    def data(self, key: str, unit: int) -> bytes:
        """Bytes, written in base 64, a multiple of ``unit`` of them."""
        value = self._fields.get(key)
        if isinstance(value, str):
            try:
                data = base64.b64decode(value.encode("ascii"), validate=True)
            except (binascii.Error, UnicodeError):
                data = b"?"
            if len(data) % unit == 0:
                return data
        self._refuse(key, "bytes in base 64")

    def _refuse(self, key: str, rule: str) -> NoReturn:
        name = self._fields.get("name")
        where = f" of column {show(name)}" if isinstance(name, str) else ""
        got = show(str(self._fields.get(key)), 80) if key in self._fields else "nothing"
        raise DataError(f"a stored feature encoder must have {rule} as `{key}`{where}; got {got}")
