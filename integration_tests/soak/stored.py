"""What the coordinator stored of groups: who owned what in which generation, and which offsets were taken in it.

All records of a group are in one partition of `__consumer_offsets`, its generations among its offsets. So they tell, with
no clock, in which generation each offset was taken, and to whom the leader of that generation had given the partition.
"""

from dataclasses import dataclass, field

from groupwright.assignors._wire.consumer_protocol import decode_assignment
from harness import offsets_topic
from harness.offsets_topic import Stored, StoredOffset
from soak.events import Key


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """An offset that was taken."""

    group: str
    key: Key
    offset: int
    metadata: str
    """What its member wrote beside it: who it is, or nothing."""


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A generation whose assignment the coordinator has taken from its leader."""

    group: str
    generation: int
    protocol: str | None
    owners: dict[Key, str] = field(default_factory=dict)
    """Each partition's owner: its ``group.instance.id`` or, where it has none, its ``client.id``."""


@dataclass(frozen=True, slots=True)
class StoredRemoval:
    """An offset was removed, as that of a deleted topic is."""

    group: str
    key: Key


StoredRecord = StoredCommit | StoredGeneration | StoredRemoval


def read_all(bootstrap_servers: str) -> list[StoredRecord]:
    """Read everything that the coordinator has stored, each group in the order in which that was done.

    Raises:
        KafkaException: The broker refuses.
        TimeoutError: It does not answer.
    """
    found = map(understand, offsets_topic.records(bootstrap_servers))
    return [record for record in found if record is not None]


def understand(record: Stored) -> StoredRecord | None:
    """Return what a record says of generations and their offsets; None for a group's tombstone."""
    match record:
        case Stored(group, key, StoredOffset(offset, _, metadata)) if key is not None:
            # librdkafka stores a NUL after it, and so does Groupwright.
            return StoredCommit(group, key, offset, metadata.removesuffix("\0"))
        case Stored(group, key, None) if key is not None:
            return StoredRemoval(group, key)
        case Stored(group, _, offsets_topic.StoredGeneration(number, protocol, _, members)):
            owners: dict[Key, str] = {}
            for member in members:
                assigned = decode_assignment(member.assignment).partitions if member.assignment else {}
                # A static member that takes its predecessor's place is stored with that one's client.id.
                owner = member.joined.instance_id or member.client_id
                owners |= {(topic, int(number)): owner for topic, them in assigned.items() for number in them}
            return StoredGeneration(group, number, protocol, owners)
    return None
