"""Stickiness for joined topics: `co-partitioned-sticky`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor, RebalanceProtocol
from groupwright.assignors._model.group import Group
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors.errors import InvalidInputError
from groupwright.assignors.load_aware import LoadAwareAssignor

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment


class CoPartitionedStickyAssignor(Assignor):
    """`CooperativeStickyAssignor` that assigns partitions of the same number in joined topics to one member.

    A consumer that joins two streams needs this: records with the same key are in the partitions of the same
    number. Kafka's `range` does it too, but moves many partitions when a member joins or leaves.

    The partitions of one number in joined topics are a bundle. A partition of a topic that is not joined is a
    bundle of its own. The priorities are, in this order:

    1. Every partition of a subscribed topic has one owner, which subscribes to the topic.
    2. Co-partitioning: all partitions of a bundle have the same owner, which subscribes to all its topics.
    3. Balance: no other assignment has a smaller sum of squared loads, counted in bundles.
    4. Racks: of those assignments, none has fewer rack mismatches, counted in bundles (KIP-881). A member
       matches the racks where all partitions of the bundle have a replica.
    5. Stickiness: of those, none takes fewer bundles from an owner that can keep them.
    6. Spread: the remaining choice spreads the bundles of each list over as many members as possible.

    Priorities 1 to 5 are met exactly, and 6 as in `StickyAssignor`, whose algorithm assigns the bundles.
    Bundles count alike, whatever their size: one of three partitions, and one partition of a topic that is
    not joined. So if bundles differ in size, balance and moves need not be optimal in partitions. If all have
    the same size, and none is split between members, they are.

    The owner of a bundle is the member that owns most of its partitions, of those that subscribe to all its
    topics. Of several that own as many, it is the one that owns the fewest bundles so far. So a bundle that
    another assignor has split is completed where most of it is. The choice between members that own equally
    many is a heuristic. It moves the fewest partitions after `roundrobin` and `cooperative-sticky` in the
    tests, and up to 5 % more than the fewest if bundles are split at random.

    Joined topics: Without an argument, topics with the same subscribers and equal numbers of partitions are
        joined, as in `range`. So a group can change from `range` to this assignor without naming its topics,
        no group is refused, and no member is left out because of its subscription. The price is balance: a
        group with many topics of few partitions has few bundles, and leaves members idle, as `range` does.

        Pass lists of topics if the application joins only some topics, or if members with different
        subscriptions must not split a bundle. Topics in no list are assigned as by `cooperative-sticky`.
        Topics that do not exist, have no partitions or have no subscriber are ignored. Only members that
        subscribe to all topics of a list are assigned its bundles. To add a topic to a list, first
        subscribe all members to it, then change the lists: otherwise the first member that subscribes gets
        all bundles. If no member subscribes to all topics of a list, a warning is logged, and they are
        assigned separately.

        The leader uses its own lists, and any member can become the leader. So all members need the same.

    Cooperation: As in `CooperativeStickyAssignor`, a partition that moves while a member claims it stays
        unassigned until the next rebalance. A bundle moves as a whole. Only if no member claimed one of its
        partitions, such as that of a new topic, is this one assigned a rebalance earlier than the others.

    By load: With `by_load`, the bundles are balanced as that assignor balances partitions, and priorities 3
        to 6 are its own: loads within its tolerance, then few moves. A bundle weighs what its partitions
        weigh together. Its source of weights, tolerance, `max_skew` (counted in bundles) and capacity apply;
        racks play no role. All members need it, and the same lists.

    Owned partitions are part of the subscription. User data is that of `by_load`, or else is neither sent nor
    read. Members that rebalance eagerly own nothing when they join, so their assignments are sticky only with
    `by_load`, whose user data has the last ones.

    Example: Members a and b join orders with payments. Member c joins the group, and is assigned a bundle
        when its owner has joined again without it.

        >>> from groupwright.assignors import Group, Member
        >>> assignor = CoPartitionedStickyAssignor([["orders", "payments"]])
        >>> def join(owned):
        ...     members = [
        ...         Member(id, ["orders", "payments"], owned=owned.get(id, {}), generation=7)
        ...         for id in ("a", "b", "c")
        ...     ]
        ...     return assignor.assign(Group(members, {"orders": 3, "payments": 3}))
        >>> first = join(
        ...     {
        ...         "a": {"orders": [0, 1], "payments": [0, 1]},
        ...         "b": {"orders": [2], "payments": [2]},
        ...     }
        ... )
        >>> first["a"], first["c"]
        ({'orders': [0], 'payments': [0]}, {})
        >>> join(first)["c"]
        {'orders': [1], 'payments': [1]}
    """

    name = "co-partitioned-sticky"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(
        self,
        joined: Iterable[Collection[str]] | None = None,
        *,
        allow_unequal: bool = False,
        by_load: LoadAwareAssignor | None = None,
    ) -> None:
        """Create the assignor.

        Args:
            joined: Lists of topics that are joined; None to join topics with the same subscribers and equal
                numbers of partitions. All members must have the same.
            allow_unequal: Whether the topics of a list may have different numbers of partitions. A partition
                that only some of them have is then in a bundle with those. Use it while topics of a list grow
                one after the other. Otherwise different numbers are an error, since records with the same key
                may be in partitions of different numbers: the group has no assignment until the numbers are
                equal.
            by_load: Balances the load of the bundles, such as `LoadAwareAssignor(weights=ProcessingTime())`;
                None to balance their numbers. All members must have the same.

        Raises:
            InvalidInputError: A list is not a collection of names, a topic is in two lists, or `by_load` is
                no `LoadAwareAssignor`.
        """
        self._joined = None if joined is None else _checked(joined)
        self._allow_unequal = allow_unequal
        if by_load is not None and not isinstance(by_load, LoadAwareAssignor):
            raise InvalidInputError(f"by_load must be a LoadAwareAssignor or None, not {by_load!r}")
        self._by_load = by_load
        self.weights = by_load.weights if by_load else None

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return the user data of `by_load`; None without."""
        if self._by_load is None:
            return None
        self._by_load.processing_times = self.processing_times
        self._by_load.rebalance_protocol = self.rebalance_protocol
        return self._by_load.user_data(topics)

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:
        """Pass the assignment on to `by_load`."""
        if self._by_load is not None:
            self._by_load.on_assignment(assignment, generation)

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions.

        Raises:
            AssignorError: Joined topics have different numbers of partitions, which are refused.
        """
        from groupwright.assignors._algorithms import co_partitioned

        if self._by_load is None:
            return co_partitioned.plan_co_partitioned(group, self._joined, allow_unequal=self._allow_unequal)
        return co_partitioned.plan_co_partitioned_by_load(
            group,
            self._joined,
            self._by_load.tolerance,
            self._by_load.max_skew,
            allow_unequal=self._allow_unequal,
        )


def _checked(joined: Iterable[object]) -> tuple[tuple[str, ...], ...]:
    """Return the lists of topics, after checking them."""
    list_of: dict[str, int] = {}
    lists: list[tuple[str, ...]] = []
    for number, topics in enumerate(joined):
        if (
            not isinstance(topics, Collection)
            or isinstance(topics, str)
            or not all(isinstance(topic, str) for topic in topics)
        ):
            raise InvalidInputError(
                f"joined topics must be lists of names, such as [['orders', 'payments']], not {topics!r}"
            )
        for topic in topics:
            if list_of.setdefault(topic, number) != number:
                raise InvalidInputError(
                    f"topic {topic!r} is in two lists of joined topics. Write all topics that are joined "
                    "with it in one list"
                )
        lists.append(tuple(topics))
    return tuple(lists)
