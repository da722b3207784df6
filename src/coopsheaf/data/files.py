"""Find a published file: in a data folder, in the user's cache, or on the network.

Every file is known by its path inside a data folder, its address and its checksum. A file is
looked for in the folder given by the caller, then in ``$COOPSHEAF_DATA``, then in the user's cache;
if it is nowhere it is downloaded into the cache. ``COOPSHEAF_OFFLINE=1`` forbids the download.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from coopsheaf.data.errors import DataError
from coopsheaf.data.progress import say, show_progress
from coopsheaf.files import locked, replacing

TIMEOUT = 60.0  # seconds without a byte
CHUNK = 1 << 18

_digests: dict[tuple[str, str, int, int], str] = {}


@dataclass(frozen=True)
class RemoteFile:
    """A file that someone has published.

    Args:
        path: where it lives inside a data folder, such as ``"platonov/tolokers.npz"``.
        url: its https address; ``None`` if it cannot be downloaded.
        sha256: its checksum. Where nobody has published one, the checksum at first use is written
            beside the file (``<name>.sha256``) and a later change is an error.
        size: number of bytes, if known.
        md5: the checksum its authors give, used where there is no sha256.
    """

    path: str
    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    md5: str | None = None

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


def cache_dir() -> Path:
    """The user's cache: ``$XDG_CACHE_HOME/coopsheaf``, or what the system has for it."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "coopsheaf"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise DataError(
            "the home folder must be known to keep downloads; "
            "set $XDG_CACHE_HOME or $COOPSHEAF_DATA to a folder"
        ) from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local") / "coopsheaf/Cache"
    if sys.platform == "darwin":
        return home / "Library/Caches/coopsheaf"
    return home / ".cache/coopsheaf"


def data_dirs(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """The folders in which files are looked for, first to last; the last is the cache."""
    folders = []
    given = {"`data_dir`": data_dir, "$COOPSHEAF_DATA": os.environ.get("COOPSHEAF_DATA")}
    for source, folder in given.items():
        if folder is None or folder == "":
            continue
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise DataError(f"{source} must be an existing folder; got {str(folder)!r}")
        folders.append(path)
    return [*folders, cache_dir()]


def offline() -> bool:
    """Whether ``$COOPSHEAF_OFFLINE`` forbids the network."""
    return os.environ.get("COOPSHEAF_OFFLINE", "").lower() not in ("", "0", "false", "no")


def locate(file: RemoteFile, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The verified file if it is on this machine; never touches the network."""
    for folder in data_dirs(data_dir):
        path = folder / file.path
        if path.exists():
            verify_file(path, file)
            return path
    return None


def find(
    file: RemoteFile,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    opener: urllib.request.OpenerDirector | None = None,
) -> Path:
    """The verified file, downloaded into the user's cache if it is not on this machine.

    Args:
        file: what is wanted.
        data_dir: a folder to look in first; it must exist.
        opener: what opens the address; :func:`secure_opener` if not given.
    """
    found = locate(file, data_dir)
    if found is not None:
        return found
    target = cache_dir() / file.path
    what = f"{file.path} is not on this machine"
    where = f"put it at {target}, or at {file.path} below a folder named by $COOPSHEAF_DATA"
    if file.url is None:
        raise DataError(f"{what} and is not published for download; {where}")
    if offline():
        checksum = f" (sha256 {file.sha256})" if file.sha256 else ""
        raise DataError(
            f"{what} and COOPSHEAF_OFFLINE is set; get {file.url}{checksum} and {where}"
        )
    return download(file, target, opener=opener)


def verify_file(path: Path, file: RemoteFile) -> None:
    """Compare a file on disk with what is known of it; read once per process and change."""
    if not path.is_file():
        raise DataError(f"{path}: must be a file; it is a folder or something else")
    try:
        size = path.stat().st_size
        if file.size is not None and size != file.size:
            raise _mismatch(path, f"{file.size} bytes", f"{size} bytes")
        for algorithm, expected in (("sha256", file.sha256), ("md5", file.md5)):
            if expected is not None:
                got = checksum(path, algorithm)
                if got != expected:
                    raise _mismatch(path, f"{algorithm} {expected}", got)
                return
        _compare_with_first_use(path)
    except OSError as error:
        raise DataError(f"{path}: must be readable; {one_line(error)}") from error


def checksum(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file in hexadecimal, remembered until the file changes."""
    stat = path.stat()
    key = (algorithm, str(path.absolute()), stat.st_size, stat.st_mtime_ns)
    if key not in _digests:
        digest = hashlib.new(algorithm, usedforsecurity=False)
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
        _digests[key] = digest.hexdigest()
    return _digests[key]


def download(
    file: RemoteFile, target: Path, *, opener: urllib.request.OpenerDirector | None = None
) -> Path:
    """Download a file to ``target``: whole and verified, or not at all.

    A second process that wants the same file waits and then uses what the first one fetched.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target, lambda: say(f"waiting for another process to fetch {file.path}")):
            if not target.exists():
                with replacing(target) as stream:
                    _fetch(file, stream, opener or secure_opener())
    except OSError as error:
        raise DataError(f"{target}: must be writable; {one_line(error)}") from error
    verify_file(target, file)
    return target


def secure_opener(context: ssl.SSLContext | None = None) -> urllib.request.OpenerDirector:
    """Opens https addresses with verified certificates, and nothing else.

    A redirection to plain http, to a file or to ftp fails because nothing here opens those.
    """
    opener = urllib.request.OpenerDirector()
    proxies = {kind: url for kind, url in urllib.request.getproxies().items() if kind == "https"}
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPSHandler(context=context or ssl.create_default_context()),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def one_line(error: BaseException) -> str:
    """What an exception says, on one line of reasonable length."""
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."


def printable(text: str) -> str:
    """Text out of a damaged file on one line: what cannot be printed is written as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _fetch(file: RemoteFile, stream: BinaryIO, opener: urllib.request.OpenerDirector) -> None:
    """Copy the file's address to ``stream`` and compare it with what is known."""
    assert file.url is not None
    algorithm, expected = ("md5", file.md5) if file.sha256 is None else ("sha256", file.sha256)
    digest = hashlib.new(algorithm, usedforsecurity=False)
    received = 0
    for chunk in _chunks(file, opener):
        digest.update(chunk)
        received += len(chunk)
        if file.size is not None and received > file.size:
            break  # no need to fetch the rest
        stream.write(chunk)
    if file.size is not None and received != file.size:
        found = f"{received} bytes" + (" or more" if received > file.size else "")
        raise _mismatch(file.url, f"{file.size} bytes", found)
    if expected is not None and digest.hexdigest() != expected:
        raise _mismatch(file.url, f"{algorithm} {expected}", digest.hexdigest())


def _chunks(file: RemoteFile, opener: urllib.request.OpenerDirector) -> Iterator[bytes]:
    """The body of the file's address; whatever goes wrong on the way is a ``DataError``."""
    url = str(file.url)
    request = urllib.request.Request(
        url, headers={"User-Agent": "coopsheaf", "Accept-Encoding": "identity"}
    )
    received = 0
    try:
        response = opener.open(request, timeout=TIMEOUT)
        if response is None:
            raise DataError(f"{url}: must be an address that can be opened; nothing opens it")
        with response:
            header = response.headers.get("Content-Length", "")
            total = int(header) if header.isdigit() else file.size
            if total is None and file.sha256 is None and file.md5 is None:
                raise DataError(
                    f"{url}: the server must say how long the file is, as its checksum is not "
                    "known; it does not: fetch it by other means"
                )
            with _progress(file, total) as advance:
                while chunk := response.read(CHUNK):
                    received += len(chunk)
                    advance(len(chunk))
                    yield chunk
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(
            f"{url}: must be downloadable; the server answers {error.code} {error.reason}"
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, DataError):
            raise
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        text = one_line(reason) if isinstance(reason, BaseException) else str(reason)
        raise DataError(f"{url}: must be downloadable; {text}") from error
    if total is not None and received < total:
        raise DataError(
            f"{url}: must have {total} bytes; the connection ended after {received}: try again"
        )


def _progress(
    file: RemoteFile, total: int | None
) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    size = "" if total is None else f" ({total / 1e6:.1f} MB)"
    line = f"downloading {file.path}{size} from {file.url}"
    return show_progress(file.path, line, total, as_bytes=True)


def _mismatch(where: object, expected: str, found: str) -> DataError:
    advice = "delete it to fetch it again" if isinstance(where, Path) else "nothing was kept"
    return DataError(f"{where}: must have {expected}; found {found} ({advice})")


def _compare_with_first_use(path: Path) -> None:
    """For a file whose checksum nobody has published: it must be what it was at first use."""
    record = path.with_name(path.name + ".sha256")
    found = checksum(path)
    if record.exists():
        words = record.read_text(encoding="utf-8", errors="replace").split()
        expected = words[0] if words else ""
        if found != expected:
            raise DataError(
                f"{path}: must have sha256 {expected} as at its first use; found {found} "
                f"(delete {record.name} if the change is meant)"
            )
        return
    with contextlib.suppress(OSError), locked(record), replacing(record) as stream:
        # A folder that cannot be written to keeps no record: the file is used all the same.
        stream.write(f"{found}  {path.name}\n".encode())
