"""Simulated rebalances of a group, computed offline until no member has to revoke a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from groupwright.assignors._algorithms.check import assign
from groupwright.assignors._model.assignor import Assignor, RebalanceProtocol, check_assignor
from groupwright.assignors._model.columns import Assignment, PartitionColumns, difference, partitions_of_keys
from groupwright.assignors._model.group import NO_GENERATION, Group, Member
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors.broker import BrokerAssignor
from groupwright.assignors.errors import AssignorError


@dataclass(frozen=True, slots=True)
class SimulatedRebalance:
    """One rebalance.

    Attributes:
        group: The group that the leader received, with the members' claims and user data.
        assignment: The result of the leader's assignor.
    """

    group: Group
    assignment: Assignment

    def revoked(self) -> list[tuple[Member, PartitionsByTopic]]:
        """Return the members that must revoke partitions after this rebalance, and these partitions."""
        members = self.group.members
        return _no_longer_assigned(members, [member.owned for member in members], self.assignment)


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    """An event of a group, and the rebalances that followed until no member had to revoke a partition.

    Attributes:
        before: The group after the event and before the first rebalance, with the partitions that its members
            owned then.
        rebalances: The rebalances: none if the group has no members, and one if the assignor is not
            cooperative. With a `BrokerAssignor`, the one is the target assignment.
        group: The settled group. Its members own their assignments, in the generation of the last rebalance.
    """

    before: Group
    rebalances: tuple[SimulatedRebalance, ...]
    group: Group

    @property
    def assignment(self) -> Assignment:
        """The assignment of the last rebalance."""
        return self.rebalances[-1].assignment if self.rebalances else Assignment({})

    @property
    def moved(self) -> PartitionsByTopic:
        """Partitions that another member owns now, taken from a member that could have kept them.

        The former owner is still a member, and still subscribes to the topic.
        """
        assignment, members = self.assignment, self.before.members
        lost = [
            owned
            for _, owned in _no_longer_assigned(
                members, [_of_subscribed(each) for each in members], assignment
            )
        ]
        gained = [difference(assignment[each.id], [each.owned]) for each in members]
        topics = assignment.topics
        keys_lost = PartitionColumns.of(lost).keys(topics)
        return partitions_of_keys(topics, np.intersect1d(keys_lost, PartitionColumns.of(gained).keys(topics)))

    @property
    def revoked(self) -> PartitionsByTopic:
        """Partitions that a member revoked, before or after one of the rebalances.

        Members of an eager assignor revoke all partitions before they join. A partition whose owner has left
        the group is not among them, unless another member revoked it.
        """
        revoked = [owned for rebalance in self.rebalances for _, owned in rebalance.revoked()]
        if self.rebalances:
            joined = self.rebalances[0].group.members
            before = zip(self.before.members, joined, strict=True)
            revoked += [difference(member.owned, [then.owned]) for member, then in before]
        columns = PartitionColumns.of(revoked)
        return partitions_of_keys(columns.names, np.unique(columns.keys(columns.names)))


def simulate(
    group: Group,
    assignor: Assignor | Callable[[Member], Assignor],
    events: Iterable[Callable[[Group], Group]] = (),
    *,
    max_rebalances: int = 8,
) -> list[SimulatedEvent]:
    """Simulate the rebalances of a group offline, until it settles after each event.

    Every member has its own assignor. As in Kafka's clients, `user_data` is called before it joins, and
    `on_assignment` after each rebalance. The first member is the leader: its assignor assigns the partitions,
    and the result is checked as by the function `assign`.

    - Members of a cooperative assignor (KIP-429) claim the partitions that they own. A member that is no
      longer assigned one of them revokes it, and all join again: the group settles when no member has to
      revoke a partition. After an event, members first revoke the partitions of topics that they no longer
      subscribe to.
    - Members of an eager assignor revoke all partitions before they join, so the group settles after one
      rebalance. The assignor knows the previous owners only from its user data.
    - Members of a `BrokerAssignor` own what they are assigned after one target assignment: the broker waits
      for the members that revoke partitions without another rebalance (KIP-848).

    A member whose `user_data` is not None keeps it. Members that own partitions or have a generation at the
    beginning are in that generation: their assignors' `on_assignment` is called with these partitions first.

    Args:
        group: The group at the beginning.
        assignor: The assignor, of which every member gets a deep copy; or a function that returns the
            assignor of a member.
        events: Functions that return the group after an event: a member joins or leaves, a subscription,
            a topic or its weights change. The argument is the settled group. Members keep `owned` and
            `generation`; new members have none.
        max_rebalances: The largest number of rebalances after an event.

    Returns:
        The rebalances of the group at the beginning, and those after each event.

    Raises:
        AssignorError: The assignor is not usable, or its result is not an assignment of the group; a
            cooperative assignor assigns a partition that another member owns; or the group does not settle.
        Exception: An exception of the assignor or of an event.

    Example: Member b joins, then a leaves.

        >>> from groupwright.assignors import CooperativeStickyAssignor, Group, Member
        >>> def b_joins(group):
        ...     return Group([*group.members, Member("b", ["orders"])], group.topics)
        >>> def a_leaves(group):
        ...     return Group([member for member in group.members if member.id != "a"], group.topics)
        >>> group = Group([Member("a", ["orders"])], {"orders": 4})
        >>> for event in simulate(group, CooperativeStickyAssignor(), [b_joins, a_leaves]):
        ...     print(len(event.rebalances), event.assignment, event.moved)
        1 Assignment({'a': {'orders': [0, 1, 2, 3]}}) {}
        2 Assignment({'a': {'orders': [0, 1]}, 'b': {'orders': [2, 3]}}) {'orders': [2, 3]}
        1 Assignment({'b': {'orders': [0, 1, 2, 3]}}) {}
    """
    members = _Members(assignor, max_rebalances)
    simulated = [members.settle(group, group)]
    for event in events:
        before = event(simulated[-1].group)
        joining = [replace(member, owned=_of_subscribed(member)) for member in before.members]
        simulated.append(members.settle(before, Group(joining, before.topics)))
    return simulated


class _Members:
    """The assignors of a group's members."""

    def __init__(self, assignor: Assignor | Callable[[Member], Assignor], max_rebalances: int) -> None:
        self._assignor = assignor
        self._max_rebalances = max_rebalances
        self._by_id: dict[str, Assignor] = {}

    def settle(self, before: Group, group: Group) -> SimulatedEvent:
        """Simulate rebalances until no member has to revoke a partition.

        Args:
            before: The group after the event.
            group: The same group, when the members have revoked what they revoke before they join.
        """
        known = self._by_id
        self._by_id = {
            member.id: known[member.id] if member.id in known else self._assignor_of(member)
            for member in group.members
        }
        rebalances: list[SimulatedRebalance] = []
        while group.members:
            rebalance, group = self._rebalanced(group)
            rebalances.append(rebalance)
            must_revoke = rebalance.revoked()
            if not must_revoke or isinstance(self._by_id[group.members[0].id], BrokerAssignor):
                break
            if len(rebalances) == self._max_rebalances:
                member, revoked = must_revoke[0]
                name = self._by_id[member.id].name
                raise AssignorError(
                    f"assignor {name!r} does not settle: in rebalance {len(rebalances)}, {member.id!r} still "
                    f"has to revoke {revoked}"
                )
        return SimulatedEvent(before, tuple(rebalances), group)

    def _assignor_of(self, member: Member) -> Assignor:
        given = self._assignor
        assignor = deepcopy(given) if isinstance(given, Assignor) else given(member)
        check_assignor(assignor)
        if member.owned or member.generation != NO_GENERATION:
            assignor.on_assignment(member.owned, member.generation)
        return assignor

    def _rebalanced(self, group: Group) -> tuple[SimulatedRebalance, Group]:
        """Return a rebalance, and the group after it."""
        leader = self._by_id[group.members[0].id]
        is_cooperative = RebalanceProtocol.COOPERATIVE in leader.protocols
        joined = Group(
            [self._joined(member, is_cooperative=is_cooperative) for member in group.members], group.topics
        )
        assignment = assign(
            leader, joined, cooperative=is_cooperative and not isinstance(leader, BrokerAssignor)
        )
        generation = 1 + max(member.generation for member in group.members)
        for member in group.members:
            self._by_id[member.id].on_assignment(assignment[member.id], generation)
        after = [
            replace(member, owned=assignment[member.id], generation=generation) for member in group.members
        ]
        return SimulatedRebalance(joined, assignment), Group(after, group.topics)

    def _joined(self, member: Member, *, is_cooperative: bool) -> Member:
        """Return the member as the leader decodes it from JoinGroup's response."""
        user_data = member.user_data
        if user_data is None:
            assignor = self._by_id[member.id]
            with suppress(AttributeError):  # a frozen assignor
                assignor.rebalance_protocol = (
                    RebalanceProtocol.COOPERATIVE if is_cooperative else RebalanceProtocol.EAGER
                )
            user_data = assignor.user_data(frozenset(member.topics))
        owned = member.owned if is_cooperative else NO_PARTITIONS
        if owned is member.owned and user_data is member.user_data:
            return member
        return replace(member, owned=owned, user_data=user_data)


def _of_subscribed(member: Member) -> PartitionsByTopic:
    """Return the owned partitions of topics that the member subscribes to."""
    if set(member.topics).issuperset(member.owned):
        return member.owned
    return PartitionsByTopic(
        {topic: owned for topic, owned in member.owned.items() if topic in member.topics}
    )


def _no_longer_assigned(
    members: Sequence[Member], owned: Sequence[PartitionsByTopic], assignment: Assignment
) -> list[tuple[Member, PartitionsByTopic]]:
    """Return the members that own partitions that they are not assigned, and these partitions.

    Args:
        members: The members.
        owned: The partitions that each of them owns.
        assignment: The assignment.
    """
    before = PartitionColumns.of(owned)
    if not before.partitions.size:
        return []
    after = PartitionColumns.of([assignment[member.id] for member in members])
    topics = tuple(sorted({*before.names, *after.names}))
    keys, owners = before.keys(topics), before.lists[before.partitions >= 0]
    keys_after = after.keys(topics)
    by_key = np.argsort(keys_after)
    places = np.searchsorted(keys_after, keys, sorter=by_key)
    # The last element stands for partitions that no member is assigned.
    found = np.append(by_key, -1)[places]
    is_same = (np.append(keys_after, -1)[found] == keys) & (np.append(after.lists, -1)[found] == owners)
    if is_same.all():
        return []
    return [
        (members[index], partitions_of_keys(topics, np.sort(keys[~is_same & (owners == index)])))
        for index in np.unique(owners[~is_same]).tolist()
    ]
