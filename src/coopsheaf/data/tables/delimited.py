"""Comma-, tab- or semicolon-separated files as columns of text."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list, show_path

DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons"}


@dataclass(frozen=True)
class Table:
    """Columns of text with the place each row came from.

    Args:
        path: the file, as messages name it.
        columns: the text of each cell, by column name; all columns are equally long.
        lines: the line of the file on which each row starts.
        checksum: sha256 of the file, in hexadecimal; empty if there is no file.
        place: what ``lines`` counts.
    """

    path: str
    columns: dict[str, Sequence[str]]
    lines: Sequence[int]
    checksum: str = ""
    place: str = "line"

    @property
    def name(self) -> str:
        """The file in a message."""
        return show_path(self.path)

    @property
    def num_rows(self) -> int:
        return len(self.lines)

    def at(self, row: int, column: str | None = None) -> str:
        """Where a row or cell is: ``nodes.csv, line 7, column 'age'``."""
        place = f"{self.name}, {self.place} {self.lines[row]}"
        return place if column is None else f"{place}, column {show(column)}"

    def column(self, name: str, role: str) -> Sequence[str]:
        """The cells of one column; ``role`` says in the error what it was wanted for."""
        if name not in self.columns:
            raise DataError(
                f"{self.name} has no column {show(name)} (wanted as {role}); "
                f"its columns are {show_list(self.columns)}"
            )
        return self.columns[name]


def read_table(path: str | PathLike[str]) -> Table:
    """Read a table whose first line names the columns.

    The separator is whichever of comma, tab and semicolon the header has most of. Fields may be
    quoted with ``"``; spaces after a separator and blank lines do not count. The text is UTF-8,
    with or without a byte order mark; a name that ends in ``.gz`` is decompressed. An unnamed
    first column, as some programs write their row numbers, is called ``index``.

    Raises:
        DataError: the file cannot be read, is empty, has a header only or a single column, is not
            UTF-8, has columns of one name or none, or rows of another length than the header.
    """
    name = show_path(path)
    data = _read_bytes(Path(path))
    text = _decode(data, name)
    delimiter = _delimiter(text, name)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}, line {start}: {_csv_rule(str(error))}") from None
    header = _header(rows[0], f"{name}, line {lines[0]}", delimiter)
    width = len(header)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise DataError(
                f"{name}, line {line}: every row must have {width} fields, as many as the header; "
                f"got {len(row)} (separated by {DELIMITERS[delimiter]}; quote a field with "
                "separators in it)"
            )
    if len(rows) == 1:
        raise DataError(f"{name} must have rows below its header; it has the header only")
    columns = zip(*rows[1:], strict=True)
    return Table(
        path=str(path),
        columns=dict(zip(header, columns, strict=True)),
        lines=lines[1:],
        checksum=hashlib.sha256(data).hexdigest(),
    )


def _read_bytes(path: Path) -> bytes:
    name = show_path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{name} does not exist: give the path of a table") from None
    except IsADirectoryError:
        raise DataError(f"{name} must be a file; it is a folder") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = getattr(error, "strerror", None) or "not a valid path"
        raise DataError(f"{name} cannot be read: {reason}") from None
    if path.suffix.lower() == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise DataError(
                f"{name} must be a complete gzip file, as its name says; it is damaged, cut short "
                "or of another format"
            ) from None
    return data


def _decode(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The byte order mark is taken off before positions are counted.
        offset = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        line = data.count(b"\n", 0, offset) + 1
        raise DataError(
            f"{name}, line {line}: the text must be UTF-8; byte 0x{data[offset]:02x} at offset "
            f"{offset} is not: save the table as UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(
            f"{name}, line {line}: the text must have no NUL characters: is it a table, saved as "
            "UTF-8?"
        )
    if not text.strip():
        raise DataError(f"{name} must have a header and rows; it is empty")
    return text


def _delimiter(text: str, name: str) -> str:
    """The separator that occurs most often in the header, outside quotes."""
    lines = enumerate(io.StringIO(text, newline=None), start=1)
    number, header = next((number, line) for number, line in lines if line.strip("\n"))
    outside = "".join(header.split('"')[::2])
    found = max(DELIMITERS, key=outside.count)
    if found not in outside:
        raise DataError(
            f"{name}, line {number}: the header must have two columns or more, separated by "
            f"commas, tabs or semicolons; got the single column {show(header.strip())}"
        )
    return found


def _header(row: list[str], place: str, delimiter: str) -> list[str]:
    names = [name.strip() for name in row]
    if not names[0]:
        names[0] = "index"
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


def _csv_rule(error: str) -> str:
    if "field larger" in error:
        limit = csv.field_size_limit()
        return f"a field must have at most {limit} characters: is a closing quote missing?"
    if "unexpected end" in error:
        return "a quoted field must end with a quote; the file ends before it"
    return f'quotes must enclose a whole field, with "" for a quote inside; {error}'
