"""Ports that a broker can have, and the clear word when it cannot."""

import socket
from collections.abc import Iterator

import pytest

from groupwright.testing import LocalKafkaError
from groupwright.testing._kafka import ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((ports.HOST, 0)) as server:
        yield server.getsockname()[1]


def test_a_free_port_can_be_listened_on_and_is_no_port_of_outgoing_connections() -> None:
    """A client that retries a stopped broker's port in that range can connect to itself and keep the port."""
    port = ports.free_port()

    with socket.create_server((ports.HOST, port)):
        assert 20_000 <= port < 30_000


def test_two_ports_of_one_node_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_CANDIDATES", range(20_100, 20_102))
    monkeypatch.setattr(ports, "_TRIES", 2)
    monkeypatch.setattr(ports, "is_free", lambda _: True)

    assert {ports.free_port(besides={20_100}) for _ in range(20)} == {20_101}


def test_a_taken_port_is_refused_by_its_number(taken: int) -> None:
    with pytest.raises(LocalKafkaError, match=f"Port {taken} on 127.0.0.1 cannot be listened on"):
        ports.require_free(taken)


def test_without_a_free_port_the_search_ends_with_an_error(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "_CANDIDATES", range(taken, taken + 1))
    monkeypatch.setattr(ports, "_TRIES", 1)

    with pytest.raises(LocalKafkaError, match="No free port"):
        ports.free_port()
