"""Does what the membership asks for: the bridge between the pure state machine and the network.

Everything here runs on the network's loop, except where any thread is allowed. Nothing here refers to the
`Consumer`: one that is dropped without `close` can be collected, and its membership ends with it.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from confluent_kafka import KafkaError

from groupwright.assignors import Assignor, PartitionsByTopic
from groupwright.consumer._coordinator.commit_sender import CommitSender
from groupwright.consumer._coordinator.diagnostics import explain
from groupwright.consumer._coordinator.inbox import Failed, Inbox
from groupwright.consumer._coordinator.leader import Leader
from groupwright.consumer._network.connections import AccessError, Network, Timer
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.commit_queue import WAIT_COORDINATOR, CommitResult
from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.consumer._protocol.events import Assign, Closed
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.membership_state import State
from groupwright.consumer._protocol.model import (
    DisconnectedError,
    ErrorCode,
    OffsetFetchResponse,
    Offsets,
    error_name,
)
from groupwright.consumer._protocol.timers import PollClock
from groupwright.consumer.errors import GroupError

_CLOSED = "the consumer is closed"
_CALL_TIMEOUT = 1.0
"""Seconds that `Driver.call_and_wait` waits for the loop's thread, at most."""


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
        found: Callable[[], None] = lambda: None,
        *,
        cooperative: bool = False,
        session_timeout: float = math.inf,
    ) -> None:
        """Wire the parts; `start` sets them going.

        `found` is called whenever the coordinator was found. Half a `session_timeout` in which the loop's thread could not
        run is logged as a warning.
        """
        self._membership = membership
        self._network = network
        self._assignors = assignors
        self._inbox = inbox
        self._poll_clock = poll_clock
        self._log = log
        self._found = found
        self._leader = Leader(network, assignors, log, cooperative=cooperative)
        self._commits = CommitSender(membership, network, self._feed)
        self._timer: Timer | None = None
        self._session_timeout = session_timeout
        self._due = math.inf
        """When the timer should fire."""
        self._told_of_transaction = False
        self._failures: set[str] = set()
        """Why look-ups of the coordinator failed, as logged since it was last found."""
        self._requests: dict[type, Callable[[Any], Coroutine[Any, Any, None]]] = {
            act.FindCoordinator: self._look_up,
            act.SendJoinGroup: self._join,
            act.PerformAssignment: self._perform_assignment,
            act.FetchMetadata: self._fetch_topics,
            act.SendSyncGroup: self._sync,
            act.FetchOffsets: self._fetch_offsets,
            act.SendHeartbeat: self._heartbeat,
            act.SendOffsetCommits: self._send_commits,
            act.SendLeaveGroup: self._leave,
            act.ReportError: self._report_error,
        }

    # --- From any thread ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the network's thread."""
        self._network.start()

    def call(self, method: Callable[..., list[act.Action]], *args: object) -> None:
        """Feed the membership: ``call(membership.subscribe, topics)`` adds the time by itself."""
        self._network.call_soon(self._feed, method, *args)

    def call_and_wait(
        self, method: Callable[..., list[act.Action]], *args: object, timeout: float = _CALL_TIMEOUT
    ) -> None:
        """Feed the membership, and return once its events are in the inbox, or after `timeout` seconds."""
        done = threading.Event()
        self.call(method, *args)
        self._network.call_soon(done.set)
        done.wait(timeout)

    def commit(self, offsets: Offsets, deadline: float, done: Callable[[CommitResult], None]) -> None:
        """Commit as whatever the member is now; `done` is called once, on the loop, by the deadline or so."""
        self._commits.submit(offsets, deadline, done)

    def repeat(self, look: Callable[[float], float]) -> None:
        """Call `look` on the loop with the time, and again at the time that it returns."""

        def run() -> None:
            self._network.call_at(look(time.monotonic()), run)

        self._network.call_soon(run)

    def stop(self, timeout: float) -> None:
        """End the thread, whatever is under way, and wait at most `timeout` seconds for that."""
        self._network.call_soon(self._network.end)
        self._network.join_thread(timeout)
        self._commits.end(_CLOSED)

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
        self._report_stall(now)
        self._membership.runs(now)
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
        self._due = math.inf
        due = (self._membership.next_tick(now), self._commits.next_deadline)
        times = [when for when in due if when is not None]
        if self._membership.state is not State.UNJOINED:
            times.append(now + self._session_timeout / 4)  # so that a longer silence is one
        if times and not self._membership.closed:
            self._due = min(times)
            self._timer = self._network.call_at(self._due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._commits.expire(time.monotonic())
        self._feed(lambda now: self._membership.tick(now, self._poll_clock.polled(now)))

    def _report_stall(self, now: float) -> None:
        """Warn if the thread did not run for long; what it does first afterwards need not be the tick that is overdue."""
        silent = now - self._due
        if silent > self._session_timeout / 2:
            self._due = math.inf
            self._log.warning(
                "the thread that sends heartbeats did not run for %.1f s, and session.timeout.ms is %.0f: the process was "
                "stopped, or a call into C kept the interpreter's global lock. Release the lock in that call, run it in a "
                "process of its own, or raise session.timeout.ms",
                silent,
                self._session_timeout * 1000,
            )

    def _do(self, action: act.Action) -> None:
        match action:
            case act.DeliverEvent(event):
                if isinstance(event, Assign):
                    self._commits.on_assignment(event.offsets)
                elif isinstance(event, Closed):
                    self._commits.end(_CLOSED)
                    self._network.end()
                self._inbox.put(event)
            case act.WithdrawEvent(ticket):
                if self._inbox.withdraw(ticket):
                    self.call(self._membership.withdrawn, ticket)
            case act.DropConnection():
                self._network.drop_connection()
            case act.NotifyAssignor():
                self._notify_assignor(action)
            case _:
                self._network.spawn(self._guarded(self._requests[type(action)], action))

    def _notify_assignor(self, action: act.NotifyAssignor) -> None:
        assignment = PartitionsByTopic.of_ints(action.assignment)
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
            self._cancel_requests(action)

    def _cancel_requests(self, action: act.Action) -> None:
        """End what a defect has cut short, so that nothing waits for its answer for ever."""
        member = self._membership
        match action:
            case act.FindCoordinator():
                self._feed(member.coordinator_missing, None, "")
            case act.FetchMetadata():
                self._feed(member.topics_missing, None, "")
            case act.SendHeartbeat():
                self._feed(member.heartbeat_unanswered)
            case (
                act.SendJoinGroup()
                | act.PerformAssignment()
                | act.SendSyncGroup()
                | act.FetchOffsets()
                | act.SendOffsetCommits()
                | act.SendLeaveGroup()
            ):
                self._feed(member.broken, action.attempt)

    def _fail(self, error: Exception) -> None:
        """Make a defect of ours an error that the application sees, not a silent stop."""
        self._log.error("the membership failed unexpectedly", exc_info=error)
        message = f"the membership failed unexpectedly, please report it: {error!r}"
        self._inbox.put(Failed(GroupError(KafkaError._FAIL, message)))  # noqa: SLF001 - librdkafka's public code

    # --- Requests -----------------------------------------------------------------------------------

    async def _look_up(self, _action: act.FindCoordinator) -> None:
        member = self._membership
        try:
            code, message = await self._network.find_coordinator()
        except AccessError as error:
            self._commits.refuse(str(error), WAIT_COORDINATOR)
            self._feed(member.coordinator_missing, error.code, str(error))
        except DisconnectedError as error:
            if str(error) not in self._failures:  # an outage brings several failed look-ups a second
                self._failures.add(str(error))
                self._warn("the group's coordinator could not be looked up", error)
            self._feed(member.coordinator_missing, None, "")
        else:
            if code == ErrorCode.NONE:
                if self._failures:
                    self._log.info("the group's coordinator was found")
                    self._failures.clear()
                self._feed(member.coordinator_found)
                self._found()
            else:
                refused = classify(Api.FIND_COORDINATOR, code) is ErrorAction.FATAL
                detail = ": ".join(filter(None, ("FindCoordinator response error", message)))
                if refused:
                    self._commits.refuse(message or error_name(code), WAIT_COORDINATOR)
                self._feed(member.coordinator_missing, code if refused else None, detail)

    def _warn(self, message: str, reason: DisconnectedError) -> None:
        """Log a request that failed, unless it failed because this member ends its connections."""
        if not self._network.ended:
            self._log.warning("%s: %s", message, reason)

    async def _join(self, action: act.SendJoinGroup) -> None:
        # The coordinator would answer a commit sent behind a parked JoinGroup only after the rebalance.
        await self._commits.drained()
        if not self._membership.awaits(action.attempt):
            return  # given up meanwhile: sent now, it would bring a member back that is about to leave
        try:
            answer = await self._network.join(action.request)
        except AccessError as error:
            self._feed(self._membership.denied, action.attempt, error.code, str(error))
        except DisconnectedError as error:
            self._warn("JoinGroup had no answer", error)
            self._feed(self._membership.disconnected, action.attempt)
        else:
            self._log.debug("JoinGroup answered: error %d, generation %d", answer.error, answer.generation)
            self._feed(self._membership.joined, action.attempt, answer)

    async def _perform_assignment(self, action: act.PerformAssignment) -> None:
        member = self._membership
        try:
            assignment = await self._leader.perform_assignment(
                action.protocol,
                action.members,
                lambda: member.awaits(action.attempt),
                generation=member.identity.generation,
                skip=action.skip,
            )
        except AccessError as error:
            self._feed(member.assignment_failed, action.attempt, error.code, str(error))
        except Exception as error:  # noqa: BLE001 - a user's code; the error goes to who polls
            self._log.exception("the assignor %r failed", action.protocol)
            detail = f"the assignor {action.protocol!r} failed: {type(error).__name__}: {error}"
            self._feed(member.assignment_failed, action.attempt, ErrorCode.NONE, detail)
        else:
            if assignment is not None:
                self._feed(member.on_leader_elected, action.attempt, assignment.change)
                self._feed(
                    member.assignment_computed,
                    action.attempt,
                    assignment.assignments,
                    assignment.subscribed,
                    assignment.topics,
                )

    async def _fetch_topics(self, action: act.FetchMetadata) -> None:
        try:
            topics = await self._network.fetch_topics(action.topics)
        except AccessError as error:
            self._log.warning("the topics could not be looked at: %s", error)
            self._feed(self._membership.topics_missing, error.code, str(error))
        except DisconnectedError as error:
            self._warn("the topics' metadata had no answer", error)
            self._feed(self._membership.topics_missing, None, "")
        else:
            self._feed(self._membership.topics_found, topics)

    async def _sync(self, action: act.SendSyncGroup) -> None:
        try:
            answer = await self._network.sync(action.identity, action.assignments)
        except AccessError as error:
            self._feed(self._membership.denied, action.attempt, error.code, str(error))
        except DisconnectedError as error:
            self._warn("SyncGroup had no answer", error)
            self._feed(self._membership.disconnected, action.attempt)
        else:
            self._log.debug("SyncGroup answered: error %d", answer.error)
            if answer.error == ErrorCode.NONE:
                # Not before SyncGroup: the whole group would wait for the leader's statistics.
                leadership = await self._leader.evaluate(action.identity.generation)
                if leadership is not None:
                    self._feed(self._membership.assignment_evaluated, action.attempt, leadership)
            self._feed(self._membership.synced, action.attempt, answer)

    async def _fetch_offsets(self, action: act.FetchOffsets) -> None:
        try:
            answer = await self._network.fetch_offsets(action.partitions)
        except AccessError as error:
            self._feed(self._membership.denied, action.attempt, error.code, str(error))
        except DisconnectedError as error:
            self._warn("OffsetFetch had no answer", error)
            self._feed(self._membership.disconnected, action.attempt)
        else:
            self._notify_open_transaction(answer)
            self._feed(self._membership.offsets_fetched, action.attempt, answer)

    def _notify_open_transaction(self, answer: OffsetFetchResponse) -> None:
        """Say once for each time that an open transaction holds an assignment up: else nobody knows what it waits for."""
        unstable = [key for key, code in answer.errors.items() if code == ErrorCode.UNSTABLE_OFFSET_COMMIT]
        if unstable and not self._told_of_transaction:
            topic, number = unstable[0]
            self._log.warning(
                "%d assigned partitions, such as %s [%d], wait for a transaction that may still change their committed "
                "offsets: it must be committed or aborted, or it ends after its transaction.timeout.ms",
                len(unstable),
                topic,
                number,
            )
        self._told_of_transaction = bool(unstable)

    async def _heartbeat(self, action: act.SendHeartbeat) -> None:
        try:
            error = await self._network.heartbeat(action.identity)
        except DisconnectedError as failure:
            self._warn("Heartbeat had no answer", failure)
            self._feed(self._membership.heartbeat_unanswered)
        else:
            self._feed(self._membership.heartbeat_answered, action.identity, error)

    async def _send_commits(self, action: act.SendOffsetCommits) -> None:
        await self._commits.drained()
        self._feed(self._membership.committed, action.attempt)

    async def _leave(self, action: act.SendLeaveGroup) -> None:
        await self._commits.drained()
        try:
            error = await self._network.leave(action.identity, action.reason)
        except DisconnectedError as failure:
            self._warn("LeaveGroup had no answer", failure)
        else:
            self._log.info("left the group: %s (error %d)", action.reason, error)
        self._feed(self._membership.left, action.attempt)

    async def _report_error(self, action: act.ReportError) -> None:
        self._inbox.put(await explain(action, self._assignors, self._network))
