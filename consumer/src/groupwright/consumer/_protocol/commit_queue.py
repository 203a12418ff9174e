"""Commits on their way to the coordinator, in the order in which they were made.

One request is in flight at a time, so that a later commit can never be overtaken by an earlier one; those
that wait meanwhile are merged into the next request, the later offset of a partition winning. A commit that
may be retried goes back to the front of the queue, until its deadline.
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
"""Errors that pass: a commit that failed with nothing else is retried until its deadline."""

_BRIEFLY = RETRIABLE | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
_FEW = 2
"""Retries of a commit that fails for an unknown topic, as in librdkafka: a new topic is known in no time, a deleted one
never again."""

NO_ANSWER = -185
"""The code of a commit that the coordinator did not answer, or that could not be sent at all: librdkafka's `_TIMED_OUT`,
which no broker sends."""

WAIT_COORDINATOR = -180
"""The code of a commit whose coordinator could not be looked up: librdkafka's `_WAIT_COORD`."""

DESTROYED = -197
"""The code of a commit that the end of the consumer has overtaken: librdkafka's `_DESTROY`."""

_GRACE = 1.0


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Result of a commit: a code for each partition, and the words for a failure of the whole."""

    errors: Mapping[TopicPartitionKey, int]
    message: str = ""


class PendingCommit:
    """A commit as seen by the thread that made it: settled once, at its deadline at the latest."""

    def __init__(
        self, offsets: Offsets, deadline: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Await the result of committing `offsets`, which the network's thread settles by `deadline`."""
        self.offsets = offsets
        # Later than the deadline, since the network's thread knows what the broker has answered so far.
        self._limit = deadline + _GRACE
        self._clock = clock
        self._settled = Wakeup()
        self._result: CommitResult | None = None
        """Set before the waiting thread is notified: it alone says whether the commit has ended."""

    @property
    def ready(self) -> bool:
        """Whether `wait` would return at once."""
        return self._result is not None or self._clock() >= self._limit

    def settle(self, result: CommitResult) -> None:
        """Set the result."""
        self._result = result
        self._settled.notify()

    def wait(self, seconds: float = math.inf) -> CommitResult:
        """Return the result; or, after so many `seconds` or where the network's thread hangs, that there is none."""
        if self._result is None:
            self._settled.wait(min(seconds, self._limit - self._clock()))
        return self._result or CommitResult(dict.fromkeys(self.offsets, NO_ANSWER), "no answer in time")


@dataclass(slots=True, eq=False)
class Commit:
    """Offsets to commit as `identity`."""

    offsets: Offsets
    identity: MemberIdentity
    deadline: float
    """Monotonic time after which it has failed."""
    done: Callable[[CommitResult], None]
    retries: int = 0
    answer: Mapping[TopicPartitionKey, int] | None = None
    """The broker's last answer, which asked for a retry."""

    def fail(self, message: str, code: int = NO_ANSWER) -> None:
        """End it with the broker's last answer, if there was any, and else with this code."""
        self.done(CommitResult(self.answer or dict.fromkeys(self.offsets, code), message))


@dataclass(slots=True)
class CommitQueue:
    """The commits that wait, and those in flight. Pure: the driver sends."""

    waiting: deque[Commit] = field(default_factory=deque)
    under_way: list[Commit] = field(default_factory=list)
    """The commits of the request in flight whose deadline has not passed."""
    next_deadline: float = math.inf
    """Time at which `expire` should be called; perhaps for nothing, but never too late."""
    _in_flight: bool = False

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not self.waiting and not self._in_flight

    def add(self, commit: Commit) -> None:
        """Queue a commit behind the others."""
        self.waiting.append(commit)
        self.next_deadline = min(self.next_deadline, commit.deadline)

    def next_request(self) -> tuple[MemberIdentity, dict[TopicPartitionKey, Offset]] | None:
        """Take the commits of one identity from the front and merge them; None if there is nothing to send."""
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
        """Settle the commits in flight; return whether any is retried."""
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
        """Retry the commits in flight after their connection broke; return whether there is any to retry."""
        again: list[Commit] = []
        for commit in self._landed():
            if now < commit.deadline:
                again.append(commit)
            else:
                commit.fail(message)
        self.waiting.extendleft(reversed(again))
        return bool(again)

    def expire(self, now: float, message: str, code: int = NO_ANSWER) -> None:
        """End the commits whose deadline has passed. An answer that comes later is ignored."""
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
    """Whether a commit that was answered with these codes may succeed yet. One that has partly succeeded is over."""
    return codes <= RETRIABLE or (codes <= _BRIEFLY and retries < _FEW)
