"""Queue of commits, sent to the coordinator in the order in which they were made.

One request is in flight at a time, so that an earlier commit can never overtake a later one. Commits that
wait meanwhile are merged into the next request; a partition's latest offset wins. A commit that may be
retried goes back to the front of the queue, until its deadline.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import COORDINATOR_MOVED, MemberIdentity, Offset, Offsets
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.core import ErrorCode, TopicPartitionKey

RETRIABLE = COORDINATOR_MOVED | {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Retriable errors: a commit that failed with these alone is retried until its deadline."""

_BRIEFLY_RETRIABLE = RETRIABLE | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
_UNKNOWN_TOPIC_RETRIES = 2
"""Retries of a commit to an unknown topic, as in librdkafka: metadata of a new topic reaches all brokers
soon, and a deleted topic does not come back."""

NO_ANSWER = -185
"""The code of a commit that the coordinator did not answer, or that could not be sent at all: librdkafka's
`_TIMED_OUT`, which no broker sends."""

WAIT_COORDINATOR = -180
"""The code of a commit whose coordinator could not be looked up: librdkafka's `_WAIT_COORD`."""

DESTROYED = -197
"""The code of a commit that had not ended when the consumer was closed: librdkafka's `_DESTROY`."""

_GRACE = 1.0
"""Seconds beyond its deadline for which a waiting thread awaits a commit's result."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Result of a commit: an error code for each partition, and a message if it failed as a whole."""

    errors: Mapping[TopicPartitionKey, int]
    message: str = ""


class PendingCommit:
    """Future of a commit: the network thread sets its result once, at the deadline at the latest.

    Several threads may wait.
    """

    def __init__(
        self, offsets: Offsets, deadline: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Start without a result; `deadline` is a time of `clock`, which is monotonic, in seconds."""
        self.offsets = offsets
        # Later than the deadline, so that the network thread can set a more precise result than a timeout.
        self._limit = deadline + _GRACE
        self._clock = clock
        self._completed = Wakeup()
        self._result: CommitResult | None = None
        """Set before the waiting thread is notified, and the only record that the commit has ended."""

    @property
    def ready(self) -> bool:
        """True if `wait` would return at once."""
        return self._result is not None or self._clock() >= self._limit

    def complete(self, result: CommitResult) -> None:
        """Set the result and wake the waiting thread; called on the network thread."""
        self._result = result
        self._completed.notify()

    def wait(self, seconds: float = math.inf) -> CommitResult:
        """Return the result; a timed-out one after `seconds`, or if the network thread hangs."""
        if self._result is None:
            self._completed.wait(min(seconds, self._limit - self._clock()))
            if self._result is not None:
                self._completed.notify()  # another thread may wait, too
        return self._result or CommitResult(dict.fromkeys(self.offsets, NO_ANSWER), "no answer in time")


@dataclass(slots=True, eq=False)
class Commit:
    """Offsets to commit as `identity`."""

    offsets: Offsets
    identity: MemberIdentity
    deadline: float
    """Monotonic time in seconds after which the commit has failed."""
    done: Callable[[CommitResult], None]
    """Called once with the result, on the network thread."""
    retries: int = 0
    last_errors: Mapping[TopicPartitionKey, int] | None = None
    """Error codes of the last response, after which the commit was retried."""

    def fail(self, message: str, code: int = NO_ANSWER) -> None:
        """Fail the commit with the error codes of its last response, if there was one, else with `code`."""
        self.done(CommitResult(self.last_errors or dict.fromkeys(self.offsets, code), message))


@dataclass(slots=True)
class CommitQueue:
    """Queued commits, and the commits in flight. Pure: `CommitSender` sends them."""

    waiting: deque[Commit] = field(default_factory=deque)
    in_flight: list[Commit] = field(default_factory=list)
    """The commits of the request in flight whose deadline has not passed."""
    next_deadline: float = math.inf
    """Monotonic time in seconds at which `expire` should be called; it may find nothing then, but is never
    late."""
    _is_sending: bool = False

    @property
    def idle(self) -> bool:
        """True if no commit is queued or in flight."""
        return not self.waiting and not self._is_sending

    def add(self, commit: Commit) -> None:
        """Append a commit."""
        self.waiting.append(commit)
        self.next_deadline = min(self.next_deadline, commit.deadline)

    def next_request(self) -> tuple[MemberIdentity, dict[TopicPartitionKey, Offset]] | None:
        """Merge the first commits that share an identity into a request; None if nothing can be sent."""
        if self._is_sending or not self.waiting:
            return None
        self._is_sending = True
        identity = self.waiting[0].identity
        merged: dict[TopicPartitionKey, Offset] = {}
        while self.waiting and self.waiting[0].identity == identity:
            commit = self.waiting.popleft()
            self.in_flight.append(commit)
            merged.update(commit.offsets)
        return identity, merged

    def answered(self, errors: Mapping[TopicPartitionKey, int], now: float) -> bool:
        """Complete the commits in flight with a response; return whether any is retried."""
        retried: list[Commit] = []
        for commit in self._take_in_flight():
            mine = {key: errors.get(key, NO_ANSWER) for key in commit.offsets}
            if now < commit.deadline and _is_retriable(set(mine.values()), commit.retries):
                commit.retries += 1
                commit.last_errors = mine
                retried.append(commit)
            else:
                commit.done(CommitResult(mine))
        self.waiting.extendleft(reversed(retried))
        return bool(retried)

    def unanswered(self, message: str, now: float) -> bool:
        """Retry the commits in flight after their connection was lost; return whether any is retried."""
        retried: list[Commit] = []
        for commit in self._take_in_flight():
            if now < commit.deadline:
                retried.append(commit)
            else:
                commit.fail(message)
        self.waiting.extendleft(reversed(retried))
        return bool(retried)

    def expire(self, now: float, message: str, code: int = NO_ANSWER) -> None:
        """Fail the commits whose deadline has passed. A later response is ignored."""
        commits = [*self.in_flight, *self.waiting]
        self.in_flight = [commit for commit in self.in_flight if now < commit.deadline]
        self.waiting = deque(commit for commit in self.waiting if now < commit.deadline)
        kept = (commit.deadline for commit in (*self.in_flight, *self.waiting))
        self.next_deadline = min(kept, default=math.inf)
        for commit in commits:
            if now >= commit.deadline:
                commit.fail(message, code)

    def _take_in_flight(self) -> list[Commit]:
        commits, self.in_flight, self._is_sending = self.in_flight, [], False
        return commits


def _is_retriable(codes: set[int], retries: int) -> bool:
    """Return whether a commit with these codes is retried.

    All partitions must have failed, and be retriable.
    """
    return codes <= RETRIABLE or (codes <= _BRIEFLY_RETRIABLE and retries < _UNKNOWN_TOPIC_RETRIES)
