"""Timers of a membership. Pure: every method takes the time, and none waits."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

Jitter = Callable[[], float]
"""A random number in [0, 1)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A member's intervals and timeouts, in seconds; each is a configuration property of the same name."""

    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    metadata_refresh: float = 300.0
    """``topic.metadata.refresh.interval.ms``; infinite where that is -1."""


class Backoff:
    """Exponential backoff with a jitter of 20 % (KIP-580)."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random, *, longest: float = math.inf) -> None:
        """Start with no failures; no pause exceeds `longest`, unless ``retry.backoff.ms`` does."""
        self._first = timing.retry_backoff
        self._longest = min(timing.retry_backoff_max, max(self._first, longest))
        self._jitter = jitter
        self._failures = 0

    def reset(self) -> None:
        """Start again with the shortest pause: a request succeeded."""
        self._failures = 0

    def pause(self) -> float:
        """Count a failure; return the seconds to wait."""
        seconds = min(self._first * 2.0**self._failures, self._longest)
        # Beyond this the pause no longer grows, and the power would overflow some day.
        self._failures = min(self._failures + 1, 30)
        return seconds * (0.8 + 0.4 * self._jitter())


_HASTE = 0.05
"""Seconds until the next heartbeat when another rebalance is likely."""


class Heartbeat:
    """Time of the next heartbeat, and of the end of the session.

    One heartbeat at most is under way. The session is counted from the time at which the last answered
    heartbeat was sent: the coordinator received it later, so its own session timer expires later.
    """

    def __init__(self, timing: Timing) -> None:
        """Start without a session."""
        self._timing = timing
        self._sent_at: float | None = None
        self._asleep_since: float | None = None
        self._ran = math.inf
        self._pause = timing.heartbeat_interval
        self.next_at = 0.0
        self.session_ends = 0.0

    @property
    def under_way(self) -> bool:
        """Whether an answer is awaited."""
        return self._sent_at is not None

    def start_session(self, now: float) -> None:
        """JoinGroup or SyncGroup was answered: now, or at any time since the process fell asleep."""
        heard = now if self._asleep_since is None else self._asleep_since
        self._pause = self._timing.heartbeat_interval
        self.next_at = heard + self._pause
        self.session_ends = heard + self._timing.session_timeout

    def runs(self, now: float) -> None:
        """Record that the member's thread runs, and reads responses.

        If it did not run for half a session, a response that waits may have arrived at any time since it last
        did.
        """
        if now - self._ran > self._timing.session_timeout / 2 and self._asleep_since is None:
            self._asleep_since = self._ran
        self._ran = now

    @property
    def parked_until(self) -> float:
        """Earliest end of a session that began with a response which was not read yet."""
        since = self._ran if self._asleep_since is None else self._asleep_since
        return since + self._timing.session_timeout

    def asked(self) -> None:
        """Record that a request was sent: its response cannot be older than that."""
        self._asleep_since = None

    def due(self, now: float) -> bool:
        """Whether a heartbeat should be sent."""
        return self._sent_at is None and now >= self.next_at

    def sent(self, now: float) -> None:
        """Record that a heartbeat was sent; the next comes an interval later, or sooner after `speed_up`."""
        self.asked()
        self._sent_at = now
        self._pause = min(2 * self._pause, self._timing.heartbeat_interval)
        self.next_at = now + self._pause

    def answered(self, now: float, *, alive: bool) -> None:
        """Take the response; if `alive`, it extends the session."""
        sent, self._sent_at = self._sent_at, None
        if self._pause < self._timing.heartbeat_interval:
            self.next_at = now + self._pause  # a slow coordinator is not asked faster
        if alive:
            heard = now if sent is None else sent
            self.session_ends = max(self.session_ends, heard + self._timing.session_timeout)

    def unanswered(self) -> None:
        """Record that the heartbeat has no response."""
        self._sent_at = None

    def schedule(self, at: float) -> None:
        """Send the next one no later than `at`."""
        self.next_at = min(self.next_at, at)

    def speed_up(self, now: float) -> None:
        """Send heartbeats at pauses that double from 50 ms: another rebalance is likely."""
        self._pause = min(_HASTE, self._timing.heartbeat_interval)
        self.schedule(now + self._pause)


_LONGEST_LOOKUP_PAUSE = 0.25
"""Longest pause between two look-ups, in seconds; with a longer one, a member could lose its session in an
outage."""


class CoordinatorLookup:
    """Schedule of the look-ups of the group's coordinator."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random) -> None:
        """Start with no coordinator."""
        self.known = False
        self.next_at = 0.0
        self._under_way = False
        self._backoff = Backoff(timing, jitter, longest=_LONGEST_LOOKUP_PAUSE)

    @property
    def wanted(self) -> bool:
        """Whether a look-up must be started."""
        return not self.known and not self._under_way

    def start(self, now: float) -> bool:
        """Start a look-up if one is due; return whether it was."""
        if self.known or self._under_way or now < self.next_at:
            return False
        self._under_way = True
        return True

    def found(self) -> None:
        """Record that the coordinator is known and connected."""
        self.known = True
        self._under_way = False
        self._backoff.reset()

    def missing(self, now: float) -> None:
        """Record that the look-up failed."""
        self._under_way = False
        self.next_at = now + self._backoff.pause()

    def lost(self, now: float) -> bool:
        """Record that the coordinator moved or cannot be reached; return whether it was known until now."""
        was_known, self.known = self.known, False
        if was_known:
            self.next_at = now
        return was_known


class PollClock:
    """Time of the application's last poll, written by the polling thread and read by the membership's."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        """Start as if it had polled now."""
        self.last = time.monotonic()

    def polled(self, now: float) -> float:  # noqa: ARG002 - a subclass may be inside a poll now
        """Return when the application last polled, as of `now`."""
        return self.last
