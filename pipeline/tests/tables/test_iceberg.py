"""Iceberg keeps the promises that Delta keeps."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.endurance
@pytest.mark.kafka
@pytest.mark.slow
def test_iceberg_adds_once_and_replaces_dates_whole(tmp_path: Path, small_spark: dict[str, str]) -> None:
    """On a Spark of its own: its extensions are settled when its JVM starts."""
    program = Path(__file__).with_name("iceberg_program.py")
    done = subprocess.run(
        [sys.executable, program, tmp_path, json.dumps(small_spark)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
