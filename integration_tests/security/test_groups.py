"""Groups over TLS, mutual TLS and SASL: they work, and refusals are reported once, without secrets."""

import logging
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from groupwright.consumer import Consumer
from groupwright.testing import KafkaContainers, Listener, LocalKafka, Security
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.members import Join
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import polls_in_peace, refusal, take
from integration_tests.harness.waiting import stays_so, wait_until

pytestmark = pytest.mark.kafka

Produce = Callable[[str, int, int], None]
Connect = Callable[..., Consumer]

WAYS_IN = {
    "TLS": (Listener.SSL, None),
    "mutual TLS": (Listener.MUTUAL_TLS, None),
    "PLAIN": (Listener.SASL_PLAINTEXT, "PLAIN"),
    "PLAIN over TLS": (Listener.SASL_SSL, "PLAIN"),
    "SCRAM-SHA-256 over TLS": (Listener.SASL_SSL, "SCRAM-SHA-256"),
    "SCRAM-SHA-512": (Listener.SASL_PLAINTEXT, "SCRAM-SHA-512"),
}


@pytest.fixture
def connect(group: str) -> Iterator[Connect]:
    """Create consumers of the test's group from a listener's configuration; all are closed at the end."""
    consumers: list[Consumer] = []

    def make(config: dict[str, Any], **settings: str) -> Consumer:
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        own = {"group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
        consumers.append(Consumer({**own, **config, **settings}))
        return consumers[-1]

    yield make
    for consumer in consumers:
        consumer.close()


def dotless(config: dict[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in config.items()}


def refused(consumer: Consumer, topic: str) -> KafkaError:
    """Subscribe, and return the error that poll returns."""
    consumer.subscribe([topic])
    # Nodes hear of an ACL one after the other, so that one may have let the consumer in.
    return refusal(consumer)


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_group_shares_and_commits_over_each_way_in(
    kafka: KafkaContainers, join: Join, new_kafka_topic: NewKafkaTopic, produce: Produce, way: str
) -> None:
    topic = new_kafka_topic(partitions=4)
    listener, mechanism = WAYS_IN[way]
    config = dotless(kafka.secure_config(listener, mechanism=mechanism, user="alice"))
    produce(topic, 4, 5)

    members = [join(name, [topic], auto_commit_interval_ms=100, **config) for name in ("a", "b")]

    wait_until(lambda: [len(member.owned) for member in members] == [2, 2], "two partitions each")
    everything = {(topic, partition, offset) for partition in range(4) for offset in range(5)}
    wait_until(
        lambda: {entry for member in members for entry in member.consumed} == everything, "all messages"
    )
    for member in members:
        member.close()
        assert member.errors == []


def test_members_show_who_they_are_to_the_next_coordinator_too(
    kafka: KafkaContainers, group: str, join: Join, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(partitions=2)
    config = dotless(kafka.secure_config(Listener.SASL_SSL, mechanism="SCRAM-SHA-512", user="bob"))
    member = join("member", [topic], **config)
    wait_until(lambda: len(member.owned) == 2, "the member to own everything")
    member_id, before = member.consumer.memberid(), kafka.coordinator_of(group)

    kafka.restart(before)

    other = join("other", [topic], **config)
    wait_until(lambda: len(member.owned) == len(other.owned) == 1, "a partition each")
    assert member.consumer.memberid() == member_id
    assert member.errors == other.errors == []


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_and_not_tried_over_and_over(
    kafka: KafkaContainers, new_kafka_topic: NewKafkaTopic, connect: Connect, mechanism: str
) -> None:
    """Retrying a wrong password in a loop would lock the user out in many directories."""
    config = kafka.secure_config(Listener.SASL_SSL, mechanism=mechanism, user="alice")
    consumer = connect(config, sasl_password="wrong")  # noqa: S106 - it is wrong

    error = refused(consumer, new_kafka_topic())

    assert error.code() == KafkaError._AUTHENTICATION
    assert "Authentication failed" in error.str()
    # librdkafka beneath tries by itself, ever more rarely; a loop would try hundreds of times.
    before = attempts(kafka)
    stays_so(lambda: attempts(kafka) - before <= 20, 2.0, "few attempts")


def attempts(kafka: KafkaContainers) -> int:
    return len(re.findall("Failed authentication with", kafka.log()))


def test_a_client_whose_certificate_has_expired_is_told_so(
    kafka: KafkaContainers, new_kafka_topic: NewKafkaTopic, connect: Connect
) -> None:
    certificate, key = kafka.certificates.expired
    config = kafka.secure_config(Listener.MUTUAL_TLS, user="alice")
    config |= {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}

    error = refused(connect(config), new_kafka_topic())

    assert error.code() == KafkaError._SSL
    assert "it does not accept this client's certificate" in error.str()
    assert "has the one in ssl.certificate.location expired" in error.str()


def test_a_broker_whose_certificate_has_expired_is_not_spoken_to(connect: Connect) -> None:
    with LocalKafka(security=Security(expired=True)) as kafka:
        kafka.create_topic("letters")
        consumer = connect(kafka.secure_config(Listener.SSL))

        error = refused(consumer, "letters")

        consumer.close()
    assert error.code() == KafkaError._SSL
    assert "certificate has expired" in error.str()


def test_a_group_without_acl_is_told_and_joins_once_it_has_one(
    kafka: KafkaContainers, new_kafka_topic: NewKafkaTopic, produce: Produce, connect: Connect
) -> None:
    topic, group = new_kafka_topic(), f"closed-{uuid.uuid4().hex[:8]}"
    produce(topic, 1, 1)
    allow(kafka, group, "bob")  # what has an ACL is closed to all others
    config = kafka.secure_config(Listener.SASL_SSL, mechanism="SCRAM-SHA-256", user="alice")
    # A node that has not heard of the ACL yet lets it in: then the session has to end first.
    consumer = connect(config, group_id=group, session_timeout_ms="6000")

    error = refused(consumer, topic)
    assert error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    # The first error is librdkafka's own if a node let the member in, and another refused its offsets.
    hint = f"Allow it the operation READ on the group {group!r}"
    wait_until(lambda: hint in error.str() or hint in refusal(consumer).str(), "the member to be refused")

    allow(kafka, group, "alice")
    wait_until(lambda: polls_in_peace(consumer), "to be let in")
    assert len(take(consumer, 1)) == 1


def allow(kafka: KafkaContainers, group: str, user: str) -> None:
    binding = AclBinding(
        ResourceType.GROUP,
        group,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    kafka.admin().create_acls([binding])[binding].result(PATIENCE)


def test_no_log_of_clients_or_brokers_shows_a_secret(
    kafka: KafkaContainers,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 1)
    before: list[str] = []
    for name in (None, "groupwright", "kafka"):
        caplog.set_level(logging.DEBUG, name)
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        config = kafka.secure_config(Listener.SASL_SSL, mechanism=mechanism, user="alice")
        served = connect(config, group_id=uuid.uuid4().hex)
        served.subscribe([topic])
        take(served, 1)
        served.close()
        before.append(repr(refused(connect(config, sasl_password="wrong-password-of-alice"), topic)))  # noqa: S106 - it is wrong

    for text in (caplog.text, *before, kafka.log()):
        assert "password-of-" not in text
