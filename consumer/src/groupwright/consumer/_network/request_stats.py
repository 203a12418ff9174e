"""Request statistics of one member: counts, failures and the round-trip time.

The network thread updates them, and any thread may read them: each update and each copy of a dict is atomic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaError

from groupwright.core import ErrorCode

_NAMES = {
    "FindCoordinator": "find_coordinator",
    "JoinGroup": "join_group",
    "SyncGroup": "sync_group",
    "Heartbeat": "heartbeat",
    "OffsetCommit": "offset_commit",
    "OffsetFetch": "offset_fetch",
    "LeaveGroup": "leave_group",
}
_PARKED = frozenset({"join_group", "sync_group"})
"""Requests that the coordinator parks until other members have acted: their time is no round trip."""

_EXPECTED_ERRORS = frozenset(
    {
        ("join_group", ErrorCode.MEMBER_ID_REQUIRED),
        ("heartbeat", ErrorCode.REBALANCE_IN_PROGRESS),
    }
)
"""Errors that are no failures: a new member gets its id (KIP-394), or the group rebalances."""


class RequestStats:
    """Totals of one member since it was created. Times are monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start at zero."""
        self.requests: dict[str, int] = {}
        """Requests sent, by name of the request, such as ``join_group``."""
        self.failures: dict[tuple[str, str], int] = {}
        """Error responses, by name of the request and of the error."""
        self.unanswered = 0
        """Requests to the coordinator without a response."""
        self.round_trip: float | None = None
        """Last round-trip time to the coordinator, in seconds; None before the first."""
        self.heartbeat_answered: float | None = None
        """Time of the last heartbeat's response; None before the first."""
        self.coordinator: int | None = None
        """Node id of the last coordinator; None before the first."""
        self.coordinator_changes = 0
        self._clock = clock

    def sent(self, name: str) -> Callable[[Any], None]:
        """Count a request by Kafka's name.

        Returns:
            A function to call with the response, or with None if there is none.
        """
        kind, began = _NAMES.get(name), self._clock()
        if kind is None:
            return _uncounted
        self.requests[kind] = self.requests.get(kind, 0) + 1

        def answered(response: Any) -> None:
            if response is None:
                self.unanswered += kind != "find_coordinator"  # that one goes to any broker
                return
            now = self._clock()
            if kind == "heartbeat":
                self.heartbeat_answered = now
            if kind not in _PARKED and kind != "find_coordinator":
                self.round_trip = now - began
            for code in set(_codes(response)):
                if code and (kind, code) not in _EXPECTED_ERRORS:
                    key = (kind, KafkaError(code).name())
                    self.failures[key] = self.failures.get(key, 0) + 1

        return answered

    def found_coordinator(self, node: int) -> None:
        """Record the coordinator's node id."""
        if self.coordinator is not None and self.coordinator != node:
            self.coordinator_changes += 1
        self.coordinator = node


def _codes(response: Any) -> Iterator[int]:
    """Yield the error codes of a response and of its parts."""
    yield int(getattr(response, "error_code", 0) or 0)
    for name in ("coordinators", "groups", "topics", "partitions"):
        parts: Iterable[Any] = getattr(response, name, None) or ()
        for part in parts:
            yield from _codes(part)
    # LeaveGroup's response has an error code for each member; members in JoinGroup's response have none.
    for member in getattr(response, "members", None) or ():
        yield int(getattr(member, "error_code", 0) or 0)


def _uncounted(_answer: Any) -> None:
    """Count nothing."""
