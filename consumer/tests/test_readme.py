"""The README names everything that there is, and its example runs."""

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

import groupwright.consumer
from groupwright.consumer import Consumer
from integration_tests.harness.patience import PROGRAM_PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PROSE = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
NAMES = set(re.findall(r"`([^`]+)`", PROSE))


def test_every_method_is_named() -> None:
    own = {name for name in vars(Consumer) if not name.startswith("_")}
    native = {name for name in dir(confluent_kafka.Consumer) if not name.startswith("_")}

    assert own | native <= NAMES


def test_every_method_that_one_thread_may_call_is_marked_so() -> None:
    marked = {
        name
        for row in re.findall(r"^\| (.*) \| one \|", README, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }
    inside = {name for name in dir(Consumer) if getattr(getattr(Consumer, name), "one_thread", False)}

    assert marked == {name.lstrip("_") for name in inside}


def test_every_public_class_is_named() -> None:
    errors = {name for name in groupwright.consumer.__all__ if name.endswith("Error")}

    assert set(groupwright.consumer.__all__) - errors <= NAMES


def test_every_module_is_named() -> None:
    folder = Path(groupwright.consumer.__file__).parent

    assert {module.name for module in folder.glob("*.py")} - {"__init__.py"} <= NAMES


@pytest.mark.kafka
def test_the_example_runs(scene: "Scene", tmp_path: Path) -> None:
    topic = scene.topic(partitions=3, messages=1)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    program = tmp_path / "example.py"
    program.write_text(
        example.replace("localhost:9092", scene.kafka.bootstrap_servers).replace("orders", topic)
    )

    ran = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, timeout=PROGRAM_PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch(rf"{topic} [012] 0\n", ran.stdout)
