"""Synthetic records of rebalances: generations of the classic protocol, and records of KIP-848."""

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.pipeline.synthetic.commits import LOG_END, log_partitions, raw_batch
from benchmarks.pipeline.synthetic.fleet import Fleet, GroupTimeline
from groupwright.assignors import Subscription, encode_assignment, encode_subscription

_SPACE = uuid.UUID("6f3c1d2e-0000-4000-8000-000000000000")
_SESSION_MS, _REBALANCE_MS = 45_000, 300_000
_KIP_848_GROUP, _KIP_848_MEMBER, _TARGET, _TARGET_MEMBER, _CURRENT_MEMBER = 3, 5, 6, 7, 8


class Record(NamedTuple):
    """A key, and a value or a tombstone."""

    key: bytes
    value: bytes | None


def generation_batch(fleet: Fleet, group: int) -> pa.RecordBatch:
    """Return the raw records of all generations of a group, as rows of `RAW`."""
    timeline = GroupTimeline.of(fleet, group)
    write = _consumer_group if fleet.is_consumer_protocol(group) else _classic_group
    times = fleet.generation_micros(group)
    # A place for each generation of each group, in the order of their times, and in it one for each record.
    step = LOG_END // (fleet.groups * fleet.generations)
    records, places, micros = [], [], []
    for generation, at in enumerate(times.tolist()):
        first = (
            generation * fleet.groups + group
        ) * step + step // 2 | 1  # odd, where few commits' offsets are
        for number, record in enumerate(write(fleet, group, timeline, generation, at // 1000)):
            records.append(record)
            places.append(first + 2 * number)
            micros.append(at)
    name = np.frombuffer(fleet.group_id(group).encode(), np.uint8)
    partition = log_partitions(name[None, :], fleet.log_partitions)
    return raw_batch(
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        np.repeat(partition, len(records)),
        np.array(places, np.int64),
        np.array(micros, np.int64),
    )


def member_id(fleet: Fleet, group: int, member: int) -> str:
    """Return a member's id."""
    return f"{client_id(fleet, group, member)}-{uuid.uuid5(_SPACE, f'{fleet.seed}/{group}/{member}')}"


def client_id(fleet: Fleet, group: int, member: int) -> str:
    """Return a member's client id: a member that joins takes the place of one of the first members."""
    return f"{fleet.group_id(group)}-client-{member % fleet.members}"


def topic_id(topic: str) -> bytes:
    """Return a topic's UUID."""
    return uuid.uuid5(_SPACE, topic).bytes


def _wanted(
    fleet: Fleet, group: int, timeline: GroupTimeline, generation: int, member: int
) -> tuple[str, ...]:
    flags = timeline.subscribed[generation, member].tolist()
    return tuple(sorted(fleet.topic(group, topic) for topic, wanted in enumerate(flags) if wanted))


def _assigned(
    fleet: Fleet, group: int, timeline: GroupTimeline, generation: int, member: int
) -> dict[str, range]:
    starts, ends = timeline.starts[generation, member].tolist(), timeline.ends[generation, member].tolist()
    shares = {
        fleet.topic(group, topic): range(*bounds)
        for topic, bounds in enumerate(zip(starts, ends, strict=True))
    }
    return {topic: share for topic, share in sorted(shares.items()) if share}


def _classic_group(
    fleet: Fleet, group: int, timeline: GroupTimeline, generation: int, millis: int
) -> Iterator[Record]:
    """Go through what is written when a classic generation is complete: the whole of it, in version 3."""
    present = np.flatnonzero(timeline.alive[generation]).tolist()
    members = []
    for member in present:
        subscription = Subscription(_wanted(fleet, group, timeline, generation, member))
        assigned = _assigned(fleet, group, timeline, generation, member)
        members += [
            _string(member_id(fleet, group, member)),
            _NULL,
            _string(client_id(fleet, group, member)),
            _string(f"/10.0.{group % 256}.{member % 256}"),
            _int32(_REBALANCE_MS),
            _int32(_SESSION_MS),
            _bytes(encode_subscription(subscription)),
            _bytes(encode_assignment(assigned)),
        ]
    head = _int16(3) + _string("consumer") + _int32(generation + 1) + _string("range")
    leader = _string(member_id(fleet, group, present[0]))
    value = head + leader + _int64(millis) + _int32(len(present)) + b"".join(members)
    yield Record(_int16(2) + _string(fleet.group_id(group)), value)


def _consumer_group(
    fleet: Fleet, group: int, timeline: GroupTimeline, epoch: int, millis: int
) -> Iterator[Record]:
    """Go through what is written when a group of KIP-848 comes to a new epoch, in the coordinator's order."""
    present = np.flatnonzero(timeline.alive[epoch]).tolist()
    before = np.flatnonzero(timeline.alive[epoch - 1]).tolist() if epoch else []
    name = _string(fleet.group_id(group))
    for member in before:
        if member not in present:
            of_member = name + _string(member_id(fleet, group, member))
            for kind in (_CURRENT_MEMBER, _TARGET_MEMBER, _KIP_848_MEMBER):
                yield Record(_int16(kind) + of_member, None)
    for member in present:
        wanted = _wanted(fleet, group, timeline, epoch, member)
        if member not in before or wanted != _wanted(fleet, group, timeline, epoch - 1, member):
            yield Record(
                _int16(_KIP_848_MEMBER) + name + _string(member_id(fleet, group, member)),
                _int16(0)
                + b"\0\0"
                + _compact(client_id(fleet, group, member))
                + _compact(f"/10.0.{group % 256}.{member % 256}")
                + _varint(len(wanted) + 1)
                + b"".join(map(_compact, wanted))
                + b"\0"
                + _int32(_REBALANCE_MS)
                + _compact("uniform")
                + b"\1\0\1\0",
            )
    yield Record(_int16(_KIP_848_GROUP) + name, _int16(0) + _int32(epoch + 1) + b"\0")
    shares = {member: _shares(_assigned(fleet, group, timeline, epoch, member)) for member in present}
    for member, share in shares.items():
        of_member = name + _string(member_id(fleet, group, member))
        yield Record(_int16(_TARGET_MEMBER) + of_member, _int16(0) + share + b"\0")
    yield Record(_int16(_TARGET) + name, _int16(0) + _int32(epoch + 1) + b"\1\0\x08" + _int64(millis))
    for member, share in shares.items():
        of_member = name + _string(member_id(fleet, group, member))
        epochs = _int32(epoch + 1) + _int32(epoch if member in before else 0)
        yield Record(_int16(_CURRENT_MEMBER) + of_member, _int16(0) + epochs + b"\0" + share + b"\1\0")


def _shares(assigned: dict[str, range]) -> bytes:
    shares = [
        topic_id(topic) + _varint(len(share) + 1) + b"".join(map(_int32, share)) + b"\0"
        for topic, share in assigned.items()
    ]
    return _varint(len(shares) + 1) + b"".join(shares)


_NULL = b"\xff\xff"


def _int16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def _int32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _int64(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _int16(len(encoded)) + encoded


def _bytes(data: bytes) -> bytes:
    return _int32(len(data)) + data


def _compact(text: str) -> bytes:
    encoded = text.encode()
    return _varint(len(encoded) + 1) + encoded


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - what seven bits hold
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
