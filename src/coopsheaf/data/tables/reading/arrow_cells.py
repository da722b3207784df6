"""Columns of pyarrow as cells. Imports pyarrow: only what has such columns imports this."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.cells import (
    Cells,
    Distinct,
    Ids,
    NumberCells,
    TextCells,
    TimeCells,
)
from coopsheaf.data.tables.reading.words import MISSING, plain_numbers

_MISSING = pa.array(sorted(MISSING))
ZERO, NINE = ord("0"), ord("9")


class ArrowText(Cells):
    """Texts in a pyarrow array; null is the empty text.

    Args:
        texts: a chunked array of strings.
    """

    def __init__(self, texts: Any) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def text(self, row: int) -> str:
        return self.texts[row].as_py() or ""

    @cached_property
    def distinct(self) -> Distinct:
        texts = self.texts.fill_null("") if self.texts.null_count else self.texts
        coded = texts.combine_chunks().dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        return Distinct(np.asarray(coded.indices, dtype=np.int64), coded.dictionary.to_pylist())

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        found = np.empty(len(self))
        start = 0
        for chunk in self.texts.chunks:
            part = _quick_numbers(chunk)
            if part is None:  # as texts, each once
                distinct = self.distinct
                exact = plain_numbers(distinct.texts)
                return None if exact is None else exact[distinct.codes]
            found[start : start + len(part)] = part
            start += len(part)
        return found

    def look_up(self, ids: Ids) -> NDArray[np.int64]:
        if ids.kept is None:
            ids.kept = pa.array(ids.texts, pa.string())
        found = pc.index_in(self.texts.cast(pa.string()), value_set=ids.kept)
        return np.asarray(found.fill_null(-1), dtype=np.int64)

    def take(self, rows: NDArray[np.int64]) -> Cells:
        return ArrowText(self.texts.take(pa.array(rows)))

    def join(self, others: Sequence[Cells]) -> Cells:
        every = [part.texts for part in (self, *others) if isinstance(part, ArrowText)]
        return ArrowText(pa.chunked_array([chunk for texts in every for chunk in texts.chunks]))


def _quick_numbers(texts: Any) -> NDArray[np.float64] | None:
    """``(rows,)``, NaN where missing; ``None`` where a closer look is needed."""
    if _leading_zeros(texts):
        return None
    try:
        cast = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        gaps = pc.is_in(texts, value_set=_MISSING.cast(texts.type))
        try:
            cast = pc.if_else(gaps, pa.scalar(None, texts.type), texts).cast(pa.float64())
        except pa.ArrowInvalid:
            return None
    numbers = cast.to_numpy(zero_copy_only=False)
    finite = np.isfinite(numbers)
    if cast.null_count:
        finite |= np.asarray(cast.is_null())
    return numbers if finite.all() else None  # "inf" and "nan" are words


def _leading_zeros(texts: Any) -> bool:
    """Whether a text starts with a zero and another digit, a sign before them aside."""
    wide = pa.types.is_large_string(texts.type)
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    ends = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    ends = ends[texts.offset : texts.offset + len(texts) + 1]
    start, size = ends[:-1], np.diff(ends)
    letters = np.frombuffer(data, dtype=np.uint8)
    start, size = start[size >= 2], size[size >= 2]
    first, second = letters[start], letters[start + 1]
    if ((first == ZERO) & (second >= ZERO) & (second <= NINE)).any():
        return True
    signed = ((first == ord("-")) | (first == ord("+"))) & (second == ZERO) & (size >= 3)
    third = letters[start[signed] + 2]
    return bool(((third >= ZERO) & (third <= NINE)).any())


def is_list(kind: Any) -> bool:
    """Whether a column of this type becomes several."""
    types = pa.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def arrow_cells(name: str, column: Any, table: str) -> dict[str, Cells]:
    """A column of any type as cells, by their names; a list column becomes several."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = _without_dictionary(column)
        kind = column.type
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return {name: ArrowText(column)}
    if pa.types.is_boolean(kind):
        texts = pc.if_else(column, "True", "False")
        return {name: ArrowText(texts.fill_null(""))}
    if pa.types.is_integer(kind):
        return {name: _whole(column)}
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64()).to_numpy()
        return {name: NumberCells(numbers)}
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        times = column.cast(pa.timestamp("us"), safe=False)
        return {name: TimeCells(times.to_numpy().astype("datetime64[us]"))}
    if pa.types.is_null(kind):
        return {name: TextCells([""] * len(column))}
    if is_list(kind):
        return _list_cells(name, column, table)
    raise DataError(
        f"{table}, column {show(name)}: a column must hold texts, numbers, truth values or times; "
        f"got {kind}: leave it out with drop, or convert it"
    )


def _without_dictionary(column: Any) -> Any:
    """The values themselves; pyarrow's own cast does not know views of strings."""
    kind = column.type.value_type
    kind = pa.large_string() if pa.types.is_string_view(kind) else kind
    parts = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(parts, kind)


def _whole(column: Any) -> Cells:
    """Whole numbers exactly: with gaps as floats that have NaN, as texts where these round."""
    try:
        kind = pa.float64() if column.null_count else pa.int64()
        return NumberCells(column.cast(kind).to_numpy())
    except pa.ArrowInvalid:
        return ArrowText(column.cast(pa.string()))


def _list_cells(name: str, column: Any, table: str) -> dict[str, Cells]:
    lengths = pc.unique(pc.list_value_length(column)).drop_null().to_pylist()
    if len(lengths) != 1:
        raise DataError(
            f"{table}, column {show(name)}: lists must be of one length; got lengths "
            f"{sorted(lengths)[:5]}"
        )
    cells: dict[str, Cells] = {}
    for place in range(lengths[0]):
        cells |= arrow_cells(f"{name}[{place}]", pc.list_element(column, place), table)
    return cells
