"""A minute of faults of three brokers, in which our groups keep their guarantees."""

import shutil
from pathlib import Path

import pytest
from rich.console import Console

from integration_tests.soak.cluster import OURS, run, table

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

_SEED = 2
"""A seed whose first faults are a partition of responses, a move and a partition."""


@pytest.mark.timeout(900)
def test_groups_outlive_a_minute_of_faults_of_three_brokers(tmp_path: Path) -> None:
    """How long messages wait is printed, and not compared: that needs many faults, and a quiet machine."""
    result = run(60, _SEED, "both", tmp_path, print)
    Console().print(table(result, "Longest waits"))  # pytest prints it if the test fails

    assert result.violations[OURS] == [], f"the histories and logs are in {tmp_path}"
    assert len(result.injected) > 1
    assert result.messages > 0
    assert result.rebalances > 0
    shutil.rmtree(tmp_path)
