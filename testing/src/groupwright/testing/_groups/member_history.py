"""A member's ownership windows, derived from its history. Pure.

A window is the time in which a member owned a partition, according to its callbacks: from the call of
on_assign to the return of on_revoke or on_lost.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.events import (
    Assigned,
    Committed,
    Consumed,
    Died,
    Event,
    Faulted,
    Killed,
    Left,
    Revoked,
)
from groupwright.testing._groups.offsets import Span


class End(StrEnum):
    """The end of a window."""

    REVOKED = "revoked"
    """on_revoke was called, or the member left."""
    LOST = "lost"
    """on_lost was called."""
    KILLED = "killed"
    """The member's process was killed."""
    DIED = "died"
    """The member's loop ended with an exception."""
    OPEN = "open"
    """The history ends before the window does."""


@dataclass(slots=True, eq=False)
class Window:
    """One member's ownership of one partition.

    Attributes:
        member: The member's name.
        partition: The topic and the partition's number.
        begin: When on_assign was entered.
        end: When it ended; infinity if it did not.
        ended_by: What ended it.
        revoking: When on_revoke or on_lost was entered; the end, if neither was.
        committed: The last offset that this member is known to have committed in it; 0 for none.
        consumed: Each call's messages, with its time.
    """

    member: str
    partition: TopicPartitionKey
    begin: float
    end: float = math.inf
    ended_by: End = End.OPEN
    revoking: float = math.inf
    committed: int = 0
    consumed: list[tuple[float, Span]] = field(default_factory=list)

    def __str__(self) -> str:
        """Return member, partition, times and end."""
        topic, number = self.partition
        span = f"from {self.begin:.3f} to {self.end:.3f}"
        return f"{self.member} owned {topic} [{number}] {span} ({self.ended_by})"


class MemberHistory:
    """Ownership, consumed messages and faults of a member. A subclass can extend `apply` and `window_of`.

    Attributes:
        name: The member's name.
        events: Its events, in the order of time.
        windows: Its ownership windows, in the order of their begin.
        owned: The present window of each partition that it owns.
        last: The last window of each partition that it has owned.
        strays: Messages, with their times, of partitions that it owned at no time since the poll began.
        faults: The times (begin, end) of faults in which others may be assigned what it has not revoked.
    """

    def __init__(self, name: str, events: Iterable[Event]) -> None:
        """Derive it from the member's events."""
        self.name = name
        # Several threads may write a history, so it may be slightly out of order.
        self.events = sorted(events, key=lambda event: event.time)
        self.windows: list[Window] = []
        self.owned: dict[TopicPartitionKey, Window] = {}
        self.last: dict[TopicPartitionKey, Window] = {}
        self.strays: list[tuple[float, Span]] = []
        self.faults: list[tuple[float, float]] = []
        self._open_faults: dict[str, int] = {}
        """The index in `faults` of each fault that has not ended, by its name."""
        for event in self.events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        match event:
            case Assigned(partitions=partitions):
                self._assign(partitions, event.time)
            case Revoked(partitions=partitions, lost=lost, began=began):
                self._end(partitions, event.time, End.LOST if lost else End.REVOKED, began)
            case Consumed(spans=spans, polled=polled):
                self._consume(spans, polled, event.time)
            case Committed(offsets=offsets, error=None):
                self._commit(offsets)
            case Killed(offsets=offsets):
                self._commit(offsets)
                self._end(tuple(self.owned), event.time, End.KILLED)
            case Died():
                self._end(tuple(self.owned), event.time, End.DIED)
            case Left():
                self._end(tuple(self.owned), event.time, End.REVOKED)
            case Faulted(fault=fault, begins=True):
                self._begin_fault(fault, event.time)
            case Faulted(fault=fault):
                self._end_fault(fault, event.time)
            case _:
                pass

    def window_of(self, partition: TopicPartitionKey, polled: float) -> Window | None:
        """Return the window to which a message belongs that a call entered at `polled` has just returned."""
        window = self.last.get(partition)
        # A call may return messages that were fetched before a callback of the same call.
        return None if window is None or window.end < polled else window

    def _assign(self, partitions: Iterable[TopicPartitionKey], time: float) -> None:
        self._end(partitions, time, End.REVOKED)
        gained = {partition: Window(self.name, partition, time) for partition in partitions}
        self.owned |= gained
        self.last |= gained
        self.windows += gained.values()

    def _end(
        self,
        partitions: Iterable[TopicPartitionKey],
        time: float,
        ended_by: End,
        revoking: float | None = None,
    ) -> None:
        for partition in partitions:
            if (window := self.owned.pop(partition, None)) is not None:
                window.end, window.ended_by = time, ended_by
                window.revoking = time if revoking is None else revoking

    def _begin_fault(self, fault: str, time: float) -> None:
        if fault not in self._open_faults:
            self._open_faults[fault] = len(self.faults)
            self.faults.append((time, math.inf))

    def _end_fault(self, fault: str, time: float) -> None:
        if (index := self._open_faults.pop(fault, None)) is not None:
            self.faults[index] = (self.faults[index][0], time)

    def _consume(self, spans: Iterable[Span], polled: float, time: float) -> None:
        for span in spans:
            window = self.window_of((span.topic, span.partition), polled)
            if window is None:
                self.strays.append((time, span))
            else:
                window.consumed.append((time, span))

    def _commit(self, offsets: Mapping[TopicPartitionKey, int]) -> None:
        for partition, offset in offsets.items():
            if (window := self.owned.get(partition)) is not None:
                window.committed = max(offset, window.committed)
