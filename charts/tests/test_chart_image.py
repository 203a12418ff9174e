"""The image's entrypoint, run without a container: it starts the project's commands and Spark's executor."""

import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pyspark
import pytest
import yaml

from charts.tools.rendering import CHART
from groupwright.pipeline import main
from groupwright.testing import find_java
from integration_tests.harness.patience import PATIENCE

IMAGE = CHART.parent / "image"


def _start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    java = find_java().executable.resolve().parent
    return subprocess.run(
        [IMAGE / "entrypoint", *arguments],
        env={
            "PATH": f"{Path(sys.executable).parent}:{java}:/usr/bin:/bin",
            "HOME": os.environ["HOME"],
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.medium
def test_arguments_are_groupwrights() -> None:
    answer = _start("doctor", "group.id=billing", "session.timeout.ms=6000", "--offline")
    assert answer.returncode == 1, answer.stderr
    assert "evidence" in answer.stdout


@pytest.mark.medium
def test_a_driver_is_the_pipelines_job() -> None:
    answer = _start("driver", "batch", "bootstrap_serfers=localhost:9092")
    assert answer.returncode == 1, answer.stdout
    assert "unknown setting 'bootstrap_serfers'" in answer.stderr


@pytest.mark.endurance
@pytest.mark.slow
def test_a_driver_of_the_spark_operator_is_started_as_spark_starts_one(tmp_path: Path) -> None:
    """With the command line that Spark gives to the driver's container, and the image's symbolic link."""
    properties = tmp_path / "spark.properties"
    properties.write_text("spark.master local[1]\nspark.ui.enabled false\n", encoding="utf-8")
    program = tmp_path / "main.py"
    program.symlink_to(main.__file__)
    answer = _start(
        "driver",
        f"--properties-file={properties}",
        "--class=org.apache.spark.deploy.PythonRunner",
        str(program),
        "stream",
        "bootstrap_serfers=localhost:9092",
        SPARK_DRIVER_BIND_ADDRESS="127.0.0.1",
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert answer.returncode == 1, answer.stderr
    assert "unknown setting 'bootstrap_serfers'" in answer.stdout  # Spark's runner merges the two


@pytest.mark.slow
def test_an_executor_goes_to_the_driver_that_spark_names() -> None:
    """With the variables that Spark on Kubernetes sets, including JVM options, and no driver listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening: refused for as long as this is open
        port = taken.getsockname()[1]
        answer = _start(
            "executor",
            SPARK_JAVA_OPT_0=f"-Dspark.driver.port={port}",
            SPARK_JAVA_OPT_1="-Dspark.executor.id.of.this.test=with a blank",
            SPARK_EXECUTOR_MEMORY="128m",
            SPARK_DRIVER_URL=f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
            SPARK_EXECUTOR_ID="1",
            SPARK_EXECUTOR_CORES="1",
            SPARK_APPLICATION_ID="spark-1",
            SPARK_EXECUTOR_POD_IP="127.0.0.1",
            SPARK_RESOURCE_PROFILE_ID="0",
            SPARK_EXECUTOR_POD_NAME="history-exec-1",
            SPARK_LOCAL_IP="127.0.0.1",
        )
    assert answer.returncode != 0
    assert f"Failed to connect to /127.0.0.1:{port}" in answer.stderr


def _add_jars(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, IMAGE / "add_jars.py", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.medium
def test_jars_of_the_formats_are_added_and_spark_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "jackson-core-2.18.2.jar").touch()

    added = _add_jars(tmp_path, "iceberg")

    assert added.returncode == 0, added.stderr
    names = {jar.name for jar in tmp_path.glob("*.jar")}
    assert {
        "spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "delta-spark_2.13-4.0.0.jar",
        "delta-storage-4.0.0.jar",
        "iceberg-spark-runtime-4.0_2.13-1.10.0.jar",
    } <= names
    assert [name for name in names if name.startswith("jackson-core-")] == ["jackson-core-2.18.2.jar"]


@pytest.mark.medium
def test_an_unknown_format_ends_the_build(tmp_path: Path) -> None:
    refused = _add_jars(tmp_path, "hudi")

    assert refused.returncode == 1
    assert "unknown format hudi; known formats: delta, iceberg" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_image_is_built_from_all_sources_of_the_package() -> None:
    """By name: Docker's classic builder finds nothing for `!*/src`, and makes an empty wheel of it."""
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    context = (IMAGE / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()

    assert {f"!{package.removesuffix('/groupwright')}" for package in packages} <= {*context}
    assert [line for line in context if line.startswith("!") and "*" in line] == []


def test_the_image_and_the_chart_mean_the_same_user() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    user = values["pod"]["securityContext"]["runAsUser"]
    assert f"\nUSER {user}:{user}\n" in (IMAGE / "Dockerfile").read_text(encoding="utf-8")


def test_no_registry_is_anybodys_but_the_users() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert values["image"]["repository"] == "groupwright"
