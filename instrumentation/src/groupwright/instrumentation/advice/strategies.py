"""Assignors by the kind of their rebalances, and safe ways to change a group's assignor.

A member is cooperative if all assignors in its list are. librdkafka rejects a list of both kinds;
Groupwright's and Java's consumers accept it, and are eager with it (KIP-429).
"""

LIBRDKAFKA = frozenset({"range", "roundrobin", "cooperative-sticky"})
"""Assignors of confluent-kafka's own consumer."""
NAMED = LIBRDKAFKA | {"sticky", "co-partitioned-sticky"}
"""Assignors that Groupwright's consumer takes by name; others are objects."""
_COOPERATIVE = frozenset({"cooperative-sticky", "load-aware", "co-partitioned-sticky"})
_EAGER = frozenset({"range", "roundrobin", "sticky"})

ALL_AT_ONCE = (
    "Plain confluent-kafka consumers: stop all members, then start them with cooperative-sticky (a rolling "
    "restart fails: librdkafka rejects a list of both kinds, and the coordinator rejects members without a "
    "common assignor)"
)
TWO_RESTARTS = (
    "Groupwright's or Java's consumers: two rolling restarts, the first with cooperative-sticky added to the "
    "list, the second with cooperative-sticky alone"
)
TO_COOPERATIVE = f"{TWO_RESTARTS}. {ALL_AT_ONCE}"
"""Ways from eager to cooperative rebalances. For a group with clients of both kinds, the second applies."""


def is_cooperative(assignor: str) -> bool | None:
    """Return whether an assignor's rebalances are cooperative; None for an unknown name."""
    if assignor in _COOPERATIVE or assignor.startswith("cooperative"):
        return True
    return False if assignor in _EAGER else None
