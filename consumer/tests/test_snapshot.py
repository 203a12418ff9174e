"""The snapshot of a consumer's membership, without a broker."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError

from groupwright.consumer import Consumer
from groupwright.consumer._membership.librdkafka_membership import LibrdkafkaMembership

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "client.id": "c", "log_level": 0}


@pytest.fixture(params=[{}, {"group.protocol": "consumer"}], ids=["classic", "kip848"])
def consumer(request: pytest.FixtureRequest) -> Iterator[Consumer]:
    with Consumer(NOWHERE | request.param) as made:
        yield made


@pytest.mark.medium
@pytest.mark.parametrize(
    "wait", [lambda consumer: consumer.poll(0.2), lambda consumer: consumer.consume(10, 0.2)]
)
def test_the_time_inside_poll_and_consume_is_counted(
    consumer: Consumer, wait: Callable[[Consumer], object]
) -> None:
    assert consumer.membership_snapshot.poll_seconds == 0

    began = time.monotonic()
    wait(consumer)
    wait(consumer)  # the second by the quick way
    elapsed = time.monotonic() - began

    assert elapsed / 2 <= consumer.membership_snapshot.poll_seconds <= elapsed


def test_one_that_is_closed_is_in_no_group_and_can_be_asked_all_the_same(consumer: Consumer) -> None:
    consumer.close()

    snapshot = consumer.membership_snapshot

    assert (snapshot.state, snapshot.coordinator, snapshot.heartbeat_age) == ("unjoined", None, None)
    assert snapshot.max_poll_interval == 300


@pytest.mark.parametrize(
    ("code", "fenced", "exceeded"),
    [
        (KafkaError._MAX_POLL_EXCEEDED, 0, 1),
        (KafkaError.FENCED_INSTANCE_ID, 1, 0),
        (KafkaError._TRANSPORT, 0, 0),
    ],
)
def test_what_librdkafka_says_of_its_membership_is_counted(code: int, fenced: int, exceeded: int) -> None:
    with Consumer(NOWHERE | {"group.protocol": "consumer"}) as consumer:
        member = consumer._member
        assert isinstance(member, LibrdkafkaMembership)
        member.on_native_error(KafkaError(code))

        assert (member.snapshot.fenced, member.snapshot.max_poll_exceeded) == (fenced, exceeded)


def test_a_fatal_error_has_its_cause_in_words_alone() -> None:
    """librdkafka hands out _FATAL, and confluent-kafka has no call that asks for the code."""
    words = f"Fatal error: {KafkaError(KafkaError.FENCED_INSTANCE_ID).str()}: Fatal consumer error"
    with Consumer(NOWHERE | {"group.protocol": "consumer"}) as consumer:
        member = consumer._member
        assert isinstance(member, LibrdkafkaMembership)
        member.on_native_error(KafkaError(KafkaError._FATAL, words))

        assert member.snapshot.fenced == 1
