"""Files by path, address and checksum: found, verified, downloaded whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from servers import Server, plain_opener, self_signed, serving

from coopsheaf.data import files
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import RemoteFile, cache_dir, find, locate, secure_opener

CONTENT = bytes(range(256)) * 6000  # several chunks
FILE = RemoteFile(
    "set/a.npz", "https://example.invalid/a.npz", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT)
)


def put(folder: Path, content: bytes = CONTENT, path: str = FILE.path) -> Path:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def visible(folder: Path) -> list[str]:
    """Names of the files below a folder, without the empty locks."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name for path in found if not path.name.endswith(".lock"))


def error_of(file: RemoteFile, **arguments: object) -> str:
    with pytest.raises(DataError) as error:
        find(file, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    return str(error.value)


# Looking


def test_folders_are_searched_in_order(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, environment = tmp_path / "given", tmp_path / "environment"
    given.mkdir()
    monkeypatch.setenv("COOPSHEAF_DATA", str(environment))
    in_environment = put(environment)
    in_cache = put(cache)
    assert find(FILE, given) == in_environment
    in_given = put(given)
    assert find(FILE, given) == in_given
    assert find(FILE, str(given)) == in_given
    monkeypatch.delenv("COOPSHEAF_DATA")
    assert find(FILE) == in_cache
    in_cache.unlink()
    assert locate(FILE) is None


def test_a_folder_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "`data_dir` must be an existing folder; got" in error_of(
        FILE, data_dir=tmp_path / "gone"
    )
    monkeypatch.setenv("COOPSHEAF_DATA", str(tmp_path / "gone"))
    assert error_of(FILE).startswith("$COOPSHEAF_DATA must be an existing folder")


@pytest.mark.parametrize(
    "content", [CONTENT[:-1], CONTENT[:-1] + b"x", b""], ids=["short", "other", "empty"]
)
def test_a_wrong_file_is_an_error_not_a_download(tmp_path: Path, content: bytes) -> None:
    path = put(tmp_path, content)
    text = error_of(FILE, data_dir=tmp_path)
    assert text.startswith(f"{path}: must have ")
    if len(content) == len(CONTENT):
        assert FILE.sha256 is not None
        assert FILE.sha256 in text
        assert hashlib.sha256(content).hexdigest() in text
    else:
        assert f"{len(CONTENT)} bytes; found {len(content)} bytes" in text


def test_the_checksum_of_the_authors_is_used_where_there_is_no_other(tmp_path: Path) -> None:
    put(tmp_path)
    file = replace(FILE, sha256=None, md5=hashlib.md5(CONTENT).hexdigest())
    assert find(file, tmp_path).exists()
    assert "must have md5 00" in error_of(replace(file, md5="00"), data_dir=tmp_path)
    assert visible(tmp_path) == ["a.npz"]


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / FILE.path).mkdir(parents=True)
    assert "must be a file" in error_of(FILE, data_dir=tmp_path)


def test_a_file_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = put(tmp_path), []
    original = Path.open

    def count(self: Path, *args: object, **kwargs: object) -> object:
        opened.append(self)
        return original(self, *args, **kwargs)  # type: ignore[arg-type,call-overload]

    monkeypatch.setattr(Path, "open", count)
    for _ in range(3):
        find(FILE, tmp_path)
    assert opened == [path]
    os.utime(path, ns=(1, 1))
    find(FILE, tmp_path)
    assert opened == [path, path]


def test_offline_names_the_file_and_its_place(cache: Path) -> None:
    text = error_of(FILE)
    assert "COOPSHEAF_OFFLINE is set" in text
    for part in (FILE.path, FILE.url, FILE.sha256, str(cache / FILE.path), "$COOPSHEAF_DATA"):
        assert str(part) in text
    assert not cache.exists()


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False), ("False", False)]
)
def test_offline_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: bool
) -> None:
    monkeypatch.setenv("COOPSHEAF_OFFLINE", value)
    assert files.offline() is expected


def test_a_file_without_address_cannot_be_downloaded(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.delenv("COOPSHEAF_OFFLINE")
    text = error_of(replace(FILE, url=None))
    assert "is not published for download" in text
    assert str(cache / FILE.path) in text


def test_the_cache_is_where_the_system_wants_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cache_dir() == Path(os.environ["XDG_CACHE_HOME"]) / "coopsheaf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    for platform, expected in (
        ("linux", tmp_path / ".cache/coopsheaf"),
        ("darwin", tmp_path / "Library/Caches/coopsheaf"),
        ("win32", tmp_path / "local/coopsheaf/Cache"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_dir() == expected
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(DataError, match="XDG_CACHE_HOME"):
        cache_dir()


def test_a_change_since_the_first_use_is_noticed(tmp_path: Path) -> None:
    file = replace(FILE, sha256=None, size=None)
    path = put(tmp_path)
    assert find(file, tmp_path) == path
    record = tmp_path / "set/a.npz.sha256"
    assert record.read_text() == f"{FILE.sha256}  a.npz\n"
    assert find(file, tmp_path) == path
    put(tmp_path, b"other")
    text = error_of(file, data_dir=tmp_path)
    assert "as at its first use" in text
    assert "delete a.npz.sha256" in text
    record.unlink()
    find(file, tmp_path)


def test_a_folder_that_cannot_be_written_keeps_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    path = put(tmp_path)
    monkeypatch.setattr(files, "replacing", refuse)
    assert find(replace(FILE, sha256=None, size=None), tmp_path) == path
    assert visible(tmp_path) == ["a.npz"]


# Downloading


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.delenv("COOPSHEAF_OFFLINE")
    with serving() as server:
        server.files["a.npz"] = CONTENT
        yield server


def remote(server: Server, name: str = "a.npz") -> RemoteFile:
    server.files.setdefault(name, CONTENT)
    return replace(FILE, url=server.url(name))


def test_a_download_goes_into_the_cache_once(
    server: Server, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = remote(server)
    path = find(file, opener=plain_opener())
    assert path == cache / file.path
    assert path.read_bytes() == CONTENT
    assert find(file, opener=plain_opener()) == path
    assert server.requests == ["a.npz"]
    assert visible(cache) == ["a.npz"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"downloading set/a.npz (1.5 MB) from {file.url}\n"


def test_a_terminal_sees_a_progress_bar(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    find(remote(server), opener=plain_opener())
    assert "set/a.npz" in terminal.getvalue()
    assert "1.5/1.5 MB" in terminal.getvalue()


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "a.npz",
            {"sha256": "0" * 64},
            f"must have sha256 {'0' * 64}; found {FILE.sha256} (nothing was kept)",
        ),
        ("a.npz", {"sha256": None, "md5": "0" * 32}, f"must have md5 {'0' * 32}; found"),
        (
            "a.npz",
            {"size": 100},
            "must have 100 bytes; found 262144 bytes or more (nothing was kept)",
        ),
        (
            "a.npz",
            {"size": 2_000_000},
            "must have 2000000 bytes; found 1536000 bytes (nothing was kept)",
        ),
        ("truncated-a.npz", {}, "the connection ended after 768000: try again"),
        ("truncated-a.npz", {"sha256": None, "size": None}, "the connection ended after 768000"),
        (
            "unsized-a.npz",
            {"sha256": None, "size": None},
            "the server must say how long the file is",
        ),
    ],
)
def test_a_bad_download_leaves_nothing(
    server: Server, cache: Path, name: str, change: dict[str, object], words: str
) -> None:
    file = replace(remote(server, name), **change)  # type: ignore[arg-type]
    text = error_of(file, opener=plain_opener())
    assert text.startswith(f"{file.url}: ")
    assert words in text
    assert visible(cache) == []


def test_a_server_need_not_say_the_length_of_a_known_file(server: Server) -> None:
    file = replace(remote(server, "unsized-a.npz"), size=None)
    assert find(file, opener=plain_opener()).read_bytes() == CONTENT


def test_a_missing_page_and_a_dead_server(server: Server, cache: Path) -> None:
    gone = replace(FILE, url=server.url("gone"))
    assert "the server answers 404 Not Found" in error_of(gone, opener=plain_opener())
    dead = replace(FILE, url="http://localhost:1/a.npz")
    assert "must be downloadable; Connection refused" in error_of(dead, opener=plain_opener())
    assert visible(cache) == []


def test_a_full_disk_leaves_nothing(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    text = error_of(remote(server), opener=plain_opener())
    assert text == f"{cache / FILE.path}: must be writable; No space left on device"
    assert visible(cache) == []


def test_a_cache_that_cannot_be_made(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert "must be writable; Not a directory" in error_of(remote(server), opener=plain_opener())


def test_only_https_is_opened_by_default(server: Server, tmp_path: Path) -> None:
    for url in (server.url("a.npz"), put(tmp_path).as_uri(), "ftp://localhost/a.npz"):
        assert "must be downloadable; unknown url type" in error_of(replace(FILE, url=url))
    assert server.requests == []


WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
from servers import plain_opener
from coopsheaf.data import files
sha256, size, url = sys.argv[2:]
print(files.find(files.RemoteFile("set/a.npz", url, sha256, int(size)), opener=plain_opener()))
"""


def worker(server: Server) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parents[1])
    arguments = [str(FILE.sha256), str(FILE.size), server.url("a.npz")]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, tests, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, size: int) -> None:
    end = time.monotonic() + 30
    while not (path.exists() and path.stat().st_size >= size):
        assert time.monotonic() < end, "nothing was written"
        time.sleep(0.01)


def test_two_processes_share_one_download(server: Server, cache: Path) -> None:
    server.pause = 0.1
    workers = [worker(server), worker(server)]
    results = [process.communicate(timeout=60) for process in workers]
    assert [out for out, _ in results] == [f"{cache / FILE.path}\n"] * 2
    assert server.requests == ["a.npz"]
    assert visible(cache) == ["a.npz"]
    assert (cache / FILE.path).read_bytes() == CONTENT


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_download_leaves_no_half_file_and_no_lock(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.pause = 0.1
    process = worker(server)
    wait_for(cache / "set/.a.npz.part", 1)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert not (cache / FILE.path).exists()
    assert locate(FILE) is None
    server.pause = 0.0
    path = find(remote(server), opener=plain_opener())
    assert path.read_bytes() == CONTENT
    assert visible(cache) == ["a.npz"]


# Certificates

needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def secure_server(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    monkeypatch.delenv("COOPSHEAF_OFFLINE")
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with serving(context) as server:
        server.files["a.npz"] = CONTENT
        yield server


def trusting(certificate: tuple[Path, Path]) -> urllib.request.OpenerDirector:
    return secure_opener(ssl.create_default_context(cafile=str(certificate[0])))


@needs_openssl
def test_a_certificate_that_nobody_vouches_for_is_refused(
    secure_server: Server, cache: Path
) -> None:
    assert "certificate verify failed" in error_of(remote(secure_server)).lower()
    assert visible(cache) == []
    assert secure_server.requests == []


@needs_openssl
def test_a_trusted_certificate_is_accepted(
    secure_server: Server, certificate: tuple[Path, Path]
) -> None:
    assert find(remote(secure_server), opener=trusting(certificate)).read_bytes() == CONTENT


@needs_openssl
def test_a_certificate_of_another_name_is_refused(
    secure_server: Server, certificate: tuple[Path, Path]
) -> None:
    file = replace(FILE, url=secure_server.url("a.npz").replace("localhost", "127.0.0.1"))
    assert "certificate verify failed" in error_of(file, opener=trusting(certificate)).lower()


@needs_openssl
def test_a_redirection_is_followed_but_not_out_of_https(
    secure_server: Server, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    secret = put(tmp_path, CONTENT, "secret").as_uri()
    with serving() as plain:
        plain.files["a.npz"] = CONTENT
        for number, target in enumerate((plain.url("a.npz"), secret)):
            name = f"redirect-{number}"
            secure_server.files[name] = target.encode()
            text = error_of(remote(secure_server, name), opener=trusting(certificate))
            assert "must be downloadable" in text
        assert plain.requests == []
    secure_server.files["redirect-ok"] = secure_server.url("a.npz").encode()
    assert find(remote(secure_server, "redirect-ok"), opener=trusting(certificate)).exists()
