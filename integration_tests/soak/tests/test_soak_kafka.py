"""A minute of faults against real consumer processes: every guarantee holds at every moment."""

import logging
from pathlib import Path

import pytest
from rich.console import Console

from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.soak import growth
from integration_tests.soak.__main__ import ASSIGNORS, served
from integration_tests.soak.conductor import Plan, Result, run
from integration_tests.soak.report import describe, show

pytestmark = pytest.mark.kafka

_SEED = 577
"""A seed whose minute contains every kind of fault."""


def without_violations(seconds: int, folder: Path) -> Result:
    """Run the first seconds of the seed's chaos, and check every guarantee."""
    result = run(Plan(_SEED, seconds, tuple(served(ASSIGNORS))), folder)
    show(result, Console())  # pytest prints it if the test fails

    violations = [f"{violation.rule} {describe(violation)}" for violation in result.findings.violations]
    assert violations == [], f"with seed {result.plan.seed}; the histories are in {folder}"
    assert result.drained
    return result


def test_ownership_holds_under_seconds_of_chaos(tmp_path: Path) -> None:
    result = without_violations(15, tmp_path)

    assert result.faults.total() >= 5


@pytest.mark.endurance
@pytest.mark.timeout(420)
def test_ownership_holds_under_a_minute_of_chaos(tmp_path: Path) -> None:
    result = without_violations(60, tmp_path)

    # The run must have contained enough faults. On a busy machine several of them end in one rebalance.
    assert min(result.rebalances.values()) >= 2
    assert result.faults["kill"] >= 5
    assert result.faults["stop"] >= 5
    assert min(result.faults[f"{what} broker"] for what in ("restart", "crash", "pause")) >= 1
    assert min(result.faults[what] for what in ("grow", "make topic", "close", "interrupt")) >= 1


@pytest.mark.endurance
@pytest.mark.timeout(240)
@pytest.mark.parametrize("assignor", ["sticky"])
def test_nothing_grows_over_two_hundred_rebalances(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, caplog: pytest.LogCaptureFixture, assignor: str
) -> None:
    """A thread, socket or object leaked by each rebalance would exhaust a service after days."""
    caplog.set_level(logging.WARNING, logger="groupwright")  # what is captured grows
    topics = (new_kafka_topic(growth.PARTITIONS), new_kafka_topic(growth.PARTITIONS))

    found = growth.measure(local_kafka.bootstrap_servers, assignor, topics, rebalances=200, warm_up=100)

    assert found.rebalances >= 200
    assert found.excess() == [], found.biggest
