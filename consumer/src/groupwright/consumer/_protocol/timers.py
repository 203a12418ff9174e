"""The clocks of a membership: pure values that are told the time, and asked what is due."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

Jitter = Callable[[], float]
"""A random number in [0, 1)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The timings of a member, in seconds; each is a configuration key of the same name."""

    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0
    retry_backoff: float = 0.1
    retry_backoff_max: float = 1.0
    metadata_refresh: float = 300.0
    """``topic.metadata.refresh.interval.ms``; infinite where that is -1."""


class Backoff:
    """Exponential pauses between failures, with a jitter of a fifth (KIP-580)."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random, *, longest: float = math.inf) -> None:
        """Start with no failures; a pause is no longer than `longest`, unless ``retry.backoff.ms`` is."""
        self._first = timing.retry_backoff
        self._longest = min(timing.retry_backoff_max, max(self._first, longest))
        self._jitter = jitter
        self._failures = 0

    def reset(self) -> None:
        """Forget the failures: something succeeded."""
        self._failures = 0

    def pause(self) -> float:
        """Count a failure; return the seconds to wait."""
        seconds = min(self._first * 2.0**self._failures, self._longest)
        # Past this the pause no longer grows, and the power would one day overflow.
        self._failures = min(self._failures + 1, 30)
        return seconds * (0.8 + 0.4 * self._jitter())


_HASTE = 0.05
"""Seconds until the first heartbeat where another rebalance is likely."""


class Heartbeat:
    """When the next heartbeat is due, and until when the session lasts.

    One heartbeat at most is under way. The session is counted from the sending of the last one that was
    answered: the coordinator cannot have heard it earlier, so it cannot have given up on the member yet.
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
        """The coordinator has just answered a join or a sync; at any moment since, if the process slept meanwhile."""
        heard = now if self._asleep_since is None else self._asleep_since
        self._pause = self._timing.heartbeat_interval
        self.next_at = heard + self._pause
        self.session_ends = heard + self._timing.session_timeout

    def runs(self, now: float) -> None:
        """The member's thread runs, and reads what has come.

        After a while in which it did not, an answer to what was asked before may be of any moment of that while.
        """
        if now - self._ran > self._timing.session_timeout / 2 and self._asleep_since is None:
            self._asleep_since = self._ran
        self._ran = now

    @property
    def parked_until(self) -> float:
        """When a session may be over that began with an answer which nobody has read yet."""
        since = self._ran if self._asleep_since is None else self._asleep_since
        return since + self._timing.session_timeout

    def asked(self) -> None:
        """A request was just made: its answer is of this time."""
        self._asleep_since = None

    def due(self, now: float) -> bool:
        """Whether one should be sent."""
        return self._sent_at is None and now >= self.next_at

    def sent(self, now: float) -> None:
        """One was sent; the next comes an interval later, or sooner after `speed_up`."""
        self.asked()
        self._sent_at = now
        self._pause = min(2 * self._pause, self._timing.heartbeat_interval)
        self.next_at = now + self._pause

    def answered(self, now: float, *, alive: bool) -> None:
        """The answer came; when `alive`, it keeps the session up."""
        sent, self._sent_at = self._sent_at, None
        if self._pause < self._timing.heartbeat_interval:
            self.next_at = now + self._pause  # haste is no reason to press a slow coordinator
        if alive:
            heard = now if sent is None else sent
            self.session_ends = max(self.session_ends, heard + self._timing.session_timeout)

    def unanswered(self) -> None:
        """No answer will come."""
        self._sent_at = None

    def schedule(self, at: float) -> None:
        """Send the next one no later than `at`."""
        self.next_at = min(self.next_at, at)

    def speed_up(self, now: float) -> None:
        """Another rebalance is likely: ask for it at once, and then at distances that double up to the interval."""
        self._pause = min(_HASTE, self._timing.heartbeat_interval)
        self.schedule(now + self._pause)


_LONGEST_LOOKUP_PAUSE = 0.25
"""Seconds between look-ups at most: a member that looks for its coordinator longer than that may lose its session."""


class CoordinatorLookup:
    """Whether the coordinator is known, and when to look it up."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random) -> None:
        """Start with no coordinator."""
        self.known = False
        self.next_at = 0.0
        self._under_way = False
        self._backoff = Backoff(timing, jitter, longest=_LONGEST_LOOKUP_PAUSE)

    @property
    def wanted(self) -> bool:
        """Whether one must still be started."""
        return not self.known and not self._under_way

    def start(self, now: float) -> bool:
        """Start a look-up if it is time; return whether it was."""
        if self.known or self._under_way or now < self.next_at:
            return False
        self._under_way = True
        return True

    def found(self) -> None:
        """It is known, and can be reached."""
        self.known = True
        self._under_way = False
        self._backoff.reset()

    def missing(self, now: float) -> None:
        """The look-up failed."""
        self._under_way = False
        self.next_at = now + self._backoff.pause()

    def lost(self, now: float) -> bool:
        """It moved or cannot be reached; return whether that is news."""
        was_known, self.known = self.known, False
        if was_known:
            self.next_at = now
        return was_known


class PollClock:
    """When the application last polled; written by the polling thread, read by the membership's."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        """Start as if it had polled now."""
        self.last = time.monotonic()

    def polled(self, now: float) -> float:  # noqa: ARG002 - a polling thread may be inside a poll at this time
        """Return when the application last polled, as of `now`."""
        return self.last
