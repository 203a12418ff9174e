"""File format of the leader's inputs and of its answer, shared by all contestants.

Numbers are big-endian int32. Strings (UTF-8) and bytes are prefixed with their length, -1 for null. Lists are
prefixed with their count. The inputs are, in order: the assignor's name; the nodes' racks; the topics, each
with its name, its number of partitions, its number of replicas per partition, and the replicas' nodes by
partition; the members, each with its id and its subscription as ConsumerProtocol bytes; the number of weights
(0 for none), and the weights of all partitions, topic after topic, as big-endian float64. The answer is the
list of members, each with its id and its assignment as ConsumerProtocol bytes.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class TopicInput:
    """A topic of the cluster's metadata.

    Attributes:
        name: Its name.
        replicas: Node of each replica, (partitions, replicas).
    """

    name: str
    replicas: npt.NDArray[np.int32]


@dataclass(frozen=True)
class MemberBytes:
    """A member's id, and its subscription or its assignment."""

    id: str
    data: bytes


@dataclass(frozen=True)
class Inputs:
    """Inputs of the leader's assignment.

    Attributes:
        assignor: The assignor's protocol name.
        racks: Rack of each node, or None.
        topics: The cluster's topics.
        members: The members, with their subscriptions.
        weights: By topic, the weight of each partition; None if the assignor considers none.
    """

    assignor: str
    racks: tuple[str | None, ...]
    topics: list[TopicInput]
    members: list[MemberBytes]
    weights: list[npt.NDArray[np.float64]] | None = None


def write_inputs(path: Path, inputs: Inputs) -> None:
    """Write the inputs of the contestants."""
    parts = [_bytes(inputs.assignor.encode()), _number(len(inputs.racks))]
    parts += [_bytes(None if rack is None else rack.encode()) for rack in inputs.racks]
    parts.append(_number(len(inputs.topics)))
    for topic in inputs.topics:
        parts += [_bytes(topic.name.encode()), *map(_number, topic.replicas.shape)]
        parts.append(topic.replicas.astype(">i4").tobytes())
    parts += _members(inputs.members)
    weights = np.concatenate(inputs.weights) if inputs.weights is not None else np.empty(0)
    parts += [_number(weights.size), weights.astype(">f8").tobytes()]
    path.write_bytes(b"".join(parts))


def read_inputs(path: Path) -> Inputs:
    """Read the file that `write_inputs` wrote."""
    reader = _Reader(path.read_bytes())
    assignor = reader.string()
    racks = tuple(reader.nullable_string() for _ in range(reader.number()))
    topics = [_read_topic(reader) for _ in range(reader.number())]
    members = reader.members()
    weights = np.frombuffer(reader.take(8 * reader.number()), ">f8").astype(np.float64)
    if not weights.size:
        return Inputs(assignor, racks, topics, members)
    ends = np.cumsum([len(topic.replicas) for topic in topics])
    return Inputs(assignor, racks, topics, members, np.split(weights, ends[:-1]))


def write_answer(path: Path, assignments: Iterable[tuple[str, bytes]]) -> None:
    """Write the members' assignments."""
    path.write_bytes(b"".join(_members([MemberBytes(*assignment) for assignment in assignments])))


def read_answer(path: Path) -> list[MemberBytes]:
    """Read the members' assignments."""
    return _Reader(path.read_bytes()).members()


def _number(number: int) -> bytes:
    return struct.pack(">i", number)


def _bytes(data: bytes | None) -> bytes:
    return _number(-1) if data is None else _number(len(data)) + data


def _members(members: list[MemberBytes]) -> list[bytes]:
    return [
        _number(len(members)),
        *(part for member in members for part in (_bytes(member.id.encode()), _bytes(member.data))),
    ]


def _read_topic(reader: "_Reader") -> TopicInput:
    name, partitions, replicas = reader.string(), reader.number(), reader.number()
    nodes = np.frombuffer(reader.take(4 * partitions * replicas), ">i4").astype(np.int32)
    return TopicInput(name, nodes.reshape(partitions, replicas))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self) -> int:
        (number,) = struct.unpack(">i", self.take(4))
        return int(number)

    def nullable_string(self) -> str | None:
        length = self.number()
        return None if length < 0 else self.take(length).decode()

    def string(self) -> str:
        return self.take(self.number()).decode()

    def members(self) -> list[MemberBytes]:
        return [MemberBytes(self.string(), self.take(self.number())) for _ in range(self.number())]
