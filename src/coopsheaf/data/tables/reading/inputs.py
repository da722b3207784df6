"""Whatever people have a table in, opened: its columns are known, its rows not read yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from os import PathLike
from typing import Any, TypeVar

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.cells import Cells, columns_of
from coopsheaf.data.tables.reading.delimited import read_header, row_numbers, text_chunks
from coopsheaf.data.tables.reading.source import NotFast, Source
from coopsheaf.data.tables.reading.table import Table, join_tables, no_column

Result = TypeVar("Result")
Progress = Callable[[str, int], None]
"""Called with the name of a table and how many rows of it have been read."""

BINARY = (".parquet", ".pq", ".feather", ".arrow", ".ipc")
MAGIC = (b"PAR1", b"ARRO", b"FEA1")


class OpenTable(ABC):
    """A table whose columns are known.

    Args:
        name: what messages call it.
        names: of the columns, as they stand there.
        file: the path of the file, if it will be there tomorrow; else ``None``.
        lists: the columns that a name stands for, where one became several.
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        file: str | None = None,
        lists: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.name, self.names, self.file = name, tuple(names), file
        self._lists = lists or {}
        self.checksum = ""  # of the file, once it has been read

    @abstractmethod
    def fold(self, names: Sequence[str], consume: Callable[[Iterator[Table]], Result]) -> Result:
        """Hand the rows on in parts, one after the other; only the named columns.

        ``consume`` must take all of them. It may be called again from the start.
        """

    def read(self, names: Sequence[str]) -> Table:
        """All rows of the named columns."""
        self.check(names)
        return self.fold(names, lambda parts: join_tables(list(parts)))

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that names stand for: those of a list where it became several columns."""
        return tuple(column for name in names for column in self._lists.get(name, (name,)))

    def check(self, names: Sequence[str], role: str = "a column") -> None:
        for name in names:
            if name not in self.names:
                raise no_column(self.name, name, role, self.names)


class TextFile(OpenTable):
    """Delimited text, through pyarrow where it is installed and the file has no oddities."""

    def __init__(self, source: Source, progress: Progress | None = None) -> None:
        self._source, self._header, self._progress = source, read_header(source), progress
        super().__init__(source.name, self._header.names, source.path if source.is_file else None)

    def fold(self, names: Sequence[str], consume: Callable[[Iterator[Table]], Result]) -> Result:
        if has_pyarrow():
            from coopsheaf.data.tables.reading.arrow_files import fast_chunks

            try:
                return self._fold(fast_chunks, names, consume)
            except NotFast:
                pass
        return self._fold(text_chunks, names, consume)

    def _fold(
        self, chunks: Any, names: Sequence[str], consume: Callable[[Iterator[Table]], Result]
    ) -> Result:
        # Without any column there would be no rows to count.
        wanted = list(names) or list(self.names[:1])
        with self._source.text(self._header.delimiter) as tap:
            parts = chunks(self._source, self._header, wanted, tap)
            result = consume(_counted(parts, self.name, self._progress))
            self.checksum = tap.checksum
        return result


class BinaryFile(OpenTable):
    """A Parquet, Feather or Arrow file."""

    def __init__(self, source: Source, progress: Progress | None = None) -> None:
        need_pyarrow(f"{source.name} is a Parquet or Arrow file")
        from coopsheaf.data.tables.reading.arrow_files import open_binary

        self._source, self._progress = source, progress
        self._batches, lists = open_binary(source)
        self._stored = {column: name for name, columns in lists.items() for column in columns}
        names = _distinct([c for columns in lists.values() for c in columns], source.name)
        file = source.path if source.is_file else None
        super().__init__(source.name, names, file, lists)

    def fold(self, names: Sequence[str], consume: Callable[[Iterator[Table]], Result]) -> Result:
        result = consume(_counted(self._parts(names), self.name, self._progress))
        self.checksum = self._source.digest()
        return result

    def _parts(self, names: Sequence[str]) -> Iterator[Table]:
        from coopsheaf.data.tables.reading.arrow_files import arrow_errors, batch_table

        done, wanted = 0, list(names) or list(self.names[:1])
        stored = list(dict.fromkeys(self._stored[name] for name in wanted))
        with arrow_errors(self.name, "a Parquet or Arrow file"):
            for batch in self._batches(stored):
                batch.validate(full=True)  # or a damaged file would end the process later
                if batch.num_rows:
                    yield batch_table(self.name, batch.select(stored), done, wanted)
                    done += batch.num_rows
        if not done:
            raise DataError(f"{self.name} must have rows; it has none")


class MemoryTable(OpenTable):
    """A table that is there already.

    Args:
        lists: the columns that a name stands for, where one became several.
        refused: columns that cannot be read, and the error of whoever tries.
    """

    def __init__(
        self,
        table: Table,
        lists: Mapping[str, Sequence[str]] | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self._refused = refused or {}
        super().__init__(table.name, (*table.columns, *self._refused), lists=lists)
        self._table = table
        self.checksum = table.checksum

    def fold(self, names: Sequence[str], consume: Callable[[Iterator[Table]], Result]) -> Result:
        for name in names:
            if name in self._refused:
                raise DataError(self._refused[name])
        columns = {name: self._table.columns[name] for name in names}
        return consume(iter([replace(self._table, columns=columns)]))


def open_table(given: object, what: str, progress: Progress | None = None) -> OpenTable:
    """Open whatever holds a table.

    Args:
        given: a path (``.csv .tsv .txt``, these with ``.gz``, ``.parquet``, ``.feather``,
            ``.arrow``; ``-`` for standard input), a pandas or polars DataFrame, a pyarrow Table,
            anything with ``__arrow_c_stream__``, a mapping from names to arrays, or a
            :class:`Table`.
        what: what it is in a message, ``nodes`` or ``edges``.
    """
    if isinstance(given, OpenTable):
        return given
    if isinstance(given, str | PathLike):
        return _open_file(Source(given), progress)
    if isinstance(given, Table):
        return with_rows(given)
    if isinstance(given, Mapping):
        return _mapping(given, what)
    if hasattr(given, "collect") and not hasattr(given, "__arrow_c_stream__"):
        given = given.collect()  # a lazy frame of polars
    if _is_pandas(given) or hasattr(given, "__arrow_c_stream__"):
        need_pyarrow(f"`{what}` is a {type(given).__name__}")
        from coopsheaf.data.tables.reading.frames import frame_table

        return frame_table(given, f"`{what}`")
    raise DataError(
        f"`{what}` must be a path, a DataFrame, an Arrow table or a mapping from names to arrays; "
        f"got {type(given).__name__}"
    )


def _open_file(source: Source, progress: Progress | None) -> OpenTable:
    named = source.path.lower().endswith(BINARY)
    binary = named if source.is_file else source.head(4) in MAGIC
    if named and source.head(4) not in MAGIC:
        raise DataError(
            f"{source.name} must be a Parquet, Feather or Arrow file, as its name says; its first "
            "bytes are of none of them"
        )
    return (BinaryFile if binary else TextFile)(source, progress)


def _mapping(given: Mapping[Any, Any], what: str) -> OpenTable:
    names = _distinct([str(name) for name in given], f"`{what}`")
    columns: dict[str, Cells] = {}
    lists: dict[str, list[str]] = {}
    for name, values in zip(names, given.values(), strict=True):
        made = columns_of(name, values, f"{what}[{name!r}]")
        if made.keys() & columns.keys():
            raise DataError(f"`{what}`: column names must differ; {show(name)} has that of another")
        columns |= made
        lists[name] = list(made)
    sizes = {len(cells) for cells in columns.values()}
    if len(sizes) != 1:
        raise DataError(
            f"`{what}` must have columns of one length; got "
            f"{', '.join(map(str, sorted(sizes))) or 'no column'}"
        )
    return with_rows(Table(f"`{what}`", columns, range(sizes.pop()), place="row"), lists)


def with_rows(
    table: Table,
    lists: Mapping[str, Sequence[str]] | None = None,
    refused: Mapping[str, str] | None = None,
) -> MemoryTable:
    """A table of which an empty one is a mistake; a graph may have no edges."""
    if not table.num_rows:
        raise DataError(f"{table.name} must have rows; it has none")
    return MemoryTable(table, lists, refused)


def _distinct(names: Sequence[str], table: str) -> list[str]:
    found = [name or (row_numbers(names) if not at else name) for at, name in enumerate(names)]
    repeated = [name for name in dict.fromkeys(found) if found.count(name) > 1]
    if repeated:
        raise DataError(f"{table}: column names must differ; {show(repeated[0])} occurs twice")
    return found


def _counted(parts: Iterator[Table], name: str, progress: Progress | None) -> Iterator[Table]:
    done = 0
    for part in parts:
        yield part
        done += part.num_rows
        if progress is not None:
            progress(name, done)


def _is_pandas(given: object) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "columns")


def has_pyarrow() -> bool:
    return find_spec("pyarrow") is not None


def need_pyarrow(because: str) -> None:
    if not has_pyarrow():
        raise DataError(f"{because}, which needs pyarrow: pip install 'coopsheaf[tables]'")
