"""Events of a group's members and its producer, and histories: the files that keep them.

One process appends to a history. It writes each line by one system call before it continues, so a SIGKILL
loses no complete line. An incomplete line ends the history.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupwright.testing._groups.offsets import Span

Partition = tuple[str, int]
"""A topic and a partition's number."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a member or of the producer.

    Attributes:
        time: Time in seconds of `time.monotonic`, which all processes of a machine share.
    """

    time: float


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

    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Revoked(Event):
    """on_revoke or on_lost was entered.

    Attributes:
        lost: Whether it was on_lost: other members may own the partitions already.
    """

    partitions: tuple[Partition, ...]
    lost: bool


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
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Consumed(Event):
    """One call of poll or consume returned messages.

    Attributes:
        polled: Time at which the call was entered.
        spans: The messages' offsets.
    """

    polled: float
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A commit succeeded.

    Attributes:
        offsets: The next offset to read, by partition.
    """

    offsets: dict[Partition, int]


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
class Killed(Event):
    """The member's process was killed, and its whole history was read.

    Attributes:
        offsets: The group's committed offsets at the coordinator after that.
    """

    offsets: dict[Partition, int]


@dataclass(frozen=True, slots=True)
class Faulted(Event):
    """A fault began or ended, in which others may be assigned what the member has not revoked.

    Attributes:
        fault: ``suspend`` or ``pause polling``.
        begins: Whether it began.
    """

    fault: str
    begins: bool


@dataclass(frozen=True, slots=True)
class Produced(Event):
    """Brokers acknowledged messages to the producer."""

    spans: tuple[Span, ...]


KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        *(Started, Assigned, Revoked, Rebalanced, Consumed, Committed),
        *(Failed, Left, Killed, Faulted, Produced),
    )
}


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


def decode(line: bytes, kinds: dict[str, type[Event]] = KINDS) -> Event:
    """Decode a line of JSON.

    Args:
        line: The line.
        kinds: The possible types of events, by name.

    Raises:
        ValueError: The line is not JSON.
    """
    name, *fields = json.loads(line)
    kind = kinds[name]
    values: dict[str, Any] = dict(zip(kind.__dataclass_fields__, fields, strict=True))
    if "key" in values:  # a partition, in events that callers define
        values["key"] = tuple(values["key"])
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

    def __init__(self, path: Path, kinds: Iterable[type[Event]] = KINDS.values()) -> None:
        """Start at the beginning; the file need not exist yet."""
        self._path = path
        self._kinds = {kind.__name__: kind for kind in kinds}
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
                yield decode(line, self._kinds)
