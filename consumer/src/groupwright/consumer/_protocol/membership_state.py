"""The state of one membership: its data, and its invariants.

`MembershipState` is plain data. `membership.Membership` alone changes it, on one thread. Its three state
machines change only by `MembershipState.move`, along the table in `transitions`. If the current value of a
machine has no row for the cause, `move` raises `IllegalTransitionError` and moves none of them.

Everything else is data that these machines do not determine, such as the partitions owned. `STEPS_IN_STATE`
and `check_invariants` say which combinations are legal. The tests check them after every input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.model import GroupMembershipOperation, MemberIdentity, count, without
from groupwright.consumer._protocol.subscription import TopicSubscription
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.consumer._protocol.transitions import (
    MOVES,
    PARKED,
    ROUND,
    STEPS_IN_STATE,
    Cause,
    IllegalTransitionError,
    Lifecycle,
    State,
    Step,
)
from groupwright.core import ErrorCode, Partitions

# Tuples, since the properties below are read several times per heartbeat: a set would call `Enum.__hash__`.
_LEAVING = (Lifecycle.UNSUBSCRIBING, Lifecycle.CLOSING, Lifecycle.FLUSHED)
_CLOSING = (Lifecycle.CLOSING, Lifecycle.FLUSHED, Lifecycle.CLOSED)
_IN_GENERATION = (State.STABLE, State.COMPLETING_REBALANCE)
_PARKED = tuple(PARKED)


class InvariantError(AssertionError):
    """A `MembershipState` is not legal: a defect of this package."""


@dataclass(slots=True)
class Incoming:
    """An assignment that SyncGroup brought, and that the application has not received yet.

    Attributes:
        partitions: The whole assignment.
        gained: The partitions that are not owned yet; set after the revocation. Java's `addedPartitions`.
        another_round: Whether the member joins again after it, because it has revoked partitions that other
            members are assigned next (KIP-429).
    """

    partitions: Partitions
    gained: Partitions = field(default_factory=dict)
    another_round: bool = False


@dataclass(slots=True)
class MembershipState:
    """All data about one member of one group.

    Attributes:
        cooperative: Whether the member keeps its partitions while it rebalances (KIP-429).
        static: Whether it has a ``group.instance.id`` (KIP-345).
        state: Its part in the group protocol.
        step: The work under way.
        lifecycle: What the application wants.
        attempt: The number of the last step, by which its responses are matched. For an event, its ticket.
        event: The event that the application applies, in `Step.APPLICATION`.
        commits_first: The attempt of a JoinGroup that waits for the commits in flight, and is not sent yet; 0
            without one.
        identity: The generation, the member id and the assignor of the generation.
        stored_id: The member id of the last completed round: the coordinator has written it to its log.
        unconfirmed_id: A member id from an incomplete round whose coordinator was lost: the next coordinator
            may not know it.
        topic_subscription: The subscription as the application wrote it, or None without one.
        subscription: The topics to join with: those of `topic_subscription` that were available when metadata
            was last fetched.
        joined_subscription: The topics of the last JoinGroup (Java's `joinedSubscription`).
        owned: The partitions that the application owns.
        owned_since: The generation in which `owned` was assigned; -1 before the first assignment.
        incoming: The assignment that is about to be delivered.
        revoke_due: Whether an eager member must deliver a revocation before it joins, even of no partitions:
            there is one on_revoke for each on_assign.
        rejoin_reason: Why the member must join again (KIP-800), or None if it need not.
        timeline: The rebalance under way.
        awaits_poll: Whether the member stays out of the group until the application polls, and so receives
            the error.
        last_generation: The generation of the last assignment that the application has taken; -1 if there is
            none, or the application has called `assign` since the member left. The member then commits
            without a generation.
        operation: Whether `close` leaves the group (KIP-1092).
        leaving_as: The identity of the last LeaveGroup.
        leave_at: When a member that leaves abandons the round under way.
        fenced: Number of times that another member took this member's ``group.instance.id``. A fenced member
            never joins again.
        max_poll_exceeded: Number of times that the application exceeded ``max.poll.interval.ms``.
        refused_lookup: The error code of the last FindCoordinator, if a retry will not help; otherwise None.
        wants_coordinator: Whether the coordinator is needed for commits, even without a subscription.
        retry_at: When a failed request may be sent again; 0.0 if none is to be retried.
        last_poll: When the application last polled.
        was_assigned: Whether the application has taken an assignment since it subscribed, or since it last
            exceeded ``max.poll.interval.ms``.

    Times are monotonic, in seconds.
    """

    cooperative: bool = False
    static: bool = False

    state: State = State.UNJOINED
    step: Step = Step.IDLE
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    attempt: int = 0
    event: Assign | Revoke | None = None
    commits_first: int = 0

    identity: MemberIdentity = field(default_factory=MemberIdentity)
    stored_id: str = ""
    unconfirmed_id: str = ""

    topic_subscription: TopicSubscription | None = None
    subscription: tuple[str, ...] | None = None
    joined_subscription: tuple[str, ...] = ()

    owned: Partitions = field(default_factory=dict)
    owned_since: int = -1
    incoming: Incoming | None = None
    revoke_due: bool = False

    rejoin_reason: str | None = None
    timeline: Timeline | None = None
    awaits_poll: bool = False
    last_generation: int = -1
    operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT
    leaving_as: MemberIdentity = field(default_factory=MemberIdentity)
    leave_at: float = 0.0
    fenced: int = 0
    max_poll_exceeded: int = 0

    refused_lookup: int | None = None
    wants_coordinator: bool = False
    retry_at: float = 0.0
    last_poll: float = 0.0
    was_assigned: bool = False

    # --- Transitions --------------------------------------------------------------------------------

    def move(self, cause: Cause) -> None:
        """Move each machine that the cause has rows for.

        Raises:
            IllegalTransitionError: One of them has no row for its current value. None has moved.
        """
        states, steps, lifecycles = MOVES[cause]
        try:
            state = states[self.state] if states else self.state
            step = steps[self.step] if steps else self.step
            lifecycle = lifecycles[self.lifecycle] if lifecycles else self.lifecycle
        except KeyError as error:
            message = f"{error.args[0]} has no transition for {cause.name}: {cause.value}"
            raise IllegalTransitionError(message) from None
        self.state, self.step, self.lifecycle = state, step, lifecycle

    # --- Derived properties -------------------------------------------------------------------------

    @property
    def leaving(self) -> bool:
        """True if the member leaves its group: it unsubscribes or closes."""
        return self.lifecycle in _LEAVING

    @property
    def closing(self) -> bool:
        """True if the consumer is closing or closed."""
        return self.lifecycle in _CLOSING

    @property
    def closed(self) -> bool:
        """True if the membership is over."""
        return self.lifecycle is Lifecycle.CLOSED

    @property
    def in_generation(self) -> bool:
        """True if the member is in a generation that it knows of."""
        return self.state in _IN_GENERATION

    @property
    def parked(self) -> bool:
        """True if the coordinator holds a request of this member back until other members have acted.

        Meanwhile the session does not expire, and the connection serves nothing else.
        """
        return self.step in _PARKED and self.commits_first != self.attempt

    @property
    def may_heartbeat(self) -> bool:
        """True if heartbeats are sent.

        None is sent while a request is parked: the coordinator responds in order, so the heartbeat would time
        out and close the connection.
        """
        is_joining = self.step is Step.JOIN and self.identity.valid
        return (self.in_generation or is_joining) and not self.parked

    @property
    def session_runs(self) -> bool:
        """True if the session can expire.

        Also while no heartbeats are sent: a cooperative member keeps its partitions between two attempts to
        join, but not longer than the coordinator waits for the member.
        """
        return (self.in_generation or self.claims_partitions) and not self.parked

    @property
    def must_poll(self) -> bool:
        """True if the application must poll within ``max.poll.interval.ms``.

        Not before it has taken an assignment, as in librdkafka: an application may subscribe, and take its
        time until it polls. Also after `unsubscribe`, since a poll revokes the partitions. `close` needs no
        poll.
        """
        return self.in_generation and self.was_assigned and not self.closing

    @property
    def needs_coordinator(self) -> bool:
        """True if FindCoordinator is sent while the coordinator is unknown."""
        joins = self.subscription is not None or self.in_generation
        return self.wants_coordinator or (joins and not self.awaits_poll) or self.leaves_again

    @property
    def leaves_again(self) -> bool:
        """True if LeaveGroup is sent again after a pause, or once the coordinator is found."""
        return self.step is Step.LEAVE and self.retry_at > 0

    @property
    def sends_leave(self) -> bool:
        """True if the member sends LeaveGroup. Otherwise the coordinator removes it when its session expires.

        By default a static member that closes sends none, since it is expected back (KIP-345, KIP-1092). A
        static member that unsubscribes sends it, as in librdkafka.
        """
        if self.operation is GroupMembershipOperation.DEFAULT:
            return not (self.static and self.closing)
        return self.operation is GroupMembershipOperation.LEAVE_GROUP

    @property
    def has_lost_partitions(self) -> bool:
        """True if the application still owns partitions of a generation that has ended for this member.

        Other members may own them already. Before the member joins again, it revokes them as lost.
        """
        return bool(self.owned) and not self.identity.valid

    @property
    def claims_partitions(self) -> bool:
        """True if the member owns partitions, in a generation that has not ended.

        JoinGroup may claim them.
        """
        return bool(self.owned) and self.identity.valid

    @property
    def keeps_partitions(self) -> bool:
        """True if partitions stay owned during a rebalance (KIP-429)."""
        return self.cooperative and self.claims_partitions

    @property
    def commits_wait(self) -> bool:
        """True if a commit may wait for the end of the round, to be sent in the new generation.

        It may if the member keeps the partitions, or has joined the generation already. The group is stable
        as soon as the coordinator has the leader's assignment, before members have read SyncGroup's response.
        """
        return self.keeps_partitions or self.state is State.COMPLETING_REBALANCE

    @property
    def matches_topics(self) -> bool:
        """True if the subscription has regular expressions."""
        return self.topic_subscription is not None and bool(self.topic_subscription.patterns)

    @property
    def misses_topics(self) -> bool:
        """True if a topic subscribed to by name was missing in the last metadata."""
        subscribed = self.topic_subscription
        return subscribed is not None and not set(subscribed.wanted_names).issubset(self.subscription or ())

    @property
    def needs_metadata(self) -> bool:
        """True if metadata must be fresh before JoinGroup, because new topics change the subscription."""
        return self.matches_topics or self.misses_topics

    @property
    def monitors_topics(self) -> bool:
        """True if metadata is fetched at intervals."""
        stopped = self.leaving or self.fenced or self.awaits_poll
        return self.topic_subscription is not None and not stopped

    def commit_identity(self) -> MemberIdentity | ErrorCode:
        """Return the identity for a commit, or the error code with which a commit fails now."""
        leaves = self.leaving and self.step not in ROUND
        revokes = isinstance(self.event, Revoke)
        if self.state is State.STABLE or ((leaves or revokes) and self.identity.valid):
            # Also after an abandoned JoinGroup: the coordinator accepts this generation until the next one
            # begins. Then it is too late for partitions that are revoked between two attempts to join, since
            # their next owners begin at the committed offsets.
            return self.identity
        if self.subscription is None and not self.leaving:
            # As in librdkafka, after leaving this is the former generation, which the coordinator rejects
            # without a member id: other members may own the partitions.
            return MemberIdentity(self.last_generation)
        if self.state is State.UNJOINED and self.last_generation < 0:
            return MemberIdentity()  # as librdkafka; the coordinator accepts it if the group has no members
        if self.state is State.UNJOINED and not self.keeps_partitions:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.REBALANCE_IN_PROGRESS

    # --- Invariants ---------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Check that this is a legal state, as it is after every input.

        Raises:
            InvariantError: It is not; the message lists all rules that are broken.
        """
        broken = [rule for rule, holds in self._invariants() if not holds]
        if broken:
            raise InvariantError(f"{'; '.join(broken)}: {self}")

    def _invariants(self) -> Iterator[tuple[str, bool]]:
        step, incoming = self.step, self.incoming
        yield "a step is legal in its state", step in STEPS_IN_STATE[self.state]
        yield "a generation needs a valid identity", self.identity.valid or not self.in_generation
        yield (
            "ASSIGN and SYNC need a valid identity",
            self.identity.valid or step not in {Step.ASSIGN, Step.SYNC},
        )
        yield (
            "an event is under way exactly in APPLICATION",
            (step is Step.APPLICATION) is (self.event is not None),
        )
        yield "an event's ticket is its attempt", self.event is None or self.event.ticket == self.attempt
        yield "COMMITS belongs to FLUSHED", step is not Step.COMMITS or self.lifecycle is Lifecycle.FLUSHED
        yield "LEAVE belongs to a member that leaves", step is not Step.LEAVE or self.leaving
        yield "a member that sends LeaveGroup owns nothing", step is not Step.LEAVE or not self.owned
        yield (
            "a member that has sent LeaveGroup has no identity",
            step is not Step.LEAVE or not self.identity.member_id,
        )
        yield "a fenced member takes part in no round", not self.fenced or step not in ROUND
        yield "OFFSETS needs an assignment", step is not Step.OFFSETS or incoming is not None
        yield "an assignment comes with a stable generation", incoming is None or self.state is State.STABLE
        yield "a member that leaves takes no assignment", incoming is None or not self.leaving
        yield (
            "gained partitions are assigned and not owned yet",
            incoming is None
            or not (without(incoming.gained, incoming.partitions) or self._owns_any(incoming.gained)),
        )
        yield (
            "an eager member joins without partitions, a cooperative one with those of a generation",
            step not in PARKED or not self.owned or self.keeps_partitions,
        )
        yield (
            "a subscription has its topics",
            (self.subscription is None) is (self.topic_subscription is None),
        )
        yield "a consumer that closes has no subscription", self.subscription is None or not self.closing
        yield (
            "a closed member has and does nothing",
            not self.closed
            or (step is Step.IDLE and self.state is State.UNJOINED and not self.owned and incoming is None),
        )

    def _owns_any(self, partitions: Partitions) -> bool:
        return count(without(partitions, self.owned)) < count(partitions)
