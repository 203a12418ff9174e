"""Assignment by load: the `load-aware` assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor, RebalanceProtocol
from groupwright.assignors._model.group import NO_GENERATION, Group
from groupwright.assignors._model.partitions import NO_PARTITIONS, PartitionsByTopic
from groupwright.assignors._model.weight_source import WeightSource
from groupwright.assignors._wire.load_data import (
    MAX_CAPACITY,
    MIN_CAPACITY,
    MemberLoadData,
    encode_load_data,
    is_capacity,
)
from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment


class LoadAwareAssignor(Assignor):
    """Balances the load of members, instead of their numbers of partitions, with few moves.

    The load of a member is the weight of its partitions (`Topic.weights`) over its capacity. The peak is the
    largest load over capacity in the group. Members agree on the assignor by the name `load-aware`. Its
    priorities, in this order:

    1. Every partition of a subscribed topic has one owner, which subscribes to the topic.
    2. While the present assignment is within its tolerance, nothing moves. It is, if its peak is at most
       `1 + tolerance` times the best known peak, if it is within `max_skew`, and if no member idles: a member
       without load idles if it could relieve another one.
    3. Otherwise partitions move until the peak is at most `1 + tolerance / 2` times the best known one. The
       fewest partitions move; of equal numbers, the least weight. The gap between the two limits keeps noise
       in the weights from moving partitions again. An idle member takes a partition, and further ones from
       members that stay at `1 - tolerance` of the average (5 % at least), until it is there itself.
    4. If all weights are equal or unknown, loads are numbers of partitions, so these are even: exactly in a
       new group, within the tolerance later. Partitions without weight go to the subscribers with the fewest
       partitions for their capacity, and move later only for `max_skew`.

    Idle members are filled although the peak is within its tolerance, since that is there for noise in the
    weights. In a group of 20, a member that joins lowers the best possible peak by 5 % only. Without this
    rule it would own nothing for as long as the weights stay.

    These are exact: priority 1; priority 2 with respect to the best known peak; the numbers in `max_skew`;
    the certified lower bound of the peak in `LoadReport`; and, if all weights and capacities are equal and no
    partitions are owned, the balance, which is that of `sticky`.

    These are heuristics, since even loads are an NP-hard problem: the best known peak, and the number of
    moves. On 2,000 random groups of up to 7 members and 40 partitions, compared with an exact solver, the
    best known peak is 1.0005 times the optimum on average, at most 1.05 times in 99.8 % of the groups, and
    1.10 times at most. Groups beyond their tolerance take 2 % more moves than the fewest possible. Those with
    idle members take 6 % more than the fewest by the same rules, which are 35 % more than for the tolerance
    alone; one idle member in a hundred could get more. In large groups the best known peak is
    within 1 % of the bound, unless many members share few topics with others.

    The result depends on the group's content alone. In the second rebalance of a cooperative group no
    further partition moves, as long as the group and the weights are the same.

    Weights are taken from `Topic.weights`, where a leader puts what its source of weights found. A partition
    of unknown weight counts as the median of its topic's known weights; one of a topic without weights as the
    median of all known weights, or 1. Weights above 1e18 count as 1e18. If all weights are 0, all partitions
    count the same. Racks are ignored.

    Members send their capacities in the user data (the module `_wire.load_data` has its format). User data
    that cannot be decoded, and capacities out of range, count as 1. A member that sends a wrong capacity
    within the range gets the load for it, and has no other effect.

    Owned partitions are claims, which are verified as by `StickyAssignor`. Those of cooperative members are
    in their subscriptions. A partition that moves while a member claims it there stays unassigned at first,
    as with `CooperativeStickyAssignor`. Eager members have revoked all partitions when they join, and send
    the last assignment and its generation in the user data, as members of `sticky` do. So the priorities hold
    for eager groups, too, and a partition that moves is assigned at once. Claims in user data count where no
    member claims the partition in its subscription: an eager member that claims falsely, in a high
    generation, takes partitions from eager members alone, as with `sticky`. An eager member of an older
    release, which does not send its last assignment, counts as new. For this purpose, a member's instance
    remembers that assignment: each member needs an instance of its own.

    Example: One partition carries half of the load, so one member has it alone.

        >>> from groupwright.assignors import Group, Member, Topic
        >>> orders = Topic(5, weights=[40, 10, 10, 10, 10])
        >>> group = Group([Member("a", ["orders"]), Member("b", ["orders"])], {"orders": orders})
        >>> LoadAwareAssignor().assign(group)
        Assignment({'a': {'orders': [0]}, 'b': {'orders': [1, 2, 3, 4]}})
    """

    name = "load-aware"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER})

    def __init__(
        self,
        *,
        weights: WeightSource | None = None,
        tolerance: float = 0.1,
        max_skew: int | None = None,
        capacity: float = 1.0,
    ) -> None:
        """Create the assignor of one member. All members should have the same source, tolerance and max_skew.

        Args:
            weights: The source that the leader asks for the weights: `ProcessingTime`, `Throughput`, `Lag`,
                `WeightFunction`, a sum of them, or a custom one. None if the topics have weights already, as
                offline, or have none.
            tolerance: How far the peak may exceed the best known one before partitions move, from 0 to 1.
                0.1 are 10 %.
            max_skew: The largest allowed difference between two members' numbers of partitions, at least 1;
                None for any. Where subscriptions force different numbers, each is counted from the member's
                number in the most even assignment.
            capacity: The load that this member can take relative to others, from 0.001 to 1,000, such as its
                number of CPUs.

        Raises:
            InvalidInputError: An argument is out of range.
        """
        if not 0 <= tolerance <= 1:
            raise InvalidInputError(f"tolerance must be a number from 0 to 1, not {tolerance!r}")
        if max_skew is not None and max_skew < 1:
            raise InvalidInputError(f"max_skew must be None or at least 1, not {max_skew!r}")
        if not is_capacity(capacity):
            raise InvalidInputError(
                f"capacity must be a number from {MIN_CAPACITY} to {MAX_CAPACITY:g}, not {capacity!r}"
            )
        self.weights = weights
        self.tolerance = tolerance
        self.max_skew = max_skew
        self._capacity = capacity
        self._generation = NO_GENERATION
        self._assigned = NO_PARTITIONS

    def user_data(self, topics: frozenset[str]) -> bytes:  # noqa: ARG002 - part of the interface
        """Return the capacity, the last generation, and the processing times of what was assigned then.

        Unless the member rebalances cooperatively, so that its subscription has the owned partitions, the
        last assignment follows.
        """
        # Partitions that this member no longer has are left out: their present owners send theirs.
        times_sent = {
            topic: {number: times[number] for number in numbers if number in times}
            for topic, numbers in self._assigned.as_tuples().items()
            if (times := self.processing_times.get(topic))
        }
        is_cooperative = self.rebalance_protocol is RebalanceProtocol.COOPERATIVE
        previous = NO_PARTITIONS if is_cooperative else self._assigned
        return encode_load_data(MemberLoadData(self._generation, self._capacity, times_sent, previous))

    def on_assignment(self, assignment: PartitionsByTopic, generation: int) -> None:
        """Remember the assignment and its generation."""
        self._assigned = assignment
        self._generation = generation

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.load import plan_load_aware

        return plan_load_aware(group, self.tolerance, self.max_skew)
