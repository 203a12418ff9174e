"""Record of one rebalance, with its enumerations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from groupwright.core.load import GroupLoad

Partitions = Mapping[str, Sequence[int]]
"""Topic name to partition numbers."""

TopicPartitionKey = tuple[str, int]
"""Topic name and partition number."""


class Outcome(StrEnum):
    """Outcome of a rebalance."""

    COMPLETED = "completed"
    """The member applied a new assignment."""
    LOST = "lost"
    """The member applied a new assignment, after it had lost the partitions that it owned before."""
    FAILED = "failed"
    """The coordinator rejected the member, or the member's assignor failed."""


class Phase(StrEnum):
    """The phases of a rebalance, in the order of an eager one.

    A cooperative member (KIP-429) revokes after it has synced, and may go through a second round, whose times
    are added to the same phases. It consumes the partitions that it keeps throughout.
    """

    REVOKE = "revoke"
    """From the request to revoke partitions until the application has done so, callbacks included."""
    JOIN = "join"
    """From the first JoinGroup request until a response brought a generation."""
    SYNC = "sync"
    """From the JoinGroup response until SyncGroup brought the assignment; for the leader, with the assignor's
    run."""
    JOIN_AND_SYNC = "join_and_sync"
    """Join and sync together: librdkafka's callbacks do not separate them."""
    ASSIGN = "assign"
    """From the assignment's arrival until it was applied: committed offsets fetched, callbacks run."""


class Kind(StrEnum):
    """Kind of a member's rebalances: Java's `RebalanceProtocol` (KIP-429), or KIP-848."""

    EAGER = "eager"
    """The member revokes all its partitions first."""
    COOPERATIVE = "cooperative"
    """The member revokes only the partitions that move (KIP-429)."""
    CONSUMER = "consumer"
    """The broker assigns partitions (KIP-848)."""


class Trigger(StrEnum):
    """Origin of a rebalance, as far as the member knows."""

    MEMBER = "member"
    """This member: it subscribed, rejoined, lost its membership, or was asked to rebalance."""
    GROUP = "group"
    """Others: the coordinator announced that the group is rebalancing."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """The leader's measurements of its assignment; of two rounds (KIP-429), for both together."""

    members: int
    """Members of the group, without those whose subscriptions cannot be decoded."""
    moved: int
    """Partitions taken from a member that owned them and could have kept them."""
    min_moves: int
    """The fewest such moves that an optimally balanced assignment requires."""
    imbalance: int
    """Excess imbalance: (max - min partitions per member) minus the smallest difference achievable.

    In an assignor's `AssignmentQuality`: `imbalance - min_imbalance`, at least 0.
    """
    load: GroupLoad | None = None
    """The members' loads; None if the leader knows no weights of the partitions."""

    def followed_by(self, second: Leadership) -> Leadership:
        """Return the measurements of this round and the next one together (KIP-429).

        Moves are sums; all else is the second round's, which assigns what the first has withheld.
        """
        load = second.load
        if load is not None and self.load is not None:
            load = replace(load, moved_load=self.load.moved_load + load.moved_load)
        return replace(
            second,
            moved=self.moved + second.moved,
            min_moves=self.min_moves + second.min_moves,
            load=load,
        )


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A finished rebalance of one member: from its beginning to the assignment applied, or to its failure."""

    group: str
    client_id: str
    member_id: str
    generation: int
    """The generation that it led to, or the member epoch (KIP-848); -1 if it led to none."""
    protocol: str | None
    """The assignor that the group voted for; None where the rebalance failed before the vote.

    See `assigned_by_broker`.
    """
    outcome: Outcome
    reason: str
    """The reason, in words for logs. Code should read `trigger`."""
    duration: float | None
    """Seconds from the beginning to the end; None if the beginning could not be observed."""
    phases: Mapping[Phase, float]
    """Seconds in each phase that the member went through."""
    partitions: Partitions
    """The partitions owned after it."""
    ended_at: float
    """Wall-clock time of its end, in seconds since the epoch."""
    error: str | None = None
    """The error of a failed rebalance; None for the others."""
    kind: Kind = Kind.EAGER
    partitions_before: Partitions = field(default_factory=dict)
    """The partitions owned when it began; of a lost one, those that were lost."""
    leadership: Leadership | None = None
    """Set where this member led the group, unless the group is too large to measure."""
    trigger: Trigger = Trigger.MEMBER
    undecodable: Mapping[str, str] = field(default_factory=dict)
    """By member id, the reason why this member, as the leader, could not decode a subscription or user data.

    A member without a subscription was assigned nothing; one without user data took part without it.
    """
    assigned_by_broker: bool = False
    """True if the broker assigned the partitions (KIP-848), and called no member's assignor.

    Of a member with `Kind.EAGER` or `Kind.COOPERATIVE`: the group has members with
    ``group.protocol=consumer``. `protocol` is then the name that this member offered, and not what assigned.
    """

    @property
    def may_have_second_round(self) -> bool:
        """True if it is a round of a cooperative rebalance that another one may follow (KIP-429).

        A member that revokes partitions reports both rounds as one.
        """
        is_round = self.kind is Kind.COOPERATIVE and self.outcome is Outcome.COMPLETED
        return is_round and Phase.REVOKE not in self.phases

    def followed_by(self, second: Rebalance) -> Rebalance | None:
        """Return this round and the next one as one rebalance; None if the next begins another rebalance.

        The time between the rounds counts: the application consumed the partitions that it kept all along.
        """
        # A second round revokes nothing.
        is_second = second.may_have_second_round and second.trigger is Trigger.GROUP
        if not (self.may_have_second_round and is_second):
            return None
        is_timed = self.duration is not None and second.duration is not None
        began = self.ended_at - (self.duration or 0.0)
        times = {
            phase: self.phases.get(phase, 0.0) + second.phases.get(phase, 0.0)
            for phase in (*self.phases, *second.phases)
        }
        leadership = second.leadership or self.leadership
        if self.leadership is not None and second.leadership is not None:
            leadership = self.leadership.followed_by(second.leadership)
        return replace(
            second,
            reason=self.reason,
            trigger=self.trigger,
            duration=second.ended_at - began if is_timed else None,
            phases=times,
            partitions_before=self.partitions_before,
            leadership=leadership,
            undecodable={**self.undecodable, **second.undecodable},
        )


def by_topic(keys: Iterable[TopicPartitionKey]) -> dict[str, tuple[int, ...]]:
    """Return partition numbers by topic, both ascending."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(keys):
        topics.setdefault(topic, []).append(number)
    return {topic: tuple(numbers) for topic, numbers in topics.items()}
