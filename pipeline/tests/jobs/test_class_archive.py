"""The file of classes with which Spark starts faster."""

import subprocess
import sys
from pathlib import Path

import pytest

from groupwright.pipeline._jobs.session import NEWEST_JAVA, spark_class_archive
from groupwright.testing import find_java
from integration_tests.harness.patience import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_MAKE = """
from groupwright.pipeline import class_archive
class_archive._run_jobs = lambda *_: None  # the classes of Spark's start suffice, and take seconds
class_archive.main()
"""
_START = """
import psutil
from groupwright.pipeline.jobs import FEW_ROWS, local_session
with local_session("classes", settings=FEW_ROWS) as spark:
    print(spark.range(5).count())
    print(*{mapped.path for mapped in psutil.Process(spark._sc._gateway.proc.pid).memory_maps()}, sep="\\n")
"""


@pytest.fixture(autouse=True)
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The place of the file, in an empty cache whose name has a space."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    return spark_class_archive(find_java(newest=NEWEST_JAVA))


def _python(*arguments: str) -> list[str]:
    """Run Python, and return the lines that it and its Spark print; PySpark has one JVM in a process."""
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE * 5
    )
    return done.stdout.splitlines()


@pytest.mark.endurance
def test_spark_uses_the_file_once_it_is_made(
    archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert _python("-c", _MAKE) == [f"Spark starts with the classes in {archive}"]
    assert [*archive.parent.iterdir()] == [archive], "nothing else is left"

    count, *mapped = _python("-c", _START)
    assert count == "5"
    assert str(archive) in mapped

    before = archive.stat().st_mtime_ns
    assert _python("-m", "groupwright.pipeline.class_archive") == [
        f"Spark starts with the classes in {archive}"
    ]
    assert archive.stat().st_mtime_ns == before

    (tmp_path / "spark-defaults.conf").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))  # another class path
    count, *mapped = _python("-c", _START)
    assert count == "5", "Java says that it cannot use the file"
    assert str(archive) not in mapped


@pytest.mark.endurance
def test_spark_starts_if_the_file_is_broken(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"no classes")
    assert _python("-c", _START)[0] == "5"
