"""The life of each member, put together from its history and from what was done to it. Pure.

A `Window` is the time in which a member owned a partition, by its own account: from the moment at which on_assign was
entered until on_revoke or on_lost had done its work.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from soak.events import (
    Assigned,
    Busy,
    Closing,
    Committed,
    Consumed,
    Ended,
    Event,
    Failed,
    GivenUp,
    Interrupted,
    Key,
    Reached,
    Sought,
    Started,
    Starved,
    Struck,
)

Interval = tuple[float, float]


class End(StrEnum):
    """How a window ended."""

    REVOKED = "revoked"
    LOST = "lost"
    KILLED = "killed"
    DIED = "died"
    """Its process ended by itself, with an exception."""
    OPEN = "open"
    """Not at all: the history ends before."""


LIFE = "the member's life"
"""During which a failure ends a member's process."""
_AT_ONCE = 0.01
"""Seconds within which two things that a member does follow each other with no poll between them."""


@dataclass(slots=True, eq=False)
class Window:
    """One member's ownership of one partition."""

    life: "Life"
    key: Key
    begin: float
    end: float = math.inf
    how: End = End.OPEN
    asked: float = math.inf
    """When it was asked to give the partition up: on_revoke or on_lost was entered."""
    consumed: list[Consumed] = field(default_factory=list)
    reached: list[Reached] = field(default_factory=list)
    sought: list[Sought] = field(default_factory=list)

    def __str__(self) -> str:
        """Say who, what and when."""
        topic, number = self.key
        return (
            f"{self.life.name} owned {topic} [{number}] from {self.begin:.3f} to {self.end:.3f} ({self.how})"
        )


@dataclass(slots=True, eq=False)
class Life:
    """One process of a member, from its start to its end."""

    started: Started
    events: list[Event]
    windows: list[Window] = field(default_factory=list)
    strays: list[Consumed | Reached] = field(default_factory=list)
    """Messages, and ends, of partitions that the member did not own, by its own account."""
    repeated: list[Assigned] = field(default_factory=list)
    """Assignments of something that it owned already."""
    frozen: list[Interval] = field(default_factory=list)
    """When the process did not run, the time after its death included."""
    silent: list[Interval] = field(default_factory=list)
    """When the application did not poll, whatever the reason."""
    killed: float = math.inf
    hung: bool = False
    """Whether it did not end when it was asked to."""

    @property
    def name(self) -> str:
        """The name, unique among all lives."""
        return self.started.name

    @property
    def ended(self) -> bool:
        """Whether it closed its consumer and ended in good order."""
        return any(isinstance(event, Ended) for event in self.events)

    def commits(self) -> Iterator[Committed]:
        """Return its commits, in order."""
        return (event for event in self.events if isinstance(event, Committed))

    def failures(self) -> Iterator[Failed]:
        """Return what it says went wrong."""
        return (event for event in self.events if isinstance(event, Failed))

    def interruptions(self) -> Iterator[Interrupted]:
        """Return the polls that a signal's handler interrupted, in order."""
        return (event for event in self.events if isinstance(event, Interrupted))

    def losses(self) -> Iterator[GivenUp]:
        """Return each time that it lost partitions."""
        return (e for e in self.events if isinstance(e, GivenUp) and e.lost and e.partitions)


def life(history: Iterable[Event], strikes: Iterable[Struck]) -> Life | None:
    """Return the life that a history tells; None if its process did not get as far as to say who it is."""
    # Two threads write it, so that lines may be a little out of order.
    events = sorted(history, key=lambda event: event.time)
    started = next((event for event in events if isinstance(event, Started)), None)
    if started is None:
        return None
    it = Life(started, events)
    mine = [strike for strike in strikes if strike.whom == it.name]
    it.killed = min((strike.until for strike in mine if strike.what == "kill"), default=math.inf)
    it.hung = any(strike.what == "hang" for strike in mine)
    it.frozen = merged([*_stops(mine), *_starvations(events), *_after_death(mine)])
    it.silent = merged([*it.frozen, *_busy_times(events), *_waits_for_commits(events)])
    _follow(it)
    return it


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of the intervals, in order; those that touch become one."""
    union: list[Interval] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return union


def by_group(lives: Iterable[Life]) -> dict[str, list[Life]]:
    """Return the lives of each group."""
    groups: defaultdict[str, list[Life]] = defaultdict(list)
    for each in lives:
        groups[each.started.group].append(each)
    return dict(groups)


def _follow(it: Life) -> None:
    """Walk through the events, and note what was owned when."""
    owned: dict[Key, Window] = {}
    last: dict[Key, Window] = {}
    closing = False
    for event in it.events:
        match event:
            case Assigned():
                if not owned.keys().isdisjoint(event.partitions):
                    it.repeated.append(event)
                _end(owned, event.partitions, event.time, End.REVOKED)
                owned |= {key: Window(it, key, event.time) for key in event.partitions}
                last |= owned
                it.windows += [owned[key] for key in event.partitions]
            case GivenUp():
                how = End.LOST if event.lost else End.REVOKED
                _end(owned, event.partitions, event.time, how, event.begun)
            case Closing():
                closing = True
            case Consumed() | Reached():
                _deliver(it, event, owned.get(event.key), last.get(event.key) if closing else None)
            case Sought() if event.key in owned:
                owned[event.key].sought.append(event)
            case _:
                pass
    if it.killed < math.inf:
        _end(owned, tuple(owned), it.killed, End.KILLED)
    died = [failure.time for failure in it.failures() if failure.during == LIFE]
    _end(owned, tuple(owned) if died else (), max(died, default=math.inf), End.DIED)


def _deliver(it: Life, event: Consumed | Reached, window: Window | None, closed: Window | None) -> None:
    if window is None and closed is not None and event.polled <= closed.asked:
        window = closed  # in hand when another thread closed
    if window is None:
        it.strays.append(event)
    elif isinstance(event, Consumed):
        window.consumed.append(event)
    else:
        window.reached.append(event)


def _end(
    owned: dict[Key, Window], keys: Iterable[Key], time: float, how: End, asked: float | None = None
) -> None:
    for key in keys:
        window = owned.pop(key, None)
        if window is not None:
            window.end, window.how = time, how
            window.asked = time if asked is None else asked


def _stops(strikes: Sequence[Struck]) -> Iterator[Interval]:
    begin: float | None = None
    for strike in strikes:
        if strike.what == "stop":
            begin = strike.time
        elif strike.what == "continue" and begin is not None:
            yield begin, strike.until
            begin = None
    if begin is not None:
        yield begin, math.inf


def _after_death(strikes: Iterable[Struck]) -> Iterator[Interval]:
    return ((strike.time, math.inf) for strike in strikes if strike.what == "kill")


def _starvations(events: Iterable[Event]) -> Iterator[Interval]:
    return ((event.begun, event.time) for event in events if isinstance(event, Starved))


def _waits_for_commits(events: Iterable[Event]) -> Iterator[Interval]:
    """A commit that is waited for takes as long as a silent broker makes it; what follows at once is no poll."""
    for event in events:
        if isinstance(event, Committed) and event.begun is not None:
            yield event.begun, event.time + _AT_ONCE


def _busy_times(events: Iterable[Event]) -> Iterator[Interval]:
    ends: dict[float, float] = {}
    for event in events:
        if isinstance(event, Busy):
            ends[event.begun] = math.inf if event.time == event.begun else event.time
    yield from ends.items()
