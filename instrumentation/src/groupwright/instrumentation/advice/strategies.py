"""Assignors by the kind of their rebalances, and safe ways to change a group's assignor.

A member is cooperative if all assignors in its list are. librdkafka rejects a list of both kinds;
Groupwright's and Java's consumers accept it, and are eager with it (KIP-429).
"""

from __future__ import annotations

from groupwright.core import assignor_traits

LIBRDKAFKA = frozenset(name for name, traits in assignor_traits.ASSIGNORS.items() if traits.in_librdkafka)
"""Assignors of confluent-kafka's own consumer."""

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
    """Return whether an assignor's rebalances are cooperative; None for an unknown name.

    A custom assignor whose name begins with `cooperative` is taken for one.
    """
    known = assignor_traits.is_cooperative(assignor)
    return True if known is None and assignor.startswith("cooperative") else known
