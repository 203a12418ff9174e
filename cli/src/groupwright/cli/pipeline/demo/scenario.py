"""Scenario of the demo: changes of the members of two groups, under range and cooperative-sticky."""

from collections.abc import Iterator
from dataclasses import dataclass

BILLING, SHIPPING = "billing", "shipping"
TOPICS = {BILLING: ("orders", 12), SHIPPING: ("payments", 8)}
"""Each group's topic, with its number of partitions."""
ASSIGNORS = {BILLING: "range", SHIPPING: "cooperative-sticky"}


@dataclass(frozen=True, slots=True)
class Step:
    """Members of a group that join or leave.

    Attributes:
        words: The change, in words.
        group: The group's id.
        join: The names of the members that join.
        leave: The names of the members that leave.
    """

    words: str
    group: str
    join: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


def scenario(flaps: int) -> Iterator[Step]:
    """Yield the steps, in order.

    Args:
        flaps: Number of times billing-4 joins and leaves.
    """
    yield Step("billing: 3 members join, with range", BILLING, ("billing-1", "billing-2", "billing-3"))
    yield Step("shipping: 2 members join, with cooperative-sticky", SHIPPING, ("shipping-1", "shipping-2"))
    for time in range(1, flaps + 1):
        yield Step(f"billing: billing-4 joins ({time} of {flaps})", BILLING, ("billing-4",))
        yield Step("billing: billing-4 leaves", BILLING, leave=("billing-4",))
    yield Step("shipping: shipping-3 joins", SHIPPING, ("shipping-3",))
    yield Step("billing: billing-1 leaves", BILLING, leave=("billing-1",))
