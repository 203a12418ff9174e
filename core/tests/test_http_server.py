"""The server of metrics and probes beside clients that send no request."""

import socket
import struct
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from groupwright.core import http_server
from groupwright.core.http_server import Endpoints, HttpServer
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until


class Metrics(Endpoints):
    """A page that does not change."""

    def body(self, *, compressed: bool) -> list[bytes]:
        return [b"compressed" if compressed else b"plain"]


@pytest.fixture
def port() -> Iterator[int]:
    server = HttpServer("127.0.0.1", 0, Metrics("text/plain"))
    server.start()
    yield server.port
    server.close()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


@pytest.mark.medium
@pytest.mark.parametrize("sent", [b"", b"GET /metr"])
def test_the_connection_of_a_client_that_sends_no_request_is_closed(
    port: int, sent: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each of them kept a thread for as long as the program ran."""
    assert http_server._Handler.timeout, "there is a limit by default"
    monkeypatch.setattr(http_server._Handler, "timeout", 0.05)
    with connect(port) as client:
        client.sendall(sent)
        assert client.recv(1) == b""
    assert capfd.readouterr().err == ""


@pytest.mark.medium
def test_a_connection_that_is_reset_is_not_reported_as_an_error(
    port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Load balancers probe a port so."""
    handled = []
    shutdown_request = http_server._Server.shutdown_request

    def shut_down(server: http_server._Server, request: socket.socket) -> None:
        shutdown_request(server, request)
        handled.append(request)

    monkeypatch.setattr(http_server._Server, "shutdown_request", shut_down)
    with connect(port) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_until(lambda: bool(handled), "the connection is handled")
    assert capfd.readouterr().err == ""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as response:
        assert response.read() == b"plain"
