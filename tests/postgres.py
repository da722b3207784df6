"""A PostgreSQL server of our own, at a port of this machine only, started and stopped as needed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PASSWORD = "a secret: @/%"
QUOTED = "a%20secret%3A%20%40%2F%25"


def find_programs() -> Path | None:
    """The newest server on this machine."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))  # fmt: skip
    return next((path for path in reversed(folders) if (path / "initdb").exists()), None)


PROGRAMS = find_programs()


class Postgres:
    """A server with data of its own; runs inside of ``with``.

    ``stop`` ends it as a crash would, ``start`` lets it recover.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="coopsheaf-postgres-"))
        self.data = self.folder / "data"
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://sweeper:{QUOTED}@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> Postgres:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            for path in (self.folder, secret):
                shutil.chown(path, "postgres", "postgres")
        try:
            _program("initdb", "-D", str(self.data), "-U", "sweeper", "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        # What a process was told is written must be there after a crash of the server, not of the
        # machine: the kernel keeps it without fsync.
        settings = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories={self.folder} -c fsync=off"
        log = str(self.folder / "log")
        _program("pg_ctl", "start", "-w", "-D", str(self.data), "-l", log, "-o", settings)

    def stop(self) -> None:
        _program("pg_ctl", "stop", "-m", "immediate", "-D", str(self.data))


def _program(name: str, *words: str) -> None:
    """Run a program of PostgreSQL, which refuses to run as root."""
    assert PROGRAMS is not None
    options: dict[str, Any] = {"user": "postgres", "group": "postgres", "extra_groups": ()} if os.getuid() == 0 else {}  # fmt: skip
    done = subprocess.run([PROGRAMS / name, *words], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **options)  # fmt: skip
    assert done.returncode == 0, done.stdout
