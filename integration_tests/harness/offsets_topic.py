"""Reader of `__consumer_offsets`, record by record, including tombstones.

The format is Kafka's (`OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey`, `GroupMetadataValue` in
group-coordinator/src/main/resources/common/message). Only what classic groups write is read.
"""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from groupwright.assignors import JoinedMember
from integration_tests.harness.patience import PATIENCE

TOPIC = "__consumer_offsets"
_COMMITS = (0, 1)
_GROUPS = 2
_FLEXIBLE = 4


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member of a generation."""

    joined: JoinedMember
    client_id: str
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A generation of a group, its members with what they were assigned; without any, the group is empty."""

    number: int
    protocol: str | None
    leader: str | None
    members: tuple[StoredMember, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A record: of one partition's offset, or of the group itself; without a value, a tombstone."""

    group: str
    key: tuple[str, int] | None
    """The topic and the partition; None for the group itself."""
    value: StoredOffset | StoredGeneration | None
    partition: int
    """Of `__consumer_offsets`."""


def records(servers: str) -> list[Stored]:
    """Return all records, partition by partition, each in the order of the log."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "of no group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        numbers = sorted(consumer.list_topics(TOPIC, timeout=PATIENCE).topics[TOPIC].partitions)
        consumer.assign([TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in numbers])
        return list(_read(consumer, set(numbers)))
    finally:
        consumer.close()


def records_of(servers: str, group: str) -> list[Stored]:
    """Return the records of one group, oldest first."""
    return [record for record in records(servers) if record.group == group]


def generations(servers: str, group: str) -> list[StoredGeneration]:
    """Return the group's generations as the coordinator stored them, those without members among them."""
    return [
        record.value for record in records_of(servers, group) if isinstance(record.value, StoredGeneration)
    ]


def _read(consumer: Consumer, unfinished: set[int]) -> Iterator[Stored]:
    while unfinished:
        message = consumer.poll(PATIENCE)
        if message is None:
            raise TimeoutError(f"{TOPIC} has not been read to its end in {PATIENCE:.0f} s")
        error, partition = message.error(), message.partition()
        assert partition is not None
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            unfinished.discard(partition)
        elif error is not None:
            raise KafkaException(error)
        elif record := decode(message.key() or b"", message.value(), partition):
            yield record


def decode(key: bytes, value: bytes | None, partition: int) -> Stored | None:
    """Read one record; None for what other kinds of groups store."""
    fields = _Fields(key)
    kind = fields.int16()
    if kind > _GROUPS:
        return None
    group = fields.text() or ""
    if kind in _COMMITS:
        of = (fields.text() or "", fields.int32())
        return Stored(group, of, None if value is None else _offset(_Fields(value)), partition)
    return Stored(group, None, None if value is None else _generation(_Fields(value)), partition)


def _offset(fields: "_Fields") -> StoredOffset:
    version = fields.int16()
    offset = fields.int64()
    epoch = fields.int32() if version >= 3 else -1
    metadata = fields.compact_text() if version >= _FLEXIBLE else fields.text() or ""
    return StoredOffset(offset, epoch, metadata)


def _generation(fields: "_Fields") -> StoredGeneration:
    version = fields.int16()
    if version != 3:
        raise ValueError(f"version {version} of GroupMetadataValue is not read here; 3 is")
    fields.text()  # the protocol's type
    number, protocol, leader = fields.int32(), fields.text(), fields.text()
    fields.int64()  # when
    return StoredGeneration(number, protocol, leader, tuple(_member(fields) for _ in range(fields.int32())))


def _member(fields: "_Fields") -> StoredMember:
    member_id, instance_id, client_id = fields.text(), fields.text(), fields.text()
    fields.text()  # its host
    fields.int32()  # the rebalance timeout
    fields.int32()  # the session timeout
    subscription, assignment = fields.data(), fields.data()
    return StoredMember(JoinedMember(member_id or "", instance_id, subscription), client_id or "", assignment)


class _Fields:
    """Reads fields in Kafka's binary form, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._data.read(struct.calcsize(form)))[0])

    def int16(self) -> int:
        return self._number(">h")

    def int32(self) -> int:
        return self._number(">i")

    def int64(self) -> int:
        return self._number(">q")

    def text(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._data.read(length).decode()

    def compact_text(self) -> str:
        length, shift = 0, 0
        while True:
            (byte,) = self._data.read(1)
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return self._data.read(length - 1).decode()

    def data(self) -> bytes:
        length = self.int32()
        return b"" if length < 0 else self._data.read(length)
