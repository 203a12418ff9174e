"""HTTP server for metrics and probes: /metrics, /ready and /healthy, in threads of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


class Endpoints:
    """A WSGI application with metrics and two probes.

    /ready and /healthy respond with 200, or with 503 and the reason.
    """

    def __init__(self, content_type: str) -> None:
        """Serve metrics of this media type."""
        self._content_type = content_type

    def body(self, *, compressed: bool) -> list[bytes]:
        """Return the metrics in parts, each of them compressed by gzip on request."""
        raise NotImplementedError

    def unready(self) -> str:
        """Return the reason why the program is not ready; empty if it is."""
        return ""

    def unhealthy(self) -> str:
        """Return the reason why the program must be restarted; empty if it need not."""
        return ""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Respond to a request."""
        path, headers = environ["PATH_INFO"], [("Content-Type", "text/plain")]
        if environ["REQUEST_METHOD"] != "GET":
            status, body = "405 Method Not Allowed", [b"only GET is allowed\n"]
        elif path == "/metrics":
            compressed = "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "")
            status, body = "200 OK", self.body(compressed=compressed)
            headers = [("Content-Type", self._content_type)]
            headers += [("Content-Encoding", "gzip")] if compressed else []
        elif path == "/healthy":
            status, body = _probe(self.unhealthy(), "running")
        elif path == "/ready":
            status, body = _probe(self.unready(), "ready")
        else:
            status, body = "404 Not Found", [b"see /metrics\n"]
        start_response(status, [*headers, ("Content-Length", str(sum(map(len, body))))])
        return body


def _probe(reason: str, good: str) -> tuple[str, list[bytes]]:
    status = "503 Service Unavailable" if reason else "200 OK"
    return status, [f"{reason or good}\n".encode()]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = 30.0
    """Seconds to wait for a client that neither sends nor receives; its connection is closed then."""

    def handle(self) -> None:
        """Respond to a request; a client that disconnects or times out is not an error."""
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Log no requests."""


class HttpServer:
    """Serves a WSGI application in threads of its own, from `start` to `close`."""

    def __init__(self, host: str, port: int, application: Endpoints) -> None:
        """Bind the port; 0 is any free one.

        Raises:
            OSError: The address cannot be bound.
        """
        self._server: WSGIServer = make_server(
            host, port, application, _Server6 if ":" in host else _Server, _Handler
        )
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The bound port."""
        return self._server.server_port

    def start(self) -> None:
        """Start to serve."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
