"""A storm of 20 rebalances, counted for each protocol and kind of client."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from instrumentation.tests.kafka.conftest import Client, ScenarioRun

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ONLY = (
    "groupwright-range",
    "groupwright-cooperative",
    "groupwright-kip848",
    "plain-range",
    "plain-cooperative",
    "plain-kip848",
)
CYCLES = 10


Storm = tuple[float, list[tuple[float | None, int]], list[float | None], list[float]]


def storm(run: "ScenarioRun") -> Storm:
    """Let another member join and leave ten times.

    Returns:
        The member's completed rebalances; after each rebalance, the partitions that it shows and those of its
        assignment; the durations of its events; the seconds of each cycle, by the test's clock.
    """
    topic = run.topic(partitions=4)
    member = run.member(topic, "member")
    member.join(topic)
    run.until(lambda: member.owned == 4, member)
    owned: list[tuple[float | None, int]] = []
    cycles: list[float] = []

    def compare() -> None:
        owned.append((member.value("partitions_owned", topic=topic), len(member.do("assignment"))))

    for number in range(CYCLES):
        began = time.monotonic()
        other = run.member(topic, f"other-{number}")
        other.join(topic)
        run.until(lambda other=other: member.owned == other.owned == 2, member, other)  # type: ignore[misc]
        compare()
        other.close()
        run.until(lambda: member.owned == 4, member)
        compare()
        cycles.append(time.monotonic() - began)
    run.until(lambda: member.rebalances() >= 1 + 2 * CYCLES, member)
    run.reasons(1 + 2 * CYCLES, member)
    durations = [event.duration_seconds for event in run.events if event.client_id == member.id]
    return member.rebalances(), owned, durations, cycles


@pytest.mark.endurance
def test_each_rebalance_of_a_storm_is_counted(client: "Client", outcome_of: Callable[..., Any]) -> None:
    rebalances, owned, durations, cycles = outcome_of(storm, client)

    assert rebalances == 1 + 2 * CYCLES
    assert owned == [(2, 2), (4, 4)] * CYCLES
    assert len(durations) == 1 + 2 * CYCLES
    joins = [each for each in durations[1::2] if each is not None]
    # What a plain consumer gains without a revocation has no beginning that it could see.
    assert len(joins) == CYCLES
    assert all(0 < join < cycle for join, cycle in zip(joins, cycles, strict=True))
