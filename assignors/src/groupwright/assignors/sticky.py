"""Kafka's `sticky` and `cooperative-sticky` assignors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor, RebalanceProtocol
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors._wire.user_data import Owned, encode_generation, encode_owned

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment


class StickyAssignor(Assignor):
    """Computes the best balance with the fewest moves: Kafka's `sticky`, but exact.

    Its priorities, in this order:

    1. Every partition of a subscribed topic has one owner, which subscribes to the topic.
    2. Balance: no other assignment has a smaller sum of squared loads. So none has a smaller maximum load.
    3. Racks: of those assignments, none has fewer rack mismatches (KIP-881). A partition mismatches if its
       owner is in a rack without a replica of it; offline replicas count. A member without a rack matches
       every partition, and a partition without racks every member.
    4. Stickiness: of those, none takes fewer partitions from an owner that is still a member, subscribes to
       the topic, and whose claim holds.
    5. Spread: the remaining choice spreads the partitions of each topic over as many members as possible.

    Priorities 1 to 4 are met exactly, for equal and for different subscriptions, and for groups of any size;
    only the time grows with the size. Priority 5 is a heuristic, which is exact if no partitions are owned,
    all subscriptions are equal, and no racks matter. Priorities 2 to 4 determine how many partitions each
    member gains and releases, by their racks and subscribers. Priority 5 then chooses partitions, and adds no
    moves. So where racks matter, or after many members have joined one by one, a member may have several
    partitions of a topic while another subscriber has none. The result depends on the group's content alone.

    Owned partitions are claims, which are verified. Of several members that claim a partition, the one with
    the highest generation owns it; if two claim it in that generation, none does. Claims to topics and
    partitions that do not exist, or that the member does not subscribe to, are ignored.

    Members revoke all partitions before they join (EAGER), and send the previous ones in the user data.
    Kafka's versions 0 and 1 are decoded, and version 1 is encoded; user data that cannot be decoded is
    ignored. For this purpose, a member's instance remembers its last assignment; `assign` does not use it.

    A member without user data owns `Member.owned`. In a real group this is empty, since the member has
    revoked everything. A tool can therefore compute an assignment offline without encoding user data.

    Example: Members a (subscribed to `orders`), b (`orders` and `audit`) and c (`audit`) own 3, 4 and 5
        partitions of two topics with 6 each. Each can have 4. From c to a, which have no topic in common,
        this takes two moves by way of b. An assignor that only tries to move single partitions finds no
        improvement, and stops.

        >>> from groupwright.assignors import Group, Member
        >>> members = [
        ...     Member("a", ["orders"], owned={"orders": [0, 1, 2]}),
        ...     Member("b", ["orders", "audit"], owned={"orders": [3, 4, 5], "audit": [0]}),
        ...     Member("c", ["audit"], owned={"audit": [1, 2, 3, 4, 5]}),
        ... ]
        >>> assignment = StickyAssignor().assign(Group(members, {"orders": 6, "audit": 6}))
        >>> for id, share in assignment.items():
        ...     print(id, share)
        a {'orders': [0, 1, 2, 5]}
        b {'audit': [0, 5], 'orders': [3, 4]}
        c {'audit': [1, 2, 3, 4]}
    """

    name = "sticky"

    def __init__(self) -> None:
        """Create the assignor of a member without a previous assignment."""
        self._last: Owned | None = None

    def user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - part of the interface
        """Return the last assignment in Kafka's format; None before the first one."""
        return None if self._last is None else encode_owned(self._last)

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:
        """Remember the assignment."""
        self._last = Owned(assignment, generation)

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.sticky import plan_sticky

        return plan_sticky(group)


class CooperativeStickyAssignor(Assignor):
    """`StickyAssignor` for members that keep their partitions in a rebalance: Kafka's `cooperative-sticky`.

    It has the priorities of `StickyAssignor`, and meets them as exactly. But a partition that moves while a
    member claims it stays unassigned at first: its owner finds it missing from its assignment, revokes it,
    and joins again (KIP-429), and the next rebalance assigns it. That rebalance withholds nothing, unless the
    group has changed again or a member has not revoked its partitions: all claimed partitions belong to their
    owners in the target assignment, so none has to move. The new owners are computed then, from the claims at
    that time, so no leader has to remember a plan.

    A partition that several members claim in the same generation is withheld from these too. A partition that
    its owner claims, and others with outdated claims, stays. A member that claims a partition that it does
    not subscribe to cannot keep it, but it is withheld from the others.

    Owned partitions are part of the subscription. Members with subscriptions before version 2, which have no
    generation, send it in the user data.

    Example: Member a owns all four partitions of `orders`, and b joins. Two partitions move: they are
        withheld, and b is assigned them when a has joined again without them.

        >>> from groupwright.assignors import Group, Member
        >>> def join(owned_by_a):
        ...     a = Member("a", ["orders"], owned=owned_by_a, generation=7)
        ...     group = Group([a, Member("b", ["orders"])], {"orders": 4})
        ...     return CooperativeStickyAssignor().assign(group)
        >>> first = join({"orders": [0, 1, 2, 3]})
        >>> first
        Assignment({'a': {'orders': [0, 1]}, 'b': {}})
        >>> join(first["a"])
        Assignment({'a': {'orders': [0, 1]}, 'b': {'orders': [2, 3]}})
    """

    name = "cooperative-sticky"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(self) -> None:
        """Create the assignor of a member that has not been in a generation."""
        self._generation = NO_GENERATION

    def user_data(self, topics: frozenset[str]) -> bytes:  # noqa: ARG002 - part of the interface
        """Return the last generation, for leaders that do not find it in the subscription."""
        return encode_generation(self._generation)

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:  # noqa: ARG002 - claimed anyway
        """Remember the generation."""
        self._generation = generation

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.sticky import plan_cooperative

        return plan_cooperative(group)
