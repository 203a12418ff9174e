"""What each process says of itself, one line for each thing, with the machine's monotonic clock.

A history is a file that its process alone appends to. A line is written by one system call before the process goes
on, so that a SIGKILL takes nothing of it away; a line that was cut short ends the history.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = tuple[str, int]
"""A topic and a partition's number."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a process did, or had done to it."""

    time: float
    """When it was done, by CLOCK_MONOTONIC."""


@dataclass(frozen=True, slots=True)
class Started(Event):
    """A member's process is up, as a member of `group`."""

    group: str
    name: str
    instance: str | None
    """The ``group.instance.id`` of a static member."""
    assignor: str
    commits: str
    """How it commits: auto, sync, async, store (`store_offsets`) or message (`commit(message=…)`)."""
    guest: bool = False
    """Whether it may not read the forbidden topic."""


@dataclass(frozen=True, slots=True)
class Assigned(Event):
    """Partitions were gained: on_assign was entered."""

    partitions: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class GivenUp(Event):
    """Partitions were given up: on_revoke, or on_lost, is about to return."""

    begun: float
    partitions: tuple[Key, ...]
    lost: bool


@dataclass(frozen=True, slots=True)
class Rebalanced(Event):
    """A rebalance ended for this member."""

    generation: int
    reason: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Consumed(Event):
    """A message was returned by the poll that was entered at `polled`."""

    polled: float
    key: Key
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Reached(Event):
    """The end of a partition (`enable.partition.eof`) was returned by the poll that was entered at `polled`."""

    polled: float
    key: Key
    offset: int
    """The next message's."""


@dataclass(frozen=True, slots=True)
class Sought(Event):
    """The member has sought another offset."""

    key: Key
    offset: int


@dataclass(frozen=True, slots=True)
class Told(Event):
    """A poll returned an error as a message."""

    code: str
    """The error's name."""
    topic: str | None
    error: str


@dataclass(frozen=True, slots=True)
class Interrupted(Event):
    """The exception of a signal handler left the poll that was entered at `polled`."""

    polled: float


@dataclass(frozen=True, slots=True)
class Woken(Event):
    """A poll raised WakeupError."""


@dataclass(frozen=True, slots=True)
class Closing(Event):
    """Another thread of the member calls close."""


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A commit was answered."""

    begun: float | None
    """When it was asked for; None where only the answer is known."""
    offsets: dict[Key, int]
    """The next offset to be read, by partition."""
    error: str | None


@dataclass(frozen=True, slots=True)
class Busy(Event):
    """From `begun` on the member did not poll; written when that begins, and when it ends."""

    begun: float


@dataclass(frozen=True, slots=True)
class Starved(Event):
    """From `begun` on the whole process did not run: it was stopped, or the machine was overloaded."""

    begun: float


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """Poll, commit or close raised something."""

    during: str
    error: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The member has closed, and its process ends."""


@dataclass(frozen=True, slots=True)
class Produced(Event):
    """A message was acknowledged to the producer."""

    key: Key
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Struck(Event):
    """What was done to a member (`stop`, `continue`, `kill`, `leave`, `busy`, `start`, …) or to the cluster or a topic."""

    what: str
    whom: str
    until: float
    """When it was done with; `time` for what takes no time."""


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Started,
        Assigned,
        GivenUp,
        Rebalanced,
        Consumed,
        Reached,
        Sought,
        Told,
        Interrupted,
        Woken,
        Closing,
        Committed,
        Busy,
        Starved,
        Failed,
        Ended,
        Produced,
        Struck,
    )
}


def now() -> float:
    """Return the machine's monotonic time, which is the same for all of its processes."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def encode(event: Event) -> bytes:
    """Return the event's line."""
    # By hand: `dataclasses.asdict` copies deeply, a hundred times slower.
    fields: list[Any] = [getattr(event, name) for name in _fields(type(event))]
    if isinstance(event, Committed):
        fields[_fields(Committed).index("offsets")] = [
            (*key, offset) for key, offset in event.offsets.items()
        ]
    return json.dumps([type(event).__name__, *fields], separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Event:
    """Read a line.

    Raises:
        ValueError: It is no event's line.
    """
    name, *fields = json.loads(line)
    kind = _KINDS[name]
    values: dict[str, Any] = dict(zip(_fields(kind), fields, strict=True))
    if "key" in values:
        values["key"] = tuple(values["key"])
    if "partitions" in values:
        values["partitions"] = tuple(map(tuple, values["partitions"]))
    if "offsets" in values:
        values["offsets"] = {(topic, number): offset for topic, number, offset in values["offsets"]}
    return kind(**values)


def _fields(kind: type[Event]) -> tuple[str, ...]:
    return tuple(kind.__dataclass_fields__)


class HistoryWriter:
    """Appends to one history."""

    def __init__(self, path: Path) -> None:
        """Open the file, and create it."""
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *events: Event) -> None:
        """Append the events; when this returns, the death of the process cannot lose them."""
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
        """Return the events since the last call. A line that is not whole yet waits."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield decode(line)
