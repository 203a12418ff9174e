"""The client side of the classic group protocol: a state machine without I/O, clock or threads.

Every input is a method that takes the time and returns the `Action`s to do; every answer comes back as
another input. An input only records a fact; `_advance` then derives what follows from all facts, so that no
order of events needs a case of its own. What an error code means is `verdicts`' part.

A member moves through the protocol's states:

- UNJOINED: in no generation. Nothing is sent but JoinGroup.
- PREPARING_REBALANCE: JoinGroup is sent. The coordinator answers when all members have joined; until then it
  serves nothing else on that connection, so no heartbeat or commit is sent.
- COMPLETING_REBALANCE: a generation is held; the leader's plan or SyncGroup is awaited.
- STABLE: an assignment is held. A rebalance that is called for leaves the state STABLE until JoinGroup is
  sent, so that heartbeats and commits go on while the application gives its partitions up.

Within them one `Step` at most is open: a request, the assignor, or an event that the application has to
apply. Answers to a step that was given up meanwhile carry an old attempt number, and are ignored.

Rebalances are eager: everything is given up before JoinGroup is sent. What cooperative rebalancing adds belongs
in `_prepare` (what to give up before) and `_deliver_assignment` (what to give up after).

Sources: KIP-62, KIP-345, KIP-394, KIP-559, KIP-800; Kafka's AbstractCoordinator and ConsumerCoordinator.
"""

import random
from collections.abc import Callable, Mapping
from enum import Enum, auto

from groupwright.assignors import MalformedBytesError
from groupwright.consumer import actions as act
from groupwright.consumer.events import Assign, Closed, PollExceeded, Revoke
from groupwright.consumer.protocol import (
    PROTOCOL_TYPE,
    ErrorCode,
    Identity,
    JoinAnswer,
    JoinRequest,
    OffsetsAnswer,
    Partitions,
    SyncAnswer,
    error_name,
)
from groupwright.consumer.rebalance import Phase, Timeline
from groupwright.consumer.timing import Backoff, CoordinatorLookup, Heartbeat, Jitter, Timing
from groupwright.consumer.verdicts import Api, Verdict, verdict


class State(Enum):
    """A member's state, by the protocol's names."""

    UNJOINED = auto()
    PREPARING_REBALANCE = auto()
    COMPLETING_REBALANCE = auto()
    STABLE = auto()


class Step(Enum):
    """What is under way; one at most."""

    JOIN = auto()
    PLAN = auto()
    SYNC = auto()
    OFFSETS = auto()
    APPLICATION = auto()
    LEAVE = auto()


SubscriptionEncoder = Callable[[tuple[str, ...], Partitions, int], tuple[tuple[str, bytes], ...]]
"""(topics, owned partitions, generation) -> (assignor's name, subscription bytes), by preference."""


class Membership:
    """One consumer's membership in one group. Not thread-safe: one thread feeds it."""

    def __init__(
        self,
        timing: Timing,
        encode_subscription: SubscriptionEncoder,
        decode_assignment: Callable[[bytes], Partitions],
        *,
        static: bool = False,
        jitter: Jitter = random.random,
    ) -> None:
        """Start outside any group.

        Args:
            timing: the member's timings.
            encode_subscription: makes JoinGroup's list of assignors with their subscription bytes.
            decode_assignment: reads SyncGroup's bytes; may raise `MalformedBytesError`.
            static: whether the member has a ``group.instance.id``; it then never leaves by itself (KIP-345).
            jitter: a random number in [0, 1) for each backoff.
        """
        self.state = State.UNJOINED
        self.identity = Identity()
        self.subscription: tuple[str, ...] | None = None
        self.owned: Partitions = {}
        self.coordinator = CoordinatorLookup(Backoff(timing, jitter))
        self.closed = False

        self._timing = timing
        self._encode_subscription = encode_subscription
        self._decode_assignment = decode_assignment
        self._static = static
        self._out: list[act.Action] = []

        # The step under way.
        self._step: Step | None = None
        self._attempt = 0
        self._event: Assign | Revoke | None = None
        self._joining: tuple[str, ...] = ()
        self._assigned: Partitions = {}
        self._owned_before: Partitions = {}

        # What is wanted.
        self._rejoin: str | None = None
        self._timeline: Timeline | None = None
        self._prepared = True
        self._gated = False
        self._leaving = False
        self._closing = False
        self._fenced = False
        self._wants_coordinator = False

        # Clocks.
        self._heartbeat = Heartbeat(timing)
        self._backoff = Backoff(timing, jitter)
        self._retry_at = 0.0
        self._last_poll = 0.0

    # --- The application's wishes -------------------------------------------------------------------

    def subscribe(self, topics: tuple[str, ...], now: float) -> list[act.Action]:
        """Be a member with this subscription (sorted names); the same one again changes nothing."""
        if topics != self.subscription and not self._closing:
            first = self.subscription is None
            self.subscription = topics
            self._request_rejoin("the consumer subscribed" if first else "the subscription changed", now)
        return self._advance(now)

    def unsubscribe(self, now: float) -> list[act.Action]:
        """Give everything up and leave the group."""
        self.subscription = None
        self._start_leaving()
        return self._advance(now)

    def close(self, now: float) -> list[act.Action]:
        """Give everything up, leave the group, and deliver `Closed`."""
        self.subscription = None
        self._closing = True
        self._start_leaving()
        return self._advance(now)

    def abandon(self, now: float) -> list[act.Action]:
        """Leave the group without the application, which is gone."""
        self.owned = {}
        if self._step is Step.APPLICATION:
            self._step = self._event = None
        return self.close(now)

    def applied(self, ticket: int, now: float) -> list[act.Action]:
        """Note that the application has dealt with the event of this ticket, callbacks included."""
        if self._awaits(Step.APPLICATION, ticket):
            if isinstance(self._event, Revoke):
                self.owned = {}
                if self._timeline is not None:
                    self._timeline.end(Phase.REVOKE, now)
            self._step = self._event = None
        return self._advance(now)

    def withdrawn(self, ticket: int, now: float) -> list[act.Action]:
        """Note that the application never saw the event of this ticket."""
        if self._awaits(Step.APPLICATION, ticket):
            if isinstance(self._event, Assign):
                self.owned = self._owned_before
                self._prepared = True
                self._timeline = self._timeline or self._event.timeline
            else:
                self._prepared = False
            self._step = self._event = None
        return self._advance(now)

    def resume(self, now: float) -> list[act.Action]:
        """Join again: the application polls, and knows of the error or the expiry that stopped it."""
        self._gated = False
        return self._advance(now)

    def want_coordinator(self, now: float) -> list[act.Action]:
        """Look the coordinator up even though there is no subscription: there is something to commit."""
        self._wants_coordinator = True
        return self._advance(now)

    # --- Time ---------------------------------------------------------------------------------------

    def tick(self, now: float, last_poll: float) -> list[act.Action]:
        """Let time pass; `last_poll` is when the application last polled."""
        self._last_poll = max(self._last_poll, last_poll)
        if self._must_poll and now >= self._poll_ends:
            self._stop_for_silence(now)
        if self._may_beat and now >= self._heartbeat.session_ends:
            # The coordinator has given the partitions to others by now, or is about to.
            self._lose_coordinator(now)
            self._reset(Identity(member_id=self.identity.member_id))
            self._lose(f"no heartbeat was answered for {self._timing.session_timeout:.0f} s", now)
        return self._advance(now)

    def next_tick(self, now: float) -> float | None:
        """Return when `tick` should come next at the latest, or None if nothing waits for the time."""
        limits = []
        if self._must_poll:
            limits.append(self._poll_ends)
        if self._may_beat:
            limits.append(self._heartbeat.session_ends)
        plans = []
        if self._may_beat and self.coordinator.known and not self._heartbeat.under_way:
            plans.append(self._heartbeat.next_at)
        if self._needs_coordinator and self.coordinator.wanted:
            plans.append(self.coordinator.next_at)
        if self._rejoin is not None or self._step is Step.OFFSETS:
            plans.append(self._retry_at)
        # A limit that has passed is `tick`'s to judge. A plan that is due waits for something else than the time, or
        # `_advance` would have carried it out.
        times = limits + [time for time in plans if time > now]
        return None if self.closed or not times else max(now, min(times))

    # --- The coordinator ----------------------------------------------------------------------------

    def coordinator_found(self, now: float) -> list[act.Action]:
        """Note that the coordinator is known and can be reached."""
        self.coordinator.found()
        # No sooner than a retry: a coordinator that is found, and then says that it is none, is not asked in a loop.
        self._heartbeat.soon(max(now, self._retry_at))
        return self._advance(now)

    def coordinator_missing(self, refusal: int | None, detail: str, now: float) -> list[act.Action]:
        """Note that the look-up failed; with a `refusal` (an error code), trying again will not mend it."""
        self.coordinator.missing(now)
        if refusal is not None:
            self._refuse(refusal, detail, now)
        return self._advance(now)

    def disconnected(self, attempt: int, now: float) -> list[act.Action]:
        """Note that a step's request went unanswered. Ids are kept: the coordinator may still hold them."""
        if attempt == self._attempt and self._step in {Step.JOIN, Step.SYNC, Step.OFFSETS}:
            if self._step is not Step.OFFSETS:
                self._step = None
            self._judge(Verdict.ELSEWHERE, "the connection to the coordinator was lost", ErrorCode.NONE, now)
        return self._advance(now)

    # --- Joining ------------------------------------------------------------------------------------

    def joined(self, attempt: int, answer: JoinAnswer, now: float) -> list[act.Action]:
        """Take JoinGroup's answer."""
        if self._awaits(Step.JOIN, attempt):
            self._step = None
            if answer.error == ErrorCode.MEMBER_ID_REQUIRED:
                # KIP-394: the id is given first, so that a lost answer leaves no ghost member behind.
                self.identity = Identity(member_id=answer.member_id)
            elif answer.error != ErrorCode.NONE:
                self._judge_answer(Api.JOIN_GROUP, answer.error, now)
            elif self._is_consumer_group(answer.protocol_type, now):
                self._enter_generation(answer, now)
        return self._advance(now)

    def planned(self, attempt: int, assignments: Mapping[str, bytes], now: float) -> list[act.Action]:
        """Take the leader's plan, and send it with SyncGroup."""
        if self._awaits(Step.PLAN, attempt):
            self._open(Step.SYNC)
            self._out.append(act.SendSync(self._attempt, self.identity, assignments))
        return self._advance(now)

    def plan_failed(self, attempt: int, detail: str, now: float) -> list[act.Action]:
        """Note that the assignor failed; nothing is sent for this generation."""
        if self._awaits(Step.PLAN, attempt):
            self._step = None
            self._refuse(ErrorCode.NONE, detail, now)
        return self._advance(now)

    def synced(self, attempt: int, answer: SyncAnswer, now: float) -> list[act.Action]:
        """Take SyncGroup's answer."""
        if self._awaits(Step.SYNC, attempt):
            self._step = None
            self._heartbeat.start_session(now)
            if answer.error != ErrorCode.NONE:
                self._judge_answer(Api.SYNC_GROUP, answer.error, now)
            elif answer.protocol not in {None, self.identity.protocol}:
                detail = f"SyncGroup says {answer.protocol!r}, JoinGroup said {self.identity.protocol!r}"
                self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail, now)
            elif self._is_consumer_group(answer.protocol_type, now):
                self._take_assignment(answer.assignment, now)
        return self._advance(now)

    def offsets_fetched(self, attempt: int, answer: OffsetsAnswer, now: float) -> list[act.Action]:
        """Take the committed offsets of what was assigned; if one is missing, all are fetched again."""
        if self._awaits(Step.OFFSETS, attempt):
            verdicts = {
                verdict(Api.OFFSET_FETCH, code): code for code in (answer.error, *answer.errors.values())
            }
            if verdicts.keys() <= {Verdict.FINE}:
                self._deliver_assignment(answer, now)
            else:
                worst = max(verdicts, key=lambda found: found.value)
                if worst is Verdict.REFUSED:
                    self._step = None
                code = verdicts[worst]
                self._judge(worst, f"the committed offsets cannot be read: {error_name(code)}", code, now)
        return self._advance(now)

    def left(self, attempt: int, now: float) -> list[act.Action]:
        """Take LeaveGroup's end, whatever it was."""
        if self._awaits(Step.LEAVE, attempt):
            self._step = None
        return self._advance(now)

    def awaits(self, attempt: int) -> bool:
        """Whether the answer to this attempt is still wanted."""
        return attempt == self._attempt and not self.closed

    # --- Staying ------------------------------------------------------------------------------------

    def heartbeat_answered(self, identity: Identity, error: int, now: float) -> list[act.Action]:
        """Take Heartbeat's answer; one to a former identity says nothing about this one."""
        same = identity == self.identity
        alive = not same or error in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
        self._heartbeat.answered(now, alive=alive)
        if alive:
            self._backoff.reset()
        if same:
            self._judge_from_aside(Api.HEARTBEAT, error, now)
        return self._advance(now)

    def heartbeat_unanswered(self, now: float) -> list[act.Action]:
        """Note that a heartbeat's connection broke."""
        self._heartbeat.unanswered()
        self._lose_coordinator(now)
        return self._advance(now)

    def commit_answered(self, identity: Identity, error: int, now: float) -> list[act.Action]:
        """Take what a commit's answer says about the membership."""
        if identity == self.identity and identity.valid:
            self._judge_from_aside(Api.OFFSET_COMMIT, error, now)
        elif verdict(Api.OFFSET_COMMIT, error) is Verdict.ELSEWHERE:
            self._lose_coordinator(now)
        return self._advance(now)

    def commit_unanswered(self, now: float) -> list[act.Action]:
        """Note that a commit's connection broke."""
        self._lose_coordinator(now)
        return self._advance(now)

    def commit_identity(self) -> Identity | ErrorCode:
        """Return the identity that a commit must carry now, or why none may be sent."""
        if self.state is State.STABLE:
            return self.identity
        if self.subscription is None and not self._leaving:
            return Identity()  # partitions assigned by hand: a commit outside any generation
        if self.state is State.UNJOINED:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.REBALANCE_IN_PROGRESS

    # --- What follows -------------------------------------------------------------------------------

    def _advance(self, now: float) -> list[act.Action]:
        if self.closed:
            self._out.clear()  # late answers have nothing to say to a member that is gone
        else:
            if self._needs_coordinator and self.coordinator.start(now):
                self._out.append(act.LookUpCoordinator())
            if self._may_beat and self.coordinator.known and self._heartbeat.due(now):
                self._heartbeat.sent(now)
                self._out.append(act.SendHeartbeat(self.identity))
            self._take_step(now)
        out, self._out = self._out, []
        return out

    def _take_step(self, now: float) -> None:
        if self._step is Step.OFFSETS:
            if self._rejoin is not None:
                self._step = None  # never delivered, so never owned: nothing to give up
            elif self._retry_at and now >= self._retry_at and self.coordinator.known:
                self._fetch_offsets()
        if self._step is not None:
            return
        if self._leaving:
            self._leave(now)
        if not self._leaving and (self._rejoin is not None or self._fenced) and not self._prepare(now):
            self._join(now)

    def _prepare(self, now: float) -> bool:
        """Have the application give up what it owns, once for each rebalance; return whether it has to now."""
        was_prepared, self._prepared = self._prepared, True
        lost = not self.identity.valid
        # Eager: revoked even when nothing is owned, so that every on_assign has its on_revoke.
        if was_prepared or (lost and not self.owned):
            return False
        timeline = self._timeline_at(now)
        timeline.lost |= lost
        timeline.begin(Phase.REVOKE, now)
        self._deliver(Revoke(self._attempt + 1, self.owned, lost))
        return True

    def _join(self, now: float) -> None:
        if self.subscription is None or self._gated or self._fenced:
            return
        if not self.coordinator.known or now < self._retry_at:
            return
        self._timeline_at(now).begin(Phase.JOIN, now)
        self._joining = self.subscription
        protocols = self._encode_subscription(self.subscription, self.owned, self.identity.generation)
        self._open(Step.JOIN)
        self.state = State.PREPARING_REBALANCE
        request = JoinRequest(self.identity.member_id, protocols, self._rejoin or "")
        self._out.append(act.SendJoin(self._attempt, request))

    def _enter_generation(self, answer: JoinAnswer, now: float) -> None:
        self.identity = Identity(answer.generation, answer.member_id, answer.protocol)
        self.state = State.COMPLETING_REBALANCE
        self._backoff.reset()
        self._heartbeat.start_session(now)
        self._last_poll = max(self._last_poll, now)  # waiting for the others was no fault of the application
        timeline = self._timeline_at(now)
        timeline.end(Phase.JOIN, now)
        timeline.begin(Phase.SYNC, now)
        if answer.leader == answer.member_id and not answer.skip_assignment:
            self._open(Step.PLAN)
            self._out.append(act.Plan(self._attempt, answer.protocol or "", answer.members))
        else:
            self._open(Step.SYNC)
            self._out.append(act.SendSync(self._attempt, self.identity, {}))

    def _is_consumer_group(self, protocol_type: str | None, now: float) -> bool:
        """Return whether an answer's type of group is ours (old brokers name none); refuse if not (KIP-559)."""
        if protocol_type in {None, PROTOCOL_TYPE}:
            return True
        detail = f"the group's protocol type is {protocol_type!r}, not {PROTOCOL_TYPE!r}"
        self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, detail, now)
        return False

    def _take_assignment(self, data: bytes, now: float) -> None:
        try:
            # A leader that left this member out sends no bytes at all: nothing is assigned.
            assigned = self._decode_assignment(data) if data else {}
        except MalformedBytesError as error:
            self._refuse(ErrorCode.NONE, f"the leader sent an assignment that cannot be read: {error}", now)
            return
        self.state = State.STABLE
        timeline = self._timeline_at(now)
        timeline.end(Phase.SYNC, now)
        if not set(assigned) <= set(self._joining):
            self._back_off(now)
            return
        self._rejoin = None
        if self._joining != self.subscription:
            self._request_rejoin("the subscription changed", now)
            return
        timeline.begin(Phase.ASSIGN, now)
        self._assigned = assigned
        protocol, generation = self.identity.protocol, self.identity.generation
        if protocol is not None:
            self._out.append(act.NotifyAssignor(protocol, assigned, generation))
        if assigned:
            self._fetch_offsets()
        else:
            self._deliver_assignment(OffsetsAnswer(), now)

    def _fetch_offsets(self) -> None:
        self._retry_at = 0.0
        self._open(Step.OFFSETS)
        self._out.append(act.FetchOffsets(self._attempt, self._assigned))

    def _deliver_assignment(self, answer: OffsetsAnswer, now: float) -> None:
        timeline, self._timeline = self._timeline_at(now), None
        self._prepared = False
        self._owned_before, self.owned = self.owned, self._assigned
        self._deliver(Assign(self._attempt + 1, self.owned, answer.offsets, self.identity, timeline))

    def _deliver(self, event: Assign | Revoke) -> None:
        self._open(Step.APPLICATION)
        self._event = event
        self._out.append(act.Deliver(event))

    # --- Leaving ------------------------------------------------------------------------------------

    def _start_leaving(self) -> None:
        self._leaving = True
        self._rejoin = self._timeline = None
        if self._step in {Step.JOIN, Step.SYNC}:
            # The coordinator answers in order, and would hold LeaveGroup back until the group has joined.
            self._out.append(act.DropConnection())
        if self._step is not Step.LEAVE:
            self._give_step_up()

    def _leave(self, now: float) -> None:
        if self.owned:
            self._deliver(Revoke(self._attempt + 1, self.owned, not self.identity.valid))
        elif self.identity.member_id and not self._static and self.coordinator.known:
            self._open(Step.LEAVE)
            reason = "the consumer was closed" if self._closing else "the consumer unsubscribed"
            self._out.append(act.SendLeave(self._attempt, self.identity, reason))
            self._reset(Identity())
        else:
            self._finish_leaving(now)

    def _finish_leaving(self, now: float) -> None:
        self._leaving = self._gated = False
        self._prepared = True
        self._reset(Identity())
        if self._closing:
            self.closed = True
            self._out.append(act.Deliver(Closed()))
        elif self.subscription is not None:
            self._request_rejoin("the consumer subscribed", now)

    def _stop_for_silence(self, now: float) -> None:
        limit = self._timing.max_poll_interval
        message = (
            f"the application did not poll for {now - self._last_poll:.1f} s, which is more than max.poll.interval.ms "
            f"({limit * 1000:.0f}); the consumer has left the group, and joins again now that it polls. Process "
            "fewer messages between polls, or raise max.poll.interval.ms"
        )
        self._out.append(act.Deliver(PollExceeded(message)))
        if self._step is Step.SYNC:
            self._out.append(act.DropConnection())
        if not self._static and self.coordinator.known:
            self._out.append(act.SendLeave(0, self.identity, "the application stopped polling"))
        self._reset(Identity())
        self._gated = True
        self._lose("the application polls again after max.poll.interval.ms", now)

    # --- Errors -------------------------------------------------------------------------------------

    def _judge_answer(self, api: Api, error: int, now: float) -> None:
        self._judge(verdict(api, error), f"{api.value} was answered with {error_name(error)}", error, now)

    def _judge_from_aside(self, api: Api, error: int, now: float) -> None:
        """Judge an answer that came beside the steps."""
        if self._step in {Step.JOIN, Step.SYNC}:
            return  # sent before them on the same connection; their own answers say what holds now
        if verdict(api, error) is Verdict.LATER:
            self._heartbeat.soon(now + self._timing.retry_backoff)
        elif verdict(api, error) is not Verdict.FINE:
            self._judge_answer(api, error, now)

    def _judge(self, found: Verdict, reason: str, error: int, now: float) -> None:
        """Do what a verdict asks for. The identity is the one that the request carried."""
        match found:
            case Verdict.FINE:
                pass
            case Verdict.REJOIN:
                self._request_rejoin("the group is rebalancing", now)
            case Verdict.LATER:
                self._back_off(now)
            case Verdict.ELSEWHERE:
                self._lose_coordinator(now)
            case Verdict.NEW_GENERATION:
                self._reset(Identity(member_id=self.identity.member_id))
                self._lose(reason, now)
            case Verdict.NEW_MEMBER:
                self._reset(Identity())
                self._lose(reason, now)
            case Verdict.FENCED:
                self._fenced = True
                self._reset(Identity())
                self._lose(reason, now)
                self._refuse(error, reason, now)
            case Verdict.REFUSED:
                self._refuse(error, reason, now)

    def _lose(self, reason: str, now: float) -> None:
        """Rejoin with ids that were reset: what is owned is lost, what was not yet delivered never was."""
        self._prepared = False
        self._give_step_up()
        self._request_rejoin(reason, now)

    def _refuse(self, error: int, detail: str, now: float) -> None:
        """Tell the application; join again only when it polls after that."""
        timeline, self._timeline = self._timeline, None
        if self.state is not State.STABLE:
            self.state = State.UNJOINED
        self._rejoin = self._rejoin or "the last attempt failed"
        self._back_off(now)
        self._gated = True
        self._out.append(act.Refuse(error, detail, timeline))

    # --- Small parts --------------------------------------------------------------------------------

    @property
    def _in_generation(self) -> bool:
        return self.state in {State.COMPLETING_REBALANCE, State.STABLE}

    @property
    def _may_beat(self) -> bool:
        # Behind a parked SyncGroup a heartbeat would only wait, and time out with the whole connection.
        return self._in_generation and self._step is not Step.SYNC

    @property
    def _poll_ends(self) -> float:
        return self._last_poll + self._timing.max_poll_interval

    @property
    def _must_poll(self) -> bool:
        # One that unsubscribed gives its partitions up in a poll; close() serves itself.
        return self._in_generation and not self._closing

    @property
    def _needs_coordinator(self) -> bool:
        wanted = self.subscription is not None or self._in_generation or self._wants_coordinator
        return wanted and not self._gated

    def _awaits(self, step: Step, attempt: int) -> bool:
        return self._step is step and self._attempt == attempt

    def _open(self, step: Step) -> None:
        self._attempt += 1
        self._step = step

    def _give_step_up(self) -> None:
        """Stop waiting for the step under way; an event is taken back, if the application has not taken it."""
        if self._step is Step.APPLICATION:
            self._out.append(act.Withdraw(self._attempt))
        else:
            self._attempt += 1
            self._step = None

    def _reset(self, identity: Identity) -> None:
        self.identity = identity
        self.state = State.UNJOINED

    def _request_rejoin(self, reason: str, now: float) -> None:
        if not self._leaving:
            self._rejoin = self._rejoin or reason
            self._timeline_at(now)

    def _timeline_at(self, now: float) -> Timeline:
        if self._timeline is None:
            self._timeline = Timeline(self._rejoin or "", now)
        return self._timeline

    def _lose_coordinator(self, now: float) -> None:
        if self.coordinator.lost(now):
            self._out.append(act.DropConnection())
            self._back_off(now)

    def _back_off(self, now: float) -> None:
        self._retry_at = now + self._backoff.pause()
