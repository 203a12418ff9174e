"""Titles of the report's sections."""

import pytest

from groupwright.pipeline._report.facts import Alternative
from groupwright.pipeline._report.findings import alternatives, best


@pytest.mark.parametrize(
    ("assignors", "named"),
    [
        (("java:cooperative-sticky", "cooperative-sticky", "range"), "With cooperative-sticky "),
        (("broker:uniform", "sticky"), "With sticky "),
        (("java:sticky",), "With java:sticky "),
        ((), "No assignor has a result"),
    ],
)
def test_the_cheapest_assignor_is_one_that_a_python_consumer_can_have(
    assignors: tuple[str, ...], named: str
) -> None:
    """The cheapest comes first."""
    numbers = {"rebalances": 2, "errors": 0, "moved": 1, "moved_actual": 5}
    numbers |= dict.fromkeys(
        ("stopped", "stopped_actual", "partition_seconds", "partition_seconds_actual"), 3
    )
    found = [
        Alternative(name, name == "actual", numbers, 0.0, 0, 1.0, 1.0, 0.0, None)
        for name in ("actual", *assignors)
    ]
    assert alternatives(best(found)).startswith(named)
