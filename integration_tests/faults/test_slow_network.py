"""A round trip of more than half of the session, beside confluent-kafka's consumer."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from groupwright.testing import LocalKafka
from integration_tests.harness.beside import CLIENTS, Member
from integration_tests.harness.waiting import stays_so, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SESSION = 12.0


@pytest.fixture
def kafka() -> Iterator[LocalKafka]:
    """A broker of the test's own, with a link."""
    with LocalKafka(proxied=True) as kafka:
        yield kafka


@pytest.mark.endurance
def test_a_round_trip_of_more_than_half_of_the_session_costs_no_partition(kafka: LocalKafka) -> None:
    """Several heartbeats are in flight. The session counts from the sending of the last answered one."""
    kafka.create_topic("orders")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    config = {
        "bootstrap.servers": kafka.proxied_servers,
        "session.timeout.ms": round(SESSION * 1000),
        "heartbeat.interval.ms": 2000,
    }
    members = [Member(name, "orders", {**config, "group": uuid.uuid4().hex}) for name in CLIENTS]
    try:
        producer.produce("orders", b"")
        producer.flush()
        wait_until(lambda: all(member.committed == 1 for member in members), "the first commits")

        kafka.link().delay(0.55 * SESSION / 2)
        stays_so(lambda: not any(member.losses for member in members), 2 * SESSION, "no member loses any")
        producer.produce("orders", b"")
        producer.flush()
        wait_until(lambda: all(member.committed == 2 for member in members), "commits over the slow link")
        kafka.link().restore()

        assert [member.losses for member in members] == [0, 0]
    finally:
        kafka.link().restore()
        for member in members:
            member.close()
