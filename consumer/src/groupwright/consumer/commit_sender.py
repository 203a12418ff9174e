"""Sends the queued commits to the coordinator, one request at a time."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from groupwright.consumer.actions import Action
from groupwright.consumer.commits import Commit, CommitQueue, CommitResult
from groupwright.consumer.membership import Membership
from groupwright.consumer.network import Network
from groupwright.consumer.protocol import DisconnectedError, ErrorCode, Identity, Offsets

_PAUSE = 0.1  # seconds before a commit is tried again

Feed = Callable[..., None]
"""Calls one of the membership's inputs, and does what it asks for."""


class CommitSender:
    """Runs a `CommitQueue` on the network's loop, as the member that the membership says it is."""

    def __init__(self, membership: Membership, network: Network, feed: Feed) -> None:
        """Send over `network`; what answers say about the membership is fed back to it."""
        self._membership = membership
        self._network = network
        self._feed: Callable[..., None] = feed
        self._queue = CommitQueue()
        # Made while a cooperative member joins: JoinGroup holds the connection, so they are sent after SyncGroup.
        self._held: list[Commit] = []
        self._sending = False
        self._drained: list[Any] = []

    def add(
        self, offsets: Offsets, deadline: float, done: Callable[[CommitResult], None], *, repeat: bool
    ) -> None:
        """Queue a commit as whatever the member is now; one that may not commit is told so at once."""
        identity = self._membership.commit_identity()
        if isinstance(identity, Identity):
            self._queue.add(Commit(offsets, identity, deadline, repeat, done))
        elif self._membership.keeps_partitions:
            self._held.append(Commit(offsets, Identity(), deadline, repeat, done))
        else:
            done(_refusal(offsets, identity))
            return
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
        """Queue what waited for a cooperative rebalance: its partitions were the member's all the while, or it is refused."""
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
        """Give up the commits whose deadline is over."""
        self._queue.expire(now, "the coordinator could not be reached in time")
        late = [commit for commit in self._held if now >= commit.deadline]
        self._held = [commit for commit in self._held if now < commit.deadline]
        for commit in late:
            commit.done(_refusal(commit.offsets, ErrorCode.REBALANCE_IN_PROGRESS))

    def refuse(self, reason: str) -> None:
        """Give up the commits that wait: the brokers refuse this client, and what it hears next is why."""
        self._queue.expire(math.inf, reason)

    @property
    def next_deadline(self) -> float | None:
        """When `expire` has something to do."""
        return min((commit.deadline for commit in (*self._queue.waiting, *self._held)), default=None)

    async def drained(self) -> None:
        """Return when no commit waits or is under way; each ends by its deadline."""
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

    async def _send_request(self, identity: Identity, offsets: Offsets) -> bool:
        """Send one request; return whether any of its commits goes back to be tried again."""
        try:
            answer = await self._network.commit(identity, offsets)
        except DisconnectedError as error:
            again = self._queue.unanswered(str(error), time.monotonic())
            self._feed(self._membership.commit_unanswered)
        else:
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
