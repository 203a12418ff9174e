"""The loop of `groupwright watch`: one thread takes snapshots, the main thread shows them."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Self

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.drained import DrainedPartitions
from groupwright.cli._cluster.lag import GroupLag, lag_of_groups
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.watch.events import Event
from groupwright.cli.watch.reporters import Reporter
from groupwright.cli.watch.watched_group import WatchedGroup

_DRAW_SECONDS = 0.5
_LATE_SECONDS = 3.0
"""Time after the interval without a response before that is reported, even if no request has timed out."""

Snapshot = tuple[float, GroupLag | BaseException]
"""The time of a snapshot, and the group or the error."""


def now() -> float:
    """Return the time in seconds since the epoch; unlike `time.time`, it never goes back."""
    return _STARTED + time.monotonic()


_STARTED = time.time() - time.monotonic()


class GroupReader:
    """Takes snapshots of a group."""

    def __init__(self, cluster: Cluster, group: str) -> None:
        """Create it."""
        self._cluster, self._group = cluster, group
        self._drained = DrainedPartitions(cluster.first_messages)

    def take(self) -> GroupLag:
        """Return the group as it is now.

        Raises:
            CommandError: Brokers do not respond, or refuse.
        """
        lags = lag_of_groups(self._cluster, self._cluster.describe([self._group]))
        return self._drained.mark(lags)[self._group]


class Snapshots:
    """Takes snapshots of a group in a thread of its own. A context manager: the thread runs inside."""

    def __init__(self, take: Callable[[], GroupLag], interval: float) -> None:
        """Create it.

        Args:
            take: Takes a snapshot.
            interval: Seconds from the start of one snapshot to that of the next.
        """
        self._take, self._interval = take, interval
        self._taken: queue.SimpleQueue[Snapshot] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="groupwright-watch", daemon=True)

    def __enter__(self) -> Self:
        """Take the first snapshot."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take no more snapshots; the present one ends in the background."""
        self._stopped.set()

    def next(self, timeout: float) -> Snapshot | None:
        """Return the next snapshot; None if there is none in time."""
        try:
            return self._taken.get(timeout=timeout)
        except queue.Empty:
            return None

    def _run(self) -> None:
        begin = now()
        while True:
            try:
                found: GroupLag | BaseException = self._take()
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                found = error
            self._taken.put((now(), found))
            begin = max(begin + self._interval, now() - self._interval)
            if self._stopped.wait(max(begin - now(), 0)):
                return


def wait_for(cluster: Cluster, group: str, *, interval: float, end: float | None) -> None:
    """Wait until a group exists.

    Args:
        cluster: The cluster.
        group: Name of the group.
        interval: Seconds between requests.
        end: When the command times out.

    Raises:
        CommandError: It does not exist in time, or brokers do not respond.
    """
    while not cluster.describe([group])[group].exists:
        if end is not None and now() >= end:
            raise CommandError(f"the group {group!r} did not appear in time", ExitStatus.NOT_FOUND)
        time.sleep(interval)


def watch(
    snapshots: Snapshots,
    group: WatchedGroup,
    reporter: Reporter,
    *,
    interval: float,
    end: float | None,
    once: bool,
) -> None:
    """Watch a group until its time is over, or Ctrl-C.

    Args:
        snapshots: The snapshots, which are being taken.
        group: The group before its first snapshot.
        reporter: The output.
        interval: Seconds between snapshots.
        end: When to end; None for never.
        once: Whether to end after the first view.

    Raises:
        CommandError: Brokers refuse, or do not respond to the first snapshot.
    """
    while group.time is None or end is None or now() < end:
        is_limited = end is not None and group.time is not None
        timeout = min(_DRAW_SECONDS, max((end or 0) - now(), 0)) if is_limited else _DRAW_SECONDS
        reporter.report(advance(snapshots, group, interval=interval, timeout=timeout))
        if group.time is not None:
            reporter.show(group.view(now()), now())
            if once:
                return


def advance(snapshots: Snapshots, group: WatchedGroup, *, interval: float, timeout: float) -> list[Event]:
    """Take the next snapshot, if there is one in time, and return the events since the last one.

    Args:
        snapshots: The snapshots, which are being taken.
        group: The group, to which the snapshot is added.
        interval: Seconds between snapshots.
        timeout: Seconds to wait.

    Raises:
        CommandError: Brokers refuse, or do not respond to the first snapshot.
    """
    match snapshots.next(timeout):
        case (at, GroupLag() as lag):
            return group.update(lag, at)
        case (at, CommandError(status=ExitStatus.UNREACHABLE) as error) if group.time is not None:
            return group.miss(str(error), at)
        case (_, BaseException() as error):
            raise error
    if group.time is not None and now() - group.time > interval + _LATE_SECONDS:
        return group.miss("the present request has no response yet", now())
    return []
