"""Timeline of a member: that of `groupwright.testing.groups`, with stalls, busy times and seeks. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from groupwright.core import TopicPartitionKey
from groupwright.testing import groups
from groupwright.testing.groups import (
    Committed,
    Consumed,
    Event,
    Killed,
    Left,
    Produced,
    Sought,
    Started,
    Window,
)
from integration_tests.soak.events import Busy, Closing, Interrupted, Starved

Interval = tuple[float, float]

_AT_ONCE = 0.01
"""Two actions of a member within so many seconds have no poll between them."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was returned to a member, or acknowledged to the producer."""

    time: float
    polled: float
    """The time at which the poll was entered; `time`, of the producer."""
    partition: TopicPartitionKey
    offset: int
    value: str


def messages(event: Consumed | Produced) -> Iterator[Message]:
    """Yield the messages of an event."""
    polled = event.polled if isinstance(event, Consumed) else event.time
    places = (
        ((span.topic, span.partition), offset)
        for span in event.spans
        for offset in range(span.start, span.stop)
    )
    for (partition, offset), value in zip(places, event.values, strict=True):
        yield Message(event.time, polled, partition, offset, value)


class MemberHistory(groups.MemberHistory):
    """One member process, from start to end; its windows are those of the events that a judge has applied."""

    def __init__(self, name: str, started: Started, events: Iterable[Event]) -> None:
        """Read the member's events, `started` among them."""
        self.received: defaultdict[Window, list[Message]] = defaultdict(list)
        """Messages received in each window, in order."""
        self.sought: defaultdict[Window, list[int]] = defaultdict(list)
        """Targets of seeks in each window."""
        self._closing = False
        super().__init__(name, ())
        self.events = sorted(events, key=lambda event: event.time)
        self.started = started
        self.instance = started.details.get("instance")
        """The ``group.instance.id`` of a static member."""
        self.guest = started.details["guest"] == str(True)
        """True if the member may not read the forbidden topic."""
        self.killed = min((each.time for each in self.events if isinstance(each, Killed)), default=math.inf)
        self.starved = [(each.begun, each.time) for each in self.events if isinstance(each, Starved)]
        self.frozen = merged([*groups.MemberHistory(name, self.events).faults, *self.starved])
        """Times at which the process did not run, including the time after SIGKILL."""
        self.silent = merged([*self.frozen, *_busy_times(self.events), *_waits_for_commits(self.events)])
        """Times at which the application did not poll, for any reason."""

    @property
    def ended(self) -> bool:
        """True if the process ended with a clean shutdown."""
        return any(isinstance(event, Left) for event in self.events)

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        match event:
            case Closing():
                self._closing = True
            case Consumed(polled=polled):
                for message in messages(event):
                    window = self.window_of(message.partition, polled)
                    if window is not None:
                        self.received[window].append(message)
            case Sought(partition=partition, offset=offset) if partition in self.owned:
                self.sought[self.owned[partition]].append(offset)
            case _:
                pass
        super().apply(event)

    def window_of(self, partition: TopicPartitionKey, polled: float) -> Window | None:
        """Return the present window, or the last one if another thread has closed the consumer meanwhile."""
        window = self.owned.get(partition)
        if window is None and self._closing:
            last = self.last.get(partition)
            return last if last is not None and polled <= last.revoking else None
        return window

    def entered(self, window: Window) -> float:
        """Return the earliest entry of on_assign: a process that is stopped in it records it late."""
        begins = (begin for begin, end in self.starved if begin <= window.begin <= end + _AT_ONCE)
        return min(begins, default=window.begin)

    def commits(self) -> Iterator[Committed]:
        """Return the commits, in order."""
        return (event for event in self.events if isinstance(event, Committed))

    def interruptions(self) -> Iterator[Interrupted]:
        """Return the polls interrupted by a signal handler, in order."""
        return (event for event in self.events if isinstance(event, Interrupted))


def read_history(name: str, events: Iterable[Event]) -> MemberHistory | None:
    """Build a `MemberHistory`; return None if the member has not started."""
    events = list(events)
    started = next((event for event in events if isinstance(event, Started)), None)
    return None if started is None else MemberHistory(name, started, events)


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of the intervals, in order; adjacent intervals are joined."""
    union: list[Interval] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return union


def _waits_for_commits(events: Iterable[Event]) -> Iterator[Interval]:
    """Yield the intervals of synchronous commits, within and right after which a member does not poll."""
    for event in events:
        if isinstance(event, Committed) and event.began is not None:
            yield event.began, event.time + _AT_ONCE


def _busy_times(events: Iterable[Event]) -> Iterator[Interval]:
    ends: dict[float, float] = {}
    for event in events:
        if isinstance(event, Busy):
            ends[event.begun] = math.inf if event.time == event.begun else event.time
    yield from ends.items()
