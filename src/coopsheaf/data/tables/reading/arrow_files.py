"""Delimited text, Parquet and Arrow files through pyarrow. Imports it: ``inputs`` asks first."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from pyarrow.feather import read_table as read_feather

from coopsheaf.data.compressed import check_unpacked
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import one_line
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.arrow_cells import ArrowText, arrow_cells, is_list
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.delimited import FoundLines, Header
from coopsheaf.data.tables.reading.source import NotFast, Source, Tap
from coopsheaf.data.tables.reading.table import Table

BLOCK_BYTES = 8 << 20
BATCH_ROWS = 1 << 18
PARQUET = b"PAR1"


def fast_chunks(source: Source, header: Header, names: Sequence[str], tap: Tap) -> Iterator[Table]:
    """The texts of :func:`~coopsheaf.data.tables.reading.delimited.text_chunks`, or ``NotFast``."""
    while tap.read(BLOCK_BYTES):  # all of it is looked at before any of it is taken
        pass
    never_closed = tap.quotes % 2 or tap.last_opens
    if tap.nul or tap.odd_quotes or never_closed or (tap.quotes and tap.spaces):
        raise NotFast
    reading = pa_csv.ReadOptions(
        column_names=list(header.names), skip_rows=header.line, block_size=BLOCK_BYTES
    )
    parsing = pa_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
    converting = pa_csv.ConvertOptions(
        include_columns=list(names),
        column_types=dict.fromkeys(header.names, pa.string()),
        strings_can_be_null=False,
    )
    done = 0
    try:
        with (
            _native(source) as stream,
            pa_csv.open_csv(stream, reading, parsing, converting) as batches,
        ):
            for batch in batches:
                if not batch.num_rows:
                    continue
                longest = max(pc.max(pc.binary_length(c)).as_py() for c in batch.columns)
                if longest > csv.field_size_limit():
                    raise NotFast
                columns = [_trimmed(column) if tap.spaces else column for column in batch.columns]
                cells: dict[str, Cells] = {
                    name: ArrowText(pa.chunked_array([column]))
                    for name, column in zip(names, columns, strict=True)
                }
                lines = FoundLines(batch.num_rows, source, header, done, tap.plain_lines)
                yield Table(source.name, cells, lines)
                done += batch.num_rows
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError):
        raise NotFast from None
    if not done:
        raise NotFast


def _native(source: Source) -> Any:
    """The bytes as a stream of pyarrow's own.

    Its reader runs ahead in a thread. That must not call Python: a thread that does when the
    program ends, after an error say, takes the whole process down.
    """
    stream = pa.OSFile(source.path) if source.is_file else pa.BufferReader(source.whole())
    return pa.CompressedInputStream(stream, "gzip") if source.is_gzip else stream


def _trimmed(texts: Any) -> Any:
    """Spaces after a separator do not count."""
    return pc.utf8_ltrim(texts, characters=" ")


@contextmanager
def arrow_errors(name: str, kind: str) -> Iterator[None]:
    """Whatever a damaged file makes pyarrow raise, as one line that names it."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise DataError(f"{name} must be {kind}, as its name says; {one_line(error)}") from None


def open_binary(source: Source) -> tuple[Any, dict[str, list[str]]]:
    """A function from names to batches of those columns of a Parquet or Arrow file; and all names,
    each with the columns that it stands for.

    Both kinds are told apart by their first bytes.
    """
    with arrow_errors(source.name, "a file that can be read"):
        stream = pa.OSFile(source.path) if source.is_file else pa.BufferReader(source.whole())
    if source.head(4) == PARQUET:
        from pyarrow.parquet import ParquetFile

        with arrow_errors(source.name, "a Parquet file"):
            file = ParquetFile(stream, thrift_string_size_limit=2**27)
            _check_size(source, stream.size(), file.metadata)
            batches = partial(_parquet_batches, file)
            return batches, _columns(source.name, file.schema_arrow, batches)
    with arrow_errors(source.name, "an Arrow or Feather file"):
        whole = read_feather(stream)
        whole.validate(full=True)  # or a damaged file can end the process in `to_batches`

        def parts(names: Sequence[str]) -> Any:
            return whole.select(list(names)).to_batches()

        return parts, _columns(source.name, whole.schema, parts)


def _columns(table: str, schema: Any, batches: Any) -> dict[str, list[str]]:
    """The columns of each name; those of a list are counted in its first row."""
    found: dict[str, list[str]] = {}
    for field in schema:
        name = field.name
        if name in found:
            raise DataError(f"{table}: column names must differ; {name!r} occurs twice")
        found[name] = [name]
        if is_list(field.type):
            lists: Any = next((pc.drop_null(batch.column(0)) for batch in batches([name])), [])
            width = len(lists[0]) if len(lists) else 0
            found[name] = [f"{name}[{place}]" for place in range(width)]
    return found


def _parquet_batches(file: Any, names: Sequence[str]) -> Iterator[Any]:
    return file.iter_batches(batch_size=BATCH_ROWS, columns=list(names))


def _check_size(source: Source, stored: int, metadata: Any) -> None:
    claimed = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    check_unpacked(source.name, stored, claimed)


def batch_table(name: str, batch: Any, first_row: int, wanted: Sequence[str]) -> Table:
    """Some columns of pyarrow as a table whose rows are counted from 0."""
    cells: dict[str, Cells] = {}
    for column, values in zip(batch.schema.names, batch.columns, strict=True):
        values = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        cells |= arrow_cells(column, values, name)
    lacking = [column for column in wanted if column not in cells]
    if lacking:
        raise DataError(
            f"{name}, column {show(lacking[0])}: lists must be of one length; from row {first_row} "
            "on they have another one"
        )
    cells = {column: cells[column] for column in wanted}
    return Table(name, cells, range(first_row, first_row + batch.num_rows), place="row")
