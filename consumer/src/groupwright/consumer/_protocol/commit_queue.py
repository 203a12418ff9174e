"""Queue of commits, sent to the coordinator in the order in which they were made.

One request is in flight at a time, so that an earlier commit can never overtake a later one. Commits that
wait meanwhile are merged into the next request; a partition's latest offset wins. A commit that may be
retried goes back to the front of the queue, until its deadline.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import (
    COORDINATOR_MOVED,
    ErrorCode,
    MemberIdentity,
    Offset,
    Offsets,
    TopicPartitionKey,
)
from groupwright.consumer._protocol.wakeup import Wakeup

RETRIABLE = COORDINATOR_MOVED | {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""Transient errors: a commit that failed with these alone is retried until its deadline."""

_BRIEFLY = RETRIABLE | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
_FEW = 2
"""Retries of a commit to an unknown topic, as in librdkafka: brokers soon learn of a new topic, and never
again of a deleted one."""

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
    """A commit as seen by the thread that made it: settled once, at its deadline at the latest."""

    def __init__(
        self, offsets: Offsets, deadline: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prepare to wait for the commit of `offsets`, which the network's thread settles by `deadline`."""
        self.offsets = offsets
        # Later than the deadline, since only the network's thread knows what the broker has answered so far.
        self._limit = deadline + _GRACE
        self._clock = clock
        self._settled = Wakeup()
        self._result: CommitResult | None = None
        """Set before the waiting thread is notified, and the only record that the commit has ended."""

    @property
    def ready(self) -> bool:
        """Whether `wait` would return at once."""
        return self._result is not None or self._clock() >= self._limit

    def settle(self, result: CommitResult) -> None:
        """Set the result."""
        self._result = result
        self._settled.notify()

    def wait(self, seconds: float = math.inf) -> CommitResult:
        """Return the result, or a timed-out one after `seconds`, or if the network's thread hangs."""
        if self._result is None:
            self._settled.wait(min(seconds, self._limit - self._clock()))
        return self._result or CommitResult(dict.fromkeys(self.offsets, NO_ANSWER), "no answer in time")


@dataclass(slots=True, eq=False)
class Commit:
    """Offsets to commit as `identity`."""

    offsets: Offsets
    identity: MemberIdentity
    deadline: float
    """Monotonic time in seconds after which the commit has failed."""
    done: Callable[[CommitResult], None]
    retries: int = 0
    answer: Mapping[TopicPartitionKey, int] | None = None
    """The broker's last response, which led to a retry."""

    def fail(self, message: str, code: int = NO_ANSWER) -> None:
        """Fail the commit with the broker's last response, if there was one, else with this code."""
        self.done(CommitResult(self.answer or dict.fromkeys(self.offsets, code), message))


@dataclass(slots=True)
class CommitQueue:
    """Commits that wait, and those in flight. Pure: `CommitSender` sends them."""

    waiting: deque[Commit] = field(default_factory=deque)
    under_way: list[Commit] = field(default_factory=list)
    """The commits of the request in flight whose deadline has not passed."""
    next_deadline: float = math.inf
    """Monotonic time in seconds at which `expire` should be called; it may find nothing then, but is never
    late."""
    _in_flight: bool = False

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not self.waiting and not self._in_flight

    def add(self, commit: Commit) -> None:
        """Append a commit."""
        self.waiting.append(commit)
        self.next_deadline = min(self.next_deadline, commit.deadline)

    def next_request(self) -> tuple[MemberIdentity, dict[TopicPartitionKey, Offset]] | None:
        """Merge the first commits that share an identity into a request; None if nothing can be sent."""
        if self._in_flight or not self.waiting:
            return None
        self._in_flight = True
        identity = self.waiting[0].identity
        merged: dict[TopicPartitionKey, Offset] = {}
        while self.waiting and self.waiting[0].identity == identity:
            commit = self.waiting.popleft()
            self.under_way.append(commit)
            merged.update(commit.offsets)
        return identity, merged

    def answered(self, errors: Mapping[TopicPartitionKey, int], now: float) -> bool:
        """Settle the commits in flight with a response; return whether any is retried."""
        again: list[Commit] = []
        for commit in self._landed():
            mine = {key: errors.get(key, NO_ANSWER) for key in commit.offsets}
            if now < commit.deadline and _passes(set(mine.values()), commit.retries):
                commit.retries += 1
                commit.answer = mine
                again.append(commit)
            else:
                commit.done(CommitResult(mine))
        self.waiting.extendleft(reversed(again))
        return bool(again)

    def unanswered(self, message: str, now: float) -> bool:
        """Retry the commits in flight after their connection was lost; return whether any is retried."""
        again: list[Commit] = []
        for commit in self._landed():
            if now < commit.deadline:
                again.append(commit)
            else:
                commit.fail(message)
        self.waiting.extendleft(reversed(again))
        return bool(again)

    def expire(self, now: float, message: str, code: int = NO_ANSWER) -> None:
        """Fail the commits whose deadline has passed. A later response is ignored."""
        commits = [*self.under_way, *self.waiting]
        self.under_way = [commit for commit in self.under_way if now < commit.deadline]
        self.waiting = deque(commit for commit in self.waiting if now < commit.deadline)
        kept = (commit.deadline for commit in (*self.under_way, *self.waiting))
        self.next_deadline = min(kept, default=math.inf)
        for commit in commits:
            if now >= commit.deadline:
                commit.fail(message, code)

    def _landed(self) -> list[Commit]:
        landed, self.under_way, self._in_flight = self.under_way, [], False
        return landed


def _passes(codes: set[int], retries: int) -> bool:
    """Return whether a commit with these codes may still succeed; one that did in part may not."""
    return codes <= RETRIABLE or (codes <= _BRIEFLY and retries < _FEW)
