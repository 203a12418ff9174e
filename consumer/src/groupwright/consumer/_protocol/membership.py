"""The client side of the classic group protocol: a state machine without I/O, clock or threads.

Every input is a method that takes the time and returns `Action`s for the driver. One of them is `reply`: the
table in `_handle_reply` says what the reply to each request does. An input updates `MembershipState`
(`facts`). `Membership._advance` then derives the next actions from the whole state, so no order of inputs is
a special case. `error_policy` says what an error code leads to.

An eager member revokes all its partitions before JoinGroup. A cooperative member (KIP-429) keeps its
partitions and claims them in JoinGroup; it compares SyncGroup's assignment with them, revokes those that are
missing and adds the new ones. After a revocation it joins again at once, so that other members are
assigned the revoked partitions. A round is one JoinGroup and SyncGroup: a rebalance may take two, and is
complete when a round revokes nothing.

Sources: KIP-62, KIP-345, KIP-394, KIP-429, KIP-559, KIP-792, KIP-800, KIP-814; Kafka's AbstractCoordinator
and ConsumerCoordinator.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from groupwright.assignors import MalformedBytesError
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.consumer._protocol.events import Assign, Closed, MaxPollExceeded, Revoke, TopicUnavailable
from groupwright.consumer._protocol.membership_state import Incoming, MembershipState
from groupwright.consumer._protocol.model import (
    PROTOCOL_TYPE,
    UNREADABLE,
    GroupMembershipOperation,
    JoinGroupPayload,
    JoinGroupResponse,
    MemberIdentity,
    MetadataResponse,
    Offset,
    OffsetFetchResponse,
    SyncGroupResponse,
    without,
)
from groupwright.consumer._protocol.subscription import TopicSubscription
from groupwright.consumer._protocol.timeline import GROUP_REBALANCING, Timeline
from groupwright.consumer._protocol.timers import Backoff, CoordinatorLookup, Heartbeat, Jitter, Timing
from groupwright.consumer._protocol.topic_monitor import TopicErrors, TopicMonitor
from groupwright.consumer._protocol.transitions import PARKED, ROUND, Cause, Lifecycle, State, Step
from groupwright.core import ErrorCode, Leadership, Partitions, Phase, TopicPartitionKey, error_name

ROUND_TIMEOUT = 3.0
"""Longest time in seconds for which a member that leaves waits for the end of its round. The other members
join after their next heartbeat, which is due every 3 s by default."""

SubscriptionEncoder = Callable[[tuple[str, ...], Partitions, int], tuple[tuple[str, bytes], ...]]
"""(topics, owned partitions, generation) -> (assignor's name, subscription bytes), by preference."""


class Membership:
    """One consumer's membership in one group. Not thread-safe: all inputs come from the network thread."""

    def __init__(
        self,
        timing: Timing,
        encode_subscription: SubscriptionEncoder,
        decode_assignment: Callable[[bytes], Partitions],
        *,
        cooperative: bool = False,
        static: bool = False,
        racks: bool = False,
        jitter: Jitter = random.random,
    ) -> None:
        """Start outside any group.

        Args:
            timing: The member's intervals and timeouts.
            encode_subscription: Returns JoinGroup's list of assignors with their subscription bytes.
            decode_assignment: Decodes SyncGroup's assignment; may raise `MalformedBytesError`.
            cooperative: Whether the member keeps its partitions while it rebalances (KIP-429).
            static: Whether it has a ``group.instance.id``. Closing does not make it leave then (KIP-345).
            racks: Whether it has a ``client.rack``, so that it monitors the racks of replicas as leader
                (KIP-881).
            jitter: Returns a random number in [0, 1) for each backoff.
        """
        self.facts = MembershipState(cooperative, static)
        self.coordinator = CoordinatorLookup(timing, jitter)
        self.timing = timing
        """The member's intervals and timeouts."""
        self._encode_subscription = encode_subscription
        self._decode_assignment = decode_assignment
        self._heartbeat = Heartbeat(timing)
        self._topic_monitor = TopicMonitor(timing, jitter, racks=racks)
        self._topic_errors = TopicErrors()
        self._backoff = Backoff(timing, jitter)
        self._failure_backoff = Backoff(timing, jitter)
        """Pauses after errors that are reported to the application; reset once an assignment is received.

        Where an assignor or its result fails, each attempt rebalances the whole group.
        """
        self._out: list[act.Action] = []

    # --- State for other modules; any thread may read it --------------------------------------------

    @property
    def state(self) -> State:
        """The member's state in the group protocol."""
        return self.facts.state

    @property
    def identity(self) -> MemberIdentity:
        """The generation, the member id and the assignor."""
        return self.facts.identity

    @property
    def subscription(self) -> tuple[str, ...] | None:
        """The subscribed topics that were available in the last metadata; None without a subscription."""
        return self.facts.subscription

    @property
    def owned(self) -> Partitions:
        """The partitions that the application owns."""
        return self.facts.owned

    @property
    def may_be_member(self) -> bool:
        """True if the coordinator may count this as a member: no LeaveGroup was answered since it joined."""
        return self.facts.identity.valid or self.facts.step is Step.LEAVE

    @property
    def closed(self) -> bool:
        """True if the membership is over."""
        return self.facts.closed

    @property
    def fenced(self) -> int:
        """Number of times that another member took this member's ``group.instance.id``."""
        return self.facts.fenced

    @property
    def max_poll_exceeded(self) -> int:
        """Number of times that the application exceeded ``max.poll.interval.ms``."""
        return self.facts.max_poll_exceeded

    @property
    def calm_until(self) -> float:
        """Time of the next heartbeat, whose response may begin a rebalance; 0 while either is under way.

        Infinite in no group.
        """
        facts = self.facts
        if facts.step is not Step.IDLE or facts.rejoin_reason is not None or facts.leaving:
            return 0.0
        if facts.state is State.STABLE:
            return self._heartbeat.silent_until
        return math.inf if facts.subscription is None else 0.0

    @property
    def keeps_partitions(self) -> bool:
        """True if partitions stay owned during a rebalance."""
        return self.facts.keeps_partitions

    @property
    def commits_wait(self) -> bool:
        """True if a commit may wait for the end of the round, to be sent in the new generation."""
        return self.facts.commits_wait

    @property
    def lookup_refused(self) -> bool:
        """True if the last FindCoordinator was refused, such as for wrong credentials."""
        return self.facts.refused_lookup is not None

    @property
    def has_lost_partitions(self) -> bool:
        """True if partitions are lost, and the application has not applied that yet."""
        return self.facts.has_lost_partitions

    @property
    def owned_until(self) -> float:
        """Time until which the partitions are certainly owned; each heartbeat's response extends it."""
        if not self.facts.owned:
            return math.inf
        return 0.0 if self.has_lost_partitions else self.session_until

    @property
    def session_until(self) -> float:
        """Time until which the coordinator keeps this member; each heartbeat's response extends it."""
        if self.facts.session_runs:
            return self._heartbeat.session_ends
        # The coordinator does not remove a member whose request is parked, but the session starts with its
        # response, which may not have been read yet.
        return self._heartbeat.unread_session_ends if self.facts.parked else math.inf

    def commit_identity(self) -> MemberIdentity | ErrorCode:
        """Return the identity for a commit, or the error code with which a commit fails now."""
        return self.facts.commit_identity()

    def awaits(self, request: act.StepRequest) -> bool:
        """Return whether this is the step under way: it has not ended, and was not abandoned."""
        return self._is_waiting_for(request.step, request.attempt)

    # --- Inputs: the application --------------------------------------------------------------------

    def subscribe(self, subscription: TopicSubscription, now: float) -> list[act.Action]:
        """Subscribe to these topics; an eager member rebalances even if they are the same as before."""
        facts = self.facts
        again = subscription == facts.topic_subscription
        if not facts.closing and not (again and facts.cooperative):
            first = facts.subscription is None
            facts.was_assigned = facts.was_assigned and not first
            facts.topic_subscription = subscription
            facts.subscription = subscription.among(self._topic_monitor.seen, facts.subscription or ())
            self._topic_monitor.subscribed(now)
            if not again:
                self._topic_errors.subscribed()
            self._request_rejoin("the consumer subscribed" if first else "the subscription changed", now)
        return self._advance(now)

    def unsubscribe(self, now: float) -> list[act.Action]:
        """Revoke all partitions and leave the group."""
        self._start_leaving(Cause.UNSUBSCRIBE, ROUND_TIMEOUT, now)
        return self._advance(now)

    def enforce_rebalance(self, reason: str, now: float) -> list[act.Action]:
        """Join again for this reason (KIP-568, KIP-800); nothing happens outside a group."""
        if self.facts.subscription is not None:
            self._request_rejoin(reason, now)
        return self._advance(now)

    def close(
        self,
        now: float,
        *,
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
        round_timeout: float = ROUND_TIMEOUT,
    ) -> list[act.Action]:
        """Revoke all partitions, end the membership, and deliver `Closed`.

        `operation` says whether the member leaves the group, or stays until its session expires. A
        cooperative member first finishes the round under way, for `round_timeout` seconds at most.
        """
        self.facts.operation = operation
        self._start_leaving(Cause.CLOSE, round_timeout, now)
        return self._advance(now)

    def abandon(self, now: float) -> list[act.Action]:
        """Leave without a revocation: the consumer was garbage-collected, or `close` was cut short."""
        self.facts.owned = {}
        if self.facts.step is Step.APPLICATION:
            self._end_step()
        return self.close(now, operation=self.facts.operation)

    def taken(self, ticket: int, now: float) -> list[act.Action]:
        """Reply that the application has taken the assignment of this ticket.

        If an exception prevents its being applied, the application must poll all the same.
        """
        if self._is_waiting_for(Step.APPLICATION, ticket):
            self.facts.was_assigned = True
            self.facts.last_generation = self.facts.owned_since
        return self._advance(now)

    def applied(self, ticket: int, now: float) -> list[act.Action]:
        """Reply that the application has applied the event of this ticket, callbacks included."""
        facts = self.facts
        if self._is_waiting_for(Step.APPLICATION, ticket):
            phase = Phase.ASSIGN
            if isinstance(facts.event, Assign):
                facts.owned = facts.event.owned
            elif facts.event is not None:
                facts.owned = without(facts.owned, facts.event.partitions)
                phase = Phase.REVOKE
            if facts.timeline is not None:
                facts.timeline.end(phase, now)
            self._end_step()
        return self._advance(now)

    def withdrawn(self, ticket: int, now: float) -> list[act.Action]:
        """Reply that the application never saw the event of this ticket."""
        facts = self.facts
        if self._is_waiting_for(Step.APPLICATION, ticket):
            if isinstance(facts.event, Assign):
                facts.revoke_due = False
                facts.timeline = facts.timeline or facts.event.timeline
            else:
                facts.revoke_due = True
            self._end_step()
        return self._advance(now)

    def resume(self, now: float) -> list[act.Action]:
        """Join again: the application polls, and has received the error."""
        self.facts.awaits_poll = False
        return self._advance(now)

    def assigned_by_hand(self, now: float) -> list[act.Action]:
        """Record that the application called `assign` without a subscription.

        It commits without a generation.
        """
        self.facts.last_generation = -1
        return self._advance(now)

    def want_coordinator(self, now: float) -> list[act.Action]:
        """Look the coordinator up even without a subscription, because a commit waits."""
        self.facts.wants_coordinator = True
        return self._advance(now)

    # --- Inputs: time -------------------------------------------------------------------------------

    def runs(self, now: float) -> None:
        """Record that the network thread runs; to be called before each input."""
        self._heartbeat.runs(now)

    def tick(self, now: float, last_poll: float) -> list[act.Action]:
        """Handle timeouts that have passed; `last_poll` is when the application last polled."""
        self.facts.last_poll = max(self.facts.last_poll, last_poll)
        self._check_timeouts(now)
        return self._advance(now)

    def _check_timeouts(self, now: float) -> None:
        facts = self.facts
        if facts.must_poll and now >= self._poll_deadline:
            self._leave_for_max_poll_exceeded(now)
        if facts.session_runs and now >= self._heartbeat.session_ends:
            # The coordinator has removed the member by now, or is about to.
            self._lose_coordinator(now)
            self._lose_generation(
                MemberIdentity(member_id=facts.identity.member_id),
                f"no heartbeat was answered for {self.timing.session_timeout:.0f} s",
                now,
            )

    def next_tick(self, now: float) -> float | None:
        """Return when `tick` should come next at the latest, or None if nothing waits for the time."""
        facts = self.facts
        timeouts = []
        if facts.must_poll:
            timeouts.append(self._poll_deadline)
        if facts.session_runs:
            timeouts.append(self._heartbeat.session_ends)
        scheduled = []
        if facts.may_heartbeat and self.coordinator.known:
            scheduled.append(self._heartbeat.due_at)
        if facts.needs_coordinator and self.coordinator.needs_lookup:
            scheduled.append(self.coordinator.next_at)
        if facts.monitors_topics and self.coordinator.known:
            scheduled.append(self._topic_monitor.next_at)
        if facts.rejoin_reason is not None and facts.needs_metadata:
            scheduled.append(self._topic_monitor.retry_at)
        if facts.rejoin_reason is not None or facts.step in {Step.OFFSETS, Step.LEAVE}:
            scheduled.append(facts.retry_at)
        if facts.leaving and facts.step in ROUND:
            scheduled.append(facts.leave_at)
        # A timeout that has passed still needs a `tick`. Scheduled work that is due waits for something other
        # than the time, or `_advance` would have done it.
        times = timeouts + [time for time in scheduled if now < time < math.inf]
        return None if facts.closed or not times else max(now, min(times))

    @property
    def _poll_deadline(self) -> float:
        return self.facts.last_poll + self.timing.max_poll_interval

    def _leave_for_max_poll_exceeded(self, now: float) -> None:
        facts = self.facts
        facts.max_poll_exceeded += 1
        limit = self.timing.max_poll_interval
        message = (
            f"the application did not poll for {now - facts.last_poll:.1f} s, which is more than "
            f"max.poll.interval.ms ({limit * 1000:.0f}); the consumer left the group and now joins it again. "
            "Process fewer messages between polls, or raise max.poll.interval.ms"
        )
        self._out.append(act.DeliverEvent(MaxPollExceeded(message)))
        if facts.step is Step.SYNC:
            self._out.append(act.DropConnection())
        if not facts.static and self.coordinator.known:
            self._out.append(act.SendLeaveGroup(0, facts.identity, "the application stopped polling"))
        facts.awaits_poll = True
        facts.was_assigned = False
        self._lose_generation(MemberIdentity(), "the application polls again after max.poll.interval.ms", now)

    # --- Inputs: replies ----------------------------------------------------------------------------

    def reply(self, request: act.Request, reply: act.Reply, now: float) -> list[act.Action]:
        """Handle the reply to a request; each request has one.

        A reply to a step that has ended or was abandoned changes nothing.
        """
        if not isinstance(request, act.StepRequest) or self.awaits(request):
            self._handle_reply(request, reply, now)
        return self._advance(now)

    def _handle_reply(self, request: act.Request, reply: act.Reply, now: float) -> None:  # noqa: C901, PLR0912 - a table
        """Do what this table says. After it, `_advance` derives the next actions.

        Without a response the identity is kept: the coordinator may still know it.
        """
        match request, reply:
            case act.FindCoordinator(), act.Answered():
                self._use_coordinator(now)
            case act.FindCoordinator(), act.Unavailable():
                self.coordinator.missing(now, answered=True)
            case act.FindCoordinator(), act.Refused(error, detail):
                self._report_refused_lookup(error, detail, now)
            case act.FindCoordinator(), _:
                self.coordinator.missing(now)

            case act.FetchMetadata(), act.Answered(response):
                self._update_topics(response, now)
            case act.FetchMetadata(), act.Refused(error, detail):
                self._topic_monitor.missing(now)
                self._report_refused_metadata(error, detail, now)
            case act.FetchMetadata(), _:
                self._topic_monitor.missing(now)

            case act.SendHeartbeat(identity), act.Answered(error):
                self._receive_heartbeat(identity, error, now)
            case act.SendHeartbeat(), _:
                self._heartbeat.unanswered()
                self._lose_coordinator(now)

            case act.SendJoinGroup(), act.Answered(response):
                self._receive_join(response, now)
            case act.PerformAssignment(), act.Answered(assignment):
                self._send_assignment(assignment, now)
            case act.SendSyncGroup(assignment=sent), act.Answered(response):
                self._receive_sync(response, sent, now)
            case act.FetchOffsets(), act.Answered(response):
                self._receive_offsets(response, now)
            case act.SendJoinGroup() | act.SendSyncGroup(), act.Disconnected():
                if self.facts.parked:
                    # Until now, the coordinator did not remove the member.
                    self._heartbeat.start_session(now)
                self._end_step()
                self._lose_coordinator(now)
            case act.FetchOffsets(), act.Disconnected():
                self._request_another_round(now)
                self._lose_coordinator(now)

            case act.SendLeaveGroup(), act.Answered(error):
                self._receive_leave(error, now)
            case act.SendOffsetCommits() | act.SendLeaveGroup(), _:
                self._end_step()

            # What is left is of JoinGroup, the leader's assignment, SyncGroup, or OffsetFetch.
            case _, act.Refused(error, detail):
                self._end_step()
                self._report_error(error, detail, now)
            case _:
                self._end_step()
                self._block_joining(now)

    # --- Inputs: the leader, and commits ------------------------------------------------------------

    def join_waits(self, attempt: int, now: float) -> list[act.Action]:
        """Record that JoinGroup is sent once the commits in flight have ended, each perhaps after retries.

        Meanwhile heartbeats go on, and the session can expire.
        """
        if self._is_waiting_for(Step.JOIN, attempt):
            self.facts.commits_first = attempt
        return self._advance(now)

    def join_sent(self, attempt: int, now: float) -> list[act.Action]:
        """Record that JoinGroup is sent now, after the commits; without a coordinator, it is not."""
        if self._is_waiting_for(Step.JOIN, attempt) and self.coordinator.known:
            self.facts.commits_first = 0
            self._heartbeat.request_sent()
        return self._advance(now)

    def assignment_evaluated(self, attempt: int, leadership: Leadership, now: float) -> list[act.Action]:
        """Record the quality of the assignment that this member made as the leader."""
        if self._is_waiting_for(Step.SYNC, attempt):
            self._timeline_at(now).assignment_evaluated(leadership)
        return self._advance(now)

    def commit_answered(self, identity: MemberIdentity, error: int, now: float) -> list[act.Action]:
        """Handle a commit's error code as far as it concerns the membership."""
        if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._topic_monitor.schedule(now)
        if classify(Api.OFFSET_COMMIT, error) is ErrorAction.REDISCOVER:
            # In any step: JoinGroup may wait for this very commit, and no other response would tell.
            self._lose_coordinator(now)
        elif identity == self.facts.identity and identity.valid:
            self._handle_async_error(Api.OFFSET_COMMIT, error, now)
        return self._advance(now)

    def commit_unanswered(self, now: float) -> list[act.Action]:
        """Record that a commit's connection was lost."""
        self._lose_coordinator(now)
        return self._advance(now)

    # --- The coordinator ----------------------------------------------------------------------------

    def _use_coordinator(self, now: float) -> None:
        """Take up the coordinator, which is known and connected."""
        self.coordinator.found()
        self.facts.refused_lookup = None
        # Not before the retry backoff: otherwise a broker that FindCoordinator names, and that responds with
        # NOT_COORDINATOR, would get requests in a loop.
        self._heartbeat.schedule(max(now, self.facts.retry_at))

    def _report_refused_lookup(self, error: int, detail: str, now: float) -> None:
        """Report the refusal once, until the coordinator is found or the error differs, as in librdkafka."""
        facts = self.facts
        self.coordinator.missing(now)
        # Too many attempts with a wrong password may lock the user out.
        self.coordinator.next_at = max(self.coordinator.next_at, now + self.timing.retry_backoff_max)
        repeated, facts.refused_lookup = error == facts.refused_lookup, error
        facts.wants_coordinator = False
        if facts.state is State.STABLE and facts.rejoin_reason is None:
            # The member owns its partitions until the session expires. FindCoordinator is retried after the
            # next poll.
            facts.awaits_poll = True
            self._out.append(act.ReportError(error, detail, None, repeated))
        else:
            self._report_error(error, detail, now, repeated=repeated)

    # --- Topics -------------------------------------------------------------------------------------

    def _update_topics(self, response: MetadataResponse, now: float) -> None:
        """Take metadata of the subscribed topics; in the leader, of the group's, too."""
        facts = self.facts
        self._topic_monitor.found(response, now)
        if facts.topic_subscription is not None:
            if self._topic_monitor.covers(facts.topic_subscription):
                self._update_subscription(facts.topic_subscription, now)
            else:
                self._topic_monitor.subscribed(now)  # the metadata is that of an earlier subscription
        if self._rejoins_on_topic_changes:
            change = self._topic_monitor.change()
            if change is not None:
                self._request_rejoin(change, now)

    def _report_refused_metadata(self, error: int, detail: str, now: float) -> None:
        if self.facts.rejoin_reason is not None and self.facts.step is Step.IDLE:
            self._report_error(error, detail, now)

    @property
    def _rejoins_on_topic_changes(self) -> bool:
        facts = self.facts
        stays = facts.state is State.STABLE and facts.rejoin_reason is None and not facts.leaving
        return stays and (facts.matches_topics or self._topic_monitor.group_subscription is not None)

    def _update_subscription(self, subscription: TopicSubscription, now: float) -> None:
        facts = self.facts
        for topic, error in self._topic_errors.found(subscription, self._topic_monitor.seen):
            self._out.append(act.DeliverEvent(TopicUnavailable(topic, error)))
        topics = subscription.among(self._topic_monitor.seen, facts.subscription or ())
        if topics != facts.subscription:
            facts.subscription = topics
            self._request_rejoin("other topics of the subscription are available now", now)

    # --- Advancing ----------------------------------------------------------------------------------

    def _advance(self, now: float) -> list[act.Action]:
        """Return the actions that follow from the state after an input."""
        facts = self.facts
        if facts.closed:
            self._out.clear()  # late responses have no effect on a member that has left
        else:
            if facts.needs_coordinator and self.coordinator.start(now):
                self._out.append(act.FindCoordinator())
            if facts.may_heartbeat and self.coordinator.known and self._heartbeat.due(now):
                self._heartbeat.sent(now)
                self._out.append(act.SendHeartbeat(facts.identity))
            if facts.monitors_topics and self.coordinator.known and now >= self._topic_monitor.next_at:
                self._fetch_metadata(now)
            if facts.leaves_again:
                self._leave_again(now)
            self._start_next_step(now)
        self.coordinator.count(now, needed=facts.needs_coordinator and not facts.closed)
        out, self._out = self._out, []
        return out

    def _start_next_step(self, now: float) -> None:
        facts = self.facts
        if facts.step is Step.OFFSETS:
            if facts.rejoin_reason is not None:
                self._end_step()  # the assignment was never delivered, so there is nothing to revoke
            elif facts.retry_at and now >= facts.retry_at and self.coordinator.known:
                self._fetch_offsets()
        if facts.leaving and facts.step in ROUND and not self._waits_for_round(now):
            self._abandon_round(now)
        if facts.leaving and facts.step is Step.IDLE:
            self._leave(now)
        if facts.step is not Step.IDLE or facts.leaving:
            return
        if facts.rejoin_reason is not None or facts.fenced:
            facts.incoming = None
            if not self._prepare_join(now):
                self._join(now)
        elif facts.incoming is not None:
            self._add_partitions(facts.incoming, now)

    def _fetch_metadata(self, now: float) -> None:
        facts = self.facts
        own = facts.topic_subscription.names if facts.topic_subscription is not None else frozenset()
        group = self._topic_monitor.group_subscription or own
        wanted = None if facts.matches_topics else tuple(sorted(own | group))
        if self._topic_monitor.start(wanted, now):
            self._out.append(act.FetchMetadata(wanted))

    # --- Steps --------------------------------------------------------------------------------------

    def _is_waiting_for(self, step: Step, attempt: int) -> bool:
        return self.facts.step is step and self.facts.attempt == attempt

    def _start_step(self, cause: Cause) -> None:
        self.facts.move(cause)
        self.facts.attempt += 1
        if self.facts.step in PARKED:
            self._heartbeat.request_sent()

    def _end_step(self) -> None:
        self.facts.event = None
        self.facts.move(Cause.STEP_ENDED)

    def _abandon_step(self) -> None:
        """Ignore the reply of the step under way.

        An event is withdrawn, unless the application has taken it.
        """
        facts = self.facts
        facts.incoming = None
        if facts.step is Step.APPLICATION:
            self._out.append(act.WithdrawEvent(facts.attempt))
        elif facts.step is not Step.IDLE:
            facts.move(Cause.STEP_ABANDONED)

    def _deliver(self, event: Assign | Revoke) -> None:
        self._start_step(Cause.DELIVER_EVENT)
        self.facts.event = event
        self._out.append(act.DeliverEvent(event))

    def _deliver_revoke(self, partitions: Partitions, *, lost: bool = False) -> None:
        facts = self.facts
        self._deliver(Revoke(facts.attempt + 1, partitions, lost, facts.identity, facts.cooperative))

    # --- Heartbeats ---------------------------------------------------------------------------------

    def _receive_heartbeat(self, identity: MemberIdentity, error: int, now: float) -> None:
        """Take Heartbeat's response. The error of a former identity counts as a response alone."""
        same = identity == self.facts.identity
        # A former identity's heartbeat was sent before the present session started, so it extends nothing.
        alive = not same or error in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
        self._heartbeat.answered(now, alive=alive)
        if alive:
            self._backoff.reset()
        if same:
            self._handle_async_error(Api.HEARTBEAT, error, now)

    # --- Joining ------------------------------------------------------------------------------------

    def _prepare_join(self, now: float) -> bool:
        """Deliver the revocation that must precede JoinGroup; return whether there is one.

        Java's `ConsumerCoordinator.onJoinPrepare`.
        """
        facts = self.facts
        revoke_due, facts.revoke_due = facts.revoke_due, False
        lost = facts.has_lost_partitions
        if facts.cooperative and not lost:
            # As in librdkafka: partitions of topics that this client is no longer authorized to describe are
            # revoked first, and as lost, since no commit of them can succeed.
            unauthorized = self._unauthorized()
            partitions = unauthorized or self._unsubscribed()
            due, lost = bool(partitions), bool(unauthorized)
        else:
            partitions = facts.owned
            # In its generation an eager member revokes even when it owns nothing, so that every on_assign has
            # its on_revoke.
            due = lost or (revoke_due and facts.identity.valid)
        if due:
            timeline = self._timeline_at(now)
            timeline.lost |= facts.has_lost_partitions
            timeline.begin(Phase.REVOKE, now)
            self._deliver_revoke(partitions, lost=lost)
        return due

    def _unsubscribed(self) -> Partitions:
        subscription = self.facts.topic_subscription
        return {
            topic: numbers
            for topic, numbers in self.facts.owned.items()
            if subscription is None or not subscription.covers(topic)
        }

    def _unauthorized(self) -> Partitions:
        """Return the owned partitions of topics that this client is no longer authorized to describe."""
        topics = self._topic_monitor.seen.unauthorized
        return {topic: numbers for topic, numbers in self.facts.owned.items() if topic in topics}

    def _join(self, now: float) -> None:
        facts = self.facts
        if facts.subscription is None or facts.awaits_poll or facts.fenced:
            return
        if not self.coordinator.known or now < facts.retry_at:
            return
        if facts.needs_metadata and not self._topic_monitor.is_fresh(now):
            # Otherwise each member would request its own rebalance when its metadata has a new topic
            # (KAFKA-7126).
            self._fetch_metadata(now)
            return
        self._timeline_at(now).begin(Phase.JOIN, now)
        facts.joined_subscription = facts.subscription
        # Claims are as old as the assignment that they come from. With the number of a generation that this
        # member joined without receiving an assignment, they would look newer than those of the members that
        # were assigned its partitions (KAFKA-14639).
        generation = facts.owned_since if facts.owned else facts.identity.generation
        protocols = self._encode_subscription(facts.subscription, facts.owned, generation)
        self._start_step(Cause.SEND_JOIN_GROUP)
        request = JoinGroupPayload(facts.identity.member_id, protocols, facts.rejoin_reason or "")
        self._out.append(act.SendJoinGroup(facts.attempt, request))

    def _receive_join(self, response: JoinGroupResponse, now: float) -> None:
        self._end_step()
        self._heartbeat.start_session(now)
        if now >= self.session_until:
            # The response came while the process was stopped, and its session is over: other members may own
            # the partitions that were kept. The generation has ended.
            self._check_timeouts(now)
        elif response.error == ErrorCode.MEMBER_ID_REQUIRED:
            # KIP-394: the id comes before the member is added, so that a lost response leaves no member
            # behind that no consumer continues.
            self.facts.identity = MemberIdentity(member_id=response.member_id)
        elif response.error != ErrorCode.NONE:
            self._handle_error(Api.JOIN_GROUP, response.error, now)
        elif self._accepts_protocol_type(response.protocol_type, now):
            self._enter_generation(response, now)

    def _enter_generation(self, response: JoinGroupResponse, now: float) -> None:
        facts = self.facts
        facts.identity = MemberIdentity(response.generation, response.member_id, response.protocol)
        facts.move(Cause.GENERATION_JOINED)
        # The wait for other members does not count towards max.poll.interval.ms.
        facts.last_poll = max(facts.last_poll, now)
        timeline = self._timeline_at(now)
        timeline.end(Phase.JOIN, now)
        timeline.begin(Phase.SYNC, now)
        timeline.assigned_by_broker = not response.leader
        if response.leader == response.member_id:
            self._start_step(Cause.ELECTED_LEADER)
            self._out.append(
                act.PerformAssignment(
                    facts.attempt, response.protocol or "", response.members, response.skip_assignment
                )
            )
        else:
            self._start_step(Cause.SEND_SYNC_GROUP)
            self._out.append(act.SendSyncGroup(facts.attempt, facts.identity))

    def _send_assignment(self, assignment: act.GroupAssignment, now: float) -> None:
        """Send the leader's assignment for the group, in SyncGroup."""
        self._timeline_at(now).assignment_computed(assignment.change, assignment.undecodable)
        self._start_step(Cause.SEND_SYNC_GROUP)
        self._out.append(act.SendSyncGroup(self.facts.attempt, self.facts.identity, assignment))

    def _accepts_protocol_type(self, protocol_type: str | None, now: float) -> bool:
        """Return whether a response's protocol type is "consumer" or missing, as from old brokers (KIP-559).

        Report another type to the application.
        """
        if protocol_type in {None, PROTOCOL_TYPE}:
            return True
        detail = f"the group's protocol type is {protocol_type!r}, not {PROTOCOL_TYPE!r}"
        self._report_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail, now)
        return False

    # --- Being assigned -----------------------------------------------------------------------------

    def _receive_sync(
        self, response: SyncGroupResponse, sent: act.GroupAssignment | None, now: float
    ) -> None:
        """Take SyncGroup's response; `sent` is the assignment that this member sent as the leader."""
        facts = self.facts
        self._end_step()
        self._heartbeat.start_session(now)
        if now >= self.session_until:
            self._check_timeouts(now)  # as in `_receive_join`; others may be assigned this by now
        elif response.error != ErrorCode.NONE:
            self._handle_error(Api.SYNC_GROUP, response.error, now)
        elif response.protocol not in {None, facts.identity.protocol}:
            detail = f"SyncGroup says {response.protocol!r}, JoinGroup said {facts.identity.protocol!r}"
            self._report_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail, now)
        elif self._accepts_protocol_type(response.protocol_type, now):
            facts.stored_id, facts.unconfirmed_id = facts.identity.member_id, ""
            self._monitor_topics(sent, now)
            self._receive_assignment(response.assignment, now)

    def _monitor_topics(self, sent: act.GroupAssignment | None, now: float) -> None:
        if sent is not None:
            self._topic_monitor.on_leader(sent.subscribed, sent.topics, now)
        else:
            self._topic_monitor.on_follower(now)
            if self.facts.misses_topics:
                # The missing topic may be created soon, and the leader monitors only topics that members have
                # joined with.
                self._topic_monitor.schedule(now)

    def _receive_assignment(self, data: bytes, now: float) -> None:
        facts = self.facts
        try:
            # Empty bytes mean that the leader's assignment does not contain this member.
            assigned = self._decode_assignment(data) if data else {}
        except MalformedBytesError as error:
            self._report_error(
                ErrorCode.NONE, f"the leader sent an assignment that cannot be read: {error}", now
            )
            return
        facts.move(Cause.ASSIGNMENT_RECEIVED)
        self._timeline_at(now).end(Phase.SYNC, now)
        if facts.leaving:
            return  # the partitions stay owned, so that they are committed in the new generation
        if not self._accepts_topics(assigned):
            self._back_off(now)  # then the member joins again, since `rejoin_reason` is still set
            return
        facts.rejoin_reason = None
        self._backoff.reset()  # not by JoinGroup: a SyncGroup that fails again and again is to slow down, too
        self._failure_backoff.reset()
        if facts.joined_subscription != facts.subscription:
            self._request_rejoin("the subscription changed", now)
            return
        facts.owned_since = facts.identity.generation
        revoked = without(facts.owned, assigned)
        facts.incoming = Incoming(assigned, another_round=bool(revoked))
        if revoked:
            self._timeline_at(now).begin(Phase.REVOKE, now)
            self._deliver_revoke(revoked)
        elif facts.cooperative:
            # Members that revoke partitions join again. The others get REBALANCE_IN_PROGRESS from their next
            # heartbeat, and would get the partitions later by a whole interval.
            self._heartbeat.speed_up(now)

    def _accepts_topics(self, assigned: Partitions) -> bool:
        """Return whether all topics are subscribed to.

        Add those that match and were not in the metadata yet.
        """
        facts = self.facts
        unknown = set(assigned).difference(facts.joined_subscription)
        if facts.topic_subscription is None or not all(map(facts.topic_subscription.matches, unknown)):
            return not unknown
        facts.joined_subscription = tuple(sorted({*facts.joined_subscription, *unknown}))
        facts.subscription = tuple(sorted({*(facts.subscription or ()), *unknown}))
        return True

    def _add_partitions(self, incoming: Incoming, now: float) -> None:
        self._timeline_at(now).begin(Phase.ASSIGN, now)
        identity = self.facts.identity
        if identity.protocol is not None:
            self._out.append(act.NotifyAssignor(identity.protocol, incoming.partitions, identity.generation))
        incoming.gained = without(incoming.partitions, self.facts.owned)
        if incoming.gained:
            self._fetch_offsets()
        else:
            self._deliver_assignment({}, now)

    def _fetch_offsets(self) -> None:
        facts = self.facts
        if facts.incoming is not None:
            facts.retry_at = 0.0
            self._start_step(Cause.FETCH_OFFSETS)
            self._out.append(act.FetchOffsets(facts.attempt, facts.incoming.gained))

    def _receive_offsets(self, response: OffsetFetchResponse, now: float) -> None:
        """Take committed offsets; if one has a retriable error, all are fetched again."""
        if now >= self.session_until:
            self._check_timeouts(now)  # as in `_receive_join`
            return
        actions = {key: classify(Api.OFFSET_FETCH, code) for key, code in response.errors.items()}
        # As in librdkafka, a partition whose offset may not be read stops no other one.
        refused = {key for key, action in actions.items() if action is ErrorAction.FATAL}
        codes = [response.error, *(code for key, code in response.errors.items() if key not in refused)]
        code_of_action = {classify(Api.OFFSET_FETCH, code): code for code in codes}
        if code_of_action.keys() <= {ErrorAction.NONE}:
            self._deliver_assignment({**response.offsets, **dict.fromkeys(refused, UNREADABLE)}, now)
            return
        # Members that wait for the partitions that this one has revoked need not wait for the retry.
        self._request_another_round(now)
        worst = max(code_of_action, key=lambda action: action.value)
        if worst is ErrorAction.FATAL:
            self._end_step()
        code = code_of_action[worst]
        self._apply(worst, f"the committed offsets cannot be read: {error_name(code)}", code, now)

    def _deliver_assignment(self, offsets: dict[TopicPartitionKey, Offset], now: float) -> None:
        facts = self.facts
        timeline, incoming = self._timeline_at(now), facts.incoming or Incoming({})
        complete = not incoming.another_round
        if complete:
            facts.timeline = None
        else:
            self._request_another_round(now)
        facts.incoming = None
        facts.revoke_due = True
        self._deliver(
            Assign(
                facts.attempt + 1,
                incoming.gained,
                incoming.partitions,
                offsets,
                facts.identity,
                timeline if complete else None,
                facts.cooperative,
            )
        )

    def _request_another_round(self, now: float) -> None:
        incoming = self.facts.incoming
        if incoming is not None and incoming.another_round:
            incoming.another_round = False
            self._request_rejoin("partitions were revoked for other members", now)

    # --- Leaving ------------------------------------------------------------------------------------

    def _start_leaving(self, cause: Cause, round_timeout: float, now: float) -> None:
        facts = self.facts
        if not facts.leaving:
            facts.leave_at = now + round_timeout
        facts.move(cause)
        facts.subscription = facts.topic_subscription = None
        facts.rejoin_reason = facts.timeline = None
        self._topic_monitor.stop()
        if facts.step not in {*ROUND, Step.LEAVE}:
            self._abandon_step()

    def _waits_for_round(self, now: float) -> bool:
        """Return whether a member that leaves waits for the end of its round.

        JoinGroup's response ends the generation of earlier commits, and the coordinator accepts none of the
        next generation before SyncGroup's response. So a member that has kept partitions commits them after
        the round, if that ends before `leave_at`.
        """
        return self.facts.keeps_partitions and now < self.facts.leave_at

    def _abandon_round(self, now: float) -> None:
        if self.facts.parked:
            # The coordinator responds in order: commits and LeaveGroup would wait until all members have
            # joined.
            self._out.append(act.DropConnection())
            self._heartbeat.start_session(now)
        self._abandon_step()

    def _leave(self, now: float) -> None:
        facts = self.facts
        if facts.owned:
            self._deliver_revoke(facts.owned, lost=facts.has_lost_partitions)
        elif facts.lifecycle is Lifecycle.CLOSING:
            # Also without LeaveGroup: no commit may be left in the queue when the consumer is closed.
            facts.awaits_poll = False  # so that the coordinator is looked up
            self._start_step(Cause.SEND_OFFSET_COMMITS)
            self._out.append(act.SendOffsetCommits(facts.attempt))
        elif facts.identity.member_id and facts.sends_leave and self.coordinator.known:
            facts.leaving_as = facts.identity
            self._send_leave()
        elif not self._waits_for_coordinator:
            if facts.identity.valid:
                self._out.append(act.StayInGroup(by_design=not facts.sends_leave))
            self._finish_leaving(now)

    def _send_leave(self) -> None:
        facts = self.facts
        facts.retry_at = 0.0
        self._start_step(Cause.SEND_LEAVE_GROUP)
        reason = "the consumer was closed" if facts.closing else "the consumer unsubscribed"
        self._out.append(act.SendLeaveGroup(facts.attempt, facts.leaving_as, reason))
        self._end_generation(MemberIdentity())

    def _receive_leave(self, error: int, now: float) -> None:
        match classify(Api.LEAVE_GROUP, error):
            case ErrorAction.REDISCOVER:
                self._lose_coordinator(now)
            case ErrorAction.RETRY:
                self._back_off(now)
            case _:
                self._end_step()

    def _leave_again(self, now: float) -> None:
        """Send LeaveGroup again if it is time, or give up if no broker answers the look-up."""
        if self.coordinator.known:
            if now >= self.facts.retry_at:
                self._send_leave()
        elif not self._waits_for_coordinator:
            self._out.append(act.StayInGroup(by_design=False))
            self._end_step()

    @property
    def _waits_for_coordinator(self) -> bool:
        """True if LeaveGroup waits for the look-up of the coordinator, which brokers answer."""
        facts = self.facts
        leaves = facts.leaves_again or (
            facts.identity.valid and facts.sends_leave and facts.needs_coordinator
        )
        return leaves and self.coordinator.answered and facts.refused_lookup is None

    def _finish_leaving(self, now: float) -> None:
        facts = self.facts
        facts.move(Cause.LEFT)
        facts.awaits_poll = facts.revoke_due = False
        facts.rejoin_reason = facts.timeline = None
        self._end_generation(MemberIdentity())
        if facts.closed:
            self._out.append(act.DeliverEvent(Closed()))
        elif facts.subscription is not None:
            self._request_rejoin("the consumer subscribed", now)

    # --- Errors -------------------------------------------------------------------------------------

    def _handle_error(self, api: Api, error: int, now: float) -> None:
        action = classify(api, error)
        fatal = action is ErrorAction.FATAL
        reason = f"{api.value} failed" if fatal else f"{api.value} was answered with {error_name(error)}"
        self._apply(action, reason, error, now)

    def _handle_async_error(self, api: Api, error: int, now: float) -> None:
        """Handle the response to a request that is no step."""
        if self.facts.parked:
            return  # sent before the parked request, whose response is newer
        action = classify(api, error)
        if action is ErrorAction.NEW_MEMBER and api is Api.OFFSET_COMMIT and self.facts.static:
            # The coordinator of a group with KIP-848 members fences no commits: it does not know a member
            # whose group.instance.id was taken. Joining again would take it back; Heartbeat's response tells.
            self._heartbeat.schedule(now)
        elif action is ErrorAction.RETRY:
            self._heartbeat.schedule(now + self._backoff.pause())
        elif action is not ErrorAction.NONE:
            self._handle_error(api, error, now)

    def _apply(self, action: ErrorAction, reason: str, error: int, now: float) -> None:
        """Apply an error action. The request had the member's present identity."""
        facts = self.facts
        if action is ErrorAction.FENCED and facts.unconfirmed_id == facts.identity.member_id != "":
            # Fenced by its own earlier member id, which the new coordinator has loaded from its log.
            action = ErrorAction.NEW_MEMBER
        match action:
            case ErrorAction.NONE:
                pass
            case ErrorAction.REJOIN:
                self._request_rejoin(GROUP_REBALANCING, now)
            case ErrorAction.RETRY:
                self._back_off(now)
            case ErrorAction.REDISCOVER:
                self._lose_coordinator(now)
            case ErrorAction.NEW_GENERATION:
                self._lose_generation(MemberIdentity(member_id=facts.identity.member_id), reason, now)
            case ErrorAction.NEW_MEMBER:
                self._lose_generation(MemberIdentity(), reason, now)
            case ErrorAction.FENCED:
                facts.fenced += 1
                self._lose_generation(MemberIdentity(), reason, now)
                self._report_error(error, reason, now)
            case ErrorAction.FATAL:
                self._report_error(error, reason, now)

    def _end_generation(self, identity: MemberIdentity) -> None:
        self.facts.identity = identity
        self.facts.move(Cause.GENERATION_LOST)

    def _lose_generation(self, identity: MemberIdentity, reason: str, now: float) -> None:
        """Continue with this identity, and join again if the member may.

        The partitions are lost, and an undelivered assignment is dropped. The theory of operation in
        `transitions.py` follows a loss up to `on_lost`.
        """
        self._end_generation(identity)
        self.facts.revoke_due = True
        self._abandon_step()
        self._request_rejoin(reason, now)

    def _report_error(self, error: int, detail: str, now: float, *, repeated: bool = False) -> None:
        """Report an error to the application, and join again only after its next poll."""
        timeline = self._block_joining(now)
        self._out.append(act.ReportError(error, detail, timeline, repeated))

    def _block_joining(self, now: float) -> Timeline | None:
        """Wait for a poll before joining again; return the timeline of the rebalance that this ends."""
        facts = self.facts
        timeline, facts.timeline = facts.timeline, None
        facts.move(Cause.JOINING_BLOCKED)
        facts.rejoin_reason = facts.rejoin_reason or "the last attempt failed"
        facts.retry_at = now + self._failure_backoff.pause()
        facts.awaits_poll = True
        return timeline

    def _request_rejoin(self, reason: str, now: float) -> None:
        """Join again once idle, for this reason or an earlier one; the rebalance begins now."""
        facts = self.facts
        if not facts.leaving:
            facts.rejoin_reason = facts.rejoin_reason or reason
            self._timeline_at(now)

    def _timeline_at(self, now: float) -> Timeline:
        """Return the timeline of the rebalance under way; without one, a rebalance begins now."""
        facts = self.facts
        if facts.timeline is None:
            facts.timeline = Timeline(facts.rejoin_reason or "", now, before=facts.owned)
        return facts.timeline

    def _lose_coordinator(self, now: float) -> None:
        facts = self.facts
        if facts.identity.member_id != facts.stored_id:
            # The coordinator writes a group to its log at the leader's SyncGroup. A new coordinator that
            # loads the log before that knows a static member by the id of the previous generation.
            facts.unconfirmed_id = facts.identity.member_id
        if self.coordinator.lost(now):
            self._out.append(act.DropConnection())
            self._back_off(now)

    def _back_off(self, now: float) -> None:
        self.facts.retry_at = now + self._backoff.pause()
