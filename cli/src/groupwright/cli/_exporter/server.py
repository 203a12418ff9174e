"""The HTTP server: it serves the pages that the last refresh made, whatever the cluster does meanwhile."""

import gzip
import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CONTENT_TYPE_LATEST

_LEVEL = 1
"""Compression: pages are names that repeat, of which the fastest level leaves a tenth."""


class Pages:
    """The page to serve: the groups', made by each refresh, and the exporter's own, made by each scrape."""

    def __init__(self, own: Callable[[], bytes]) -> None:
        """Start without groups.

        Args:
            own: Returns the exporter's own metrics.
        """
        self._own = own
        self._groups: tuple[bytes, bytes] | None = None

    def publish(self, groups: bytes) -> None:
        """Replace the page of the groups."""
        self._groups = groups, gzip.compress(groups, _LEVEL)

    @property
    def is_ready(self) -> bool:
        """Whether a refresh has succeeded."""
        return self._groups is not None

    def body(self, *, compressed: bool) -> list[bytes]:
        """Return the page in parts: gzip, too, may be a sequence of compressed parts."""
        groups = self._groups or (b"", b"")
        own = self._own()
        return [groups[1], gzip.compress(own, _LEVEL)] if compressed else [groups[0], own]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Respond to a request: this is a WSGI application."""
        path, headers = environ["PATH_INFO"], [("Content-Type", "text/plain")]
        if environ["REQUEST_METHOD"] != "GET":
            status, body = "405 Method Not Allowed", [b"GET alone\n"]
        elif path == "/metrics":
            compressed = "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "")
            status, body = "200 OK", self.body(compressed=compressed)
            headers = [("Content-Type", CONTENT_TYPE_LATEST)]
            headers += [("Content-Encoding", "gzip")] if compressed else []
        elif path == "/healthy":
            status, body = "200 OK", [b"running\n"]
        elif path == "/ready":
            status = "200 OK" if self.is_ready else "503 Service Unavailable"
            body = [b"ready\n" if self.is_ready else b"no refresh has succeeded yet\n"]
        else:
            status, body = "404 Not Found", [b"see /metrics\n"]
        start_response(status, [*headers, ("Content-Length", str(sum(map(len, body))))])
        return body


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log no requests."""


class HttpServer:
    """Serves pages in threads of its own, from `start` to `close`."""

    def __init__(self, host: str, port: int, pages: Pages) -> None:
        """Bind the port; 0 is any free one.

        Raises:
            OSError: The address cannot be bound.
        """
        self._server: WSGIServer = make_server(
            host, port, pages, _Server6 if ":" in host else _Server, _Handler
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="exporter-http", daemon=True)

    @property
    def port(self) -> int:
        """The bound port."""
        return self._server.server_port

    def start(self) -> None:
        """Serve from now on."""
        self._thread.start()

    def close(self) -> None:
        """Serve no longer, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
