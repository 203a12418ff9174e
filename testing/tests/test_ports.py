"""Ports that a broker can have, and the clear word when it cannot."""

import random
import socket
import sys
from collections.abc import Iterator

import pytest

from groupwright.testing import LocalKafka, LocalKafkaError
from groupwright.testing._kafka import ports
from integration_tests.harness.patience import PATIENCE

linux_alone = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing holds a port")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((ports.HOST, 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def two_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ports that nothing holds, outside of the range from which brokers choose theirs."""
    reserved = ports.ReservedPorts()
    first = next(
        port
        for port in random.sample(range(10_000, 19_999), 1000)
        if all(reserved._hold(each, exclusively=True) for each in (port, port + 1))
    )
    reserved.release()
    monkeypatch.setattr(ports, "_CANDIDATES", range(first, first + 2))
    monkeypatch.setattr(ports, "_TRIES", 2)


def test_a_free_port_can_be_listened_on_and_is_no_port_of_outgoing_connections() -> None:
    """A client that retries a stopped broker's port in that range can connect to itself and keep the port."""
    port = ports.free_port()

    with socket.create_server((ports.HOST, port)):
        assert 20_000 <= port < 30_000


@linux_alone
@pytest.mark.usefixtures("two_candidates")
def test_a_port_of_one_kafka_is_chosen_by_no_other_before_or_after_its_broker_listens() -> None:
    """Of two brokers that started at once on one port, each was taken for the other: topics went astray."""
    mine, theirs = ports.ReservedPorts(), ports.ReservedPorts()
    first = mine.choose()
    with socket.create_server((ports.HOST, first)):  # as Java's, it sets SO_REUSEADDR
        assert theirs.choose() != first
    with pytest.raises(LocalKafkaError, match="No free port"):
        theirs.choose()
    with pytest.raises(LocalKafkaError, match="No free port"):
        ports.free_port()

    mine.release()
    assert theirs.choose() == first
    theirs.release()
    assert ports.free_port() in ports._CANDIDATES


@linux_alone
@pytest.mark.kafka
@pytest.mark.slow
def test_a_stopped_broker_keeps_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalKafka() as kafka:
        kafka.stop()
        port = int(kafka.bootstrap_servers.rpartition(":")[2])
        with monkeypatch.context() as patched:
            patched.setattr(ports, "_CANDIDATES", range(port, port + 1))
            patched.setattr(ports, "_TRIES", 1)
            with pytest.raises(LocalKafkaError, match="No free port"):
                ports.free_port()
        kafka.start()
        assert kafka.admin().list_topics(timeout=PATIENCE).brokers.keys() == {1}


def test_a_port_does_not_depend_on_the_seed_of_a_test_and_does_not_change_its_random_numbers() -> None:
    state = random.getstate()
    random.seed(1)
    seeded = random.getstate()
    drawn = {ports.free_port() for _ in range(2) if random.seed(1) is None}
    unchanged = random.getstate() == seeded
    random.setstate(state)

    assert unchanged
    assert len(drawn) == 2


@pytest.mark.usefixtures("two_candidates")
def test_two_ports_of_one_kafka_differ() -> None:
    reserved = ports.ReservedPorts()
    assert {reserved.choose(), reserved.choose()} == set(ports._CANDIDATES)
    reserved.release()


def test_a_taken_port_is_refused_by_its_number(taken: int) -> None:
    with pytest.raises(LocalKafkaError, match=f"Port {taken} on 127.0.0.1 is not free"):
        ports.ReservedPorts().require(taken)


def test_without_a_free_port_the_search_ends_with_an_error(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "_CANDIDATES", range(taken, taken + 1))
    monkeypatch.setattr(ports, "_TRIES", 1)

    with pytest.raises(LocalKafkaError, match="No free port"):
        ports.free_port()
