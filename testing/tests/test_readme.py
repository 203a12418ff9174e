"""The README's examples run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from groupwright.testing import ContainersUnavailableError, KafkaContainers
from groupwright.testing._kafka import engine
from integration_tests.harness.patience import PROGRAM_PATIENCE
from integration_tests.harness.tools import lacking

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

README = Path(__file__).parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)

_CONTAINERS = (pytest.mark.integration, pytest.mark.endurance)


@pytest.mark.parametrize(
    "example",
    [pytest.param(each, marks=_CONTAINERS if "KafkaContainers" in each else ()) for each in EXAMPLES],
)
def test_an_example_runs(example: str, tmp_path: Path, temporary: Path) -> None:
    if "KafkaContainers" in example:
        require_containers()
    program = tmp_path / "test_example.py"
    program.write_text(example, encoding="utf-8")
    runner = ["-m", "pytest", "--rootdir", str(tmp_path)] if "def test_" in example else []

    ran = subprocess.run(
        [sys.executable, "-W", "error", *runner, str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_PATIENCE,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Warning" not in ran.stderr
    assert list(temporary.iterdir()) == []


def require_containers() -> None:
    try:
        engine.require_image(KafkaContainers().image)
    except ContainersUnavailableError as error:
        lacking(f"needs brokers in containers: {error}")
