"""Kafka's `roundrobin` assignor."""

from typing import TYPE_CHECKING

from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.group import Group

if TYPE_CHECKING:
    from groupwright.assignors._model.assignment import Assignment


class RoundRobinAssignor(Assignor):
    """Deals out all partitions like cards: Java's `RoundRobinAssignor`, result for result.

    In this order it sees to it that

    1. every partition of a subscribed topic has an owner;
    2. partitions are dealt topic by topic, by name, each to the next member around the table that
       subscribes to the topic; the deal goes on from topic to topic where it stood. Static members sit
       first, by `group.instance.id`; then dynamic ones, by member id.

    If all subscribe to the same, no member so gets two partitions more than another. If not, the result may
    be far from even. What members own is not looked at: one member more or less moves most partitions.

    Example:
        Members a and b subscribe to `audit` and `orders`, of 3 partitions each::

            a: audit 0 2, orders 1
            b: audit 1,   orders 0 2
    """

    name = "roundrobin"

    def assign(self, group: Group) -> "Assignment":
        """Return the deal."""
        from groupwright.assignors._algorithms.roundrobin import plan_round_robin  # noqa: PLC0415 - numpy comes with it, which members that do not lead can do without

        return plan_round_robin(group)
