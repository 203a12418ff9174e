"""Unused offsets expire; those of a consuming group do not, however old."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from groupwright.testing import LocalKafka
from integration_tests.harness import offsets_topic
from integration_tests.harness.members import RunningMember
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import OK, WireMember, commit_expiring

pytestmark = pytest.mark.kafka

RETENTION_MS = 10_000
"""Long enough for a member to join meanwhile."""
Ends = Callable[[], list[tuple[str, int] | None]]


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """A broker that checks for expired offsets continuously, instead of every ten minutes."""
    with LocalKafka(config={"offsets.retention.check.interval.ms": 200}) as kafka:
        yield kafka


@pytest.fixture
def ends(kafka: LocalKafka, group: str) -> Ends:
    """Return the group's records that have a tombstone."""

    def read() -> list[tuple[str, int] | None]:
        stored = offsets_topic.records_of(kafka.bootstrap_servers, group)
        return [record.key for record in stored if record.value is None]

    return read


def new_topic(kafka: LocalKafka) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name)
    return name


@pytest.mark.endurance
def test_the_offsets_of_a_group_that_nobody_uses_expire_and_the_group_with_them(
    kafka: LocalKafka, group: str, ends: Ends
) -> None:
    """Brokers keep offsets for a week (offsets.retention.minutes); these request ten seconds."""
    topic = new_topic(kafka)
    assert commit_expiring(kafka.bootstrap_servers, group, topic, 5, RETENTION_MS) == OK
    assert ends() == []

    wait_until(lambda: (topic, 0) in ends(), "the offset to expire")

    observer = WireMember(kafka.bootstrap_servers, group)
    wait_until(lambda: observer.state() == "Dead", "the group to be gone")
    observer.close()
    with pytest.raises(KafkaException) as gone:
        kafka.admin().delete_consumer_groups([group], request_timeout=PATIENCE)[group].result()
    assert gone.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


@pytest.mark.endurance
def test_the_offset_of_a_topic_that_a_member_subscribes_to_does_not_expire_before_it_has_left(
    kafka: LocalKafka, group: str, ends: Ends
) -> None:
    """The offset of another topic does expire, although the group is active (KIP-496)."""
    subscribed, other = new_topic(kafka), new_topic(kafka)
    for topic in (subscribed, other):
        assert commit_expiring(kafka.bootstrap_servers, group, topic, 0, RETENTION_MS) == OK
    member = RunningMember(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "client.id": "member",
            "heartbeat.interval.ms": 300,
        },
        [subscribed],
    )
    try:
        wait_until(lambda: member.owned == {(subscribed, 0)}, "the member to own the partition")
        wait_until(lambda: bool(ends()), "an offset to expire")
        assert ends() == [(other, 0)]
    finally:
        member.close()

    wait_until(lambda: (subscribed, 0) in ends(), "the offset to expire after the member has left")
