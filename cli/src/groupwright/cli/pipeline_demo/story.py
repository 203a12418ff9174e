"""What happens to the groups: one under range that members come to and go from, and one under cooperative-sticky."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from groupwright.cli.pipeline_demo.members import Members

ORDERS, PAYMENTS = "orders", "payments"
TOPICS = {ORDERS: 12, PAYMENTS: 8}
"""The topics, with their partitions."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Something that happens, in words, and how."""

    words: str
    play: Callable[[Members], None]


def story(flaps: int) -> Iterator[Scene]:
    """Return what happens, one after the other.

    Args:
        flaps: How often a member comes and goes.
    """
    yield Scene(
        "billing: 3 members join, with range",
        lambda members: members.join(["billing-1", "billing-2", "billing-3"], "billing", ORDERS, "range"),
    )
    yield Scene(
        "shipping: 2 members join, with cooperative-sticky",
        lambda members: members.join(
            ["shipping-1", "shipping-2"], "shipping", PAYMENTS, "cooperative-sticky"
        ),
    )
    for time in range(1, flaps + 1):
        yield Scene(
            f"billing: billing-4 joins ({time} of {flaps})",
            lambda members: members.join(["billing-4"], "billing", ORDERS, "range"),
        )
        yield Scene("billing: billing-4 leaves", lambda members: members.leave(["billing-4"]))
    yield Scene(
        "shipping: shipping-3 joins",
        lambda members: members.join(["shipping-3"], "shipping", PAYMENTS, "cooperative-sticky"),
    )
    yield Scene("billing: billing-1 leaves", lambda members: members.leave(["billing-1"]))
