"""One measurement of a contestant in a cell."""

import itertools
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.consumer.contestants import Client, python
from benchmarks.consumer.gaps import judge_join, judge_load_check, read_received
from benchmarks.consumer.ownership import Ownership, read_change
from benchmarks.consumer.plan import (
    JAVA,
    JOIN_PARTITIONS,
    JOIN_TIMINGS,
    LOAD_CHECK_MEMBERS,
    LOAD_CHECK_TIMINGS,
    Contestant,
    Effort,
)
from benchmarks.consumer.processes import Programs, RunFailedError, measured, programs
from benchmarks.consumer.results import EventRun, FetchRun, IdleRun, JoinRun, LoadCheckRun, Status

_STARTING_SECONDS = 60.0
"""Time limit of a contestant outside of the measurement."""

_SETTLING_SECONDS = 60.0
_STEADY_SECONDS = 3.0
"""Time without changes after which a group counts as settled."""

_AFTER_SECONDS = 5.0
"""The same after the join: by then all partitions must be consumed again."""

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
    """

    servers: str
    filled: str = "filled"
    calm: str = "calm"
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


def fetch(
    place: Place, contestant: Contestant, client: Client, effort: Effort, config: Mapping[str, object]
) -> FetchRun:
    """Measure consuming the filled topic; `config` is for the program and for librdkafka.

    Raises:
        RunFailedError: The program times out or fails.
    """
    settings = place.settings(contestant, place.filled)
    settings |= {"messages": effort.messages, "longest": effort.longest, "batch": _BATCH, **config}
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
    return IdleRun(**measured(python("idle"), settings, _STARTING_SECONDS + effort.idle_seconds))


def join(place: Place, contestant: Contestant, client: Client, size: int, topic: str) -> JoinRun:
    """Measure a join to a group of this size that consumes a topic under load.

    Raises:
        RunFailedError: The group does not settle, or a member fails.
    """
    ownership = Ownership(JOIN_PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, programs() as running:
        settings = place.settings(contestant, topic)
        settings |= {"assignor": contestant.way, "folder": name, **JOIN_TIMINGS}
        for first, last in _processes(client, size):
            running.start(client.members, settings | {"first": first, "last": last})
        running.await_all("ready")
        running.order(f"join 0 {size - 1}")
        _settle(running, ownership, size, _STEADY_SECONDS)
        before, past = ownership.owners(), len(ownership.changes)
        running.order(f"join {size} {size}")
        joined = _settle(running, ownership, size + 1, _AFTER_SECONDS)
        running.order("stop")
        running.await_all("done")
        received = read_received(Path(name), size + 1)
    try:
        return judge_join(received, joined, ownership.changes[past:], before, ownership.owners())
    except ValueError as error:
        raise RunFailedError(Status.FAILED, str(error)) from error


def check_load(place: Place, contestant: Contestant, client: Client, topic: str) -> LoadCheckRun:
    """Measure load checks in a group that consumes a topic under load: one member's partitions get heavy.

    Raises:
        RunFailedError: The group does not settle, nothing moves, or a member fails.
    """
    ownership = Ownership(JOIN_PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, programs() as running:
        settings = place.settings(contestant, topic)
        settings |= {"assignor": contestant.way, "folder": name, **LOAD_CHECK_TIMINGS}
        for first, last in _processes(client, LOAD_CHECK_MEMBERS - 1):
            running.start(client.members, settings | {"first": first, "last": last})
        running.await_all("ready")
        running.order(f"join 0 {LOAD_CHECK_MEMBERS - 1}")
        _settle(running, ownership, LOAD_CHECK_MEMBERS, _STEADY_SECONDS)
        before, past = ownership.owners(), len(ownership.changes)
        heavier = time.time_ns() // 1000
        heavy = Path(name, "heavy.new")
        heavy.write_text(" ".join(str(each) for each, owner in before.items() if owner == 0))
        heavy.rename(Path(name, "heavy"))
        _await_moves(running, ownership)
        running.order("stop")
        running.await_all("done")
        received = read_received(Path(name), LOAD_CHECK_MEMBERS)
    return judge_load_check(received, heavier, ownership.changes[past:], before, ownership.owners())


def _await_moves(running: Programs, ownership: Ownership) -> None:
    """Wait until partitions have moved, and nothing has for `_AFTER_SECONDS`.

    Raises:
        RunFailedError: Nothing moves, or a member fails.
    """
    past = len(ownership.changes)
    quiet = limit = time.monotonic() + _SETTLING_SECONDS
    while (line := running.next_line(min(quiet, limit))) is not None:
        change = read_change(line)
        if change is not None:
            ownership.apply(change)
            quiet = time.monotonic() + _AFTER_SECONDS
    if len(ownership.changes) == past or len(ownership.owners()) != JOIN_PARTITIONS:
        raise RunFailedError(Status.TIMEOUT, f"no load check moved partitions in {_SETTLING_SECONDS:.0f} s")


def _processes(client: Client, size: int) -> list[tuple[int, int]]:
    """Return the first and last member of each process; in Python the joining member has its own."""
    if client.name == JAVA:
        return [(0, size)]
    return [(number, number) for number in range(size + 1)]


def _settle(running: Programs, ownership: Ownership, members: int, calm: float) -> int:
    """Wait until the group has been settled for `calm` seconds; return the time of the last subscription.

    Raises:
        RunFailedError: The group does not settle, or a member fails.
    """
    subscribed, limit = 0, time.monotonic() + _SETTLING_SECONDS
    quiet = limit
    while True:
        line = running.next_line(min(quiet, limit))
        if line is None:
            break
        change = read_change(line)
        if change is not None:
            ownership.apply(change)
            quiet = limit
            if ownership.is_settled(members):
                quiet = time.monotonic() + calm
        elif line.startswith("subscribed "):
            subscribed = int(line.split()[2])
    if not ownership.is_settled(members):
        raise RunFailedError(
            Status.TIMEOUT, f"a group of {members} did not settle in {_SETTLING_SECONDS:.0f} s"
        )
    return subscribed
