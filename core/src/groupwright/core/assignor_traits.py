"""Traits of the assignors that Groupwright has, by the names that members vote for.

Parts that import no assignor ask here. A test holds the traits to the classes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AssignorTraits:
    """Traits of an assignor.

    Attributes:
        name: Its name in JoinGroup.
        cooperative: True if members may rebalance cooperatively with it (KIP-429).
        needs_weights: True if it balances the weights of partitions.
        in_librdkafka: True if confluent-kafka's own consumer has it.
        java_class: The class of Kafka's Java client; None if Kafka does not have the assignor.
    """

    name: str
    cooperative: bool = False
    needs_weights: bool = False
    in_librdkafka: bool = False
    java_class: str | None = None


_JAVA = "org.apache.kafka.clients.consumer"
ASSIGNORS = {
    each.name: each
    for each in (
        AssignorTraits("range", in_librdkafka=True, java_class=f"{_JAVA}.RangeAssignor"),
        AssignorTraits("roundrobin", in_librdkafka=True, java_class=f"{_JAVA}.RoundRobinAssignor"),
        AssignorTraits("sticky", java_class=f"{_JAVA}.StickyAssignor"),
        AssignorTraits(
            "cooperative-sticky",
            cooperative=True,
            in_librdkafka=True,
            java_class=f"{_JAVA}.CooperativeStickyAssignor",
        ),
        AssignorTraits("co-partitioned-sticky", cooperative=True),
        AssignorTraits("load-aware", cooperative=True, needs_weights=True),
    )
}
"""The assignors that Groupwright's consumer takes by name."""
KAFKAS = tuple(name for name, traits in ASSIGNORS.items() if traits.java_class)
"""Names of Kafka's own assignors."""

BROKER_PREFIX = "broker:"
"""Prefix of the names of the broker's assignors: the broker has a `range` too."""
BROKERS = (f"{BROKER_PREFIX}uniform", f"{BROKER_PREFIX}range")
"""The assignors of groups of KIP-848, which run in the broker. Studies have them; no member takes them."""


def is_cooperative(assignor: str) -> bool | None:
    """Return whether an assignor's rebalances are cooperative; None for an unknown name."""
    if assignor in BROKERS:
        return True
    return ASSIGNORS[assignor].cooperative if assignor in ASSIGNORS else None
