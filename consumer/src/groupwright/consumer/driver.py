"""Does what the membership asks for: the bridge between the pure state machine and the network.

Everything here runs on the network's loop, except where any thread is allowed. Nothing here refers to the
`Consumer`: one that is dropped without `close` can be collected, and its membership ends with it.
"""

import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from confluent_kafka import KafkaError

from groupwright.assignors import Assignor, TopicPartitions
from groupwright.consumer import actions as act
from groupwright.consumer.commit_sender import CommitSender
from groupwright.consumer.commits import CommitResult
from groupwright.consumer.errors import GroupError
from groupwright.consumer.events import Closed, Failed, Inbox
from groupwright.consumer.leading import Leader
from groupwright.consumer.membership import Membership
from groupwright.consumer.network import AccessError, Network, Timer
from groupwright.consumer.protocol import DisconnectedError, ErrorCode, Offsets
from groupwright.consumer.refusals import explain
from groupwright.consumer.verdicts import Api, Verdict, verdict


class PollClock:
    """When the application last polled; written by the polling thread, read by the membership's."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        """Start as if it had polled now."""
        self.last = time.monotonic()


class Driver:
    """Runs one `Membership` on one `Network`."""

    def __init__(
        self,
        membership: Membership,
        network: Network,
        assignors: Mapping[str, Assignor],
        inbox: Inbox,
        poll_clock: PollClock,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        """Wire the parts; `start` sets them going."""
        self._membership = membership
        self._network = network
        self._assignors = assignors
        self._inbox = inbox
        self._poll_clock = poll_clock
        self._log = log
        self._leader = Leader(network, assignors, log)
        self._commits = CommitSender(membership, network, self._feed)
        self._timer: Timer | None = None
        self._requests: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            act.LookUpCoordinator: self._look_up,
            act.SendJoin: self._join,
            act.Plan: self._plan,
            act.SendSync: self._sync,
            act.FetchOffsets: self._fetch_offsets,
            act.SendHeartbeat: self._heartbeat,
            act.SendLeave: self._leave,
            act.Refuse: self._refuse,
        }

    # --- From any thread ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the network's thread."""
        self._network.start()

    def call(self, method: Callable[..., list[act.Action]], *args: object) -> None:
        """Feed the membership: ``call(membership.subscribe, topics)`` adds the time by itself."""
        self._network.call_soon(self._feed, method, *args)

    def commit(
        self, offsets: Offsets, deadline: float, done: Callable[[CommitResult], None], *, repeat: bool
    ) -> None:
        """Commit as whatever the member is now; `done` is called on the loop, by the deadline or so."""
        self._network.call_soon(lambda: self._commits.add(offsets, deadline, done, repeat=repeat))

    def stop(self, timeout: float) -> None:
        """End the thread, whatever is under way, and wait at most `timeout` seconds for that."""
        self._network.call_soon(self._network.end)
        self._network.join_thread(timeout)

    def abandon(self, timeout: float) -> None:
        """Leave the group without the application, which is gone, and end the thread; both by `timeout` seconds."""
        self.call(self._membership.abandon)
        self._network.call_soon(lambda: self._network.call_at(time.monotonic() + timeout, self._network.end))
        self._network.join_thread(timeout)

    # --- Feeding ------------------------------------------------------------------------------------

    def _feed(self, method: Callable[..., list[act.Action]], *args: object) -> None:
        before = self._membership.state
        # One time for all: what gets due while the actions are done must not fall between the two questions.
        now = time.monotonic()
        try:
            for action in method(*args, now):
                self._do(action)
        except Exception as error:  # noqa: BLE001 - see `_fail`
            self._fail(error)
        after = self._membership.state
        if after is not before:
            self._log.debug("%s -> %s as %s", before.name, after.name, self._membership.identity)
        self._arm_timer(now)
        self._commits.pump()

    def _arm_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = (self._membership.next_tick(now), self._commits.next_deadline)
        times = [when for when in due if when is not None]
        if times and not self._membership.closed:
            self._timer = self._network.call_at(min(times), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._commits.expire(time.monotonic())
        self._feed(lambda now: self._membership.tick(now, self._poll_clock.last))

    def _do(self, action: act.Action) -> None:
        match action:
            case act.Deliver(event):
                if isinstance(event, Closed):
                    self._commits.expire(float("inf"))
                    self._network.end()
                self._inbox.put(event)
            case act.Withdraw(ticket):
                if self._inbox.withdraw(ticket):
                    self.call(self._membership.withdrawn, ticket)
            case act.DropConnection():
                self._network.drop_connection()
            case act.NotifyAssignor():
                self._notify_assignor(action)
            case _:
                self._network.spawn(self._guarded(self._requests[type(action)], action))

    def _notify_assignor(self, action: act.NotifyAssignor) -> None:
        assignment = TopicPartitions(action.assignment)
        try:
            self._assignors[action.protocol].on_assignment(assignment, action.generation)
        except Exception:  # noqa: BLE001 - a user's code; the membership goes on
            self._log.exception(
                "on_assignment of the assignor %r raised; going on without it", action.protocol
            )

    async def _guarded(self, request: Callable[[Any], Coroutine[Any, Any, None]], action: act.Action) -> None:
        try:
            await request(action)
        except Exception as error:  # noqa: BLE001 - see `_fail`
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Make a defect of ours an error that the application sees, not a silent stop."""
        self._log.error("the membership failed unexpectedly", exc_info=error)
        message = f"the membership failed unexpectedly, please report it: {error!r}"
        self._inbox.put(Failed(GroupError(KafkaError._FAIL, message)))  # noqa: SLF001 - librdkafka's public code

    # --- Requests -----------------------------------------------------------------------------------

    async def _look_up(self, _action: act.LookUpCoordinator) -> None:
        member = self._membership
        try:
            code, message = await self._network.find_coordinator()
        except AccessError as error:
            self._feed(member.coordinator_missing, error.code, str(error))
        except DisconnectedError as error:
            self._log.warning("the group's coordinator could not be looked up: %s", error)
            self._feed(member.coordinator_missing, None, "")
        else:
            if code == ErrorCode.NONE:
                self._feed(member.coordinator_found)
            else:
                refused = verdict(Api.FIND_COORDINATOR, code) is Verdict.REFUSED
                detail = f"the group's coordinator could not be looked up: {message}"
                self._feed(member.coordinator_missing, code if refused else None, detail)

    async def _join(self, action: act.SendJoin) -> None:
        # The coordinator would answer a commit sent behind a parked JoinGroup only after the rebalance.
        await self._commits.drained()
        if not self._membership.awaits(action.attempt):
            return  # given up meanwhile: sent now, it would bring a member back that is about to leave
        try:
            answer = await self._network.join(action.request)
        except DisconnectedError as error:
            self._log.warning("JoinGroup had no answer: %s", error)
            self._feed(self._membership.disconnected, action.attempt)
        else:
            self._log.debug("JoinGroup answered: error %d, generation %d", answer.error, answer.generation)
            self._feed(self._membership.joined, action.attempt, answer)

    async def _plan(self, action: act.Plan) -> None:
        member = self._membership
        try:
            plan = await self._leader.plan(
                action.protocol, action.members, lambda: member.awaits(action.attempt)
            )
        except Exception as error:  # noqa: BLE001 - a user's code; the error goes to who polls
            self._log.exception("the assignor %r failed", action.protocol)
            detail = f"the assignor {action.protocol!r} failed: {type(error).__name__}: {error}"
            self._feed(member.plan_failed, action.attempt, detail)
        else:
            if plan is not None:
                self._feed(member.planned, action.attempt, plan)

    async def _sync(self, action: act.SendSync) -> None:
        try:
            answer = await self._network.sync(action.identity, action.assignments)
        except DisconnectedError as error:
            self._log.warning("SyncGroup had no answer: %s", error)
            self._feed(self._membership.disconnected, action.attempt)
        else:
            self._log.debug("SyncGroup answered: error %d", answer.error)
            self._feed(self._membership.synced, action.attempt, answer)

    async def _fetch_offsets(self, action: act.FetchOffsets) -> None:
        try:
            answer = await self._network.fetch_offsets(action.partitions)
        except DisconnectedError as error:
            self._log.warning("OffsetFetch had no answer: %s", error)
            self._feed(self._membership.disconnected, action.attempt)
        else:
            self._feed(self._membership.offsets_fetched, action.attempt, answer)

    async def _heartbeat(self, action: act.SendHeartbeat) -> None:
        try:
            error = await self._network.heartbeat(action.identity)
        except DisconnectedError as failure:
            self._log.warning("Heartbeat had no answer: %s", failure)
            self._feed(self._membership.heartbeat_unanswered)
        else:
            self._feed(self._membership.heartbeat_answered, action.identity, error)

    async def _leave(self, action: act.SendLeave) -> None:
        await self._commits.drained()
        try:
            error = await self._network.leave(action.identity, action.reason)
        except DisconnectedError as failure:
            self._log.warning("LeaveGroup had no answer: %s", failure)
        else:
            self._log.info("left the group: %s (error %d)", action.reason, error)
        self._feed(self._membership.left, action.attempt)

    async def _refuse(self, action: act.Refuse) -> None:
        error = await explain(action.error, action.detail, self._assignors, self._network)
        self._inbox.put(Failed(error, action.timeline))
