"""Comma-, tab- or semicolon-separated files, read row by row with nothing but Python.

Slower than :mod:`~coopsheaf.data.tables.reading.arrow_files`, but it needs nothing, and it knows on
which line something is wrong: whatever goes wrong elsewhere is asked for again here.
"""

from __future__ import annotations

import csv
import gc
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, NoReturn

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.cells import Cells, TextCells
from coopsheaf.data.tables.reading.source import Source, Tap
from coopsheaf.data.tables.reading.table import LazyLines, Table

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons"}
CHUNK_ROWS = 1 << 14
ROW_NUMBERS = "Unnamed: 0"  # what pandas calls a first column without a name


class Header(NamedTuple):
    """The names of the columns, what separates them, and the line on which they end."""

    names: tuple[str, ...]
    delimiter: str
    line: int


@dataclass(frozen=True)
class FoundLines(LazyLines):
    """Of a delimited file.

    Args:
        source, header: the file.
        offset: rows of the file before the first of these.
        plain: every row is one line, and no line is empty.
    """

    source: Source
    header: Header
    offset: int = 0
    plain: bool = False

    def find(self, row: int) -> int:
        position = self.offset + row
        if self.plain:
            return self.header.line + 1 + position
        rows = islice(_numbered_rows(self.source, self.header), position, None)
        return next(rows)[0]


def read_header(source: Source) -> Header:
    """Find the names of the columns: the first line that is not empty has them.

    The separator is whichever of comma, tab and semicolon the header has most of. An unnamed first
    column, as some programs write their row numbers, is called ``Unnamed: 0``.
    """
    with _text(source) as (_, stream):
        lines = enumerate(stream, start=1)
        found = next(((number, line) for number, line in lines if line.strip("\r\n")), None)
        if found is None or not (found[1].strip() or any(line.strip() for _, line in lines)):
            raise DataError(f"{source.name} must have a header and rows; it is empty")
        start, first = found
        delimiter = _delimiter(first, f"{source.name}, line {start}")
    with _text(source) as (_, stream):
        reader = _reader(_without_nul(stream, source.name), delimiter)
        try:
            row = next(row for row in reader if row)
        except csv.Error as error:
            raise DataError(f"{source.name}, line {start}: {_csv_rule(str(error))}") from None
        names = _names(row, f"{source.name}, line {start}", delimiter)
        return Header(tuple(names), delimiter, reader.line_num)


def text_chunks(source: Source, header: Header, names: Sequence[str], tap: Tap) -> Iterator[Table]:
    """The rows below the header, some thousand at a time; only the named columns.

    Args:
        tap: the bytes of the source, from their start.
    """
    width, places = len(header.names), [header.names.index(name) for name in names]
    reader = _reader(_decoded(tap), header.delimiter)
    done = 0
    try:
        next(row for row in reader if row)
        while (found := _next_columns(reader, width)) is not None:
            count, columns = found
            if columns is None or tap.nul:
                explain(source, header)
            cells: dict[str, Cells] = {
                name: TextCells(columns[place]) for name, place in zip(names, places, strict=True)
            }
            if count:
                yield Table(source.name, cells, FoundLines(count, source, header, done))
            done += count
    except (csv.Error, UnicodeDecodeError):
        explain(source, header)
    if not done:
        raise DataError(f"{source.name} must have rows below its header; it has the header only")


def _next_columns(
    reader: Iterator[list[str]], width: int
) -> tuple[int, list[Sequence[str]] | None] | None:
    """The number of the next rows and their columns, ``None`` if one is of another length."""
    # A row is a list, and after so many new lists Python would look through everything it has.
    collecting = gc.isenabled()
    gc.disable()
    try:
        rows = list(islice(reader, CHUNK_ROWS))
        if not rows:
            return None
        rows = [row for row in rows if row]
        if set(map(len, rows)) - {width}:
            return len(rows), None
        return len(rows), list(zip(*rows, strict=True)) or [()] * width
    finally:
        if collecting:
            gc.enable()


def explain(source: Source, header: Header) -> NoReturn:
    """Raise the error that names the first line with a fault."""
    for _ in _numbered_rows(source, header):
        pass
    raise AssertionError(f"{source.name}: no fault found")


def _numbered_rows(source: Source, header: Header) -> Iterator[tuple[int, list[str]]]:
    """Each row below the header with the line on which it starts; whatever is wrong is an error."""
    name, width = source.name, len(header.names)
    with _text(source) as (_, stream):
        reader = _reader(_without_nul(stream, name), header.delimiter)
        start, below = 1, False
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(f"{name}, line {start}: {_csv_rule(str(error))}") from None
            if row and below and len(row) != width:
                raise DataError(
                    f"{name}, line {start}: every row must have {width} fields, as many as the "
                    f"header; got {len(row)} (separated by {DELIMITERS[header.delimiter]}; quote a "
                    "field with separators in it)"
                )
            if row and below:
                yield start, row
            below, start = below or bool(row), reader.line_num + 1


def _without_nul(lines: Iterator[str], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise DataError(
                f"{name}, line {number}: the text must have no NUL characters: is it a table, "
                "saved as UTF-8?"
            )
        yield line


@contextmanager
def _text(source: Source) -> Iterator[tuple[Tap, io.TextIOWrapper]]:
    """The text of a file from its start; bytes that are none are an error that names the line."""
    with source.text() as tap:
        try:
            yield tap, _decoded(tap)
        except UnicodeDecodeError:
            raise DataError(_not_utf8(source)) from None


def _decoded(tap: Tap) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(tap, 1 << 20), encoding="utf-8-sig", newline="")


def _not_utf8(source: Source) -> str:
    offset = 0
    with source.text() as tap, io.BufferedReader(tap, 1 << 20) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                at = offset + error.start
                return (
                    f"{source.name}, line {number}: the text must be UTF-8; byte "
                    f"0x{line[error.start]:02x} at offset {at} is not: save the table as UTF-8"
                )
            offset += len(line)
    return f"{source.name}: the text must be UTF-8: save the table as UTF-8"


def _reader(stream: Iterator[str], delimiter: str) -> Any:
    return csv.reader(stream, delimiter=delimiter, skipinitialspace=True, strict=True)


def _delimiter(header: str, place: str) -> str:
    """The separator that occurs most often in the header, outside quotes."""
    outside = "".join(header.split('"')[::2])
    found = max(DELIMITERS, key=outside.count)
    if found not in outside:
        raise DataError(
            f"{place}: the header must have two columns or more, separated by commas, tabs or "
            f"semicolons; got the single column {show(header.strip())}"
        )
    return found


def _names(row: list[str], place: str, delimiter: str) -> list[str]:
    names = [name.strip() for name in row]
    names[0] = names[0] or row_numbers(names)
    first: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name:
            raise DataError(
                f"{place}: every column must have a name; column {number} of {len(names)} has none "
                f"(separated by {DELIMITERS[delimiter]})"
            )
        if name in first:
            raise DataError(
                f"{place}: column names must differ; columns {first[name]} and {number} are both "
                f"{show(name)}"
            )
        first[name] = number
    return names


def row_numbers(names: Sequence[str]) -> str:
    """A free name for a first column without one, as pandas makes it up."""
    return ROW_NUMBERS if ROW_NUMBERS not in names else f"{ROW_NUMBERS}.1"


def _csv_rule(error: str) -> str:
    if "field larger" in error:
        limit = csv.field_size_limit()
        return f"a field must have at most {limit} characters: is a closing quote missing?"
    if "unexpected end" in error:
        return "a quoted field must end with a quote; the file ends before it"
    return f'quotes must enclose a whole field, with "" for a quote inside; {error}'
