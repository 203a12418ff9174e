"""What the coordinator stored: the records of `__consumer_offsets`, in the order in which it wrote them.

All records of a group are in one partition, its generations among its offsets. So they tell, with no clock, in
which generation each offset was taken, and to whom the leader of that generation had given the partition.

The format is Kafka's (`OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey`, `GroupMetadataValue` in
group-coordinator/src/main/resources/common/message).
"""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from groupwright.assignors.wire import decode_assignment
from soak.events import Key

_TOPIC = "__consumer_offsets"
_ANSWER_SECONDS = 30.0

_COMMIT_KEYS = (0, 1)
_GENERATION_KEY = 2
_FLEXIBLE_COMMIT = 4


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


StoredRecord = StoredCommit | StoredGeneration


def read_all(bootstrap_servers: str) -> list[StoredRecord]:
    """Read everything that the coordinator has stored, partition by partition.

    Raises:
        KafkaException: The broker does not answer.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "soak.stored",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
    )
    try:
        partitions = consumer.list_topics(_TOPIC, timeout=_ANSWER_SECONDS).topics[_TOPIC].partitions
        return [record for number in sorted(partitions) for record in _read(consumer, number)]
    finally:
        consumer.close()


def _read(consumer: Consumer, partition: int) -> Iterator[StoredRecord]:
    consumer.assign([TopicPartition(_TOPIC, partition, 0)])
    while True:
        message = consumer.poll(_ANSWER_SECONDS)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{_TOPIC} [{partition}] cannot be read"))
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return
        if error is not None:
            raise KafkaException(error)
        record = decode(message.key() or b"", message.value())
        if record is not None:
            yield record


def decode(key: bytes, value: bytes | None) -> StoredRecord | None:
    """Read one record; None for a tombstone, and for what other kinds of groups store."""
    fields = _Fields(key)
    version = fields.int16()
    if value is None or version > _GENERATION_KEY:
        return None
    group = fields.text() or ""
    if version == _GENERATION_KEY:
        return _generation(group, _Fields(value))
    return _commit(group, (fields.text() or "", fields.int32()), _Fields(value))


def _commit(group: str, key: Key, fields: "_Fields") -> StoredCommit:
    version = fields.int16()
    offset = fields.int64()
    if version >= 3:
        fields.int32()
    metadata = fields.compact_text() if version >= _FLEXIBLE_COMMIT else fields.text() or ""
    return StoredCommit(group, key, offset, metadata)


def _generation(group: str, fields: "_Fields") -> StoredGeneration:
    version = fields.int16()
    if version != 3:
        raise ValueError(f"version {version} of GroupMetadataValue is not read here; 3 is")
    fields.text()  # the protocol's type
    generation, protocol = fields.int32(), fields.text()
    fields.text()  # the leader
    fields.int64()  # when
    owners: dict[Key, str] = {}
    for _ in range(fields.int32()):
        fields.text()  # the member's id
        # A static member that takes its predecessor's place is stored with that one's client.id.
        instance, client = fields.text(), fields.text()
        fields.text()  # its host
        fields.int32()  # the rebalance timeout
        fields.int32()  # the session timeout
        fields.data()  # the subscription
        assignment = fields.data()
        assigned = decode_assignment(assignment).partitions if assignment else {}
        owner = instance or client or ""
        owners |= {(topic, int(number)): owner for topic, numbers in assigned.items() for number in numbers}
    return StoredGeneration(group, generation, protocol, owners)


class _Fields:
    """Reads fields in Kafka's binary form, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def _number(self, form: str) -> int:
        size = struct.calcsize(form)
        return int(struct.unpack(form, self._data.read(size))[0])

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
