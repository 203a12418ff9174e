"""The assignors that Kafka's coordinator has for groups of KIP-848, for studies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor, RebalanceProtocol, check_assignor
from groupwright.assignors._model.group import Group
from groupwright.assignors.errors import AssignorError
from groupwright.core.assignor_traits import BROKER_PREFIX

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment


class BrokerAssignor(Assignor):
    """An assignor that runs in the broker (KIP-848), for studies such as `simulate`.

    A consumer refuses it in `partition.assignment.strategy`: with `group.protocol=consumer` the broker
    assigns, by the assignor in `group.remote.assignor`.

    The result is the target assignment. It may assign a partition that another member owns, since members do
    not join again in rounds: the broker gives a member its partitions one by one, as their former owners
    revoke them. The partitions that members own here are those of the target assignment before.
    """

    protocols = frozenset({RebalanceProtocol.COOPERATIVE})


class UniformAssignor(BrokerAssignor):
    """Kafka's `org.apache.kafka.coordinator.group.assignor.UniformAssignor`, the broker's default.

    Its priorities, in this order:

    1. Every partition of a subscribed topic has an owner.
    2. The members' numbers of partitions are equal, or differ by one. If subscriptions differ, this holds
       among the subscribers of each topic, unless a member has nothing of the topic to lose, or 16 passes
       over the topics did not suffice. Moves along several topics could balance better, as `StickyAssignor`
       makes them.
    3. Members keep partitions. With equal subscriptions, the fewest move.

    Racks are ignored. Subscriptions count as different even if they differ in a topic that does not exist.

    In the broker the result also depends on the order of hash tables and on random ids. Here:

    - Members have the order of the broker's `HashMap` of their ids, which decides between members that are
      equally loaded. Within one bucket, they are sorted as by `range`; in the broker, by their arrival.
    - Topics are sorted by name; in the broker, by the hashes of their ids with equal subscriptions, which
      changes no number, and by their ids with different ones, where it is the last criterion.
    - A member with equal subscriptions loses the highest partitions; in the broker, the last ones of a
      `HashSet`, which are others if it has partitions above 15.

    Examples:
        Member a owns all four partitions of `orders`, and b joins. They are assigned at once:

        >>> from groupwright.assignors import Group, Member
        >>> a = Member("a", ["orders"], owned={"orders": range(4)})
        >>> UniformAssignor().assign(Group([a, Member("b", ["orders"])], {"orders": 4}))
        Assignment({'a': {'orders': [0, 1]}, 'b': {'orders': [2, 3]}})
    """

    name = f"{BROKER_PREFIX}uniform"

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.uniform import plan_uniform

        return plan_uniform(group)


class BrokerRangeAssignor(BrokerAssignor):
    """Kafka's `org.apache.kafka.coordinator.group.assignor.RangeAssignor`, exactly.

    It assigns the ranges of `RangeAssignor` without racks, which Kafka 4 ignores. Nothing depends on hash
    tables.
    """

    name = f"{BROKER_PREFIX}range"

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.range import plan_ranges

        return plan_ranges(group, with_racks=False)


def check_member_assignor(assignor: Assignor) -> None:
    """Check that members of a group can have an assignor.

    Raises:
        AssignorError: `check_assignor` refuses it, or it runs in the broker.
    """
    check_assignor(assignor)
    if isinstance(assignor, BrokerAssignor):
        raise AssignorError(
            f"assignor {assignor.name!r} runs in the broker and not in members; to have it, set "
            f"group.protocol=consumer and group.remote.assignor={assignor.name.removeprefix(BROKER_PREFIX)}"
        )
