"""Sends the queued commits to the coordinator, one request at a time."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol.actions import Action
from groupwright.consumer._protocol.commit_queue import (
    DESTROYED,
    WAIT_COORDINATOR,
    Commit,
    CommitQueue,
    CommitResult,
)
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import (
    DisconnectedError,
    ErrorCode,
    MemberIdentity,
    Offset,
    Offsets,
    TopicPartitionKey,
)

_PAUSE = 0.1  # seconds before a commit is retried

Feed = Callable[..., None]
"""Calls one of the membership's inputs, and does what it asks for."""


class CommitSender:
    """Runs a `CommitQueue` on the network's loop, as the member that the membership says it is.

    `submit` and `end` are for any thread, the rest for the loop's.
    """

    def __init__(self, membership: Membership, network: Network, feed: Feed) -> None:
        """Send over `network`; what answers say about the membership is fed back to it."""
        self._membership = membership
        self._network = network
        self._feed: Callable[..., None] = feed
        self._queue = CommitQueue()
        # Made while a cooperative member joins: JoinGroup holds the connection, so they are sent after
        # SyncGroup.
        self._held: list[Commit] = []
        self._sending = False
        self._drained: list[Any] = []
        # Commits that the loop has not seen yet. The lock keeps any from being left there when the loop has
        # ended.
        self._submitted: deque[Commit] = deque()
        self._submitting = threading.Lock()
        self._ended: str | None = None
        self._assigned: dict[TopicPartitionKey, Offset] = {}

    def submit(self, offsets: Offsets, deadline: float, done: Callable[[CommitResult], None]) -> None:
        """Commit as whatever the member is when the loop gets it; after `end`, fail at once."""
        commit = Commit(offsets, MemberIdentity(), deadline, done)
        with self._submitting:
            ended = self._ended
            if ended is None:
                self._submitted.append(commit)
        if ended is None:
            self._network.call_soon(self._admit)
        else:
            commit.fail(ended, DESTROYED)

    def end(self, reason: str) -> None:
        """Settle all commits, whatever their state; those that come later fail at once."""
        with self._submitting:
            self._ended = reason
            late, self._submitted = self._submitted, deque()
        held, self._held = self._held, []
        self._queue.expire(math.inf, reason, DESTROYED)
        for commit in (*held, *late):
            commit.fail(reason, DESTROYED)

    def on_assignment(self, offsets: dict[TopicPartitionKey, Offset]) -> None:
        """Update these offsets with each commit that succeeds.

        They were fetched before the polling thread applies the assignment. A commit made in between, or in
        on_assign, would otherwise not change where the partitions start.
        """
        self._assigned = offsets

    def _admit(self) -> None:
        """Queue what was submitted; a member that may not commit is refused at once."""
        if not self._submitted:
            return
        while self._submitted:
            commit = self._submitted.popleft()
            identity = self._membership.commit_identity()
            if isinstance(identity, MemberIdentity):
                self._queue.add(replace(commit, identity=identity))
            elif self._membership.keeps_partitions:
                self._held.append(commit)
            elif self._membership.lookup_refused:
                commit.fail("the group's coordinator cannot be looked up", WAIT_COORDINATOR)
            else:
                commit.done(_refusal(commit.offsets, identity))
        self._feed(self._membership.want_coordinator)

    def pump(self) -> None:
        """Send what waits, if the coordinator is known; wake those who wait for the queue to be empty."""
        self._release()
        if self._queue.idle:
            while self._drained:
                self._drained.pop().success(None)
        elif self._membership.coordinator.known and not self._sending:
            self._sending = True
            self._network.spawn(self._send())

    def _release(self) -> None:
        """Queue or refuse the commits that waited for a cooperative rebalance."""
        if not self._held:
            return
        identity = self._membership.commit_identity()
        if isinstance(identity, ErrorCode) and self._membership.keeps_partitions:
            return
        held, self._held = self._held, []
        for commit in held:
            if isinstance(identity, ErrorCode):
                commit.done(_refusal(commit.offsets, identity))
            else:
                self._queue.add(replace(commit, identity=identity))

    def expire(self, now: float) -> None:
        """End the commits whose deadline has passed."""
        self._queue.expire(now, "the coordinator did not take it in time")
        late = [commit for commit in self._held if now >= commit.deadline]
        self._held = [commit for commit in self._held if now < commit.deadline]
        for commit in late:
            commit.done(_refusal(commit.offsets, ErrorCode.REBALANCE_IN_PROGRESS))

    def refuse(self, reason: str, code: int) -> None:
        """Fail the commits that wait: the brokers refuse this client, and what it hears next is why."""
        self._queue.expire(math.inf, reason, code)

    @property
    def next_deadline(self) -> float | None:
        """When `expire` has something to do."""
        first = min([self._queue.next_deadline, *(commit.deadline for commit in self._held)])
        return None if first == math.inf else first

    async def drained(self) -> None:
        """Return when no commit waits or is in flight."""
        if not self._queue.idle:
            future = self._network.future()
            self._drained.append(future)
            await future

    async def _send(self) -> None:
        try:
            request = self._queue.next_request()
            if request is not None and await self._send_request(*request):
                await self._network.sleep(_PAUSE)
        finally:
            self._sending = False
        self._feed(_nothing)

    async def _send_request(self, identity: MemberIdentity, offsets: Offsets) -> bool:
        """Send one request; return whether any of its commits goes back to be retried."""
        try:
            answer = await self._network.commit(identity, offsets)
        except DisconnectedError as error:
            again = self._queue.unanswered(str(error), time.monotonic())
            self._feed(self._membership.commit_unanswered)
        else:
            for key, code in answer.errors.items():
                if code == ErrorCode.NONE and key in self._assigned:
                    self._assigned[key] = offsets[key]
            again = self._queue.answered(answer.errors, time.monotonic())
            # One partition may be refused for its topic's sake, and the others for the member's.
            for code in set(answer.errors.values()):
                self._feed(self._membership.commit_answered, identity, code)
        return again


def _refusal(offsets: Offsets, error: ErrorCode) -> CommitResult:
    return CommitResult(dict.fromkeys(offsets, int(error)), "the member is in no stable generation")


def _nothing(_now: float) -> list[Action]:
    """Feed nothing: only what follows a feed is wanted."""
    return []
