"""Arrays and texts as JSON that may stand inside a page: compact, and never markup."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.files import finite

# What a browser reads from the bytes; all little-endian, as all browsers' machines are.
_TYPES = {
    "u1": "Uint8Array",
    "i2": "Int16Array",
    "u2": "Uint16Array",
    "u4": "Uint32Array",
    "f4": "Float32Array",
}
LONGEST_NAME = 500

Packed = dict[str, Any]


def pack(values: Tensor | NDArray[Any], kind: str) -> Packed:
    """An array of one of the types above: its bytes as text."""
    array = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    raw = np.ascontiguousarray(array.astype(f"<{kind}")).tobytes()
    return {"type": _TYPES[kind], "data": base64.b64encode(raw).decode("ascii")}


def pack_indices(values: Tensor | NDArray[Any], size: int) -> Packed:
    """Numbers from 0 to ``size`` - 1 in as few bytes as they need."""
    return pack(values, "u2" if size <= 1 << 16 else "u4")


def pack_strengths(values: Tensor) -> Packed:
    """Numbers that are not negative, in two bytes each, to three digits and a half.

    Stored are shares of the largest one in half precision. Their bit patterns are in the same
    order as their values, so that whoever reads them can sort by counting.
    """
    array = values.detach().double().cpu().numpy()
    largest = float(array.max()) if array.size else 0.0
    shares = (array / largest if largest > 0 else array).astype("<f2")
    raw = np.ascontiguousarray(shares).tobytes()
    data = base64.b64encode(raw).decode("ascii")
    return {"type": "Uint16Array", "data": data, "largest": largest}


def shorten(name: str, limit: int = LONGEST_NAME) -> str:
    """A name that is not longer than a page can show."""
    return name if len(name) <= limit else f"{name[:limit]}… ({len(name):,} characters)"


def to_script(value: Any) -> str:
    """JSON for a script element that is data: no ``<``, ``>`` or ``&``, only ASCII."""
    text = json.dumps(finite(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
