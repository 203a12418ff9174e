"""Rules over rebalances, callbacks and polls of one running consumer. Pure: times are arguments.

A rule reports at most once in `WINDOW` seconds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from groupwright.core import Kind, Outcome
from groupwright.instrumentation.advice.findings import Finding, warning
from groupwright.instrumentation.advice.limits import longer_poll_interval

WINDOW = 600.0
"""Seconds of events that a rule considers."""

STORM = 5
"""Rebalances in each of `STORM_WINDOWS` windows in a row that make a storm."""

STORM_WINDOWS = 3
"""A rolling deploy of 40 members with default settings takes 11 minutes, and rebalances 80 times."""

FLAPS = 3
"""Rebalances in a window that lost partitions or failed, and so make the member flap."""

SHARE = 0.5
"""Share of ``max.poll.interval.ms`` between two polls that is too long."""


_MEANWHILE = "The member polls no message meanwhile, and a rebalance that begins then takes longer"

_WAITS = {
    ("revoke", True): "The whole group waits for it in each rebalance, and the member polls no message "
    "meanwhile",
    ("revoke", False): "The members that are to receive the partitions wait for it, and this member polls no "
    "message meanwhile",
}
"""Consequences of a slow callback, by the callback and whether members are eager."""

_CALLBACK_CHANGES = {
    "assign": "Pause the new partitions in the callback, load what they need in another thread, and then "
    "resume them",
    "revoke": "In the callback, only stop the work on the revoked partitions, and commit what is finished. "
    "Move other work to another thread",
    "lost": "In the callback, only stop the work on the lost partitions, without a commit. Move other work "
    "to another thread",
}

RULES = ("storm", "flapping", "slow-callback", "max-poll-interval")
"""Names of the rules."""


class RunningAdvice:
    """The rules over one consumer's events. Not thread-safe."""

    def __init__(self, heartbeat_interval: float, max_poll_interval: float) -> None:
        """Start without events.

        Args:
            heartbeat_interval: ``heartbeat.interval.ms``, in seconds.
            max_poll_interval: ``max.poll.interval.ms``, in seconds.
        """
        self._heartbeat_interval = heartbeat_interval
        self._max_poll_interval = max_poll_interval
        self._rebalances: deque[tuple[float, str]] = deque()
        self._kind = Kind.EAGER
        self._reported: dict[str, float] = {}

    def on_rebalance(self, outcome: str, now: float, kind: Kind = Kind.EAGER) -> list[Finding]:
        """Return the findings after a rebalance that ended at `now`, in seconds by a monotonic clock."""
        self._kind = kind
        self._rebalances.append((now, outcome))
        while self._rebalances[0][0] <= now - STORM_WINDOWS * WINDOW:
            self._rebalances.popleft()
        recent = [each for ended_at, each in self._rebalances if ended_at > now - WINDOW]
        ages = [now - ended_at for ended_at, _ in self._rebalances]
        return self._new(now, [*_storm(ages), *_flapping(recent)])

    def on_callback(self, callback: str, seconds: float, now: float) -> list[Finding]:
        """Return the findings after a rebalance callback of the application."""
        return self._new(now, _slow_callback(callback, seconds, self._heartbeat_interval, self._kind))

    def on_poll_age(self, seconds: float, now: float) -> list[Finding]:
        """Return the findings about the time since the last poll."""
        return self._new(now, _slow_processing(seconds, self._max_poll_interval))

    def _new(self, now: float, findings: Iterator[Finding] | list[Finding]) -> list[Finding]:
        new = []
        for finding in findings:
            if now - self._reported.get(finding.rule, -WINDOW) >= WINDOW:
                self._reported[finding.rule] = now
                new.append(finding)
        return new


def _storm(ages: list[float]) -> Iterator[Finding]:
    by_window = Counter(int(age // WINDOW) for age in ages)
    if all(by_window[number] >= STORM for number in range(STORM_WINDOWS)):
        yield warning(
            "storm",
            f"{len(ages)} rebalances in {STORM_WINDOWS * WINDOW / 60:g} minutes, without an end",
            "The group spends its time on rebalances: members join and leave, or one is removed and rejoins "
            "repeatedly",
            "Find the members that lose partitions in groupwright_rebalances_total by client_id. Where "
            "groupwright_max_poll_exceeded_total grows, raise max.poll.interval.ms, or process fewer "
            "messages between polls; otherwise raise their session.timeout.ms (up to the broker's "
            "group.max.session.timeout.ms, and to max.poll.interval.ms). If members are restarted often, set "
            "group.instance.id, to a different one in each",
        )


def _flapping(recent: list[str]) -> Iterator[Finding]:
    flaps = [outcome for outcome in recent if outcome in {Outcome.LOST, Outcome.FAILED}]
    if len(flaps) >= FLAPS:
        yield warning(
            "flapping",
            f"this member lost its partitions, or was rejected, {len(flaps)} times in {WINDOW / 60:g} "
            "minutes",
            "Each time the whole group rebalances, and uncommitted messages are processed twice",
            "If groupwright_max_poll_exceeded_total grows, raise max.poll.interval.ms. If the consumer's "
            "error or log says that it was rejected or fenced, correct that. Otherwise raise "
            "session.timeout.ms, up to the broker's group.max.session.timeout.ms and to max.poll.interval.ms",
        )


def _slow_callback(callback: str, seconds: float, heartbeat_interval: float, kind: Kind) -> Iterator[Finding]:
    if seconds > heartbeat_interval:
        yield warning(
            "slow-callback",
            f"on_{callback} took {seconds:.1f} s, and heartbeat.interval.ms is "
            f"{heartbeat_interval * 1000:.0f}",
            _WAITS.get((callback, kind is Kind.EAGER), _MEANWHILE),
            _CALLBACK_CHANGES[callback],
        )


def _slow_processing(seconds: float, max_poll_interval: float) -> Iterator[Finding]:
    if seconds > SHARE * max_poll_interval:
        yield warning(
            "max-poll-interval",
            f"the last poll was {seconds:.0f} s ago, and max.poll.interval.ms is "
            f"{max_poll_interval * 1000:.0f}",
            "Beyond that interval the member leaves the group, and its messages are processed twice",
            "Process fewer messages between polls"
            if (wanted := longer_poll_interval(seconds)) is None
            else f"Set max.poll.interval.ms to {wanted} or more, or process fewer messages between polls",
        )
