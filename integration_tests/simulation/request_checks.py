"""Checks of guarantees about requests of one member, where its network thread sends and receives them."""

import math
from collections.abc import Awaitable, Callable

from groupwright.core import ErrorCode
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.scheduler import MS, SECOND
from integration_tests.simulation.records import CheckedMember

_FAILURES = 3
_SETTLING = 2.0  # seconds
_LONGEST_PAUSE = 350 * MS
"""Time after a failed look-up in which the next one has begun: 250 ms, and a jitter of 20 %."""


class RequestChecks:
    """Checks of one member's requests."""

    def __init__(self, member: CheckedMember) -> None:
        """Begin before the first request."""
        self._member = member
        self._is_fenced = False
        self._lookups = 0
        self._failed = 0
        self._failing_since = math.inf
        """Time of the first look-up that failed since the coordinator was last found, or could not be."""

    # --- The fence

    def answered(self, request: msg.Request, response: msg.Response) -> None:
        """Take a response of the coordinator.

        As in Java, a member ignores the response of an earlier generation, and one that comes while JoinGroup
        or SyncGroup is held back: the next response to those says the same. If it lost the coordinator in an
        incomplete round, its own earlier member id may have fenced it, so it joins once more.
        """
        generation = self._member.generation
        ignored = isinstance(request, msg.HeartbeatRequest | msg.OffsetCommitRequest) and (
            self._member.is_parked or generation == -1 or request.generation_id != generation
        )
        ignored |= self._member.is_unconfirmed
        self._is_fenced |= fences(response) and self._member.is_replaced and not ignored

    def joins(self) -> None:
        """Check a JoinGroup that is about to be sent."""
        if self._is_fenced:
            self._member.broken("a fenced member never joins again", "it sends JoinGroup")

    # --- The coordinator

    async def look_up(
        self, request: Awaitable[tuple[int, str]], is_possible: Callable[[], bool]
    ) -> tuple[int, str]:
        """Send FindCoordinator; return the error code of the response, and its words.

        Args:
            request: The request.
            is_possible: Whether a broker that the member has seen answers, and all brokers agree on the
                coordinator.
        """
        self._lookups += 1
        began, stops = self._member.process.scheduler.now, self._member.process.stops
        code = -1
        try:
            code, words = await request
        finally:
            if code:
                self._expect_lookup()
            if not code or not is_possible() or stops != self._member.process.stops:
                self._failed, self._failing_since = 0, math.inf
            else:
                self._count_failure(began)
        return code, words

    def _count_failure(self, began: int) -> None:
        self._failed += 1
        self._failing_since = min(self._failing_since, began)
        seconds = (self._member.process.scheduler.now - self._failing_since) / SECOND
        # A request over a connection that is half open takes up to the session.
        if self._failed >= _FAILURES and seconds > self._member.session_timeout / SECOND + _SETTLING:
            self._member.broken(
                "the coordinator is found while a broker that the member has seen answers",
                f"{self._failed} look-ups in {seconds:.1f} s have failed",
            )

    def _expect_lookup(self) -> None:
        """Expect the next look-up soon, if the member needs its coordinator until then."""
        process, lookups = self._member.process, self._lookups
        stops = process.stops

        def check() -> None:
            if lookups == self._lookups and stops == process.stops and self._member.needs_coordinator:
                pause = f"{_LONGEST_PAUSE / SECOND:.2f} s"
                self._member.broken(
                    "the coordinator is looked up soon after a failure", f"not within {pause}"
                )

        process.call_in(_LONGEST_PAUSE, check)


def fences(response: msg.Response) -> bool:
    """Return whether a response says that another member has the sender's `group.instance.id`."""
    if isinstance(response, msg.OffsetCommitResponse):
        return any(error is ErrorCode.FENCED_INSTANCE_ID for _, error in response.partitions)
    return getattr(response, "error", None) is ErrorCode.FENCED_INSTANCE_ID
