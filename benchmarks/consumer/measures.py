"""One measurement of a contestant in a cell."""

import itertools
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks.consumer.broker import set_group_timings
from benchmarks.consumer.contestants import Client, python
from benchmarks.consumer.gaps import judge_load_check, judge_member_change, read_received
from benchmarks.consumer.ownership import Ownership, read_change
from benchmarks.consumer.plan import (
    JAVA,
    JOIN_PARTITIONS,
    JOIN_TIMINGS,
    KILL_TIMINGS,
    KIP_848,
    KIP_848_SETTINGS,
    LOAD_CHECK_MEMBERS,
    LOAD_CHECK_TIMINGS,
    Cell,
    Contestant,
    Effort,
    MemberChange,
)
from benchmarks.consumer.processes import Programs, RunFailedError, measured, programs
from benchmarks.consumer.results import EventRun, FetchRun, IdleRun, LoadCheckRun, MemberChangeRun, Status

_STARTING_SECONDS = 60.0
"""Time limit of a contestant outside of the measurement."""

_SETTLING_SECONDS = 60.0
_STEADY_SECONDS = 3.0
"""Time without changes after which a group counts as settled."""

_COMMITTED_SECONDS = 8.0
"""The same before a member ends: by then each has committed."""

_COMMIT_INTERVAL_SECONDS = 5.0
"""Time between two commits of a member, by default; a kill comes at a random time of it."""

_AFTER_SECONDS = 5.0
"""The same after the change: by then all partitions must be consumed again."""

_DISTURBANCE_SECONDS = 20.0
_BATCH = 500
"""Default limit of kafka-python on the number of returned messages."""


@dataclass
class Place:
    """Broker and topics of a measurement.

    Attributes:
        servers: The broker's address.
        filled: The topic with messages.
        calm: The topic without messages.
        led: The one that leaders consume, without messages too.
    """

    servers: str
    filled: str = "filled"
    calm: str = "calm"
    led: str = "led"
    _groups: "itertools.count[int]" = field(default_factory=itertools.count)

    def settings(self, contestant: Contestant, topic: str) -> dict[str, object]:
        """Return the arguments of every program, with a new group."""
        return {
            "servers": self.servers,
            "topic": topic,
            "group": f"group-{next(self._groups)}",
            "client": contestant.client,
            "way": contestant.way,
        }


@contextmanager
def _led(place: Place, settings: Mapping[str, object]) -> Iterator[None]:
    """Have another client lead the group of these settings.

    Raises:
        RunFailedError: The leader does not get its group.
    """
    with programs() as running:
        running.start(python("leader"), {**settings, "topic": place.led, **JOIN_TIMINGS})
        running.await_all("ready")
        yield


def fetch(
    place: Place, contestant: Contestant, client: Client, effort: Effort, config: Mapping[str, object]
) -> FetchRun:
    """Measure consuming the filled topic; `config` is for the program and for librdkafka.

    Raises:
        RunFailedError: The program times out or fails.
    """
    settings = place.settings(contestant, place.filled)
    settings |= {"messages": effort.messages, "longest": effort.longest, "batch": _BATCH, **config}
    with _led(place, settings):
        return FetchRun(**measured(client.fetch, settings, _STARTING_SECONDS + effort.longest))


def wait_for_events(place: Place, contestant: Contestant, effort: Effort) -> EventRun:
    """Measure the delivery of events.

    Raises:
        RunFailedError: The program times out or fails.
    """
    settings = place.settings(contestant, place.calm)
    settings |= {"disturbances": effort.disturbances, **JOIN_TIMINGS}
    seconds = _STARTING_SECONDS + effort.disturbances * _DISTURBANCE_SECONDS
    found = measured(python("events"), settings, seconds)
    return EventRun(revokes=tuple(found["revokes"]), assigns=tuple(found["assigns"]))


def idle(place: Place, contestant: Contestant, effort: Effort) -> IdleRun:
    """Measure an idle member.

    Raises:
        RunFailedError: The program times out or fails.
    """
    settings = place.settings(contestant, place.calm) | {"seconds": effort.idle_seconds}
    with _led(place, settings):
        return IdleRun(**measured(python("idle"), settings, _STARTING_SECONDS + effort.idle_seconds))


def change_members(
    place: Place, contestant: Contestant, client: Client, change: MemberChange, topic: str
) -> MemberChangeRun:
    """Measure a change of the members of a group that consumes a topic under load.

    Raises:
        RunFailedError: The group does not settle, or a member fails.
    """
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, programs() as running:
        settings = place.settings(contestant, topic) | {"folder": name}
        timings = KILL_TIMINGS if change.kind is Cell.KILL else JOIN_TIMINGS
        settings |= _membership(settings, contestant, timings)
        for first, last in _processes(client, change.members):
            running.start(client.members, settings | {"first": first, "last": last})
        running.await_all("ready")
        group = _Group(running)
        running.order(f"join 0 {change.size - 1}")
        group.settle(change.size, _calm_before(change))
        before, past = group.ownership.owners(), len(group.ownership.changes)
        since = _begin(change, group)
        group.settle(change.size_after, _AFTER_SECONDS)
        running.order("stop")
        running.await_all("done")
        received = read_received(Path(name), change.members)
    changes, after = group.ownership.changes[past:], group.ownership.owners()
    try:
        return judge_member_change(received, since, changes, before, after)
    except ValueError as error:
        raise RunFailedError(Status.FAILED, str(error)) from error


def _calm_before(change: MemberChange) -> float:
    """Return the seconds for which a group is settled before the change."""
    if change.kind is Cell.JOIN:
        return _STEADY_SECONDS
    later = random.uniform(0, _COMMIT_INTERVAL_SECONDS)  # noqa: S311 - no secret
    return _COMMITTED_SECONDS + (later if change.kind is Cell.KILL else 0)


def _membership(
    settings: Mapping[str, object], contestant: Contestant, timings: Mapping[str, int]
) -> dict[str, object]:
    """Return the settings of members with this assignor or protocol; those at the broker are set here.

    Raises:
        RunFailedError: The broker has no such protocol.
    """
    if contestant.way != KIP_848:
        return {"assignor": contestant.way, **timings}
    try:
        set_group_timings(str(settings["servers"]), str(settings["group"]), timings)
    except KafkaException as error:
        raise RunFailedError(Status.LACKING, str(error)) from error
    return dict(KIP_848_SETTINGS)


def _begin(change: MemberChange, group: "_Group") -> int:
    """Give the orders of a change, a deploy's until the last member consumes; return the time of the first.

    Raises:
        RunFailedError: A member does not follow, or fails.
    """
    if change.kind is Cell.JOIN:
        group.running.order(f"join {change.size} {change.size}")
        return group.time_of("subscribed", change.size)
    if change.kind is not Cell.DEPLOY:
        group.running.order(f"{change.kind} 0")
        return group.time_of("ends", 0)
    for member in range(change.size):
        successor = change.size + member
        group.running.order(f"leave {member}")
        group.time_of("ended", member)
        group.running.order(f"join {successor} {successor}")
        group.time_of("consumes", successor)
    return group.time_of("ends", 0)


def check_load(place: Place, contestant: Contestant, client: Client, topic: str) -> LoadCheckRun:
    """Measure load checks in a group that consumes a topic under load: one member's partitions get heavy.

    Raises:
        RunFailedError: The group does not settle, nothing moves, or a member fails.
    """
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, programs() as running:
        settings = place.settings(contestant, topic)
        settings |= {"assignor": contestant.way, "folder": name, **LOAD_CHECK_TIMINGS}
        for first, last in _processes(client, LOAD_CHECK_MEMBERS):
            running.start(client.members, settings | {"first": first, "last": last})
        running.await_all("ready")
        group = _Group(running)
        running.order(f"join 0 {LOAD_CHECK_MEMBERS - 1}")
        group.settle(LOAD_CHECK_MEMBERS, _STEADY_SECONDS)
        before, past = group.ownership.owners(), len(group.ownership.changes)
        heavier = time.time_ns() // 1000
        heavy = Path(name, "heavy.new")
        heavy.write_text(" ".join(str(each) for each, owner in before.items() if owner == 0))
        heavy.rename(Path(name, "heavy"))
        group.await_moves()
        running.order("stop")
        running.await_all("done")
        received = read_received(Path(name), LOAD_CHECK_MEMBERS)
    changes = group.ownership.changes[past:]
    return judge_load_check(received, heavier, changes, before, group.ownership.owners())


def _processes(client: Client, members: int) -> list[tuple[int, int]]:
    """Return the first and last member of each process; in Python each has its own."""
    if client.name == JAVA:
        return [(0, members - 1)]
    return [(number, number) for number in range(members)]


class _Group:
    """What the members report: the partitions that they own, and the times of what they do."""

    def __init__(self, running: Programs) -> None:
        self.running = running
        self.ownership = Ownership(JOIN_PARTITIONS)
        self._times: dict[tuple[str, int], int] = {}

    def settle(self, members: int, calm: float) -> None:
        """Wait until the group has been settled for `calm` seconds.

        Raises:
            RunFailedError: The group does not settle, or a member fails.
        """
        if not self._calms_down(lambda: self.ownership.is_settled(members), calm):
            raise RunFailedError(
                Status.TIMEOUT, f"a group of {members} did not settle in {_SETTLING_SECONDS:.0f} s"
            )

    def time_of(self, word: str, member: int) -> int:
        """Return the time that a member has reported with this word; wait for it.

        Raises:
            RunFailedError: It does not report it, or a member fails.
        """
        deadline = time.monotonic() + _SETTLING_SECONDS
        while (word, member) not in self._times:
            if not self._read_next(deadline):
                raise RunFailedError(
                    Status.TIMEOUT, f"no {word!r} of member {member} in {_SETTLING_SECONDS:.0f} s"
                )
        return self._times[word, member]

    def await_moves(self) -> None:
        """Wait until partitions have moved, and nothing has for `_AFTER_SECONDS`.

        Raises:
            RunFailedError: Nothing moves, or a member fails.
        """
        past = len(self.ownership.changes)

        def have_moved() -> bool:
            return len(self.ownership.changes) > past and len(self.ownership.owners()) == JOIN_PARTITIONS

        if not self._calms_down(have_moved, _AFTER_SECONDS):
            raise RunFailedError(
                Status.TIMEOUT, f"no load check moved partitions in {_SETTLING_SECONDS:.0f} s"
            )

    def _calms_down(self, is_so: Callable[[], bool], calm: float) -> bool:
        """Wait until ownership has been so for `calm` seconds without a change; return whether it is in time.

        Raises:
            RunFailedError: A member fails.
        """
        limit = time.monotonic() + _SETTLING_SECONDS
        known, quiet = -1, limit
        while True:
            if known != len(self.ownership.changes):
                known = len(self.ownership.changes)
                quiet = time.monotonic() + calm if is_so() else limit
            if not self._read_next(min(quiet, limit)):
                return is_so()

    def _read_next(self, deadline: float) -> bool:
        """Read the next line; return False if there is none by the deadline (monotonic).

        Raises:
            RunFailedError: A member fails.
        """
        line = self.running.next_line(deadline)
        if line is None:
            return False
        change = read_change(line)
        if change is not None:
            self.ownership.apply(change)
            return True
        match line.split():
            case ["subscribed" | "consumes" | "ends" | "ended" as word, member, at]:
                self._times[word, int(member)] = int(at)
                if word == "ends":
                    self.ownership.end(int(member))
        return True
