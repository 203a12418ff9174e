"""State and assignment of a group, as its coordinator describes them."""

import warnings
from typing import Any

from confluent_kafka.admin import AdminClient

from groupwright.assignors import decode_assignment
from groupwright.core import TopicPartitionKey


def described_group(
    admin: AdminClient, group: str, timeout: float
) -> tuple[str, dict[str, set[TopicPartitionKey]]]:
    """Return a group's state, and each member's partitions by its `client.id`.

    `list_groups` asks every broker for its groups, and blocks. `describe_consumer_groups` asks the known
    coordinator, and aborts the process (librdkafka 2.16) if that was restarted meanwhile. So it describes
    only groups with `group.protocol=consumer` (KIP-848), which `list_groups` reports as dead.

    Raises:
        KafkaException: A broker does not respond in time, or rejects a request.
        TimeoutError: The coordinator of a group of KIP-848 does not respond in time.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = admin.list_groups(group, timeout=timeout)
    if not found:
        return "Unknown", {}
    described: Any = found[0]  # typed as None by confluent-kafka, which sets its fields later
    if described.state != "Dead":
        return described.state, {each.client_id: _partitions(each.assignment) for each in described.members}
    by_epoch = admin.describe_consumer_groups([group], request_timeout=timeout)[group].result(timeout)
    return by_epoch.state.name.title(), {
        member.client_id: {(each.topic, each.partition) for each in member.assignment.topic_partitions}
        for member in by_epoch.members
    }


def _partitions(assignment: bytes) -> set[TopicPartitionKey]:
    """Decode an assignment; it is empty bytes while the group rebalances."""
    if not assignment:
        return set()
    partitions = decode_assignment(assignment).partitions
    return {(topic, int(number)) for topic, numbers in partitions.items() for number in numbers}
