"""Make Spark start faster: `python -m groupwright.pipeline.class_archive`.

It keeps the classes that the jobs load in a file of 200 MB (class data sharing, JEP 350). Each later
`local_session` of this user, this Java and this version of Spark maps them into memory, and a job of few
records takes about four fifths of the time. After an update of Java or Spark, run the command again.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from groupwright.pipeline._jobs.session import NEWEST_JAVA, QUIET_CLASS_ARCHIVE, spark_class_archive
from groupwright.pipeline.jobs import FEW_ROWS, Settings, local_session, read_history, run_batch
from groupwright.pipeline.report import write_report
from groupwright.testing import LocalKafka, find_java
from groupwright.testing.class_archive import made_archive, use_broker

_WAIT_SECONDS = 120.0
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def make_class_archive() -> Path | None:
    """Make the archive unless there is one; return its path, or None if this Java cannot make any.

    Raises:
        GroupwrightError: Kafka or Spark does not start.
        subprocess.TimeoutExpired: Java has not written the classes within two minutes.
    """
    return made_archive(spark_class_archive(find_java(newest=NEWEST_JAVA)), _record)


def _record(target: Path) -> None:
    """Run a batch and a report, and wait until Java has ended and written its classes."""
    options = (FEW_ROWS[_JAVA_OPTIONS], f'"-XX:ArchiveClassesAtExit={target}"', *QUIET_CLASS_ARCHIVE)
    settings = {**FEW_ROWS, _JAVA_OPTIONS: " ".join(options)}
    with LocalKafka() as kafka, local_session("groupwright classes", settings=settings) as spark:
        use_broker(kafka)
        jvm: Any = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001 - Spark has no other way to its JVM
        tables = str(target.parent / "tables")
        _run_jobs(spark, Settings(bootstrap_servers=kafka.bootstrap_servers, tables=tables), target.parent)
    jvm.stdin.close()  # as at the end of this process
    jvm.wait(_WAIT_SECONDS)


def _run_jobs(spark: SparkSession, settings: Settings, folder: Path) -> None:
    run_batch(spark, settings)
    with read_history(spark, settings) as tables:
        write_report(tables, folder / "report.html", made_at=datetime.now(UTC))


def main() -> int:
    """Make the archive, and say where it is."""
    path = make_class_archive()
    if path is None:
        sys.stdout.write("This Java cannot keep classes in a file; Spark starts as before\n")
    else:
        sys.stdout.write(f"Spark starts with the classes in {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
