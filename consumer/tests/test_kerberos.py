"""Kerberos without a KDC: its library's errors are explained, and the loop never waits for a ticket."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from groupwright.consumer._config.kerberos import (
    KdcUnreachableError,
    NotLoggedInError,
    TicketError,
    fetch_ticket,
)
from groupwright.consumer._config.network_config import Transport
from groupwright.consumer._config.security import Security
from groupwright.consumer._network import connection
from groupwright.consumer._network.connections import Network, NetworkConfig, RequestRefusedError
from groupwright.consumer._protocol.model import DisconnectedError
from integration_tests.harness.patience import PATIENCE

# --- The library's errors -------------------------------------------------------------------------------


class GSSError(Exception):
    """As `gssapi.exceptions.GSSError` is."""

    min_code = 7

    def get_all_statuses(self, code: int, is_maj: bool) -> list[str]:  # noqa: FBT001 - the library's signature
        return [f"words for {code}"] if not is_maj else []


class MissingCredentialsError(GSSError): ...


class ExpiredCredentialsError(GSSError): ...


class Unreachable(GSSError):  # noqa: N818 - the library has no class for it
    min_code = 2**32 - 1765328228  # KRB5_KDC_UNREACH


def library(raises: GSSError) -> SimpleNamespace:
    """As much of the package `gssapi` as is asked for."""

    def step(_context: object) -> None:
        raise raises

    exceptions = (GSSError, MissingCredentialsError, ExpiredCredentialsError)
    return SimpleNamespace(
        exceptions=SimpleNamespace(**{each.__name__: each for each in exceptions}),
        MechType=SimpleNamespace(kerberos="kerberos"),
        NameType=SimpleNamespace(hostbased_service="service"),
        Name=lambda _name, _type: SimpleNamespace(canonicalize=lambda mechanism: mechanism),
        SecurityContext=lambda **_: SimpleNamespace(step=lambda: step(None)),
    )


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (MissingCredentialsError(), NotLoggedInError, "words for 7; log in with kinit"),
        (ExpiredCredentialsError(), NotLoggedInError, "words for 7; log in with kinit"),
        (GSSError(), TicketError, "words for 7; is sasl.kerberos.service.name the broker's?"),
        (Unreachable(), KdcUnreachableError, "words for 2529639068"),
    ],
)
def test_why_there_is_no_ticket_is_told_with_what_to_do(
    raised: GSSError, expected: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", library(raised))

    with pytest.raises(expected) as caught:
        fetch_ticket("kafka", "broker-1")

    assert type(caught.value) is expected
    assert str(caught.value).startswith(
        f"there is no Kerberos ticket for the service kafka/broker-1: {words}"
    )


# --- Connections ----------------------------------------------------------------------------------------


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    """Something that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE)
        yield server


@contextmanager
def running(broker: socket.socket, *, kinit: bool, set_up: float = 10.0) -> Iterator[Network]:
    network = Network(
        NetworkConfig(
            f"127.0.0.1:{broker.getsockname()[1]}",
            "c",
            "g",
            security=Security("SASL_PLAINTEXT", mechanism="GSSAPI", kinit=kinit),
            transport=Transport(setup_timeout=set_up),
        )
    )
    network.start()
    try:
        yield network
    finally:
        network.call_soon(network.end)
        network.join_thread(PATIENCE)


def look_up(network: Network) -> Callable[[], Exception]:
    """Begin to look the coordinator up; return what waits for its failure."""
    failures: list[Exception] = []
    done = threading.Event()

    async def find() -> None:
        try:
            await network.find_coordinator()
        except DisconnectedError as error:
            failures.append(error)
        finally:
            done.set()

    network.call_soon(lambda: network.spawn(find()))

    def failure() -> Exception:
        assert done.wait(PATIENCE)
        return failures[0]

    return failure


def not_logged_in(*_: Any) -> None:
    raise NotLoggedInError("nobody has logged in")


def test_a_missing_ticket_is_a_refusal(broker: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Treated as a broken connection it would be retried forever, and no error would be reported."""
    monkeypatch.setattr(connection, "fetch_ticket", not_logged_in)

    with running(broker, kinit=False) as network:
        error = look_up(network)()

    assert isinstance(error, RequestRefusedError)
    assert (error.code, str(error)) == (KafkaError._AUTHENTICATION, "nobody has logged in")


def test_a_kinit_that_is_at_work_is_waited_for(
    broker: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka starts it when it is made, and the membership wants to connect in the same moment."""
    asked: list[tuple[str, str]] = []

    def fetch(service: str, host: str) -> None:
        asked.append((service, host))
        if len(asked) < 3:
            not_logged_in()

    monkeypatch.setattr(connection, "fetch_ticket", fetch)

    with running(broker, kinit=True) as network:
        look_up(network)
        broker.accept()[0].close()

    assert asked[:3] == [("kafka", "127.0.0.1")] * 3


def test_a_kinit_that_fails_is_not_waited_for_longer_than_a_connection(
    broker: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "fetch_ticket", not_logged_in)

    with running(broker, kinit=True, set_up=0.3) as network:
        assert isinstance(look_up(network)(), RequestRefusedError)


def test_a_kdc_that_is_down_is_tried_again(broker: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a broker that is down: no error is reported to the application."""

    def unreachable(*_: Any) -> None:
        raise KdcUnreachableError("Cannot contact any KDC")

    monkeypatch.setattr(connection, "fetch_ticket", unreachable)

    with running(broker, kinit=True) as network:
        error = look_up(network)()

    assert not isinstance(error, RequestRefusedError)
    assert "Cannot contact any KDC" in str(error)


def test_a_slow_kdc_holds_nothing_back(broker: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the loop, a KDC that takes some seconds would hold back heartbeats."""
    asked, answer, beat = threading.Event(), threading.Event(), threading.Event()

    def fetch(*_: Any) -> None:
        asked.set()
        answer.wait(PATIENCE)

    monkeypatch.setattr(connection, "fetch_ticket", fetch)

    with running(broker, kinit=False) as network:
        look_up(network)
        assert asked.wait(PATIENCE)
        network.call_soon(beat.set)
        assert beat.wait(PATIENCE)
        answer.set()
        broker.accept()[0].close()
