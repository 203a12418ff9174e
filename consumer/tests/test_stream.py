"""Connections to the addresses of a name."""

import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from groupwright.consumer._network.event_loop import Loop
from groupwright.consumer._network.stream import Stream, canonical_names
from groupwright.consumer._protocol.known_brokers import Address
from groupwright.consumer._protocol.model import DisconnectedError
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

HOST = "127.0.0.1"
LACKING = 255, ("::1", 9092)
"""An address of a family that no system has."""
NAMES = {"10.0.0.1": "b1.test", "10.0.0.2": "b2.test"}


@pytest.fixture
def run(loop: Loop, run_on: Callable[[Loop, Any], Any]) -> Callable[[Any], Any]:
    return partial(run_on, loop)


@pytest.fixture
def listeners() -> Iterator[list[socket.socket]]:
    """Three that accept."""
    found = [socket.create_server((HOST, 0)) for _ in range(3)]
    yield found
    for each in found:
        each.close()


def addresses(monkeypatch: pytest.MonkeyPatch, *places: tuple[int, Any]) -> None:
    """Let each name have these addresses."""
    rows = [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place) for family, place in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: rows)


@pytest.mark.medium
@pytest.mark.parametrize(("first", "index"), [(0, 0), (1, 1), (2, 2), (3, 0), (7, 1)])
def test_the_first_address_is_the_one_that_is_asked_for(
    loop: Loop,
    run: Callable[[Any], Any],
    listeners: list[socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    first: int,
    index: int,
) -> None:
    addresses(monkeypatch, *((socket.AF_INET, each.getsockname()) for each in listeners))
    opening = Stream.open(loop, Address("kafka", 9092), time.monotonic() + PATIENCE, first=first)
    stream = run(opening)
    assert stream._sock.getpeername() == listeners[index].getsockname()
    stream.close()


@pytest.mark.parametrize("is_first", [True, False])
def test_an_address_of_a_family_that_the_system_lacks_is_left_out(
    loop: Loop,
    run: Callable[[Any], Any],
    listeners: list[socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    is_first: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    there = socket.AF_INET, listeners[0].getsockname()
    addresses(monkeypatch, *((LACKING, there) if is_first else (there, LACKING)))
    stream = run(Stream.open(loop, Address("kafka", 9092), time.monotonic() + PATIENCE))
    assert stream._sock.getpeername() == there[1]
    stream.close()


def test_an_address_that_refuses_is_named_and_not_a_family_that_the_system_lacks(
    loop: Loop,
    run: Callable[[Any], Any],
    listeners: list[socket.socket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = listeners[0].getsockname()
    listeners[0].close()
    addresses(monkeypatch, (socket.AF_INET, gone), LACKING)
    error = run(Stream.open(loop, Address("kafka", 9092), time.monotonic() + PATIENCE))
    assert isinstance(error, DisconnectedError)
    assert str(error) == "kafka:9092 cannot be reached: Connection refused"


def test_each_address_of_a_name_has_its_canonical_name(
    loop: Loop, run: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One name for all brokers, each of which has a Kerberos ticket of its own (KIP-235)."""

    def look_up(place: tuple[str, int], _flags: int) -> tuple[str, str]:
        if place[0] not in NAMES:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return NAMES[place[0]], "0"

    monkeypatch.setattr(socket, "getnameinfo", look_up)
    addresses(monkeypatch, *((socket.AF_INET, (host, 0)) for host in (*NAMES, "10.0.0.3")))
    asked = [Address("kafka", 9092), Address("10.0.0.9", 9093)]
    found = run(canonical_names(loop, asked, time.monotonic() + PATIENCE, socket.AF_UNSPEC))
    assert found == [
        Address("b1.test", 9092),
        Address("b2.test", 9092),
        Address("kafka", 9092),
        Address("10.0.0.9", 9093),
    ]
