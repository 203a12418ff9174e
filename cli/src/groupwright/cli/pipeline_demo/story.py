"""What happens to the groups: one under range that members come to and go from, and one under cooperative-sticky."""

from collections.abc import Iterator
from dataclasses import dataclass

BILLING, SHIPPING = "billing", "shipping"
TOPICS = {BILLING: ("orders", 12), SHIPPING: ("payments", 8)}
"""Each group's topic, with its number of partitions."""
ASSIGNORS = {BILLING: "range", SHIPPING: "cooperative-sticky"}


@dataclass(frozen=True, slots=True)
class Scene:
    """Members of a group that join or leave.

    Attributes:
        words: What happens, in words.
        group: The group's id.
        join: The names of the members that join.
        leave: The names of the members that leave.
    """

    words: str
    group: str
    join: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


def story(flaps: int) -> Iterator[Scene]:
    """Return what happens, one after the other.

    Args:
        flaps: How often a member comes and goes.
    """
    yield Scene("billing: 3 members join, with range", BILLING, ("billing-1", "billing-2", "billing-3"))
    yield Scene("shipping: 2 members join, with cooperative-sticky", SHIPPING, ("shipping-1", "shipping-2"))
    for time in range(1, flaps + 1):
        yield Scene(f"billing: billing-4 joins ({time} of {flaps})", BILLING, ("billing-4",))
        yield Scene("billing: billing-4 leaves", BILLING, leave=("billing-4",))
    yield Scene("shipping: shipping-3 joins", SHIPPING, ("shipping-3",))
    yield Scene("billing: billing-1 leaves", BILLING, leave=("billing-1",))
