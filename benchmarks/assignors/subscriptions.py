"""Encoder of a group's inputs: the subscriptions in JoinGroup, as Java's members write them.

This module encodes the bytes itself, so that Groupwright does not produce its own inputs. The version of
ConsumerProtocolSubscription is 3. Members of `sticky` put the partitions they owned into their user data;
members of `cooperative-sticky` and `load-aware` send them as owned partitions. The user data of `load-aware`
contains the capacity 1.
"""

import struct

import numpy as np

from benchmarks.assignors.groups import RACKS, REPLICAS, Group, Numbers
from benchmarks.assignors.inputs import Inputs, MemberBytes, TopicInput

_VERSION = 3
_LOAD_DATA_VERSION = 1
_GENERATION = 7
_NO_GENERATION = -1


def make_inputs(group: Group) -> Inputs:
    """Return the inputs of the group's leader."""
    names = [_string(topic) for topic in group.topics]
    racks = RACKS if group.racks is not None else (None,) * len(RACKS)
    topics = [
        TopicInput(name, _replicas(int(size))) for name, size in zip(group.topics, group.sizes, strict=True)
    ]
    owned = _owned(group, names)
    members = [
        MemberBytes(member, _subscription(group, number, names, owned[number]))
        for number, member in enumerate(group.members)
    ]
    weights = None if group.weights is None else np.split(group.weights, np.cumsum(group.sizes)[:-1])
    return Inputs(group.case.assignor, racks, topics, members, weights)


def _replicas(partitions: int) -> Numbers:
    """Return the node of each replica, (partitions, replicas): one node per rack, in turn."""
    first = np.arange(partitions, dtype=np.int32)[:, np.newaxis]
    return ((first + np.arange(REPLICAS, dtype=np.int32)) % len(RACKS)).astype(np.int32)


def _subscription(group: Group, number: int, names: list[bytes], owned: bytes) -> bytes:
    wanted = [names[topic] for topic in np.flatnonzero(group.wants[number])]
    generation = _int32(_NO_GENERATION if owned == _NOTHING else _GENERATION)
    user_data = None
    if group.case.assignor == "cooperative-sticky":
        user_data = generation
    elif group.case.assignor == "sticky":
        user_data = None if owned == _NOTHING else owned + generation
    elif group.case.is_weighted:
        user_data = _int16(_LOAD_DATA_VERSION) + generation + struct.pack(">d", 1.0)
    return b"".join(
        (
            _int16(_VERSION),
            _int32(len(wanted)),
            *wanted,
            _int32(-1) if user_data is None else _int32(len(user_data)) + user_data,
            owned if group.case.is_cooperative else _NOTHING,
            generation,
            _int16(-1) if group.racks is None else _string(RACKS[group.racks[number]]),
        )
    )


def _owned(group: Group, names: list[bytes]) -> list[bytes]:
    """Return each member's owned partitions, encoded as an array of topics with their partitions."""
    topic = np.repeat(np.arange(group.sizes.size), group.sizes)
    starts = np.cumsum(group.sizes) - group.sizes
    partition = np.arange(topic.size) - starts[topic]
    order = np.argsort(group.owners, kind="stable")
    order = order[np.searchsorted(group.owners[order], 0) :]
    owner, topic, partition = group.owners[order], topic[order], partition[order]
    opens = np.ones(owner.size, np.bool_)
    opens[1:] = (owner[1:] != owner[:-1]) | (topic[1:] != topic[:-1])
    first = np.flatnonzero(opens)
    numbers = memoryview(partition.astype(">i4").tobytes())
    runs: list[list[bytes]] = [[] for _ in group.members]
    ends = np.append(first, owner.size)[1:]
    for start, end, run_owner, run_topic in zip(
        first.tolist(), ends.tolist(), owner[first].tolist(), topic[first].tolist(), strict=True
    ):
        runs[run_owner].append(names[run_topic] + _int32(end - start) + numbers[4 * start : 4 * end])
    return [_int32(len(of_member)) + b"".join(of_member) for of_member in runs]


def _int16(number: int) -> bytes:
    return struct.pack(">h", number)


def _int32(number: int) -> bytes:
    return struct.pack(">i", number)


def _string(text: str) -> bytes:
    return _int16(len(text)) + text.encode()


_NOTHING = _int32(0)
