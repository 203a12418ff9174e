"""A group's assignment, and the one before as far as it is known. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from groupwright.assignors import (
    Assignment,
    AssignmentQuality,
    Group,
    GroupwrightError,
    Member,
    assign,
    by_name,
    evaluate,
)
from groupwright.assignors import simulate as simulated
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import GroupMember, Partitions
from groupwright.cli._command_line.assignors import ASSIGNOR_NAMES, load_assignor
from groupwright.cli._study.model import StudiedGroup, count, flat
from groupwright.core import TopicPartitionKey


@dataclass(frozen=True, slots=True)
class Before:
    """A group before its last rebalance.

    Members are known by their identity (`GroupMember.identity`), which static members keep.

    Attributes:
        owners: The identities of the members that had partitions.
        names: Short names, by identity.
        study: The whole group; None if only the claims of the present members are known, which they sent when
            they joined.
    """

    owners: Mapping[TopicPartitionKey, str]
    names: Mapping[str, str]
    study: StudiedGroup | None

    def partition_count(self, identity: str) -> int:
        """Return the number of partitions that a member had."""
        return sum(owner == identity for owner in self.owners.values())

    def member(self, identity: str) -> GroupMember | None:
        """Return a member of the group; None if it was none, or that is not known."""
        members = self.study.members if self.study else ()
        return next((member for member in members if member.identity == identity), None)


@dataclass(frozen=True, eq=False)
class Situation:
    """A group with its assignment.

    Attributes:
        study: The group; each member has its assignment.
        before: The group before; None if nothing is known of it.
        is_computed: Whether the assignment is that of the group's assignor, as the file has none.
    """

    study: StudiedGroup
    before: Before | None
    is_computed: bool = False

    @cached_property
    def names(self) -> dict[str, str]:
        """The members' short names, by member id."""
        return member_names(self.study.members)

    @cached_property
    def owners(self) -> dict[TopicPartitionKey, GroupMember]:
        """The members that have partitions."""
        return {key: member for member in self.study.members for key in flat(member.assigned)}

    @cached_property
    def by_identity(self) -> dict[str, GroupMember]:
        """The members by identity."""
        return {member.identity: member for member in self.study.members}

    @cached_property
    def group(self) -> Group:
        """The group as an assignor sees it; members own what they had before, if that is known."""
        return self.study.as_group({member.id: self.had(member) for member in self.study.members})

    @cached_property
    def subscribers(self) -> dict[str, list[Member]]:
        """The subscribed members of each topic, in Kafka's order."""
        return self.group.subscribers()

    @cached_property
    def partitions(self) -> int:
        """Number of partitions of subscribed topics."""
        return sum(self.study.topics[name].partitions for name in self.subscribers)

    @cached_property
    def has_equal_subscriptions(self) -> bool:
        """True if all members subscribe to the same existing topics."""
        known = self.study.topics
        return len({frozenset(known.keys() & set(member.topics)) for member in self.study.members}) <= 1

    @cached_property
    def quality(self) -> AssignmentQuality | None:
        """Quality of the assignment; None while it is not one of the present topics and subscriptions."""
        try:
            return evaluate(self.group, {member.id: member.assigned for member in self.study.members})
        except GroupwrightError:
            return None

    def expected(self, assignor: str) -> Assignment:
        """Return the assignment of `range` or `roundrobin`, which depends on the members' order alone."""
        if assignor not in self._expected:
            self._expected[assignor] = assign(by_name(assignor), self.group)
        return self._expected[assignor]

    @cached_property
    def _expected(self) -> dict[str, Assignment]:
        return {}

    def place(self, topic: str, member: GroupMember) -> int:
        """Return a member's index among the topic's subscribers."""
        return [each.id for each in self.subscribers[topic]].index(member.id)

    def partition_count(self, member: GroupMember) -> int:
        """Return the member's number of partitions."""
        return count(member.assigned)

    def had(self, member: GroupMember) -> Partitions:
        """Return the partitions that a member had before."""
        if self.before is None:
            return {}
        found: dict[str, tuple[int, ...]] = {}
        for (topic, number), owner in sorted(self.before.owners.items()):
            if owner == member.identity:
                found[topic] = (*found.get(topic, ()), number)
        return found

    def moved(self) -> list[TopicPartitionKey]:
        """Return the partitions whose owner differs from the one before."""
        before = {} if self.before is None else self.before.owners
        now = {key: member.identity for key, member in self.owners.items()}
        if self.before is None:
            return []
        return sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))


def situation_of(study: StudiedGroup, before: StudiedGroup | None) -> Situation:
    """Return the group to explain, with its earlier owners.

    Args:
        study: The group. If its assignment is not known, it is the one that the group's assignor makes from
            what members own.
        before: The group earlier; None if it is not known. Then it is what members claimed when they joined.
    """
    known = _claims(study) if before is None else _earlier(before)
    if study.has_assignment:
        return Situation(study, known)
    if study.client_assignor not in ASSIGNOR_NAMES:
        return Situation(study, None)
    group = study.as_group({member.id: member.owned for member in study.members}, with_capacities=True)
    [event] = simulated(group, load_assignor(study.client_assignor))
    members = tuple(
        replace(member, assigned=event.assignment[member.id].as_tuples()) for member in study.members
    )
    return Situation(replace(study, members=members, has_assignment=True), known, is_computed=True)


def _claims(study: StudiedGroup) -> Before | None:
    owners = {key: member.identity for member in study.members for key in flat(member.owned)}
    names = member_names(study.members)
    return Before(owners, {m.identity: names[m.id] for m in study.members}, None) if owners else None


def _earlier(study: StudiedGroup) -> Before:
    owners = {key: member.identity for member in study.members for key in flat(study.present(member))}
    names = member_names(study.members)
    return Before(owners, {member.identity: names[member.id] for member in study.members}, study)
