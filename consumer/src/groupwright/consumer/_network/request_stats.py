"""What went between a member and its coordinator, in numbers.

Counted on the network's thread alone. Any thread may read: numbers are replaced, and dicts copied, in one step each.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaError

from groupwright.consumer._protocol.model import ErrorCode

_NAMES = {
    "FindCoordinatorRequest": "find_coordinator",
    "JoinGroupRequest": "join_group",
    "SyncGroupRequest": "sync_group",
    "HeartbeatRequest": "heartbeat",
    "OffsetCommitRequest": "offset_commit",
    "OffsetFetchRequest": "offset_fetch",
    "LeaveGroupRequest": "leave_group",
}
_PARKED = frozenset({"join_group", "sync_group"})
"""Answered when other members have done their part, so that they say nothing of the way there."""

_EXPECTED_ERRORS = frozenset(
    {
        ("join_group", ErrorCode.MEMBER_ID_REQUIRED),
        ("heartbeat", ErrorCode.REBALANCE_IN_PROGRESS),
    }
)
"""Errors that are none: how a new member gets its id (KIP-394), and how a member hears of a rebalance."""


class RequestStats:
    """The requests of one member, so far. Times are monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with nothing sent."""
        self.requests: dict[str, int] = {}
        """Requests sent, by kind."""
        self.failures: dict[tuple[str, str], int] = {}
        """Those that were answered with an error, by kind and the error's name."""
        self.unanswered = 0
        """Requests to the coordinator that had no answer."""
        self.round_trip: float | None = None
        """To the coordinator, as last measured."""
        self.heartbeat_answered: float | None = None
        """When the last heartbeat was answered."""
        self.coordinator: int | None = None
        """The broker that was the coordinator last."""
        self.coordinator_changes = 0
        self._clock = clock

    def sent(self, request: Any) -> Callable[[Any], None]:
        """Count a request; return what takes its answer, None where there is none."""
        kind, began = _NAMES.get(type(request).__name__), self._clock()
        if kind is None:
            return _uncounted
        self.requests[kind] = self.requests.get(kind, 0) + 1

        def answered(answer: Any) -> None:
            if answer is None:
                self.unanswered += kind != "find_coordinator"  # that one goes to any broker
                return
            now = self._clock()
            if kind == "heartbeat":
                self.heartbeat_answered = now
            if kind not in _PARKED and kind != "find_coordinator":
                self.round_trip = now - began
            for code in set(_codes(answer)):
                if code and (kind, code) not in _EXPECTED_ERRORS:
                    key = (kind, KafkaError(code).name())
                    self.failures[key] = self.failures.get(key, 0) + 1

        return answered

    def found_coordinator(self, node: int) -> None:
        """Note which broker is the coordinator."""
        if self.coordinator is not None and self.coordinator != node:
            self.coordinator_changes += 1
        self.coordinator = node


def _codes(answer: Any) -> Iterator[int]:
    """Yield the error codes of an answer and of its parts."""
    yield int(getattr(answer, "error_code", 0) or 0)
    for name in ("coordinators", "groups", "topics", "partitions"):
        parts: Iterable[Any] = getattr(answer, name, None) or ()
        for part in parts:
            yield from _codes(part)
    # A member that leaves is answered for itself; JoinGroup's members are the group's, and have no codes.
    for member in getattr(answer, "members", None) or ():
        yield int(getattr(member, "error_code", 0) or 0)


def _uncounted(_answer: Any) -> None:
    """Count nothing."""
