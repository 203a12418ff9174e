"""Kafka's `roundrobin` assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.group import Group

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment


class RoundRobinAssignor(Assignor):
    """Assigns all partitions in turn, exactly as Java's `RoundRobinAssignor` does.

    Its priorities, in this order:

    1. Every partition of a subscribed topic has an owner.
    2. Partitions are assigned topic by topic, sorted by name, each to the next member that subscribes to the
       topic. The next topic continues where the previous one ended. Static members come first, by
       `group.instance.id`; then dynamic members, by member id.

    With equal subscriptions, the members' numbers of partitions differ by at most one. With different ones,
    the result may be unbalanced. The partitions that members own are ignored: one member more or less moves
    most partitions.

    Examples:
        Members a and b subscribe to `audit` and `orders`, of 3 partitions each::

            a: audit 0 2, orders 1
            b: audit 1,   orders 0 2
    """

    name = "roundrobin"

    def assign(self, group: Group) -> Assignment:
        """Assign the group's partitions."""
        from groupwright.assignors._algorithms.roundrobin import plan_round_robin

        return plan_round_robin(group)
