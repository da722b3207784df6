"""Where the trials of a sweep are kept: a journal in its folder, or a PostgreSQL database.

Both give the same two promises, which do not outlive the process that they were given to, however
it ends: to be alone with the trials (``exclusive``), and to be the one who runs a trial
(``lease``). A trial that nobody holds a lease on has lost its process.

Optuna's own heartbeats are not used: a journal has none, and a database does not miss a trial whose
process ended before its first beat.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from coopsheaf.extras import load_extra
from coopsheaf.files import locked
from coopsheaf.sweep.journal import journal_storage

DRIVERS = ("psycopg", "psycopg2")
_SCHEMES = ("postgresql", "postgres", *(f"postgresql+{driver}" for driver in DRIVERS))
_EXAMPLE = "postgresql://user@host/database"


# A server that hears nothing from a machine for a minute asks four times in another one.
_PROBES = "-c tcp_keepalives_idle=60 -c tcp_keepalives_interval=15 -c tcp_keepalives_count=4"


class StorageError(ValueError):
    """A database that cannot be used; one line, without passwords."""


def load_optuna() -> Any:
    """Optuna, which nothing but a sweep needs."""
    optuna = load_extra("optuna", "sweeps need")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class Home(Protocol):
    """Where trials live."""

    storage: Any

    def exclusive(self) -> AbstractContextManager[None]:
        """Be the only process that hands out or ends trials; waits for it."""

    def lease(self, number: int) -> AbstractContextManager[None]:
        """Be the process that runs a trial."""

    def is_leased(self, number: int) -> bool:
        """Whether a living process runs a trial."""

    def close(self) -> None:
        """Let go of files and connections."""


class JournalHome:
    """Trials in ``journal.log`` of a folder, for processes of one machine."""

    def __init__(self, folder: Path) -> None:
        load_optuna()
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.storage = journal_storage(folder / "journal.log")

    def exclusive(self) -> AbstractContextManager[None]:
        return locked(self.folder / "trials")

    def lease(self, number: int) -> AbstractContextManager[None]:
        return locked(self._lease(number), _refuse)

    def is_leased(self, number: int) -> bool:
        try:
            with locked(self._lease(number), _refuse):
                return False
        except _Taken:
            return True

    def close(self) -> None:
        pass  # files are open only while they are read or written

    def _lease(self, number: int) -> Path:
        return self.folder / "leases" / f"trial-{number}"


class _Taken(Exception):
    """Somebody else has it."""


def _refuse() -> None:
    raise _Taken


class PostgresHome:
    """Trials in a PostgreSQL database, for processes of any number of machines.

    Promises are advisory locks, which the server drops when a session ends. A session whose machine
    has vanished ends after two minutes without an answer.

    Args:
        url: what :func:`check_storage` has returned.
        name: of the study.
    """

    _EVERYTHING, _TABLES = -1, (0x636F6F70, 0)

    def __init__(self, url: str, name: str) -> None:
        optuna = load_optuna()
        import sqlalchemy

        self._sql, self._failure = sqlalchemy.text, sqlalchemy.exc.SQLAlchemyError
        arguments = {"connect_timeout": 20, "options": _PROBES}
        options = {"pool_pre_ping": True, "connect_args": arguments}
        digest = hashlib.sha256(name.encode()).digest()
        self._key = int.from_bytes(digest[:4], "big", signed=True)
        with as_storage_error(url):
            self._engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", **options)
            with self._hold(*self._TABLES):  # two processes that make the tables at once collide
                self.storage = optuna.storages.RDBStorage(url, engine_kwargs=options)

    def exclusive(self) -> AbstractContextManager[None]:
        return self._hold(self._key, self._EVERYTHING)

    def lease(self, number: int) -> AbstractContextManager[None]:
        return self._hold(self._key, number)

    def is_leased(self, number: int) -> bool:
        with self._engine.connect() as session:
            if not self._call(session, "pg_try_advisory_lock", self._key, number):
                return True
            self._call(session, "pg_advisory_unlock", self._key, number)
            return False

    def close(self) -> None:
        for engine in (self._engine, self.storage.engine):
            engine.dispose()

    @contextmanager
    def _hold(self, key: int, number: int) -> Iterator[None]:
        with self._engine.connect() as session:
            self._call(session, "pg_advisory_lock", key, number)
            try:
                yield
            finally:
                try:
                    self._call(session, "pg_advisory_unlock", key, number)
                except self._failure:  # the session is gone, and its locks with it
                    session.invalidate()

    def _call(self, session: Any, function: str, key: int, number: int) -> Any:
        return session.execute(self._sql(f"select {function}({key}, {number})")).scalar()


def check_storage(url: str) -> str:
    """The URL of a PostgreSQL database as SQLAlchemy wants it; anything else is an error.

    Args:
        url: such as ``postgresql://user@host/database``; a password is better left to
            ``PGPASSWORD`` or ``~/.pgpass``, which libpq reads.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        raise StorageError(
            f"`storage` must be the URL of a PostgreSQL database, such as {_EXAMPLE} (without it, "
            f"trials are kept in the sweep's folder); got {masked(url)!r}"
        )
    load_optuna()
    driver = scheme.partition("+")[2]
    if not driver:
        driver = next((name for name in DRIVERS if importlib.util.find_spec(name)), "")
    if not driver or importlib.util.find_spec(driver) is None:
        raise StorageError(
            f"`storage` needs {driver or DRIVERS[0]}, which is not installed: "
            "pip install 'psycopg[binary]'"
        )
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    whole = f"postgresql+{driver}://{rest}"
    try:
        parsed = make_url(whole)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or not parsed.database:
        raise StorageError(f"`storage` must look like {_EXAMPLE}; got {masked(url)!r}")
    return whole


def masked(url: str) -> str:
    """A URL without its password."""
    url = re.sub(r"(://[^:@/?]*):.*@", r"\1:***@", url)
    return re.sub(r"(?i)(password=)[^&]*", r"\1***", url)


@contextmanager
def as_storage_error(url: str | None, advice: str = "") -> Iterator[None]:
    """Make one line of what goes wrong with a database; nothing, of a journal.

    Args:
        url: of the database.
        advice: the end of the line.
    """
    if url is None:
        yield
        return
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        cause = getattr(error, "orig", None) or error.__cause__ or error
        reason = masked(" ".join(str(cause).split()))
        raise StorageError(f"{masked(url)}: cannot be used ({reason}){advice}") from None


def make_home(folder: Path, storage: str | None, name: str) -> Home:
    """The home of a sweep: its folder, or a database.

    Args:
        folder: of the sweep.
        storage: what :func:`check_storage` has returned, or ``None``.
        name: of the study.
    """
    return JournalHome(folder) if storage is None else PostgresHome(storage, name)
