"""Commits on their way to the coordinator, in the order in which they were made.

One request is under way at a time, so that a later commit can never be overtaken by an earlier one; those
that wait meanwhile are merged into the next request, the later offset of a partition winning. A commit that
may be repeated goes back to the front of the queue, until its deadline.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from groupwright.consumer.protocol import (
    COORDINATOR_MOVED,
    ErrorCode,
    Identity,
    Offset,
    Offsets,
    TopicPartitionKey,
)

RETRIABLE = COORDINATOR_MOVED | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}

NO_ANSWER = -185
"""The code of a commit that the coordinator did not answer, or that could not be sent at all: librdkafka's `_TIMED_OUT`,
which no broker sends."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What came of a commit: a code for each partition, and the words for a failure of the whole."""

    errors: Mapping[TopicPartitionKey, int]
    message: str = ""


class PendingCommit:
    """A commit as the thread that made it sees it: settled once, by its deadline at the latest."""

    def __init__(
        self, offsets: Offsets, deadline: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Await the result of committing `offsets` until `deadline`."""
        self.deadline = deadline
        self._offsets = offsets
        self._clock = clock
        self._settled = threading.Event()
        self._result: CommitResult | None = None

    @property
    def ready(self) -> bool:
        """Whether `wait` would return at once."""
        return self._settled.is_set() or self._clock() >= self.deadline

    def settle(self, result: CommitResult) -> None:
        """Set the result."""
        self._result = result
        self._settled.set()

    def wait(self, seconds: float = math.inf) -> CommitResult:
        """Return the result, or after the deadline (or so many `seconds`, if that is sooner) that there is none."""
        self._settled.wait(max(0.0, min(seconds, self.deadline - self._clock())))
        return self._result or CommitResult(dict.fromkeys(self._offsets, NO_ANSWER), "no answer in time")


@dataclass(frozen=True, slots=True, eq=False)
class Commit:
    """Offsets to commit as `identity`."""

    offsets: Offsets
    identity: Identity
    deadline: float
    """Monotonic time after which it is given up."""
    repeat: bool
    """Whether retriable errors are tried again until the deadline. Asynchronous commits of the user are not:
    they would come after later ones."""
    done: Callable[[CommitResult], None]


@dataclass(slots=True)
class CommitQueue:
    """The commits that wait, and the ones under way. Pure: the driver sends."""

    waiting: deque[Commit] = field(default_factory=deque)
    under_way: list[Commit] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        return not self.waiting and not self.under_way

    def add(self, commit: Commit) -> None:
        """Queue a commit behind the others."""
        self.waiting.append(commit)

    def next_request(self) -> tuple[Identity, dict[TopicPartitionKey, Offset]] | None:
        """Take the commits of one identity from the front and merge them; None if there is nothing to send."""
        if self.under_way or not self.waiting:
            return None
        identity = self.waiting[0].identity
        merged: dict[TopicPartitionKey, Offset] = {}
        while self.waiting and self.waiting[0].identity == identity:
            commit = self.waiting.popleft()
            self.under_way.append(commit)
            merged.update(commit.offsets)
        return identity, merged

    def answered(self, errors: Mapping[TopicPartitionKey, int], now: float) -> bool:
        """Settle the commits under way; return whether any goes back to be tried again."""
        again: list[Commit] = []
        finished, self.under_way = self.under_way, []
        for commit in finished:
            mine = {key: errors.get(key, NO_ANSWER) for key in commit.offsets}
            failed = {code for code in mine.values() if code}
            if failed and failed <= RETRIABLE and commit.repeat and now < commit.deadline:
                again.append(commit)
            else:
                commit.done(CommitResult(mine))
        self.waiting.extendleft(reversed(again))
        return bool(again)

    def unanswered(self, message: str, now: float) -> bool:
        """Settle the commits under way after their connection broke; return whether any is tried again."""
        again: list[Commit] = []
        failed, self.under_way = self.under_way, []
        for commit in failed:
            if commit.repeat and now < commit.deadline:
                again.append(commit)
            else:
                commit.done(CommitResult(dict.fromkeys(commit.offsets, NO_ANSWER), message))
        self.waiting.extendleft(reversed(again))
        return bool(again)

    def expire(self, now: float, message: str) -> None:
        """Give up the waiting commits whose deadline is over."""
        late = [commit for commit in self.waiting if now >= commit.deadline]
        for commit in late:
            self.waiting.remove(commit)
            commit.done(CommitResult(dict.fromkeys(commit.offsets, NO_ANSWER), message))
