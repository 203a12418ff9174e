"""Timeline of each member process, derived from its history and the injected faults. Pure.

A `Window` is the time for which a member owned a partition by its own record: from the entry of on_assign to
the return of on_revoke or on_lost.
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
    EndReached,
    Event,
    Failed,
    FaultInjected,
    Interrupted,
    Key,
    Revoked,
    Sought,
    Started,
    Starved,
)

Interval = tuple[float, float]


class End(StrEnum):
    """End of a window."""

    REVOKED = "revoked"
    LOST = "lost"
    KILLED = "killed"
    DIED = "died"
    """The process ended with an exception."""
    OPEN = "open"
    """The history ends within the window."""


PROCESS = "the member's process"
"""Value of `Failed.during` for a failure that ends the member process."""
_AT_ONCE = 0.01
"""Two actions of a member within so many seconds have no poll between them."""


@dataclass(slots=True, eq=False)
class Window:
    """One member's ownership of one partition."""

    member: "MemberHistory"
    key: Key
    begin: float
    end: float = math.inf
    ended_by: End = End.OPEN
    asked: float = math.inf
    """The time at which on_revoke or on_lost was entered."""
    entered: float = math.inf
    """The earliest entry of on_assign: a process that is stopped in it records it late."""
    consumed: list[Consumed] = field(default_factory=list)
    reached: list[EndReached] = field(default_factory=list)
    sought: list[Sought] = field(default_factory=list)

    def __str__(self) -> str:
        """Return member, partition and times."""
        topic, number = self.key
        span = f"from {self.begin:.3f} to {self.end:.3f}"
        return f"{self.member.name} owned {topic} [{number}] {span} ({self.ended_by})"


@dataclass(slots=True, eq=False)
class MemberHistory:
    """One member process, from start to end."""

    started: Started
    events: list[Event]
    windows: list[Window] = field(default_factory=list)
    strays: list[Consumed | EndReached] = field(default_factory=list)
    """Messages and partition ends delivered while the member did not own the partition."""
    repeated: list[Assigned] = field(default_factory=list)
    """Assignments of partitions that the member owned already."""
    frozen: list[Interval] = field(default_factory=list)
    """Times at which the process did not run, including the time after SIGKILL."""
    silent: list[Interval] = field(default_factory=list)
    """Times at which the application did not poll, for any reason."""
    killed: float = math.inf
    hung: bool = False
    """True if the process ignored the order to leave."""

    @property
    def name(self) -> str:
        """The member's name, unique in a run."""
        return self.started.name

    @property
    def ended(self) -> bool:
        """True if the process ended with a clean shutdown."""
        return any(isinstance(event, Ended) for event in self.events)

    def commits(self) -> Iterator[Committed]:
        """Return the commits, in order."""
        return (event for event in self.events if isinstance(event, Committed))

    def failures(self) -> Iterator[Failed]:
        """Return the recorded failures, in order."""
        return (event for event in self.events if isinstance(event, Failed))

    def interruptions(self) -> Iterator[Interrupted]:
        """Return the polls interrupted by a signal handler, in order."""
        return (event for event in self.events if isinstance(event, Interrupted))

    def losses(self) -> Iterator[Revoked]:
        """Return the losses of partitions, in order."""
        return (e for e in self.events if isinstance(e, Revoked) and e.lost and e.partitions)


def read_history(history: Iterable[Event], faults: Iterable[FaultInjected]) -> MemberHistory | None:
    """Build a `MemberHistory` from a history; return None if the history has no `Started` event."""
    # Two threads write the history, so its lines may be slightly out of order.
    events = sorted(history, key=lambda event: event.time)
    started = next((event for event in events if isinstance(event, Started)), None)
    if started is None:
        return None
    member = MemberHistory(started, events)
    mine = [fault for fault in faults if fault.target == member.name]
    member.killed = min((fault.until for fault in mine if fault.what == "kill"), default=math.inf)
    member.hung = any(fault.what == "hang" for fault in mine)
    member.frozen = merged([*_stops(mine), *_starvations(events), *_after_death(mine)])
    member.silent = merged([*member.frozen, *_busy_times(events), *_waits_for_commits(events)])
    _follow(member)
    return member


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of the intervals, in order; adjacent intervals are joined."""
    union: list[Interval] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((begin, end))
    return union


def by_group(members: Iterable[MemberHistory]) -> dict[str, list[MemberHistory]]:
    """Return the members, by group."""
    groups: defaultdict[str, list[MemberHistory]] = defaultdict(list)
    for each in members:
        groups[each.started.group].append(each)
    return dict(groups)


def _follow(member: MemberHistory) -> None:
    """Replay the events, and record the windows of ownership."""
    owned: dict[Key, Window] = {}
    last: dict[Key, Window] = {}
    closing = False
    for event in member.events:
        match event:
            case Assigned():
                if not owned.keys().isdisjoint(event.partitions):
                    member.repeated.append(event)
                _end(owned, event.partitions, event.time, End.REVOKED)
                entered = _entered(event, member.events)
                owned |= {key: Window(member, key, event.time, entered=entered) for key in event.partitions}
                last |= owned
                member.windows += [owned[key] for key in event.partitions]
            case Revoked():
                ended_by = End.LOST if event.lost else End.REVOKED
                _end(owned, event.partitions, event.time, ended_by, event.begun)
            case Closing():
                closing = True
            case Consumed() | EndReached():
                _deliver(member, event, owned.get(event.key), last.get(event.key) if closing else None)
            case Sought() if event.key in owned:
                owned[event.key].sought.append(event)
            case _:
                pass
    if member.killed < math.inf:
        _end(owned, tuple(owned), member.killed, End.KILLED)
    died = [failure.time for failure in member.failures() if failure.during == PROCESS]
    _end(owned, tuple(owned) if died else (), max(died, default=math.inf), End.DIED)


def _entered(event: Assigned, events: Iterable[Event]) -> float:
    stops = _starvations(events)
    return min((begin for begin, end in stops if begin <= event.time <= end + _AT_ONCE), default=event.time)


def _deliver(
    member: MemberHistory, event: Consumed | EndReached, window: Window | None, closed: Window | None
) -> None:
    if window is None and closed is not None and event.polled <= closed.asked:
        window = closed  # fetched before another thread closed the consumer
    if window is None:
        member.strays.append(event)
    elif isinstance(event, Consumed):
        window.consumed.append(event)
    else:
        window.reached.append(event)


def _end(
    owned: dict[Key, Window], keys: Iterable[Key], time: float, ended_by: End, asked: float | None = None
) -> None:
    for key in keys:
        window = owned.pop(key, None)
        if window is not None:
            window.end, window.ended_by = time, ended_by
            window.asked = time if asked is None else asked


def _stops(faults: Sequence[FaultInjected]) -> Iterator[Interval]:
    begin: float | None = None
    for fault in faults:
        if fault.what == "stop":
            begin = fault.time
        elif fault.what == "continue" and begin is not None:
            yield begin, fault.until
            begin = None
    if begin is not None:
        yield begin, math.inf


def _after_death(faults: Iterable[FaultInjected]) -> Iterator[Interval]:
    return ((fault.time, math.inf) for fault in faults if fault.what == "kill")


def _starvations(events: Iterable[Event]) -> Iterator[Interval]:
    return ((event.begun, event.time) for event in events if isinstance(event, Starved))


def _waits_for_commits(events: Iterable[Event]) -> Iterator[Interval]:
    """Yield the intervals of synchronous commits, within and right after which a member does not poll."""
    for event in events:
        if isinstance(event, Committed) and event.begun is not None:
            yield event.begun, event.time + _AT_ONCE


def _busy_times(events: Iterable[Event]) -> Iterator[Interval]:
    ends: dict[float, float] = {}
    for event in events:
        if isinstance(event, Busy):
            ends[event.begun] = math.inf if event.time == event.begun else event.time
    yield from ends.items()
