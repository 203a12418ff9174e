"""What follows from the facts about a member: a round of join and sync, and the way out of the group.

An eager member gives everything up before JoinGroup, and is assigned everything anew. A cooperative one (KIP-429)
keeps what it has and says so in JoinGroup; SyncGroup's answer tells it what to give up and what it gains. Having given
something up it joins at once again, so that others can be assigned it: a rebalance may take two rounds, and is
over when a round takes nothing away.

Sources: Kafka's AbstractCoordinator and ConsumerCoordinator; KIP-429, KIP-559, KIP-792, KIP-814.
"""

from groupwright.assignors import MalformedBytesError
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Closed
from groupwright.consumer._protocol.membership_state import PARKED, ROUND, MembershipState, State, Step
from groupwright.consumer._protocol.model import (
    PROTOCOL_TYPE,
    ErrorCode,
    JoinGroupPayload,
    JoinGroupResponse,
    MemberIdentity,
    Offset,
    Partitions,
    TopicPartitionKey,
    without,
)
from groupwright.consumer._protocol.rebalance import Phase


class Rounds(MembershipState):
    """A member that knows what to do next."""

    def _advance(self, now: float) -> list[act.Action]:
        """Return what is to be done, now that an input has changed the facts."""
        if self.closed:
            self._out.clear()  # late answers have nothing to say to a member that is gone
        else:
            if self._needs_coordinator and self.coordinator.start(now):
                self._out.append(act.FindCoordinator())
            if self._may_heartbeat and self.coordinator.known and self._heartbeat.due(now):
                self._heartbeat.sent(now)
                self._out.append(act.SendHeartbeat(self.identity))
            if self._monitors_topics and self.coordinator.known and now >= self._topic_monitor.next_at:
                self._fetch_metadata(now)
            self._start_next_step(now)
        out, self._out = self._out, []
        return out

    def _start_next_step(self, now: float) -> None:
        if self._step is Step.OFFSETS:
            if self._rejoin is not None:
                self._step = None  # never delivered, so never owned: nothing to give up
            elif self._retry_at and now >= self._retry_at and self.coordinator.known:
                self._fetch_offsets()
        if self._leaving and self._step in ROUND and not self._waits_for_round(now):
            self._abandon_round(now)
        if self._leaving and self._step is None:
            self._leave(now)
        if self._step is not None or self._leaving:
            return
        if self._rejoin is not None or self._fenced:
            self._incoming = None
            self._another_round = False
            if not self._prepare_join(now):
                self._join(now)
        elif self._incoming is not None:
            self._add_partitions(self._incoming, now)

    def _fetch_metadata(self, now: float) -> None:
        own = self._topic_subscription.names if self._topic_subscription is not None else frozenset()
        wanted = (
            None if self._matches_topics else tuple(sorted(own | (self._topic_monitor.planned_for or own)))
        )
        if self._topic_monitor.start(wanted, now):
            self._out.append(act.FetchMetadata(wanted))

    # --- Joining ------------------------------------------------------------------------------------

    def _prepare_join(self, now: float) -> bool:
        """Have the application give up what it may not keep over the rebalance; return whether it has to."""
        first, self._prepared = not self._prepared, True
        lost = not self.identity.valid
        if self._cooperative and not lost:
            # As in librdkafka: topics that may no longer be seen come first, and as lost; nothing of them can be committed.
            refused = self._refused()
            partitions = refused or self._unsubscribed()
            due, lost = bool(partitions), bool(refused)
        else:
            partitions = self.owned
            # Eager: revoked even when nothing is owned, so that every on_assign has its on_revoke.
            due = bool(partitions) if lost else first
        if due:
            timeline = self._timeline_at(now)
            timeline.lost |= not self.identity.valid
            timeline.begin(Phase.REVOKE, now)
            self._deliver_revoke(partitions, lost=lost)
        return due

    def _unsubscribed(self) -> Partitions:
        selection = self._topic_subscription
        return {
            topic: numbers
            for topic, numbers in self.owned.items()
            if selection is None or not selection.covers(topic)
        }

    def _refused(self) -> Partitions:
        """Return what is owned of topics that this client may no longer see."""
        refused = self._topic_monitor.seen.refused
        return {topic: numbers for topic, numbers in self.owned.items() if topic in refused}

    def _join(self, now: float) -> None:
        if self.subscription is None or self._blocked or self._fenced:
            return
        if not self.coordinator.known or now < self._retry_at:
            return
        if self._needs_metadata and not self._topic_monitor.is_fresh(now):
            # Else each member would call for a rebalance of its own when it hears of a new topic (KAFKA-7126).
            self._fetch_metadata(now)
            return
        self._timeline_at(now).begin(Phase.JOIN, now)
        self._joining = self.subscription
        # Claims are as old as the assignment that they come from: a generation in which this member joined, but heard
        # of no assignment, would make them look newer than those of whoever was given its partitions (KAFKA-14639).
        generation = self._owned_since if self.owned else self.identity.generation
        protocols = self._encode_subscription(self.subscription, self.owned, generation)
        self._start_step(Step.JOIN)
        self.state = State.PREPARING_REBALANCE
        request = JoinGroupPayload(self.identity.member_id, protocols, self._rejoin or "")
        self._out.append(act.SendJoinGroup(self._attempt, request))

    def _enter_generation(self, answer: JoinGroupResponse, now: float) -> None:
        self.identity = MemberIdentity(answer.generation, answer.member_id, answer.protocol)
        self._has_joined = True
        self.state = State.COMPLETING_REBALANCE
        self._backoff.reset()
        self._last_poll = max(self._last_poll, now)  # waiting for the others was no fault of the application
        timeline = self._timeline_at(now)
        timeline.end(Phase.JOIN, now)
        timeline.begin(Phase.SYNC, now)
        if answer.leader == answer.member_id:
            self._start_step(Step.PLAN)
            self._out.append(
                act.PerformAssignment(
                    self._attempt, answer.protocol or "", answer.members, answer.skip_assignment
                )
            )
        else:
            self._topic_monitor.on_follower(now)
            if self._misses_topics:
                # It may be about to be made; the leader looks for topics of members alone.
                self._topic_monitor.schedule(now)
            self._start_step(Step.SYNC)
            self._out.append(act.SendSyncGroup(self._attempt, self.identity, {}))

    def _is_consumer_group(self, protocol_type: str | None, now: float) -> bool:
        """Return whether an answer's type of group is ours (old brokers name none); refuse if not (KIP-559)."""
        if protocol_type in {None, PROTOCOL_TYPE}:
            return True
        detail = f"the group's protocol type is {protocol_type!r}, not {PROTOCOL_TYPE!r}"
        self._report_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail, now)
        return False

    # --- Being assigned -----------------------------------------------------------------------------

    def _receive_assignment(self, data: bytes, now: float) -> None:
        try:
            # A leader that left this member out sends no bytes at all: nothing is assigned.
            assigned = self._decode_assignment(data) if data else {}
        except MalformedBytesError as error:
            self._report_error(
                ErrorCode.NONE, f"the leader sent an assignment that cannot be read: {error}", now
            )
            return
        self.state = State.STABLE
        self._timeline_at(now).end(Phase.SYNC, now)
        if self._leaving:
            return  # with what it owns, of which the new generation takes commits
        if not self._accepts_topics(assigned):
            self._back_off(now)
            return
        self._rejoin = None
        if self._joining != self.subscription:
            self._request_rejoin("the subscription changed", now)
            return
        self._incoming = assigned
        self._owned_since = self.identity.generation
        given_up = without(self.owned, assigned)
        self._another_round = bool(given_up)
        if given_up:
            self._timeline_at(now).begin(Phase.REVOKE, now)
            self._deliver_revoke(given_up)
        elif self._cooperative:
            # Whoever gave something up joins again, and the others hear of it by their heartbeats: members that wait for
            # partitions would wait for an interval.
            self._heartbeat.speed_up(now)

    def _accepts_topics(self, assigned: Partitions) -> bool:
        """Return whether all topics were asked for; one that matches and was not seen here yet is taken in."""
        unknown = set(assigned).difference(self._joining)
        if self._topic_subscription is None or not all(map(self._topic_subscription.matches, unknown)):
            return not unknown
        self._joining = tuple(sorted({*self._joining, *unknown}))
        self.subscription = tuple(sorted({*(self.subscription or ()), *unknown}))
        return True

    def _add_partitions(self, incoming: Partitions, now: float) -> None:
        self._timeline_at(now).begin(Phase.ASSIGN, now)
        protocol, generation = self.identity.protocol, self.identity.generation
        if protocol is not None:
            self._out.append(act.NotifyAssignor(protocol, incoming, generation))
        self._gained = without(incoming, self.owned)
        if self._gained:
            self._fetch_offsets()
        else:
            self._deliver_assignment({}, now)

    def _fetch_offsets(self) -> None:
        self._retry_at = 0.0
        self._start_step(Step.OFFSETS)
        self._out.append(act.FetchOffsets(self._attempt, self._gained))

    def _deliver_assignment(self, offsets: dict[TopicPartitionKey, Offset], now: float) -> None:
        timeline, owned = self._timeline_at(now), self._incoming or {}
        self._incoming = None
        self._prepared = False
        settled = not self._another_round
        if settled:
            self._timeline = None
        else:
            self._request_another_round(now)
        self._deliver(
            Assign(
                self._attempt + 1,
                self._gained,
                owned,
                offsets,
                self.identity,
                timeline if settled else None,
                self._cooperative,
            )
        )

    def _request_another_round(self, now: float) -> None:
        if self._another_round:
            self._another_round = False
            self._request_rejoin("partitions were given up, for others to take", now)

    # --- Leaving ------------------------------------------------------------------------------------

    def _start_leaving(self, patience: float, now: float) -> None:
        if not self._leaving:
            self._leave_at = now + patience
        self._leaving = True
        self._rejoin = self._timeline = None
        self._topic_subscription = None
        self._topic_monitor.stop()
        if self._step not in {*ROUND, Step.LEAVE}:
            self._abandon_step()

    def _waits_for_round(self, now: float) -> bool:
        """Return whether a member that leaves waits for the end of its round.

        JoinGroup's answer ends the generation that a commit carries, and until SyncGroup's the coordinator takes no commit of
        the next one. So a member that has kept partitions commits them after the round, unless others hold it up.
        """
        return self.keeps_partitions and now < self._leave_at

    def _abandon_round(self, now: float) -> None:
        if self._step in PARKED:
            # The coordinator answers in order, and would hold commits and LeaveGroup back until the group has joined.
            self._out.append(act.DropConnection())
            self._heartbeat.start_session(now)
        self._abandon_step()

    def _leave(self, now: float) -> None:
        if self.owned:
            self._deliver_revoke(self.owned, lost=not self.identity.valid)
        elif self._closing and not self._commits_sent:
            # Also where no LeaveGroup follows: nothing may be left in the queue when the consumer is closed.
            self._commits_sent = True
            self._blocked = False  # for the coordinator's look-up
            self._start_step(Step.COMMITS)
            self._out.append(act.SendOffsetCommits(self._attempt))
        elif self.identity.member_id and self._sends_leave and self.coordinator.known:
            self._start_step(Step.LEAVE)
            reason = "the consumer was closed" if self._closing else "the consumer unsubscribed"
            self._out.append(act.SendLeaveGroup(self._attempt, self.identity, reason))
            self._reset(MemberIdentity())
        else:
            self._finish_leaving(now)

    def _finish_leaving(self, now: float) -> None:
        self._leaving = self._blocked = False
        self._rejoin = self._timeline = None
        self._prepared = True
        self._reset(MemberIdentity())
        if self._closing:
            self.closed = True
            self._out.append(act.DeliverEvent(Closed()))
        elif self.subscription is not None:
            self._request_rejoin("the consumer subscribed", now)
