"""Events of a group's members and its producer, and histories: the files that keep them.

One process appends to a history. It writes each line by one system call before it continues, so a SIGKILL
loses no complete line. An incomplete line ends the history.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.offsets import Span

_KINDS: dict[str, type["Event"]] = {}
"""All types of events, by name."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a member or of the producer.

    An application records events of its own: frozen dataclasses that are derived from this class, with
    distinct names, and that the process which reads the history has imported. JSON can represent their
    fields; `partition`, `partitions`, `spans`, `values` and `offsets` have the types that they have here.

    Attributes:
        time: Time in seconds of `time.monotonic`, which all processes of a machine share.
    """

    time: float

    def __init_subclass__(cls) -> None:
        """Make the type known to `decode`.

        Raises:
            TypeError: Another module has a type of this name.
        """
        known = _KINDS.get(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise TypeError(f"{known.__module__} has an event {cls.__name__!r}: give this one another name")
        _KINDS[cls.__name__] = cls  # a dataclass with slots replaces the class that it decorates


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The member's consumer exists and subscribes next.

    Attributes:
        details: What the consumer's factory reported, such as the address of its metrics.
    """

    details: dict[str, str]


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """on_assign was entered."""

    partitions: tuple[TopicPartitionKey, ...]


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """on_revoke or on_lost is about to return.

    Attributes:
        lost: Whether it was on_lost: other members may own the partitions already.
        began: Time at which it was entered; None if unknown.
    """

    partitions: tuple[TopicPartitionKey, ...]
    lost: bool
    began: float | None = None


@dataclass(frozen=True, slots=True)
class Rebalanced(Event):
    """A rebalance ended for the member; only consumers that call listeners report it.

    Attributes:
        generation: The group's generation.
        seconds: Duration in seconds; None if unknown.
        outcome: ``completed``, ``lost`` or ``failed``.
        partitions: The partitions that the member owns afterwards.
    """

    generation: int
    seconds: float | None
    outcome: str
    partitions: tuple[TopicPartitionKey, ...]


@dataclass(frozen=True, slots=True)
class Consumed(Event):
    """One call of poll or consume returned messages.

    Attributes:
        polled: Time at which the call was entered.
        spans: The messages' offsets.
        values: The messages' texts (`Hooks.value`), in the order of the spans; empty if not recorded.
    """

    polled: float
    spans: tuple[Span, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndReached(Event):
    """A call of poll or consume returned the end of a partition (`enable.partition.eof`).

    Attributes:
        polled: Time at which the call was entered.
        offset: The offset of the next message.
    """

    polled: float
    partition: TopicPartitionKey
    offset: int


@dataclass(frozen=True, slots=True)
class ErrorReturned(Event):
    """A call of poll or consume returned an error of a topic, or of a long pause between polls.

    Attributes:
        code: The error's name.
        topic: The topic; None if the error is of none.
        error: The error, as text.
    """

    code: str
    topic: str | None
    error: str


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """The member sought to another offset of a partition that it owns."""

    partition: TopicPartitionKey
    offset: int


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A commit ended.

    Attributes:
        offsets: The next offset to read, by partition.
        began: Time at which `commit` was called; None if asynchronous.
        error: The error, as text; None if the commit succeeded.
    """

    offsets: dict[TopicPartitionKey, int]
    began: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """A poll raised, or returned an error of the group.

    Attributes:
        error: The error, as text.
    """

    error: str


@dataclass(frozen=True, slots=True)
class Left(Event):
    """The member closed its consumer."""


@dataclass(frozen=True, slots=True)
class Died(Event):
    """The member's loop ended with an exception.

    Attributes:
        error: The exception, as text.
    """

    error: str


@dataclass(frozen=True, slots=True)
class Killed(Event):
    """The member's process was killed, and its whole history was read.

    Attributes:
        offsets: The group's committed offsets at the coordinator after that.
    """

    offsets: dict[TopicPartitionKey, int]


@dataclass(frozen=True, slots=True)
class Faulted(Event):
    """A fault began or ended, in which others may be assigned what the member has not revoked.

    Faults with different names may overlap. A fault that begins again before it has ended remains one fault;
    the end of a fault that has not begun is ignored.

    Attributes:
        fault: ``suspend``, ``pause polling``, or another one that a test injects.
        begins: Whether it began.
    """

    fault: str
    begins: bool


@dataclass(frozen=True, slots=True)
class Produced(Event):
    """Brokers acknowledged messages to the producer.

    Attributes:
        spans: The messages' offsets.
        values: The messages' values, in the order of the spans; empty if not recorded.
    """

    spans: tuple[Span, ...]
    values: tuple[str, ...] = ()


def now() -> float:
    """Return the machine's monotonic time in seconds, which its processes share."""
    return time.monotonic()


def encode(event: Event) -> bytes:
    """Return the event as a line of JSON."""
    # `dataclasses.asdict` copies deeply, which takes a hundred times as long.
    fields = {name: getattr(event, name) for name in event.__dataclass_fields__}
    if "offsets" in fields:
        fields["offsets"] = [(*partition, offset) for partition, offset in fields["offsets"].items()]
    return json.dumps([type(event).__name__, *fields.values()], separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Event:
    """Decode a line of JSON.

    Raises:
        ValueError: The line is not JSON.
    """
    name, *fields = json.loads(line)
    kind = _KINDS[name]
    values: dict[str, Any] = dict(zip(kind.__dataclass_fields__, fields, strict=True))
    if "partition" in values:
        values["partition"] = tuple(values["partition"])
    if "values" in values:
        values["values"] = tuple(values["values"])
    if "partitions" in values:
        values["partitions"] = tuple(map(tuple, values["partitions"]))
    if "spans" in values:
        values["spans"] = tuple(Span(*span) for span in values["spans"])
    if "offsets" in values:
        values["offsets"] = {(topic, number): offset for topic, number, offset in values["offsets"]}
    return kind(**values)


class HistoryWriter:
    """Appends to one history. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Open the file, and create it if it does not exist."""
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *events: Event) -> None:
        """Append the events. After the return, a SIGKILL cannot lose them.

        Raises:
            OSError: The events cannot be written.
        """
        line = b"".join(map(encode, events))
        written = os.write(self._descriptor, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes could be written to the history")

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class HistoryReader:
    """Reads a history while it grows."""

    def __init__(self, path: Path) -> None:
        """Start at the beginning; the file need not exist yet."""
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[Event]:
        """Yield the events since the last call. An incomplete last line is read by a later call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield decode(line)
