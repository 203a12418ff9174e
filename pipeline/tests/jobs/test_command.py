"""The command, as a user meets it."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration_tests.harness.patience import PATIENCE

WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
sys.argv[0] = "groupwright"
from groupwright.cli import main
main()
"""


def without_spark(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WITHOUT_SPARK, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.medium
def test_without_spark_the_command_works_and_says_what_to_install() -> None:
    assert without_spark("--help").returncode == 0
    assert without_spark("pipeline", "stream", "--help").returncode == 0
    wanted = without_spark("pipeline", "stream", "bootstrap_servers=localhost:9092", "tables=/nowhere")
    assert wanted.returncode == 2
    assert wanted.stderr == "groupwright pipeline: pyspark is missing: pip install 'groupwright[pipeline]'\n"


@pytest.mark.endurance
@pytest.mark.slow
@pytest.mark.kafka
def test_the_demo_shows_who_rebalanced_and_leaves_a_page(
    start_job: Callable[..., Any], tmp_path: Path
) -> None:
    """With one member that comes and goes, in place of five times."""
    folder = tmp_path / "demo"
    demo = start_job("demo", "--flaps", "1", "--out", str(folder))
    assert demo.exit_status(600) == 0, demo.output
    found = dict(re.findall(r"^(billing|shipping) +(\d+) ", demo.output, re.MULTILINE))
    assert int(found["billing"]) >= 4, demo.output
    assert int(found["shipping"]) >= 2, demo.output
    assert re.search(
        r"with cooperative-sticky .* would have stopped \d+ partitions for [\d,]+ partition-seconds",
        demo.output,
    ), demo.output
    assert "with java:cooperative-sticky" in demo.output
    assert "billing" in (folder / "report.html").read_text(encoding="utf-8")
    assert "Traceback" not in demo.output
