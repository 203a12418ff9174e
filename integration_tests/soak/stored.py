"""Records of `__consumer_offsets`: the owners in each generation, and the committed offsets.

All records of a group, generations and offsets, are in one partition. So their order gives the generation of
each commit, and the member to which that generation's leader had assigned the partition; no clock is needed.
"""

from dataclasses import dataclass, field

from groupwright.assignors._wire.consumer_protocol import decode_assignment
from groupwright.core import TopicPartitionKey
from integration_tests.harness import offsets_topic
from integration_tests.harness.offsets_topic import Stored, StoredOffset


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A stored offset."""

    group: str
    partition: TopicPartitionKey
    offset: int
    metadata: str
    """Metadata of the commit: the member's signature, or empty."""


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A generation whose assignment the leader sent and the coordinator stored."""

    group: str
    generation: int
    protocol: str | None
    owners: dict[TopicPartitionKey, str] = field(default_factory=dict)
    """Each partition's owner: its ``group.instance.id`` or, where it has none, its ``client.id``."""


@dataclass(frozen=True, slots=True)
class StoredRemoval:
    """A tombstone of an offset, as of a deleted topic."""

    group: str
    partition: TopicPartitionKey


StoredRecord = StoredCommit | StoredGeneration | StoredRemoval


def read_all(bootstrap_servers: str) -> list[StoredRecord]:
    """Read all records of the coordinator, in log order within each group.

    Raises:
        KafkaException: The broker rejects a request.
        TimeoutError: The broker does not answer.
    """
    found = map(understand, offsets_topic.records(bootstrap_servers))
    return [record for record in found if record is not None]


def understand(record: Stored) -> StoredRecord | None:
    """Decode a record; return None for a group's tombstone."""
    match record:
        case Stored(group, partition, StoredOffset(offset, _, metadata)) if partition is not None:
            # librdkafka appends a NUL to the metadata, and so does Groupwright.
            return StoredCommit(group, partition, offset, metadata.removesuffix("\0"))
        case Stored(group, partition, None) if partition is not None:
            return StoredRemoval(group, partition)
        case Stored(group, _, offsets_topic.StoredGeneration(number, protocol, _, members)):
            owners: dict[TopicPartitionKey, str] = {}
            for member in members:
                assigned = decode_assignment(member.assignment).partitions if member.assignment else {}
                # A static member that replaces its predecessor is stored with the predecessor's client.id.
                owner = member.joined.instance_id or member.client_id
                owners |= {(topic, int(number)): owner for topic, them in assigned.items() for number in them}
            return StoredGeneration(group, number, protocol, owners)
    return None
