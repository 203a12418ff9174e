"""Sends the queued commits to the coordinator, one request at a time, and fails those that are late."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._network.connections import Network, Timer
from groupwright.consumer._protocol.commit_queue import (
    DESTROYED,
    WAIT_COORDINATOR,
    Commit,
    CommitQueue,
    CommitResult,
)
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import DisconnectedError, MemberIdentity, Offsets
from groupwright.consumer._protocol.timers import Backoff
from groupwright.core import ErrorCode
from groupwright.core.locking import locked

Feed = Callable[..., None]
"""Calls an input of the membership, and carries out the actions that it returns."""


class CommitSender:
    """Runs a `CommitQueue` on the network thread, with the identity that the membership has.

    Any thread may call `submit` and `end`; the rest is for the network thread.
    """

    def __init__(
        self, membership: Membership, network: Network, feed: Feed, committed: CommittedOffsets
    ) -> None:
        """Create it with nothing to send.

        Args:
            membership: State of the member; only read here.
            network: The loop, and the requests sent on it.
            feed: Passes error codes that concern the membership to it.
            committed: Learns of each commit that succeeds.
        """
        self._membership = membership
        self._network = network
        self._feed = feed
        self._queue = CommitQueue()
        self._backoff = Backoff(membership.timing)
        self.held: list[Commit] = []
        """Commits that wait for the end of a round; see `release`."""
        self._sending = False
        self._timer: Timer | None = None
        self._due = math.inf
        """Monotonic time in seconds at which the timer expires commits."""
        self._drained: list[Any] = []
        # Commits from other threads. The lock ensures that none is appended after `end` has failed them all.
        self._submitted: deque[Commit] = deque()
        self._lock = threading.RLock()  # a signal handler may commit
        self._ended: str | None = None
        self._committed = committed

    def submit(self, offsets: Offsets, deadline: float, done: Callable[[CommitResult], None]) -> None:
        """Commit with the identity that the member has when the network thread takes the commit.

        `deadline` is in monotonic seconds. After `end`, the commit fails at once.
        """
        commit = Commit(offsets, MemberIdentity(), deadline, done)
        ended = self._append(commit)
        if ended is None:
            self._network.call_soon(self._admit)
        else:
            commit.fail(ended, DESTROYED)

    @locked
    def _append(self, commit: Commit) -> str | None:
        """Append a commit from another thread, or return why it is too late."""
        if self._ended is None:
            self._submitted.append(commit)
        return self._ended

    def end(self, reason: str) -> None:
        """Fail all commits, and those that are submitted later."""
        late = self._end_submitting(reason)
        held, self.held = self.held, []
        self._queue.expire(math.inf, reason, DESTROYED)
        for commit in (*held, *late):
            commit.fail(reason, DESTROYED)

    @locked
    def _end_submitting(self, reason: str) -> deque[Commit]:
        """Have later commits fail; return those that were not admitted."""
        self._ended = reason
        late, self._submitted = self._submitted, deque()
        return late

    def _admit(self) -> None:
        """Queue the submitted commits; fail those of a member that may not commit."""
        if not self._submitted:
            return
        while self._submitted:
            commit = self._submitted.popleft()
            self._expire_at(commit.deadline)
            identity = self._membership.commit_identity()
            if isinstance(identity, MemberIdentity):
                self._queue.add(replace(commit, identity=identity))
            elif self._membership.commits_wait:
                self.held.append(commit)
            elif self._membership.lookup_refused:
                commit.fail("the group's coordinator cannot be looked up", WAIT_COORDINATOR)
            else:
                commit.done(_refusal(commit.offsets, identity))
        self._feed(self._membership.want_coordinator)
        self.pump()

    def pump(self) -> None:
        """Send the next request if the coordinator is known; resume `drained` if the queue is empty."""
        if self._queue.idle:
            while self._drained:
                self._drained.pop().success(None)
        elif self._membership.coordinator.known and not self._sending:
            self._sending = True
            self._network.spawn(self._send())

    def release(self) -> None:
        """Queue or fail the commits that were held, if they need not wait for the end of the round any more.

        In the round they would wait behind JoinGroup or SyncGroup, which other members can prolong. They are
        sent after SyncGroup, in the new generation.
        """
        identity = self._membership.commit_identity()
        if isinstance(identity, ErrorCode) and self._membership.commits_wait:
            return
        held, self.held = self.held, []
        for commit in held:
            if isinstance(identity, ErrorCode):
                commit.done(_refusal(commit.offsets, identity))
            else:
                self._queue.add(replace(commit, identity=identity))
        self.pump()

    def _expire_at(self, deadline: float) -> None:
        """Expire commits at this monotonic time in seconds, or earlier."""
        if deadline < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due, self._timer = deadline, self._network.call_at(deadline, self._expire)

    def _expire(self) -> None:
        """Fail the commits whose deadline has passed."""
        now = time.monotonic()
        if self._timer is not None:  # a later one already: a commit that came first in the same turn armed it
            self._timer.cancel()
        self._due, self._timer = math.inf, None
        self._queue.expire(now, "the coordinator did not take it in time")
        late = [commit for commit in self.held if now >= commit.deadline]
        self.held = [commit for commit in self.held if now < commit.deadline]
        for commit in late:
            commit.done(_refusal(commit.offsets, ErrorCode.REBALANCE_IN_PROGRESS))
        self._expire_at(min([self._queue.next_deadline, *(commit.deadline for commit in self.held)]))
        self.pump()

    def refuse(self, reason: str, code: int) -> None:
        """Fail all queued commits, because the brokers rejected FindCoordinator for this `reason`."""
        self._queue.expire(math.inf, reason, code)

    @property
    def idle(self) -> bool:
        """True if no commit is queued or in flight."""
        return self._queue.idle

    async def drained(self) -> None:
        """Return when no commit is queued or in flight."""
        if not self.idle:
            future = self._network.future()
            self._drained.append(future)
            await future

    async def _send(self) -> None:
        try:
            request = self._queue.next_request()
            if request is not None:
                if await self._send_request(*request):
                    await self._network.sleep(self._backoff.pause())
                else:
                    self._backoff.reset()
        finally:
            self._sending = False
        self.pump()

    async def _send_request(self, identity: MemberIdentity, offsets: Offsets) -> bool:
        """Send one request; return whether any of its commits goes back to be retried."""
        try:
            response = await self._network.commit(identity, offsets)
        except DisconnectedError as error:
            is_retried = self._queue.unanswered(str(error), time.monotonic())
            self._feed(self._membership.commit_unanswered)
        else:
            succeeded = (key for key, code in response.errors.items() if code == ErrorCode.NONE)
            self._committed.on_committed({key: offsets[key] for key in succeeded})
            is_retried = self._queue.answered(response.errors, time.monotonic())
            # Partitions may fail for different reasons: one for its topic, others for the member.
            for code in set(response.errors.values()):
                self._feed(self._membership.commit_answered, identity, code)
        return is_retried


def _refusal(offsets: Offsets, error: ErrorCode) -> CommitResult:
    return CommitResult(dict.fromkeys(offsets, int(error)), "the member is in no stable generation")
