"""The README's examples run as they stand, but for the addresses; its queries name metrics that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.labels import LABELS
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PROGRAM_PATIENCE

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.kafka
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, local_kafka: LocalKafka, tmp_path: Path) -> None:
    program = example.replace("9095", "0").replace("localhost:9092", local_kafka.bootstrap_servers)
    several_processes = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)} if "MultiProcess" in example else {}

    ran = subprocess.run(
        [sys.executable, "-Werror", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_PATIENCE,
        cwd=tmp_path,
        env=os.environ | several_processes,
    )

    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr


def test_there_are_examples_of_adoption_serving_and_removal() -> None:
    text = "\n".join(EXAMPLES)

    for name in (
        "instrumented",
        "instrument",
        "start_http_server",
        "make_wsgi_app",
        "make_asgi_app",
        "write_to_textfile",
    ):
        assert f"{name}(" in text
    assert ".remove()" in text


def test_each_metric_and_label_that_it_names_exists() -> None:
    names = set(re.findall(r"\bgroupwright_[a-z_]+", README))
    known = {spec.name + suffix for spec in CATALOGUE for suffix in ("", "_bucket", "_sum", "_count")}
    labels = {
        label
        for group in re.findall(r"(?:by|on|group_left) \(([a-z_, ]+)\)", README)
        for label in group.split(", ")
    }

    assert names - known == set()
    assert labels - {"le"} <= set(LABELS)


def test_the_modules_that_it_lists_are_those_that_exist() -> None:
    source = Path(__file__).parents[1] / "src" / "groupwright" / "instrumentation"

    rows = re.findall(r"^\| (`[a-z_/]+\.py`.*?) \|", README, re.MULTILINE)
    listed = re.findall(r"`([a-z_/]+\.py)`", " ".join(rows))

    assert sorted(listed) == sorted(
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if path.name != "__init__.py"
    )
