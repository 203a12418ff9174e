"""Driver: carries out the actions of the pure state machine on the network, and feeds it the replies.

Everything here runs on the network thread, except the methods that any thread may call. Nothing here refers
to the `Consumer`, so that the garbage collector can finalize a consumer that was not closed, which ends its
membership.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from confluent_kafka import KafkaError

from groupwright.assignors import Assignor, PartitionsByTopic
from groupwright.consumer._coordinator.commit_sender import CommitSender
from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._coordinator.diagnostics import application_traceback, explain
from groupwright.consumer._coordinator.inbox import Failed, Inbox
from groupwright.consumer._coordinator.leader import Leader
from groupwright.consumer._coordinator.load_checker import LoadChecker, smoothing
from groupwright.consumer._network.connections import Network, NoBrokerError, RequestRefusedError, Timer
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.commit_queue import WAIT_COORDINATOR, CommitResult
from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.consumer._protocol.events import Assign, Closed
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import (
    DisconnectedError,
    JoinGroupResponse,
    OffsetFetchResponse,
    Offsets,
    SyncGroupResponse,
)
from groupwright.consumer._protocol.timers import PollClock
from groupwright.consumer._protocol.transitions import State
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.consumer.errors import GroupError
from groupwright.core import ErrorCode, error_name

_CLOSED = "the consumer is closed"
_LONG_LOOKUP = 5.0
"""Seconds for which brokers may name no coordinator, or one that cannot be reached, without a warning."""
_CALL_TIMEOUT = 1.0
"""Longest time in seconds for which `Driver.call_and_wait` waits for the network thread."""
_NO_RESPONSE = -1
"""The error code of a LeaveGroup that has no response."""


class _AbandonedError(Exception):
    """The membership has abandoned the step of this request: it is not sent, and gets no reply."""


class Driver:
    """Runs one `Membership` on one `Network`."""

    def __init__(
        self,
        membership: Membership,
        network: Network,
        assignors: Mapping[str, Assignor],
        inbox: Inbox,
        committed: CommittedOffsets,
        poll_clock: PollClock,
        log: logging.LoggerAdapter[logging.Logger],
        on_coordinator_found: Callable[[], None] = lambda: None,
        *,
        cooperative: bool = False,
        session_timeout: float = math.inf,
        load_check_interval: float = math.inf,
        load_check_max_moves: float = math.inf,
    ) -> None:
        """Connect the parts; `start` starts the thread.

        Args:
            membership: The state machine.
            network: The loop, and the requests sent on it.
            assignors: The assignors that the member offers, by name.
            inbox: Receives the events for the application.
            committed: Learns where the partitions of each assignment start.
            poll_clock: The time of the application's last poll.
            log: The consumer's log.
            on_coordinator_found: Called whenever the coordinator was found.
            cooperative: Whether the member rebalances cooperatively (KIP-429).
            session_timeout: In seconds. If the network thread did not run for half of it, a warning is
                logged.
            load_check_interval: Seconds from an assignment by weights, or a check of them, to the next check.
            load_check_max_moves: A check that would move more partitions than this causes no rebalance.
        """
        self._membership = membership
        self._network = network
        self._assignors = assignors
        self._inbox = inbox
        self._poll_clock = poll_clock
        self._log = log
        self._on_coordinator_found = on_coordinator_found
        self._leader = Leader(
            network, assignors, log, cooperative=cooperative, smoothing=smoothing(load_check_interval)
        )
        self._load_checker = LoadChecker(
            self._leader,
            membership,
            network,
            inbox,
            log,
            self._feed,
            interval=load_check_interval,
            max_moves=load_check_max_moves,
        )
        self._committed = committed
        self._commits = CommitSender(membership, network, self._feed, committed)
        self._timer: Timer | None = None
        self._session_timeout = session_timeout
        self._due = math.inf
        """Monotonic time in seconds at which the timer should fire."""
        self._warned_of_transaction = False
        self._drops = 0
        """Connections that the membership had dropped."""
        self._missing_since: float | None = None
        """Monotonic time of the first failed look-up since the coordinator was last found."""
        self._warned_of_missing = False
        self._broker_assigns = False
        """True if the group had no leader when this member last joined it."""
        self._exchanges: dict[type[act.Request], tuple[str, Callable[[Any], Coroutine[Any, Any, Any]]]] = {
            act.FetchMetadata: ("Metadata", lambda action: network.fetch_topics(action.topics)),
            act.SendJoinGroup: ("JoinGroup", self._send_join),
            act.SendSyncGroup: ("SyncGroup", self._send_sync),
            act.FetchOffsets: ("OffsetFetch", self._fetch_offsets),
            act.SendHeartbeat: ("Heartbeat", lambda action: network.heartbeat(action.identity)),
            act.SendOffsetCommits: ("OffsetCommit", lambda _: self._commits.drained()),
            act.SendLeaveGroup: ("LeaveGroup", self._send_leave),
        }
        """For each request, its name in the log and the coroutine that sends it and returns the response."""

    # --- From any thread ----------------------------------------------------------------------------

    def start(self) -> None:
        """Start the network's thread."""
        self._network.start()

    def call(self, method: Callable[..., list[act.Action]], *args: object) -> None:
        """Call an input of the membership on the network thread; it appends the time to `args`."""
        self._network.call_soon(self._feed, method, *args)

    def call_and_wait(
        self, method: Callable[..., list[act.Action]], *args: object, timeout: float = _CALL_TIMEOUT
    ) -> None:
        """Call an input, and wait up to `timeout` seconds until its events are in the inbox."""
        done = Wakeup()
        self.call(method, *args)
        self._network.call_soon(done.notify)
        done.wait(timeout)

    def commit(self, offsets: Offsets, deadline: float, done: Callable[[CommitResult], None]) -> None:
        """Commit with the member's present identity.

        `done` is called once, on the network thread, soon after `deadline` (monotonic seconds) at the latest.
        """
        self._commits.submit(offsets, deadline, done)

    def repeat(self, check: Callable[[float], float]) -> None:
        """Call `check` on the network thread with the monotonic time; it returns when it is called next."""

        def run() -> None:
            self._network.call_at(check(time.monotonic()), run)

        self._network.call_soon(run)

    def stop(self, timeout: float, *, leave: float = 0.0) -> None:
        """End the network thread, and wait up to `timeout` seconds for it.

        If the member has not left the group, it has `leave` seconds for that first.
        """
        if self._network.started:  # else closing the loop would run this too late
            if leave > 0 and not self._membership.closed:
                self.abandon(leave)
            self._network.call_soon(self._network.end)
        try:
            self._network.join_thread(timeout)
        finally:
            self._commits.end(_CLOSED)
        if self._membership.may_be_member:
            self._warn_of_stay("the coordinator did not answer its last requests in time")

    def abandon(self, timeout: float) -> None:
        """Leave the group without a revocation.

        The thread ends when the member has left, or after `timeout` seconds.
        """
        self.call(self._membership.abandon)
        self._network.call_soon(lambda: self._network.call_at(time.monotonic() + timeout, self._network.end))
        self._network.join_thread(timeout)

    # --- Feeding ------------------------------------------------------------------------------------

    def _feed(self, method: Callable[..., list[act.Action]], *args: object) -> None:
        """Call an input of the membership with the time, and carry out the actions that it returns."""
        before = self._membership.state
        # The input and the timer use the same time: work that became due between them would get no timer.
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
        if self._commits.held:
            self._commits.release()

    def _arm_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = math.inf
        due = self._membership.next_tick(now)
        times = [] if due is None else [due]
        if self._membership.state is not State.UNJOINED:
            # Wakes the thread often enough for `_report_stall` to detect that it did not run.
            times.append(now + self._session_timeout / 4)
        if times and not self._membership.closed:
            self._due = min(times)
            self._timer = self._network.call_at(self._due, self._tick)

    def _tick(self) -> None:
        # `_timer` may be a later one already: an input that came first in the same turn has armed it.
        self._feed(lambda now: self._membership.tick(now, self._poll_clock.polled(now)))

    def _report_stall(self, now: float) -> None:
        """Warn if the thread did not run for half a session.

        Called at each input, because the overdue tick need not be the first one after a stall.
        """
        stalled = now - self._due
        if stalled > self._session_timeout / 2:
            self._due = math.inf
            self._log.warning(
                "the thread that sends heartbeats did not run for %.1f s, and session.timeout.ms is %.0f: "
                "the process was stopped, or a call into C held the interpreter's global lock. Release the "
                "lock in that call, run it in a process of its own, or raise session.timeout.ms",
                stalled,
                self._session_timeout * 1000,
            )

    def _do(self, action: act.Action) -> None:
        match action:
            case act.DeliverEvent(event):
                if isinstance(event, Assign):
                    self._committed.on_fetched(event.offsets)
                elif isinstance(event, Closed):
                    self._commits.end(_CLOSED)
                    self._network.end()
                self._inbox.put(event)
            case act.WithdrawEvent(ticket):
                if self._inbox.withdraw(ticket):
                    self.call(self._membership.withdrawn, ticket)
            case act.DropConnection():
                self._drops += 1
                self._network.drop_connection()
            case act.NotifyAssignor():
                self._notify_assignor(action)
            case act.StayInGroup(by_design=True):
                self._log.info(
                    "the member stays in the group: its partitions have no other owner until its session "
                    "ends, session.timeout.ms (%.0f) after its last heartbeat",
                    self._session_timeout * 1000,
                )
            case act.StayInGroup():
                self._warn_of_stay("the coordinator is not known")
            case _:
                self._network.spawn(self._guarded(action))

    def _notify_assignor(self, action: act.NotifyAssignor) -> None:
        assignment = PartitionsByTopic.of_ints(action.assignment)
        try:
            self._assignors[action.protocol].on_assignment(assignment, action.generation)
        except Exception:  # noqa: BLE001 - user code; the membership continues
            self._log.exception(
                "on_assignment of the assignor %r raised; continuing without it", action.protocol
            )

    def _fail(self, error: Exception) -> None:
        """Report a defect of this package to the application, so that the consumer does not stop silently."""
        self._log.error("the membership failed unexpectedly", exc_info=error)
        message = f"the membership failed unexpectedly, please report it: {error!r}"
        self._inbox.put(Failed(GroupError(KafkaError._FAIL, message)))  # noqa: SLF001 - librdkafka's public code

    # --- Requests -----------------------------------------------------------------------------------

    async def _guarded(self, action: act.Action) -> None:
        try:
            match action:
                case act.FindCoordinator():
                    await self._look_up(action)
                case act.PerformAssignment():
                    await self._perform_assignment(action)
                case act.ReportError():
                    self._inbox.put(await explain(action, self._assignors, self._network))
                case act.Request():
                    await self._exchange(action)
        except Exception as error:  # noqa: BLE001 - see `_fail`
            self._fail(error)
            if isinstance(action, act.Request):
                # Otherwise the membership would wait for the reply forever.
                self._reply(action, act.Broken())

    def _reply(self, request: act.Request, reply: act.Reply) -> None:
        self._feed(self._membership.reply, request, reply)

    async def _exchange(self, action: act.Request) -> None:
        """Send a request, and feed the membership the reply that fits the result."""
        name, send = self._exchanges[type(action)]
        drops = self._drops
        try:
            response = await send(action)
        except RequestRefusedError as error:
            if not isinstance(action, act.StepRequest):  # a step's refusal is reported to the application
                self._warn(f"{name} was refused", error)
            self._reply(action, act.Refused(error.code, str(error)))
        except DisconnectedError as error:
            if drops == self._drops:  # else the membership ended it, such as a parked JoinGroup at close
                self._warn(f"{name} had no response", error)
            self._reply(action, act.Disconnected())
        except _AbandonedError:
            pass
        else:
            self._reply(action, act.Answered(response))

    def _warn(self, message: str, reason: DisconnectedError) -> None:
        """Log a request that failed, unless it failed because this member closes its connections."""
        if not self._network.ended:
            self._log.warning("%s: %s", message, reason)

    async def _look_up(self, action: act.FindCoordinator) -> None:
        try:
            code, message = await self._network.find_coordinator()
        except RequestRefusedError as error:
            self._commits.refuse(str(error), WAIT_COORDINATOR)
            self._reply(action, act.Refused(error.code, str(error)))
        except DisconnectedError as error:
            self._warn_of_missing(str(error), at_once=isinstance(error, NoBrokerError))
            self._reply(action, act.Disconnected())
        else:
            if code == ErrorCode.NONE:
                if self._warned_of_missing and self._missing_since is not None:
                    seconds = time.monotonic() - self._missing_since
                    self._log.info("the group's coordinator was found after %.1f s", seconds)
                self._missing_since, self._warned_of_missing = None, False
                self._reply(action, act.Answered())
                self._on_coordinator_found()
            elif classify(Api.FIND_COORDINATOR, code) is ErrorAction.FATAL:
                self._commits.refuse(message or error_name(code), WAIT_COORDINATOR)
                detail = ": ".join(filter(None, ("FindCoordinator response error", message)))
                self._reply(action, act.Refused(code, detail))
            else:
                self._warn_of_missing(self._network.lookup_failures)
                self._reply(action, act.Unavailable())
        self._commits.pump()  # the coordinator is known now, or commits were refused

    def _warn_of_missing(self, reasons: str, *, at_once: bool = False) -> None:
        """Warn once in each outage: at once if no broker answers, else if it lasts.

        For some seconds after a broker's death, others name it as the coordinator.
        """
        now = time.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        lasts = now - self._missing_since > min(_LONG_LOOKUP, self._session_timeout / 3)
        if (at_once or lasts) and not self._warned_of_missing and not self._network.ended:
            self._warned_of_missing = True
            self._log.warning("the group's coordinator could not be looked up: %s", reasons)

    async def _send_join(self, action: act.SendJoinGroup) -> JoinGroupResponse:
        self._poll_clock.calm_until = 0.0
        if not self._commits.idle:
            # The coordinator would respond to a commit behind a parked JoinGroup only after the rebalance.
            self._feed(self._membership.join_waits, action.attempt)
            await self._commits.drained()
            self._feed(self._membership.join_sent, action.attempt)
        if not self._membership.awaits(action):
            raise _AbandonedError  # JoinGroup would add a member again that is about to leave
        response = await self._network.join(action.request)
        self._log.debug("JoinGroup answered: error %d, generation %d", response.error, response.generation)
        if response.error == ErrorCode.NONE:
            self._tell_who_assigns(response)
        return response

    def _tell_who_assigns(self, response: JoinGroupResponse) -> None:
        """Log once that the broker assigns now instead of a leader, and once that a leader does again."""
        if not response.leader and not self._broker_assigns:
            self._log.warning(
                "the broker assigns the partitions of this group now, since it has members with "
                "group.protocol=consumer (KIP-848): the assignor %r is not called until they have left",
                response.protocol,
            )
        elif self._broker_assigns and response.leader:
            self._log.info("the group has a leader again, which assigns by %r", response.protocol)
        self._broker_assigns = not response.leader

    async def _perform_assignment(self, action: act.PerformAssignment) -> None:
        member = self._membership
        try:
            assignment = await self._leader.perform_assignment(
                action.protocol,
                action.members,
                lambda: member.awaits(action),
                generation=member.identity.generation,
                skip=action.skip,
            )
        except RequestRefusedError as error:
            self._reply(action, act.Refused(error.code, str(error)))
        except Exception as error:  # noqa: BLE001 - user code; `poll` raises the error
            raised = (type(error), error, application_traceback(error))
            self._log.error("the assignor %r failed", action.protocol, exc_info=raised)
            detail = f"the assignor {action.protocol!r} failed: {type(error).__name__}: {error}"
            self._reply(action, act.Refused(ErrorCode.NONE, detail))
        else:
            if assignment is not None:
                self._reply(action, act.Answered(assignment))

    async def _send_sync(self, action: act.SendSyncGroup) -> SyncGroupResponse:
        assignments = {} if action.assignment is None else action.assignment.assignments
        response = await self._network.sync(action.identity, assignments)
        self._log.debug("SyncGroup answered: error %d", response.error)
        if response.error == ErrorCode.NONE:
            # After SyncGroup, since the whole group waits for that. Before the reply, which ends the step
            # that the measurements belong to.
            self._load_checker.schedule(action.identity.generation)
            leadership = await self._leader.evaluate(action.identity.generation)
            if leadership is not None:
                self._feed(self._membership.assignment_evaluated, action.attempt, leadership)
        return response

    async def _fetch_offsets(self, action: act.FetchOffsets) -> OffsetFetchResponse:
        response = await self._network.fetch_offsets(action.partitions)
        self._warn_of_open_transaction(response)
        return response

    def _warn_of_open_transaction(self, response: OffsetFetchResponse) -> None:
        """Warn that an assignment waits for an open transaction, once for each assignment."""
        unstable = [key for key, code in response.errors.items() if code == ErrorCode.UNSTABLE_OFFSET_COMMIT]
        if unstable and not self._warned_of_transaction:
            topic, number = unstable[0]
            self._log.warning(
                "%d assigned partitions, such as %s [%d], wait for an open transaction that may change their "
                "committed offsets: commit or abort it, or it ends after its transaction.timeout.ms",
                len(unstable),
                topic,
                number,
            )
        self._warned_of_transaction = bool(unstable)

    async def _send_leave(self, action: act.SendLeaveGroup) -> int:
        await self._commits.drained()
        try:
            error = await self._network.leave(action.identity, action.reason)
        except (DisconnectedError, RequestRefusedError) as failure:
            if not self._network.ended:
                self._warn_of_stay(f"LeaveGroup had no response: {failure}")
            return _NO_RESPONSE
        if error in {ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID}:
            self._log.info("left the group: %s", action.reason)
        elif action.attempt and classify(Api.LEAVE_GROUP, error) is not ErrorAction.NONE:
            self._log.info("LeaveGroup was answered with %s, and is sent again", error_name(error))
        else:
            self._warn_of_stay(f"LeaveGroup was answered with {error_name(error)}")
        return error

    def _warn_of_stay(self, reason: str) -> None:
        """Warn that the member has not left the group, although its consumer is closed or unsubscribed."""
        self._log.warning(
            "the member could not leave the group: %s. Unless the coordinator has removed it, its partitions "
            "have no owner until its session ends, session.timeout.ms (%.0f) after its last heartbeat",
            reason,
            self._session_timeout * 1000,
        )
