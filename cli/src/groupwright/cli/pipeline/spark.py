"""Spark on this machine with its Kafka source: Java and jars are found as for LocalKafka."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION = re.compile(r"-\d[\w.]*\.jar$")


@contextmanager
def local_spark(name: str, settings: Mapping[str, str] | None = None) -> "Iterator[SparkSession]":
    """Start Spark, and stop it at the end of the context.

    Args:
        name: Name of the application.
        settings: Spark settings, which override the defaults.

    Raises:
        GroupwrightError: Java is missing, or the connector cannot be downloaded.
    """
    from groupwright.pipeline.jobs import CONNECTOR, NEWEST_JAVA, local_session  # noqa: PLC0415 - Spark may be missing
    from groupwright.testing import find_java, resolve_jars  # noqa: PLC0415 - needs the extra

    spark = local_session(
        f"groupwright {name}",
        jars=_missing(resolve_jars(CONNECTOR)),
        java_home=find_java(newest=NEWEST_JAVA).executable.resolve().parents[1],
        settings=settings,
    )
    try:
        yield spark
    finally:
        spark.stop()


def _missing(jars: tuple[Path, ...]) -> list[Path]:
    """Return the jars that Spark does not include, in any version."""
    import pyspark  # noqa: PLC0415 - may be missing

    included = {_VERSION.sub("", jar.name) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return [jar for jar in jars if _VERSION.sub("", jar.name) not in included]
