"""Many different texts in a fixed number of columns: each adds signs at places that its hash says.

Hashes are of the text alone, the same in every process and on every machine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

ENTRIES = 4  # per category: two categories rarely share all of them
BLOCK = 4096  # different texts at a time, so that no large copy is made

_WORD = re.compile(r"\w+")


def category_hashes(texts: Sequence[str]) -> NDArray[np.uint32]:
    """``(texts, ENTRIES + 1)``: where a text has its entries, and last its own number."""
    size = 4 * (ENTRIES + 1)
    digests = b"".join(_digest(text, size) for text in texts)
    return np.frombuffer(digests, dtype="<u4").astype(np.uint32).reshape(-1, ENTRIES + 1)


def category_rows(texts: Sequence[str], width: int) -> NDArray[np.float32]:
    """``(texts, width)``: ``ENTRIES`` signed entries per text."""
    hashes = category_hashes(texts)[:, :ENTRIES]
    at = np.repeat(np.arange(len(texts)), ENTRIES)
    rows = np.zeros((len(texts), width), dtype=np.float32)
    sign = 1 - 2 * (hashes & 1).astype(np.float32)
    np.add.at(rows, (at, ((hashes >> 1) % width).reshape(-1)), sign.reshape(-1) / ENTRIES**0.5)
    return rows


def word_rows(texts: Sequence[str], width: int) -> NDArray[np.float32]:
    """``(texts, width)``: log(1 + count) of each lower-cased word, signed; rows of unit length."""
    place: dict[str, tuple[int, float]] = {}
    rows = np.zeros((len(texts), width), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word, count in Counter(_WORD.findall(text.lower())).items():
            if word not in place:
                number = int.from_bytes(_digest(word, 4), "little")
                place[word] = ((number >> 1) % width, 1 - 2 * (number & 1))
            at, sign = place[word]
            row[at] += sign * math.log1p(count)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(length > 0, length, 1)
    return rows


def scatter(
    part: NDArray[np.float32],
    codes: NDArray[np.int64],
    texts: Sequence[str],
    make: Callable[[Sequence[str], int], NDArray[np.float32]],
) -> None:
    """Write ``make(texts, width)[codes]`` into ``part (rows, width)``, a block at a time."""
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(0, len(texts) + BLOCK, BLOCK))
    for block, first in enumerate(range(0, len(texts), BLOCK)):
        rows = order[starts[block] : starts[block + 1]]
        made = make(texts[first : first + BLOCK], part.shape[1])
        part[rows] = made[codes[rows] - first]


def _digest(text: str, size: int) -> bytes:
    # A text from a table may have half of a pair of surrogates; it is hashed all the same.
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()
