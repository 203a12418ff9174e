"""The client side of the classic group protocol: a state machine without I/O, clock or threads.

Every input is a method that takes the time and returns the `Action`s to do; every answer comes back as
another input. An input only records a fact; `Rounds._advance` then derives what follows from all facts, so that no
order of events needs a case of its own. What an error code means is `verdicts`' part, and the facts are `MembershipState`'s.

Sources: KIP-62, KIP-345, KIP-394, KIP-429, KIP-559, KIP-800, KIP-814; Kafka's AbstractCoordinator and
ConsumerCoordinator.
"""

import math
from collections.abc import Iterable, Mapping

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.consumer._protocol.events import Assign, PollExceeded, TopicUnavailable
from groupwright.consumer._protocol.membership_state import PARKED, ROUND, State, Step
from groupwright.consumer._protocol.model import (
    UNREADABLE,
    ErrorCode,
    GroupMembershipOperation,
    JoinGroupResponse,
    MemberIdentity,
    MetadataResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
    error_name,
    without,
)
from groupwright.consumer._protocol.rebalance import Leadership, Phase
from groupwright.consumer._protocol.rounds import Rounds
from groupwright.consumer._protocol.subscription import TopicSubscription

__all__ = ["PATIENCE", "Membership", "State", "Step"]

PATIENCE = 3.0
"""Seconds for which a member that leaves waits for others to join: they hear of a rebalance by their next heartbeat."""


class Membership(Rounds):
    """One consumer's membership in one group. Not thread-safe: one thread feeds it."""

    # --- The application's wishes -------------------------------------------------------------------

    def subscribe(self, selection: TopicSubscription, now: float) -> list[act.Action]:
        """Be a member that subscribes to these topics; an eager one rebalances even if they are the same as before."""
        again = selection == self._topic_subscription
        if not self._closing and not (again and self._cooperative):
            first = self.subscription is None
            self._topic_subscription = selection
            self.subscription = selection.among(self._topic_monitor.seen, self.subscription or ())
            self._topic_monitor.subscribed(now)
            if not again:
                self._topic_errors.subscribed()
            self._request_rejoin("the consumer subscribed" if first else "the subscription changed", now)
        return self._advance(now)

    def unsubscribe(self, now: float) -> list[act.Action]:
        """Give everything up and leave the group."""
        self.subscription = None
        # As with librdkafka, one that has never joined commits outside any generation, as before its subscription.
        self._departed = bool(self.identity.member_id or self.owned) or self._departed
        self._start_leaving(PATIENCE, now)
        return self._advance(now)

    def enforce_rebalance(self, reason: str, now: float) -> list[act.Action]:
        """Join again, and give the coordinator this reason (KIP-568, KIP-800); nothing happens out of the group."""
        if self.subscription is not None:
            self._request_rejoin(reason, now)
        return self._advance(now)

    def close(
        self,
        now: float,
        *,
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
        patience: float = PATIENCE,
    ) -> list[act.Action]:
        """Give everything up, leave the group or stay in it until the session ends, and deliver `Closed`.

        A cooperative member first finishes the round under way, for `patience` seconds at most.
        """
        self.subscription = None
        self._closing = True
        self._operation = operation
        self._start_leaving(patience, now)
        return self._advance(now)

    def abandon(self, now: float) -> list[act.Action]:
        """Leave the group without the application, which is gone."""
        self.owned = {}
        if self._step is Step.APPLICATION:
            self._step = self._event = None
        return self.close(now)

    def applied(self, ticket: int, now: float) -> list[act.Action]:
        """Note that the application has dealt with the event of this ticket, callbacks included."""
        if self._is_waiting_for(Step.APPLICATION, ticket):
            phase = Phase.ASSIGN
            if isinstance(self._event, Assign):
                self.owned = self._event.owned
            elif self._event is not None:
                self.owned = without(self.owned, self._event.partitions)
                phase = Phase.REVOKE
            if self._timeline is not None:
                self._timeline.end(phase, now)
            self._step = self._event = None
        return self._advance(now)

    def withdrawn(self, ticket: int, now: float) -> list[act.Action]:
        """Note that the application never saw the event of this ticket."""
        if self._is_waiting_for(Step.APPLICATION, ticket):
            if isinstance(self._event, Assign):
                self._prepared = True
                self._timeline = self._timeline or self._event.timeline
            else:
                self._prepared = False
            self._step = self._event = None
        return self._advance(now)

    def resume(self, now: float) -> list[act.Action]:
        """Join again: the application polls, and knows of the error or the expiry that stopped it."""
        self._blocked = False
        return self._advance(now)

    def assigned_by_hand(self, now: float) -> list[act.Action]:
        """Note that the application has partitions of its own choice, and commits them outside any generation."""
        self._departed = False
        return self._advance(now)

    def want_coordinator(self, now: float) -> list[act.Action]:
        """Look the coordinator up even though there is no subscription: there is something to commit."""
        self._wants_coordinator = True
        return self._advance(now)

    # --- Time ---------------------------------------------------------------------------------------

    def tick(self, now: float, last_poll: float) -> list[act.Action]:
        """Let time pass; `last_poll` is when the application last polled."""
        self._last_poll = max(self._last_poll, last_poll)
        if self._must_poll and now >= self._poll_deadline:
            self._leave_for_poll_timeout(now)
        if self._session_runs and now >= self._heartbeat.session_ends:
            # The coordinator has given the partitions to others by now, or is about to.
            self._lose_coordinator(now)
            self._reset(MemberIdentity(member_id=self.identity.member_id))
            self._lose(f"no heartbeat was answered for {self._timing.session_timeout:.0f} s", now)
        return self._advance(now)

    @property
    def owned_until(self) -> float:
        """When others may own what this member does, unless a heartbeat is answered before; any thread may ask."""
        if not self.owned:
            return math.inf
        return 0.0 if self.lost else self.session_until

    @property
    def lost(self) -> bool:
        """Whether others may own what the application does, which has not been told yet; any thread may ask."""
        return bool(self.owned) and not self.identity.valid

    @property
    def session_until(self) -> float:
        """When the coordinator may expel this member, unless a heartbeat is answered before; any thread may ask."""
        if self._session_runs:
            return self._heartbeat.session_ends
        # The coordinator waits for one whose request it holds; but only until it answers.
        return self._heartbeat.parked_until if self._step in PARKED else math.inf

    def runs(self, now: float) -> None:
        """Note that the member's thread runs: to be told before each input."""
        self._heartbeat.runs(now)

    def next_tick(self, now: float) -> float | None:
        """Return when `tick` should come next at the latest, or None if nothing waits for the time."""
        limits = []
        if self._must_poll:
            limits.append(self._poll_deadline)
        if self._session_runs:
            limits.append(self._heartbeat.session_ends)
        plans = []
        if self._may_heartbeat and self.coordinator.known and not self._heartbeat.under_way:
            plans.append(self._heartbeat.next_at)
        if self._needs_coordinator and self.coordinator.wanted:
            plans.append(self.coordinator.next_at)
        if self._monitors_topics and self.coordinator.known and self._topic_monitor.idle:
            plans.append(self._topic_monitor.next_at)
        if self._rejoin is not None and self._needs_metadata and self._topic_monitor.idle:
            plans.append(self._topic_monitor.retry_at)
        if self._rejoin is not None or self._step is Step.OFFSETS:
            plans.append(self._retry_at)
        if self._leaving and self._step in ROUND:
            plans.append(self._leave_at)
        # A limit that has passed is `tick`'s to judge. A plan that is due waits for something else than the time, or
        # `_advance` would have carried it out.
        times = limits + [time for time in plans if now < time < math.inf]
        return None if self.closed or not times else max(now, min(times))

    def _leave_for_poll_timeout(self, now: float) -> None:
        self.poll_timeouts += 1
        limit = self._timing.max_poll_interval
        message = (
            f"the application did not poll for {now - self._last_poll:.1f} s, which is more than max.poll.interval.ms "
            f"({limit * 1000:.0f}); the consumer has left the group, and joins again now that it polls. Process "
            "fewer messages between polls, or raise max.poll.interval.ms"
        )
        self._out.append(act.DeliverEvent(PollExceeded(message)))
        if self._step is Step.SYNC:
            self._out.append(act.DropConnection())
        if not self._static and self.coordinator.known:
            self._out.append(act.SendLeaveGroup(0, self.identity, "the application stopped polling"))
        self._reset(MemberIdentity())
        self._blocked = True
        self._lose("the application polls again after max.poll.interval.ms", now)

    # --- The coordinator ----------------------------------------------------------------------------

    @property
    def lookup_refused(self) -> bool:
        """Whether the last look-up of the coordinator was refused, such as for a wrong password."""
        return self._refused_lookup is not None

    def coordinator_found(self, now: float) -> list[act.Action]:
        """Note that the coordinator is known and can be reached."""
        self.coordinator.found()
        self._refused_lookup = None
        # No sooner than a retry: a coordinator that is found, and then says that it is none, is not asked in a loop.
        self._heartbeat.schedule(max(now, self._retry_at))
        return self._advance(now)

    def coordinator_missing(self, refusal: int | None, detail: str, now: float) -> list[act.Action]:
        """Note that the look-up failed; with a `refusal` (an error code), trying again will not mend it.

        As in librdkafka, the application is told of a refusal once, until the coordinator was found or the error is another.
        """
        self.coordinator.missing(now)
        if refusal is not None:
            # A password that is wrong locks its user out if it is tried too often.
            self.coordinator.next_at = max(self.coordinator.next_at, now + self._timing.retry_backoff_max)
            repeated, self._refused_lookup = refusal == self._refused_lookup, refusal
            self._wants_coordinator = False
            if self.state is State.STABLE and self._rejoin is None:
                # What it owns is its own until the session ends. It asks again when the application polls again.
                self._blocked = True
                self._out.append(act.ReportError(refusal, detail, None, repeated))
            else:
                self._report_error(refusal, detail, now, repeated=repeated)
        return self._advance(now)

    def disconnected(self, attempt: int, now: float) -> list[act.Action]:
        """Note that a step's request went unanswered. Ids are kept: the coordinator may still hold them."""
        if self._awaits_coordinator(attempt):
            if self._step in PARKED:
                self._step = None
                self._heartbeat.start_session(
                    now
                )  # until now the coordinator held the request, and the session with it
            else:
                self._request_another_round(now)
            self._apply(
                ErrorAction.REDISCOVER, "the connection to the coordinator was lost", ErrorCode.NONE, now
            )
        return self._advance(now)

    def denied(self, attempt: int, error: int, detail: str, now: float) -> list[act.Action]:
        """Note that a step's request cannot be sent at all, such as to a broker that is too old."""
        if self._awaits_coordinator(attempt):
            self._step = None
            self._report_error(error, detail, now)
        return self._advance(now)

    def broken(self, attempt: int, now: float) -> list[act.Action]:
        """Note that a step ended by a defect, of which the application hears; it is tried again when that polls."""
        if attempt == self._attempt and self._step not in {None, Step.APPLICATION}:
            leaving = self._step in {Step.COMMITS, Step.LEAVE}
            self._step = None
            if not leaving:
                self._block_joining(now)
        return self._advance(now)

    def _awaits_coordinator(self, attempt: int) -> bool:
        return attempt == self._attempt and self._step in {Step.JOIN, Step.SYNC, Step.OFFSETS}

    # --- Topics -------------------------------------------------------------------------------------

    def topics_found(self, answer: MetadataResponse, now: float) -> list[act.Action]:
        """Take a look at the topics: those that match, and those that this member leads the group of."""
        self._topic_monitor.found(answer, now)
        if self._topic_subscription is not None and not self._topic_monitor.covers(self._topic_subscription):
            self._topic_monitor.subscribed(now)  # the look was at the topics of the subscription before
        elif self._topic_subscription is not None:
            self._update_topics(self._topic_subscription, now)
        if self._rejoins_on_topic_changes:
            change = self._topic_monitor.change()
            if change is not None:
                self._request_rejoin(change, now)
        return self._advance(now)

    def _update_topics(self, selection: TopicSubscription, now: float) -> None:
        for topic, error in self._topic_errors.found(selection, self._topic_monitor.seen):
            self._out.append(act.DeliverEvent(TopicUnavailable(topic, error)))
        topics = selection.among(self._topic_monitor.seen, self.subscription or ())
        if topics != self.subscription:
            self.subscription = topics
            self._request_rejoin("other topics of the subscription are available now", now)

    def topics_missing(self, refusal: int | None, detail: str, now: float) -> list[act.Action]:
        """Note that a look failed; with a `refusal` (an error code), trying again will not mend it."""
        self._topic_monitor.missing(now)
        if refusal is not None and self._rejoin is not None and self._step is None:
            self._report_error(refusal, detail, now)
        return self._advance(now)

    # --- Joining ------------------------------------------------------------------------------------

    def joined(self, attempt: int, answer: JoinGroupResponse, now: float) -> list[act.Action]:
        """Take JoinGroup's answer."""
        if self._is_waiting_for(Step.JOIN, attempt):
            self._step = None
            self._heartbeat.start_session(now)
            if now >= self.session_until:
                return self.tick(now, self._last_poll)  # others may own what was kept
            if answer.error == ErrorCode.MEMBER_ID_REQUIRED:
                # KIP-394: the id is given first, so that a lost answer leaves no ghost member behind.
                self.identity = MemberIdentity(member_id=answer.member_id)
            elif answer.error != ErrorCode.NONE:
                self._handle_error(Api.JOIN_GROUP, answer.error, now)
            elif self._is_consumer_group(answer.protocol_type, now):
                self._enter_generation(answer, now)
        return self._advance(now)

    def on_leader_elected(self, attempt: int, change: str | None, now: float) -> list[act.Action]:
        """Record which members joined and left, which only the leader knows."""
        if self._is_waiting_for(Step.PLAN, attempt):
            self._timeline_at(now).on_leader_elected(change)
        return self._advance(now)

    def assignment_evaluated(self, attempt: int, leadership: Leadership, now: float) -> list[act.Action]:
        """Record the quality of the assignment that this member made as the leader."""
        if self._is_waiting_for(Step.SYNC, attempt):
            self._timeline_at(now).assignment_evaluated(leadership)
        return self._advance(now)

    def assignment_computed(
        self,
        attempt: int,
        assignments: Mapping[str, bytes],
        asked: Iterable[str],
        topics: MetadataResponse,
        now: float,
    ) -> list[act.Action]:
        """Take the leader's plan, made from what was answered of the topics `asked` for; send it with SyncGroup."""
        if self._is_waiting_for(Step.PLAN, attempt):
            self._topic_monitor.on_leader(asked, topics, now)
            self._start_step(Step.SYNC)
            self._out.append(act.SendSyncGroup(self._attempt, self.identity, assignments))
        return self._advance(now)

    def assignment_failed(self, attempt: int, error: int, detail: str, now: float) -> list[act.Action]:
        """Note that there is no plan: the assignor failed, or with an `error`, its topics may not be seen."""
        if self._is_waiting_for(Step.PLAN, attempt):
            self._step = None
            self._report_error(error, detail, now)
        return self._advance(now)

    def synced(self, attempt: int, answer: SyncGroupResponse, now: float) -> list[act.Action]:
        """Take SyncGroup's answer."""
        if self._is_waiting_for(Step.SYNC, attempt):
            self._step = None
            self._heartbeat.start_session(now)
            if now >= self.session_until:
                return self.tick(now, self._last_poll)  # others may have been assigned this since
            if answer.error != ErrorCode.NONE:
                self._handle_error(Api.SYNC_GROUP, answer.error, now)
            elif answer.protocol not in {None, self.identity.protocol}:
                detail = f"SyncGroup says {answer.protocol!r}, JoinGroup said {self.identity.protocol!r}"
                self._report_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail, now)
            elif self._is_consumer_group(answer.protocol_type, now):
                self._stored_id, self._unconfirmed_id = self.identity.member_id, ""
                self._receive_assignment(answer.assignment, now)
        return self._advance(now)

    def offsets_fetched(self, attempt: int, answer: OffsetFetchResponse, now: float) -> list[act.Action]:
        """Take the committed offsets of what was assigned; if one is missing, all are fetched again."""
        if self._is_waiting_for(Step.OFFSETS, attempt):
            if now >= self.session_until:
                return self.tick(now, self._last_poll)
            of_partitions = {key: classify(Api.OFFSET_FETCH, code) for key, code in answer.errors.items()}
            # As in librdkafka, a partition whose offset may not be read stops no other one.
            refused = {key for key, found in of_partitions.items() if found is ErrorAction.FATAL}
            codes = [answer.error, *(code for key, code in answer.errors.items() if key not in refused)]
            verdicts = {classify(Api.OFFSET_FETCH, code): code for code in codes}
            if verdicts.keys() <= {ErrorAction.NONE}:
                self._deliver_assignment({**answer.offsets, **dict.fromkeys(refused, UNREADABLE)}, now)
            else:
                self._request_another_round(now)
                worst = max(verdicts, key=lambda found: found.value)
                if worst is ErrorAction.FATAL:
                    self._step = None
                code = verdicts[worst]
                self._apply(worst, f"the committed offsets cannot be read: {error_name(code)}", code, now)
        return self._advance(now)

    def committed(self, attempt: int, now: float) -> list[act.Action]:
        """Note that no commit waits any more."""
        if self._is_waiting_for(Step.COMMITS, attempt):
            self._step = None
        return self._advance(now)

    def left(self, attempt: int, now: float) -> list[act.Action]:
        """Take LeaveGroup's end, whatever it was."""
        if self._is_waiting_for(Step.LEAVE, attempt):
            self._step = None
        return self._advance(now)

    def awaits(self, attempt: int) -> bool:
        """Whether the answer to this attempt is still wanted."""
        return attempt == self._attempt and not self.closed

    # --- Staying ------------------------------------------------------------------------------------

    def heartbeat_answered(self, identity: MemberIdentity, error: int, now: float) -> list[act.Action]:
        """Take Heartbeat's answer; one to a former identity says nothing about this one."""
        same = identity == self.identity
        alive = not same or error in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
        self._heartbeat.answered(now, alive=alive)
        if alive:
            self._backoff.reset()
        if same:
            self._handle_async_error(Api.HEARTBEAT, error, now)
        return self._advance(now)

    def heartbeat_unanswered(self, now: float) -> list[act.Action]:
        """Note that a heartbeat's connection broke."""
        self._heartbeat.unanswered()
        self._lose_coordinator(now)
        return self._advance(now)

    def commit_answered(self, identity: MemberIdentity, error: int, now: float) -> list[act.Action]:
        """Take what a commit's answer says about the membership."""
        if error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._topic_monitor.schedule(now)
        if identity == self.identity and identity.valid:
            self._handle_async_error(Api.OFFSET_COMMIT, error, now)
        elif classify(Api.OFFSET_COMMIT, error) is ErrorAction.REDISCOVER:
            self._lose_coordinator(now)
        return self._advance(now)

    def commit_unanswered(self, now: float) -> list[act.Action]:
        """Note that a commit's connection broke."""
        self._lose_coordinator(now)
        return self._advance(now)

    def commit_identity(self) -> MemberIdentity | ErrorCode:
        """Return the identity that a commit must carry now, or why none may be sent."""
        leaves = self._leaving and self._step not in ROUND
        if self.state is State.STABLE or (leaves and self.identity.valid):
            # Also of one that has given a join up: the coordinator takes it until the join is complete.
            return self.identity
        if self.subscription is None and not self._leaving and not self._departed:
            return MemberIdentity()  # partitions assigned by hand: a commit outside any generation
        if self.state is State.UNJOINED and not self._has_joined:
            return MemberIdentity()  # as librdkafka; the coordinator takes it if the group has no members
        if self.state is State.UNJOINED and not self.keeps_partitions:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.REBALANCE_IN_PROGRESS
