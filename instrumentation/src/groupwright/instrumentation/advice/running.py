"""Rules over what one consumer goes through. Pure: events in with their time, findings out.

A rule that has spoken is silent for `WINDOW` seconds.
"""

from collections import deque
from collections.abc import Iterator

from groupwright.core import Outcome
from groupwright.instrumentation.advice.findings import Finding, warning

WINDOW = 600.0
"""Seconds that are looked back on."""

STORM = 5
"""Rebalances in a window."""

FLAPS = 3
"""Rebalances in a window in which partitions were lost, or the member refused."""

SHARE = 0.5
"""Of ``max.poll.interval.ms``, between two polls."""


class RunningAdvice:
    """One consumer's. Not thread-safe."""

    def __init__(self, heartbeat_interval: float, max_poll_interval: float) -> None:
        """Begin to look.

        Args:
            heartbeat_interval: seconds.
            max_poll_interval: seconds.
        """
        self._heartbeat_interval = heartbeat_interval
        self._max_poll_interval = max_poll_interval
        self._rebalances: deque[tuple[float, str]] = deque(maxlen=max(STORM, FLAPS) * 20)
        self._said: dict[str, float] = {}

    def rebalanced(self, outcome: str, now: float) -> list[Finding]:
        """Look at a rebalance that has ended with this outcome."""
        self._rebalances.append((now, outcome))
        recent = [what for when, what in self._rebalances if when > now - WINDOW]
        return self._new(now, [*_storm(recent), *_flapping(recent)])

    def called_back(self, callback: str, seconds: float, now: float) -> list[Finding]:
        """Look at how long a rebalance callback of the application took."""
        return self._new(now, _slow_callback(callback, seconds, self._heartbeat_interval))

    def not_polled_for(self, seconds: float, now: float) -> list[Finding]:
        """Look at how long ago the last poll was."""
        return self._new(now, _slow_processing(seconds, self._max_poll_interval))

    def _new(self, now: float, findings: Iterator[Finding] | list[Finding]) -> list[Finding]:
        new = []
        for finding in findings:
            if now - self._said.get(finding.rule, -WINDOW) >= WINDOW:
                self._said[finding.rule] = now
                new.append(finding)
        return new


def _storm(recent: list[str]) -> Iterator[Finding]:
    if len(recent) >= STORM:
        yield warning(
            "storm",
            f"{len(recent)} rebalances in {WINDOW / 60:g} minutes",
            "The group spends its time on rebalances: members come and go, or one is evicted and joins again and again",
            "See groupwright_rebalances_total by client_id for who loses partitions; raise session.timeout.ms or "
            "max.poll.interval.ms there, and set group.instance.id if members are restarted often",
        )


def _flapping(recent: list[str]) -> Iterator[Finding]:
    flaps = [outcome for outcome in recent if outcome in {"lost", Outcome.FAILED}]
    if len(flaps) >= FLAPS:
        yield warning(
            "flapping",
            f"this member lost its partitions, or was refused, {len(flaps)} times in {WINDOW / 60:g} minutes",
            "Each time the whole group rebalances, and what was not committed comes twice",
            "If groupwright_max_poll_exceeded_total grows, raise max.poll.interval.ms; else raise session.timeout.ms",
        )


def _slow_callback(callback: str, seconds: float, heartbeat_interval: float) -> Iterator[Finding]:
    if seconds > heartbeat_interval:
        yield warning(
            "slow-callback",
            f"on_{callback} took {seconds:.1f} s, and heartbeat.interval.ms is {heartbeat_interval * 1000:.0f}",
            "The whole group waits for it in each rebalance, and no message is polled meanwhile",
            "Do less in it: commit, and leave the rest to another thread",
        )


def _slow_processing(seconds: float, max_poll_interval: float) -> Iterator[Finding]:
    if seconds > SHARE * max_poll_interval:
        yield warning(
            "max-poll-interval",
            f"the last poll was {seconds:.0f} s ago, and max.poll.interval.ms is {max_poll_interval * 1000:.0f}",
            "When that is over, the member is evicted, and its messages come twice",
            f"Set max.poll.interval.ms to {int(seconds * 3000)} or more, or process fewer messages between polls",
        )
