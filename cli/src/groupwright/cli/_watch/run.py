"""The loop of `groupwright watch`: it asks in one thread, and shows in the main thread."""

import queue
import threading
import time
from collections.abc import Callable

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.lag import GroupLag, lag_of_groups
from groupwright.cli._exit import CommandError, ExitStatus
from groupwright.cli._watch.reporters import Reporter
from groupwright.cli._watch.watched_group import WatchedGroup

_DRAW_SECONDS = 0.5
_LATE_SECONDS = 3.0
"""Time beyond the interval after which brokers count as silent; also if their requests have not timed out."""

Look = tuple[float, GroupLag | BaseException]
"""The time of a look, and what it saw: the group, or an error."""


def now() -> float:
    """Return the time in seconds since the epoch, which no correction of the clock moves."""
    return _STARTED + time.monotonic()


_STARTED = time.time() - time.monotonic()


def look_at(cluster: Cluster, group: str) -> GroupLag:
    """Look at a group once.

    Raises:
        CommandError: Brokers do not respond, or refuse.
    """
    return lag_of_groups(cluster, cluster.describe([group]))[group]


class Looks:
    """Looks at a group in a thread of its own, until `stop`."""

    def __init__(self, look: Callable[[], GroupLag], interval: float) -> None:
        """Create it.

        Args:
            look: Looks once.
            interval: Seconds between the beginnings of looks.
        """
        self._look, self._interval = look, interval
        self._seen: queue.SimpleQueue[Look] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="groupwright-watch", daemon=True)

    def start(self) -> None:
        """Begin with the first look."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no more looks; the present one ends in the background."""
        self._stopped.set()

    def next(self, timeout: float) -> Look | None:
        """Return the next look; None if none ends in time."""
        try:
            return self._seen.get(timeout=timeout)
        except queue.Empty:
            return None

    def _run(self) -> None:
        begin = now()
        while True:
            try:
                seen: GroupLag | BaseException = self._look()
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                seen = error
            self._seen.put((now(), seen))
            begin = max(begin + self._interval, now() - self._interval)
            if self._stopped.wait(max(begin - now(), 0)):
                return


def wait_for(cluster: Cluster, group: str, *, interval: float, end: float | None) -> None:
    """Wait until a group exists.

    Args:
        cluster: The cluster.
        group: Name of the group.
        interval: Seconds between requests.
        end: When to give up.

    Raises:
        CommandError: It does not exist in time, or brokers do not respond.
    """
    while not cluster.describe([group])[group].exists:
        if end is not None and now() >= end:
            raise CommandError(f"the group {group!r} did not appear in time", ExitStatus.NOT_FOUND)
        time.sleep(interval)


def watch(
    looks: Looks,
    group: WatchedGroup,
    reporter: Reporter,
    *,
    interval: float,
    end: float | None,
    once: bool,
) -> None:
    """Watch a group until its time is over, or Ctrl-C.

    Args:
        looks: Looks at the group; started.
        group: The group before its first look.
        reporter: The output.
        interval: Seconds between looks.
        end: When to end; None for never.
        once: Whether to end after the first picture.

    Raises:
        CommandError: Brokers refuse, or do not respond to the first look.
    """
    last: float | None = None
    while last is None or end is None or now() < end:
        is_limited = end is not None and last is not None
        look = looks.next(min(_DRAW_SECONDS, max((end or 0) - now(), 0)) if is_limited else _DRAW_SECONDS)
        match look:
            case (at, GroupLag() as lag):
                last = at
                reporter.report(group.look(lag, at))
            case (at, CommandError(status=ExitStatus.UNREACHABLE) as error) if last is not None:
                reporter.report(group.miss(str(error), at))
            case (_, BaseException() as error):
                raise error
            case _ if last is not None and now() - last > interval + _LATE_SECONDS:
                reporter.report(group.miss("the present request has no response yet", now()))
        if last is not None:
            reporter.show(group.picture(now()), now())
            if once:
                return
