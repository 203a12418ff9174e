"""Kafka's `sticky` and `cooperative-sticky` assignors."""

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor, RebalanceProtocol
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors._wire.user_data import Owned, encode_generation, encode_owned

if TYPE_CHECKING:
    from groupwright.assignors._model.assignment import Assignment


class StickyAssignor(Assignor):
    """Balances as well as can be, and moves as little as that allows: Kafka's `sticky`, made exact.

    In this order it sees to it that

    1. every partition of a subscribed topic has one owner, who subscribes to the topic;
    2. loads are even: no other assignment has a smaller sum of squared loads, and so none has a smaller maximum;
    3. racks match: of those assignments none has more partitions whose owner is in a rack of one of their
       replicas (KIP-881; offline replicas count). A member without a rack matches every partition, and a
       partition without racks every member;
    4. partitions stay: of those, none takes fewer partitions from an owner who is still there, subscribes to the
       topic, and whose claim holds;
    5. topics are spread: what is still open gives each topic's partitions to as many of its members as it can.

    Points 1 to 4 hold exactly, for equal and for different subscriptions, and for groups of any size: what grows
    with the size is the time. Point 5 is a heuristic; it is exact where nobody owns anything, all subscribe to
    the same, and no racks matter. It chooses among partitions only after points 2 to 4 have settled how many of
    which racks and subscribers each member gets and gives up, and never moves one for it: where racks matter,
    and after many have joined one by one, members may have several partitions of a topic that others of its
    subscribers have none of. The result depends on nothing but the group's content.

    What a member owns is a claim, and checked. Of several members that claim a partition, the one with the
    highest generation owns it; if two claim it in that one, nobody does. Claims to topics and partitions that do
    not exist, or that the member does not subscribe to, own nothing.

    Members give everything up before they join (EAGER), and say in the user data what they had: user data of
    Kafka's version 1, or 0, is read, and version 1 written. What cannot be read says nothing. So an instance
    that is a member's remembers its last assignment; `assign` does not look at it.

    Example:
        Members a (subscribed to `orders`), b (`orders` and `audit`) and c (`audit`) own 3, 4 and 5 of 6
        partitions each. All can have 4. From c to a, who have no topic in common, it takes two moves, by way of
        b; an assignor that only looks for better places for single partitions finds none, and stops.

        >>> from groupwright.assignors import Group, Member, PartitionsByTopic
        >>> def member(id, topics, owned):
        ...     had = StickyAssignor()
        ...     had.on_assignment(PartitionsByTopic(owned), generation=7)
        ...     return Member(id, topics, user_data=had.user_data(frozenset(topics)))
        >>> members = [
        ...     member("a", ["orders"], {"orders": [0, 1, 2]}),
        ...     member("b", ["orders", "audit"], {"orders": [3, 4, 5], "audit": [0]}),
        ...     member("c", ["audit"], {"audit": [1, 2, 3, 4, 5]}),
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
        """Start as a member that has not had anything."""
        self._last: Owned | None = None

    def user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - the leader looks at that
        """Return what this member had, or None if it has not been in a generation."""
        return None if self._last is None else encode_owned(self._last)

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:
        """Remember what this member got."""
        self._last = Owned(assignment, generation)

    def assign(self, group: Group) -> "Assignment":
        """Return who gets what now."""
        from groupwright.assignors._algorithms.sticky import plan_sticky  # noqa: PLC0415 - numpy comes with it, which members that do not lead can do without

        return plan_sticky(group)


class CooperativeStickyAssignor(Assignor):
    """As `StickyAssignor`, for members that keep what they have over a rebalance: Kafka's `cooperative-sticky`.

    Its priorities are those of `StickyAssignor`, in the same order and as exact. But a partition that is to move
    while a member still claims it is given to nobody at first: whoever has it sees that it is not among its own
    any more, gives it up, and joins again (KIP-429), and the rebalance that follows hands it over. That one
    withholds nothing, unless the group has changed again or members do not give up what they should: all that
    members still have is to be theirs, so none of it has to move. To whom the partitions go is decided then, from
    what members have then: no leader needs to remember a plan.

    A partition that several members claim in the same generation is withheld even from these. One that is
    claimed by its owner, and by others whose claims are out of date, stays where it is. A member that claims
    what it does not subscribe to cannot keep it, but it is withheld from others too.

    What a member owns stands in its subscription. Members that send no generation there (before version 2) have
    it in the user data, which holds nothing else.

    Example:
        Member a owns all four partitions of `orders`; b joins. Two partitions are to move. They are withheld,
        and when a has joined again without them, b gets them.

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
        """Start as a member that has not been in a generation."""
        self._generation = NO_GENERATION

    def user_data(self, topics: frozenset[str]) -> bytes:  # noqa: ARG002 - the leader looks at that
        """Return this member's last generation, for leaders that do not find it in the subscription."""
        return encode_generation(self._generation)

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:  # noqa: ARG002 - claimed anyway
        """Remember the generation."""
        self._generation = generation

    def assign(self, group: Group) -> "Assignment":
        """Return who gets what now."""
        from groupwright.assignors._algorithms.sticky import plan_cooperative  # noqa: PLC0415 - numpy comes with it, which members that do not lead can do without

        return plan_cooperative(group)
