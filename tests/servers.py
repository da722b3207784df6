"""A small web server for tests of downloads."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    """Serves ``files`` and counts requests; some paths behave badly, by their name."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.scheme = "http"
        self.pause = 0.0  # seconds between two pieces of a file
        if context is not None:
            self.scheme = "https"
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def url(self, name: str) -> str:
        return f"{self.scheme}://localhost:{self.server_port}/{name}"

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients of these tests hang up on purpose


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.lstrip("/")
        self.server.requests.append(name)
        if name.startswith("redirect-"):
            self.send_response(302)
            self.send_header("Location", self.server.files[name].decode())
            self.end_headers()
            return
        if name not in self.server.files:
            self.send_error(404, "Not Found")
            return
        body = self.server.files[name]
        self.send_response(200)
        if not name.startswith("unsized-"):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if name.startswith("truncated-"):
            body = body[: len(body) // 2]
        step = max(1, len(body) // 20) if self.server.pause else max(1, len(body))
        for start in range(0, len(body), step):
            self.wfile.write(body[start : start + step])
            self.wfile.flush()
            time.sleep(self.server.pause)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    with Server(context) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def plain_opener() -> urllib.request.OpenerDirector:
    """Opens http addresses on this machine, which the library itself refuses to."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that nobody vouches for, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-out", str(certificate), "-keyout", str(key),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return certificate, key
