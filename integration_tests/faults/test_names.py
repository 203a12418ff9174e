"""Names in `bootstrap.servers` and in advertised listeners: addresses that change, several, canonical names.

The resolver of this process is replaced, which the membership uses. That of librdkafka, which fetches, cannot
be replaced from Python: it resolves `localhost` as the machine does, to where the broker listens in fact.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from groupwright.testing import LocalKafka
from groupwright.testing._kafka.ports import HOST, ReservedPorts
from groupwright.testing._kafka.proxy import Link, Proxy
from integration_tests.harness.beside import Member
from integration_tests.harness.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

_CANONICAL = "broker-1.canonical.test"


class Names:
    """The resolver: `localhost` has the addresses of links, whose canonical name has them too."""

    def __init__(self, real: Callable[..., list[Any]]) -> None:
        self.links: list[Link] = []
        self.asked: list[str] = []
        self._real = real

    def look_up(self, host: Any, port: Any, *args: Any, **kwargs: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in {"localhost", _CANONICAL}:
            return self._real(host, port, *args, **kwargs)
        self.asked.append(name)
        kind = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        return [(*kind, "", (HOST, link.port)) for link in self.links]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names(socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    monkeypatch.setattr(socket, "getnameinfo", lambda place, _flags: (_CANONICAL, str(place[1])))
    return names


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a broker that advertises `localhost`."""
    with contextlib.ExitStack() as stack:
        reserved = ReservedPorts()
        stack.callback(reserved.release)
        port = reserved.choose()
        config = {"advertised.listeners": f"PLAINTEXT://localhost:{port}"}
        kafka = stack.enter_context(LocalKafka(port=port, config=config))
        kafka.create_topic("orders")
        yield port


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


@contextlib.contextmanager
def joined(port: int, group: str, config: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Start a member; yield a function that waits until it commits a new message, and loses nothing."""
    producer = Producer({"bootstrap.servers": f"{HOST}:{port}"})
    member = Member(
        "Groupwright", "orders", {"group": group, "bootstrap.servers": f"localhost:{port}", **config}
    )

    def goes_on() -> None:
        before = member.committed
        producer.produce("orders", b"")
        producer.flush()
        wait_until(lambda: member.committed > before, "a commit of a new message")
        assert (member.losses, member.errors) == (0, [])

    try:
        yield goes_on
    finally:
        member.close()


def test_a_name_is_resolved_again_for_the_next_connection(names: Names, port: int, proxy: Proxy) -> None:
    before, after = names.links = [proxy.open(port), proxy.open(port)]
    names.links = [before]
    with joined(port, "changes", {}) as goes_on:
        goes_on()
        assert (before.connections > 0, after.connections) == (True, 0)

        names.links = [after]
        before.cut()

        goes_on()
        assert after.connections > 0


def test_the_next_address_of_a_name_is_tried_if_one_refuses(names: Names, port: int, proxy: Proxy) -> None:
    away, there = names.links = [proxy.open(port), proxy.open(port)]
    away.close()
    with joined(port, "several", {}) as goes_on:
        goes_on()
        assert there.connections > 0


def test_the_next_address_of_a_name_is_tried_if_one_accepts_and_never_answers(
    names: Names, port: int, proxy: Proxy
) -> None:
    """The kernel of a broker that hangs accepts, and so does a load balancer without a broker."""
    away, there = names.links = [proxy.open(port), proxy.open(port)]
    away.silence()
    with joined(port, "silent", {"socket.connection.setup.timeout.ms": 1000}) as goes_on:
        goes_on()
        assert there.connections > 0


@pytest.mark.parametrize(
    ("lookup", "is_asked"), [("use_all_dns_ips", False), ("resolve_canonical_bootstrap_servers_only", True)]
)
def test_bootstrap_servers_are_asked_by_their_canonical_names(
    names: Names, port: int, proxy: Proxy, lookup: str, *, is_asked: bool
) -> None:
    """A Kerberos ticket is for the canonical name."""
    names.links = [proxy.open(port)]
    with joined(port, lookup, {"client.dns.lookup": lookup}) as goes_on:
        goes_on()
    assert (_CANONICAL in names.asked) is is_asked
