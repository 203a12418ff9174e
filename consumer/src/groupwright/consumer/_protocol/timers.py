"""Timers of a membership. Pure: every method takes the time, and none waits."""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]
"""Monotonic time in seconds."""

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
    """``topic.metadata.refresh.interval.ms``; infinite where that is 0 or -1."""
    load_check: float = 300.0
    """``load.check.interval.ms``; infinite where that is 0."""


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
        # The pause no longer grows, and 2.0**1024 would overflow.
        self._failures = min(self._failures + 1, 30)
        return seconds * (0.8 + 0.4 * self._jitter())


_SHORTEST_INTERVAL = 0.05
"""Shortest interval of heartbeats in seconds, used when another rebalance is likely."""


_MOST_HEARTBEATS = 4
"""Heartbeats in flight: with one, a round trip of half a session would lose the session."""


class Heartbeat:
    """Time of the next heartbeat, and of the end of the session.

    The session starts when the last heartbeat with a response was sent. The coordinator received it later, so
    its own session timer expires later. Where the round trip is longer than the interval, several heartbeats
    are in flight.
    """

    def __init__(self, timing: Timing) -> None:
        """Start without a session."""
        self._timing = timing
        self._sent_at: deque[float] = deque()
        """Times of the heartbeats in flight, oldest first: the coordinator answers in order."""
        self._stopped_since: float | None = None
        """Time of the network thread's last run before it was stopped; None once a request was sent since."""
        self._last_run = math.inf
        self._interval = timing.heartbeat_interval
        """Present interval, which is shorter after `speed_up`."""
        self.next_at = 0.0
        self.session_ends = 0.0

    @property
    def due_at(self) -> float:
        """Time of the next heartbeat; infinite while so many are in flight that a response must come first.

        After a heartbeat without a response, it is an interval later, however short the present interval is:
        a slow coordinator is not overloaded.
        """
        if not self._sent_at:
            return self.next_at
        if len(self._sent_at) >= _MOST_HEARTBEATS:
            return math.inf
        return max(self.next_at, self._sent_at[-1] + self._timing.heartbeat_interval)

    @property
    def silent_until(self) -> float:
        """Time of the next heartbeat; 0 if one has no response yet. Else the coordinator tells nothing.

        For any thread.
        """
        return 0.0 if self._sent_at else self.next_at

    def start_session(self, now: float) -> None:
        """Start a session after JoinGroup's or SyncGroup's response.

        The response arrived now, or, if the process was stopped, at any time since then: the earliest counts.
        """
        received = now if self._stopped_since is None else self._stopped_since
        self._interval = self._timing.heartbeat_interval
        self.next_at = received + self._interval
        self.session_ends = received + self._timing.session_timeout

    def runs(self, now: float) -> None:
        """Record that the network thread runs, and reads responses.

        If it did not run for half a session (SIGSTOP, a suspended machine), an unread response may have
        arrived at any time since it last ran.
        """
        if now - self._last_run > self._timing.session_timeout / 2 and self._stopped_since is None:
            self._stopped_since = self._last_run
        self._last_run = now

    @property
    def unread_session_ends(self) -> float:
        """Earliest end of the session that a response, received but not read yet, has started."""
        since = self._last_run if self._stopped_since is None else self._stopped_since
        return since + self._timing.session_timeout

    def request_sent(self) -> None:
        """Record that a request was sent: its response arrives later than now."""
        self._stopped_since = None

    def due(self, now: float) -> bool:
        """Return whether a heartbeat should be sent."""
        return now >= self.due_at

    def sent(self, now: float) -> None:
        """Record that a heartbeat was sent.

        The next is due after an interval, which is shorter after `speed_up`.
        """
        self.request_sent()
        self._sent_at.append(now)
        self._interval = min(2 * self._interval, self._timing.heartbeat_interval)
        self.next_at = now + self._interval

    def answered(self, now: float, *, alive: bool) -> None:
        """Record a response; if `alive`, it extends the session, counted from when the heartbeat was sent."""
        sent = self._sent_at.popleft() if self._sent_at else None
        if self._interval < self._timing.heartbeat_interval:
            # A short interval counts from the response, too.
            self.next_at = now + self._interval
        if alive:
            started = now if sent is None else sent
            self.session_ends = max(self.session_ends, started + self._timing.session_timeout)

    def unanswered(self) -> None:
        """Record that the heartbeat has no response."""
        if self._sent_at:
            self._sent_at.popleft()

    def schedule(self, at: float) -> None:
        """Make the next heartbeat due at `at` or earlier."""
        self.next_at = min(self.next_at, at)

    def speed_up(self, now: float) -> None:
        """Send heartbeats at intervals that double from 50 ms, because another rebalance is likely."""
        self._interval = min(_SHORTEST_INTERVAL, self._timing.heartbeat_interval)
        self.schedule(now + self._interval)


_LONGEST_LOOKUP_BACKOFF = 0.25
"""Longest backoff of FindCoordinator in seconds; with a longer one, a short outage could end the session."""


class CoordinatorLookup:
    """Schedule of FindCoordinator requests."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random) -> None:
        """Start with no coordinator."""
        self.known = False
        self.answered = True
        """False if no broker answered the last look-up since the coordinator was lost."""
        self.next_at = 0.0
        self._under_way = False
        self._backoff = Backoff(timing, jitter, longest=_LONGEST_LOOKUP_BACKOFF)
        self._missing: tuple[float, float | None] = (0.0, None)
        """Seconds without a coordinator before the present time without one, and since when that is."""

    @property
    def needs_lookup(self) -> bool:
        """True if the coordinator is unknown, and no request for it is in flight."""
        return not self.known and not self._under_way

    def start(self, now: float) -> bool:
        """Start a look-up if one is due; return whether it was."""
        if self.known or self._under_way or now < self.next_at:
            return False
        self._under_way = True
        return True

    def found(self) -> None:
        """Record that the coordinator is known and connected."""
        self.known = self.answered = True
        self._under_way = False
        self._backoff.reset()

    def missing(self, now: float, *, answered: bool = False) -> None:
        """Record that the look-up failed, and back off; `answered` says whether a broker has answered it."""
        self._under_way = False
        self.answered = answered
        self.next_at = now + self._backoff.pause()

    def lost(self, now: float) -> bool:
        """Record that the coordinator moved or cannot be reached; return whether it was known until now."""
        was_known, self.known = self.known, False
        if was_known:
            self.next_at = now
        return was_known

    def count(self, now: float, *, needed: bool) -> None:
        """Record whether the coordinator is needed; while it is, the seconds without one are counted."""
        seconds = self.missing_seconds(now)
        self._missing = (seconds, now if needed and not self.known else None)

    def missing_seconds(self, now: float) -> float:
        """Return the seconds in which the coordinator was needed and not known. Safe from any thread."""
        seconds, since = self._missing
        return seconds if since is None else seconds + max(0.0, now - since)


class PollClock:
    """Time of the application's last poll, in monotonic seconds.

    Written by the polling thread, read by the network thread.
    """

    __slots__ = ("calm_until", "last")

    def __init__(self) -> None:
        """Start with the present time as the last poll."""
        self.last = time.monotonic()
        self.calm_until = 0.0
        """Monotonic time until which native calls may last longer; any thread may make it 0."""

    def polled(self, now: float) -> float:  # noqa: ARG002 - a subclass may be inside a poll now
        """Return when the application last polled, as of `now`."""
        return self.last
