"""Where a member stands in its group, at any moment, and what a verdict does to that. The first of three layers.

`MembershipState` holds the facts: who the member is, what is owned, what is wanted, which step is under way.
`rounds.Rounds` derives from them what to do next, and `membership.Membership` takes the inputs.

A member moves through the protocol's states:

- UNJOINED: in no generation. Nothing is sent but JoinGroup.
- PREPARING_REBALANCE: JoinGroup is sent. The coordinator answers when all members have joined; until then it
  serves nothing else on that connection, so no heartbeat or commit is sent.
- COMPLETING_REBALANCE: a generation is held; the leader's plan or SyncGroup is awaited.
- STABLE: an assignment is held. A rebalance that is called for leaves the state STABLE until JoinGroup is
  sent, so that heartbeats and commits go on while the application gives its partitions up.

Within them one `Step` at most is open: a request, the assignor, or an event that the application has to
apply. Answers to a step that was given up meanwhile carry an old attempt number, and are ignored.
"""

import math
import random
from collections.abc import Callable
from enum import Enum, auto

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.model import (
    GroupMembershipOperation,
    MemberIdentity,
    Partitions,
    error_name,
)
from groupwright.consumer._protocol.rebalance import OTHERS, Timeline
from groupwright.consumer._protocol.subscription import TopicSubscription  # noqa: TC001 - as all imports here
from groupwright.consumer._protocol.timers import Backoff, CoordinatorLookup, Heartbeat, Jitter, Timing
from groupwright.consumer._protocol.topic_monitor import TopicErrors, TopicMonitor


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
    COMMITS = auto()
    LEAVE = auto()


PARKED = frozenset({Step.JOIN, Step.SYNC})
"""Steps in which the coordinator holds a request, and with it the session and the connection."""

ROUND = PARKED | {Step.PLAN}
"""Steps from JoinGroup to SyncGroup's answer."""

SubscriptionEncoder = Callable[[tuple[str, ...], Partitions, int], tuple[tuple[str, bytes], ...]]
"""(topics, owned partitions, generation) -> (assignor's name, subscription bytes), by preference."""


class MembershipState:
    """The facts about one member of one group, and the parts that all its inputs share."""

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
            timing: the member's timings.
            encode_subscription: makes JoinGroup's list of assignors with their subscription bytes.
            decode_assignment: reads SyncGroup's bytes; may raise `MalformedBytesError`.
            cooperative: whether the member keeps its partitions while it rebalances (KIP-429).
            static: whether the member has a ``group.instance.id``; closing does not make it leave then (KIP-345).
            racks: whether it has a ``client.rack``; as leader it then watches where replicas are, too (KIP-881).
            jitter: a random number in [0, 1) for each backoff.
        """
        self.state = State.UNJOINED
        self.identity = MemberIdentity()
        self.subscription: tuple[str, ...] | None = None
        """The topics of the subscription that were available when that was last looked at; None without a subscription."""
        self.owned: Partitions = {}
        """What the application holds."""
        self.coordinator = CoordinatorLookup(timing, jitter)
        self.closed = False
        self.fenced = self.poll_timeouts = 0
        """Times that another member took this one's place, and that the application stopped polling."""

        self._timing = timing
        self._encode_subscription = encode_subscription
        self._decode_assignment = decode_assignment
        self._cooperative = cooperative
        self._static = static
        self._out: list[act.Action] = []

        # The step under way.
        self._step: Step | None = None
        self._attempt = 0
        self._event: Assign | Revoke | None = None

        # The round under way: what was joined with, what SyncGroup brought, what of that is new.
        self._joining: tuple[str, ...] = ()
        self._incoming: Partitions | None = None
        self._gained: Partitions = {}
        self._another_round = False
        self._owned_since = -1

        # Member ids: the one that the group is known to have been stored with, and one that it may not have been.
        self._stored_id = ""
        self._unconfirmed_id = ""

        # What is wanted.
        self._topic_subscription: TopicSubscription | None = None
        self._rejoin: str | None = None
        self._timeline: Timeline | None = None
        self._prepared = True
        self._blocked = False
        self._leaving = False
        self._leave_at = math.inf
        """When a member that leaves gives up the round under way; until then it may wait for its end."""
        self._closing = False
        self._commits_sent = False
        self._has_joined = self._departed = False
        """Whether the member was in any generation yet, without which it commits as a consumer outside any group does; and
        whether it has left, and was assigned nothing by hand since: what it consumed may be another's by now."""
        self._operation = GroupMembershipOperation.DEFAULT
        self._fenced = False
        self._refused_lookup: int | None = None
        self._wants_coordinator = False

        # Clocks.
        self._heartbeat = Heartbeat(timing)
        self._topic_monitor = TopicMonitor(timing, jitter, racks=racks)
        self._topic_errors = TopicErrors()
        self._backoff = Backoff(timing, jitter)
        self._retry_at = 0.0
        self._last_poll = 0.0

    # --- Facts --------------------------------------------------------------------------------------

    @property
    def _in_generation(self) -> bool:
        return self.state in {State.COMPLETING_REBALANCE, State.STABLE}

    @property
    def _may_heartbeat(self) -> bool:
        # Behind a parked SyncGroup a heartbeat would only wait, and time out with the whole connection.
        return self._in_generation and self._step is not Step.SYNC

    @property
    def _session_runs(self) -> bool:
        # Also without heartbeats: what is kept through a rebalance is kept no longer than the coordinator would wait.
        holds = self._in_generation or (self.identity.valid and bool(self.owned))
        return holds and self._step not in PARKED

    @property
    def _poll_deadline(self) -> float:
        return self._last_poll + self._timing.max_poll_interval

    @property
    def _must_poll(self) -> bool:
        # One that unsubscribed gives its partitions up in a poll; close() serves itself.
        return self._in_generation and not self._closing

    @property
    def _needs_coordinator(self) -> bool:
        joins = self.subscription is not None or self._in_generation
        return self._wants_coordinator or (joins and not self._blocked)

    @property
    def _sends_leave(self) -> bool:
        """Whether a member that goes says so; else it stays until its session ends (KIP-345, KIP-1092).

        A static one that closes is expected back; one that unsubscribes leaves, as librdkafka's does.
        """
        if self._operation is GroupMembershipOperation.DEFAULT:
            return not (self._static and self._closing)
        return self._operation is GroupMembershipOperation.LEAVE_GROUP

    @property
    def keeps_partitions(self) -> bool:
        """Whether what is owned stays owned over the rebalance under way, so that a commit of it may wait for the end."""
        return self._cooperative and self.identity.valid and bool(self.owned)

    @property
    def _matches_topics(self) -> bool:
        return self._topic_subscription is not None and bool(self._topic_subscription.patterns)

    @property
    def _needs_metadata(self) -> bool:
        """Whether it takes a look at the topics to know which to join with; by name they are known once they are available."""
        return self._matches_topics or self._misses_topics

    @property
    def _misses_topics(self) -> bool:
        """Whether a topic that is subscribed to by name was not available when that was last looked at."""
        return self._topic_subscription is not None and not set(self._topic_subscription.named).issubset(
            self.subscription or ()
        )

    @property
    def _rejoins_on_topic_changes(self) -> bool:
        """Whether a change of topics calls for a rebalance now."""
        settled = self.state is State.STABLE and self._rejoin is None and not self._leaving
        return settled and (self._matches_topics or self._topic_monitor.planned_for is not None)

    @property
    def _monitors_topics(self) -> bool:
        barred = self._leaving or self._fenced or self._blocked
        return self._topic_subscription is not None and not barred

    # --- Steps --------------------------------------------------------------------------------------

    def _is_waiting_for(self, step: Step, attempt: int) -> bool:
        return self._step is step and self._attempt == attempt

    def _start_step(self, step: Step) -> None:
        self._attempt += 1
        self._step = step
        if step in PARKED:
            self._heartbeat.asked()

    def _deliver(self, event: Assign | Revoke) -> None:
        self._start_step(Step.APPLICATION)
        self._event = event
        self._out.append(act.DeliverEvent(event))

    def _deliver_revoke(self, partitions: Partitions, *, lost: bool = False) -> None:
        self._deliver(Revoke(self._attempt + 1, partitions, lost, self.identity, self._cooperative))

    def _abandon_step(self) -> None:
        """Stop waiting for the step under way; an event is taken back, if the application has not taken it."""
        self._incoming = None
        self._another_round = False
        if self._step is Step.APPLICATION:
            self._out.append(act.WithdrawEvent(self._attempt))
        else:
            self._attempt += 1
            self._step = None

    # --- Verdicts -----------------------------------------------------------------------------------

    def _handle_error(self, api: Api, error: int, now: float) -> None:
        found = classify(api, error)
        refused = found is ErrorAction.FATAL
        reason = f"{api.value} failed" if refused else f"{api.value} was answered with {error_name(error)}"
        self._apply(found, reason, error, now)

    def _handle_async_error(self, api: Api, error: int, now: float) -> None:
        """Judge an answer that came beside the steps."""
        if self._step in PARKED:
            return  # sent before them on the same connection; their own answers say what holds now
        if classify(api, error) is ErrorAction.RETRY:
            self._heartbeat.schedule(now + self._timing.retry_backoff)
        elif classify(api, error) is not ErrorAction.NONE:
            self._handle_error(api, error, now)

    def _apply(self, found: ErrorAction, reason: str, error: int, now: float) -> None:
        """Do what a verdict asks for. The identity is the one that the request carried."""
        if found is ErrorAction.FENCED and self._unconfirmed_id == self.identity.member_id != "":
            # Fenced by its own former id, which the coordinator has found in its log.
            found = ErrorAction.NEW_MEMBER
        match found:
            case ErrorAction.NONE:
                pass
            case ErrorAction.REJOIN:
                self._request_rejoin(OTHERS, now)
            case ErrorAction.RETRY:
                self._back_off(now)
            case ErrorAction.REDISCOVER:
                self._lose_coordinator(now)
            case ErrorAction.NEW_GENERATION:
                self._reset(MemberIdentity(member_id=self.identity.member_id))
                self._lose(reason, now)
            case ErrorAction.NEW_MEMBER:
                self._reset(MemberIdentity())
                self._lose(reason, now)
            case ErrorAction.FENCED:
                self._fenced = True
                self.fenced += 1
                self._reset(MemberIdentity())
                self._lose(reason, now)
                self._report_error(error, reason, now)
            case ErrorAction.FATAL:
                self._report_error(error, reason, now)

    def _reset(self, identity: MemberIdentity) -> None:
        self.identity = identity
        self.state = State.UNJOINED

    def _lose(self, reason: str, now: float) -> None:
        """Rejoin with ids that were reset: what is owned is lost, what was not yet delivered never was."""
        self._prepared = False
        self._abandon_step()
        self._request_rejoin(reason, now)

    def _report_error(self, error: int, detail: str, now: float, *, repeated: bool = False) -> None:
        """Tell the application; join again only when it polls after that."""
        timeline = self._block_joining(now)
        self._out.append(act.ReportError(error, detail, timeline, repeated))

    def _block_joining(self, now: float) -> Timeline | None:
        """Wait for the application before joining again; return the timeline of the rebalance that this ends."""
        timeline, self._timeline = self._timeline, None
        if self.state is not State.STABLE:
            self.state = State.UNJOINED
        self._rejoin = self._rejoin or "the last attempt failed"
        self._back_off(now)
        self._blocked = True
        return timeline

    # --- Small parts --------------------------------------------------------------------------------

    def _request_rejoin(self, reason: str, now: float) -> None:
        if not self._leaving:
            self._rejoin = self._rejoin or reason
            self._timeline_at(now)

    def _timeline_at(self, now: float) -> Timeline:
        if self._timeline is None:
            self._timeline = Timeline(self._rejoin or "", now, before=self.owned)
        return self._timeline

    def _lose_coordinator(self, now: float) -> None:
        if self.identity.member_id != self._stored_id:
            # A coordinator stores a group when its leader has synced. Whoever takes over before that knows a static
            # member by the id that it had in the generation before.
            self._unconfirmed_id = self.identity.member_id
        if self.coordinator.lost(now):
            self._out.append(act.DropConnection())
            self._back_off(now)

    def _back_off(self, now: float) -> None:
        self._retry_at = now + self._backoff.pause()
