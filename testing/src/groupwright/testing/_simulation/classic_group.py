"""A classic group: members, states, generations and the vote for a protocol (Kafka's `ClassicGroup`).

Nothing here waits or answers: `coordinator` decides what happens when, and uses this module for what a group
is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from groupwright.core import ErrorCode
from groupwright.core.hash_order import (
    HashOrder,
    java_hash_map,
    scala_immutable_hash_map,
    scala_mutable_hash_map,
)
from groupwright.testing._simulation import subscription
from groupwright.testing._simulation.messages import DescribedMember, JoinedMember, Protocol
from groupwright.testing._simulation.records import GroupMetadataRecord, MemberRecord
from groupwright.testing._simulation.settings import KafkaVersion

CONSUMER = "consumer"
"""Protocol type of consumers, whose subscriptions the coordinator reads."""


class State(Enum):
    """State of a classic group, by its name in DescribeGroups."""

    EMPTY = "Empty"
    """No members. Committed offsets may exist."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The coordinator waits for JoinGroup of all members."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A new generation has begun; the coordinator waits for the leader's SyncGroup."""
    STABLE = "Stable"
    """All members can fetch their assignment by SyncGroup."""
    DEAD = "Dead"
    """The group is deleted, or the coordinator has moved."""


PREVIOUS_STATES = {
    State.EMPTY: {State.PREPARING_REBALANCE},
    State.PREPARING_REBALANCE: {State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY},
    State.COMPLETING_REBALANCE: {State.PREPARING_REBALANCE},
    State.STABLE: {State.COMPLETING_REBALANCE},
    State.DEAD: set(State),
}
"""The states from which each state can be entered."""


@dataclass(slots=True)
class Member:
    """A member of a group.

    Attributes:
        group_instance_id: Set for a static member.
        protocols: In order of preference.
        assignment: Assignment of the last generation that became Stable.
        join: Correlation id of the parked JoinGroup.
        sync: Correlation id of the parked SyncGroup.
        is_new: Whether the member's first JoinGroup is still parked.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    join: int | None = None
    sync: int | None = None
    is_new: bool = False

    @property
    def session_is_suspended(self) -> bool:
        """True if the end of the session timeout has no effect, because a request is parked."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol that it supports."""
        return next(supported.metadata for supported in self.protocols if supported.name == protocol)

    def vote(self, candidates: set[str]) -> str:
        """Return the first protocol of the member that is a candidate."""
        return next(supported.name for supported in self.protocols if supported.name in candidates)

    def as_record(self, protocol: str | None) -> MemberRecord:
        """Return the member as it is written to the log."""
        return MemberRecord(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            self.assignment,
        )


@dataclass(slots=True)
class ClassicGroup:
    """The state of one group.

    Attributes:
        previous_state: The state before `state`.
        state_since_ms: When `state` was entered.
        pending_joins: Member ids that were given out with MEMBER_ID_REQUIRED and have not joined. They hold
            up every rebalance.
        pending_syncs: Members of this generation that have not sent SyncGroup.
        static_members: group.instance.id -> member id.
        subscribed_topics: Topics of all members; None if the coordinator cannot know them.
        new_member_added: Whether a member was added since the initial delay began.
        initial_delay_ms: The present part of the initial delay.
        remaining_delay_ms: The time by which new members can extend the initial delay.
    """

    group_id: str
    version: KafkaVersion
    state_since_ms: int
    state: State = State.EMPTY
    previous_state: State = State.DEAD
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    pending_joins: set[str] = field(default_factory=set)
    pending_syncs: set[str] = field(default_factory=set)
    static_members: dict[str, str] = field(default_factory=dict)
    subscribed_topics: frozenset[str] | None = None
    new_member_added: bool = False
    initial_delay_ms: int = 0
    remaining_delay_ms: int = 0

    # --- States and generations

    def transition_to(self, state: State, now: int) -> None:
        """Enter a state."""
        if self.state not in PREVIOUS_STATES[state]:
            raise AssertionError(f"{self.state} cannot be followed by {state}")
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now

    @property
    def can_rebalance(self) -> bool:
        """True if a rebalance can begin in this state."""
        return self.state in PREVIOUS_STATES[State.PREPARING_REBALANCE]

    @property
    def in_initial_delay(self) -> bool:
        """True if the group was Empty before this rebalance."""
        return self.state is State.PREPARING_REBALANCE and self.previous_state is State.EMPTY

    def begin_generation(self, now: int) -> None:
        """Begin the next generation: CompletingRebalance, or Empty if there are no members."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self._find_subscribed_topics()
        self.transition_to(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now)
        self.pending_syncs.clear()

    # --- Members

    def ordered(self) -> Iterator[Member]:
        """Iterate over the members in the order in which Kafka does.

        It is the order of a hash table, so it is random as member ids are.
        """
        order: HashOrder = java_hash_map if self.version is KafkaVersion.KAFKA_4_3 else scala_mutable_hash_map
        return (self.members[member_id] for member_id in order(self.members))

    def add(self, member: Member) -> None:
        """Add a member. The first one determines the protocol type, and leads."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id. If the leader goes, another member leads."""
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            self.static_members.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next((other.member_id for other in self.ordered()), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, group_instance_id: str, new_id: str) -> tuple[Member, Member]:
        """Give a static member's place to a new member id (KIP-345); return the old and the new member.

        A SyncGroup that the old member owed is still expected from the old id.
        """
        old = self.members.pop(self.static_members[group_instance_id])
        new = Member(
            new_id,
            group_instance_id,
            old.client_id,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
            is_new=old.is_new and self.version.replacement_stays_new,
        )
        self.members[new_id] = new
        if self.leader == old.member_id:
            self.leader = new_id
        self.static_members[group_instance_id] = new_id
        return old, new

    def elect_joined_leader(self) -> bool:
        """Let another member lead if the leader has not joined; return whether the leader has joined now."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is None:
            joined = next((member for member in self.ordered() if member.join is not None), None)
            if joined is None:
                return False
            self.leader = joined.member_id
        return True

    @property
    def joined(self) -> int:
        """Number of members with a parked JoinGroup."""
        return sum(member.join is not None for member in self.members.values())

    @property
    def all_have_joined(self) -> bool:
        """True if the join phase waits for no member and for no pending id."""
        return self.joined == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return the members as the leader's JoinGroup response lists them."""
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(self.protocol_name))
            for member in self.ordered()
        )

    def described_members(self) -> tuple[DescribedMember, ...]:
        """Return the members as DescribeGroups lists them."""
        stable = self.state is State.STABLE
        shown = stable or self.version.describes_assignments_while_rebalancing
        return tuple(
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.metadata(self.protocol_name) if stable else b"",
                member.assignment if shown else b"",
            )
            for member in self.ordered()
        )

    # --- Checks of requests

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check the ids of a request."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_generation(
        self, member_id: str, group_instance_id: str | None, generation_id: int
    ) -> ErrorCode:
        """Check the ids and the generation of a request."""
        error = self.check_member(member_id, group_instance_id)
        if error is ErrorCode.NONE and generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def accepts(self, member_id: str, max_size: int) -> bool:
        """Return whether `group.max.size` admits a JoinGroup.

        A static member that returns with an empty member id counts as an additional member.
        """
        member = self.members.get(member_id)
        if self.state is State.PREPARING_REBALANCE:
            return (member is not None and member.join is not None) or self.joined < max_size
        if self.state in {State.COMPLETING_REBALANCE, State.STABLE}:
            return member is not None or len(self.members) < max_size
        return True

    # --- Protocols

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return whether a member with these protocols can join: all members support one of them."""
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and any(
            self._supporters(protocol.name) == len(self.members) for protocol in protocols
        )

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members support."""
        names = {protocol.name for member in self.members.values() for protocol in member.protocols}
        candidates = {name for name in names if self._supporters(name) == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.ordered():
            voted = member.vote(candidates)
            votes[voted] = votes.get(voted, 0) + 1
        order: HashOrder = (
            java_hash_map if self.version is KafkaVersion.KAFKA_4_3 else scala_immutable_hash_map
        )
        return max(order(votes), key=votes.__getitem__)

    def _supporters(self, name: str) -> int:
        return sum(
            any(protocol.name == name for protocol in member.protocols) for member in self.members.values()
        )

    # --- Subscriptions

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member may consume this topic: its offsets then neither expire nor are deleted."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def _find_subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        found: set[str] = set()
        for member in self.members.values():
            topics = subscription.topics(member.metadata(self.protocol_name))
            if topics is None:
                return None
            found |= topics
        return frozenset(found)

    # --- The log

    def as_record(self) -> GroupMetadataRecord:
        """Return the group as it is written to the log."""
        return GroupMetadataRecord(
            self.generation_id,
            self.protocol_type,
            self.protocol_name,
            self.leader,
            self.state_since_ms,
            tuple(member.as_record(self.protocol_name) for member in self.ordered()),
        )

    @classmethod
    def from_record(cls, group_id: str, version: KafkaVersion, record: GroupMetadataRecord) -> "ClassicGroup":
        """Return the group that a coordinator has after it has loaded this record: Stable, or Empty.

        Members have only the chosen protocol, so a member that joins again with others rebalances the group.
        """
        group = cls(
            group_id,
            version,
            record.state_since_ms,
            state=State.STABLE if record.members else State.EMPTY,
            generation_id=record.generation_id,
            protocol_type=record.protocol_type,
            protocol_name=record.protocol_name,
            leader=record.leader,
        )
        for member in record.members:
            group.add(
                Member(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    record.protocol_type or "",
                    (Protocol(record.protocol_name or "", member.subscription),),
                    member.assignment,
                )
            )
        group.subscribed_topics = group._find_subscribed_topics()
        return group
