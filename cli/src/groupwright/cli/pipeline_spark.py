"""A Spark on this machine that can read Kafka: Java as LocalKafka finds it, the connector as Kafka's own jars."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from groupwright.testing import find_java, resolve_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION = re.compile(r"-\d[\w.]*\.jar$")


@contextmanager
def local_spark(name: str, settings: Mapping[str, str] | None = None) -> "Iterator[SparkSession]":
    """Start a Spark, and stop it at the end.

    Args:
        name: The application's.
        settings: Spark's own; they win.

    Raises:
        GroupwrightError: There is no Java, or the connector cannot be had.
    """
    from groupwright.pipeline.jobs import CONNECTOR, local_session  # noqa: PLC0415 - Spark may be missing

    spark = local_session(
        f"groupwright {name}",
        jars=_missing(resolve_jars(CONNECTOR)),
        java_home=find_java().executable.resolve().parents[1],
        settings=settings,
    )
    try:
        yield spark
    finally:
        spark.stop()


def _missing(jars: tuple[Path, ...]) -> list[Path]:
    """Leave out what Spark has itself, maybe in another version."""
    import pyspark  # noqa: PLC0415 - may be missing

    there = {_VERSION.sub("", jar.name) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    return [jar for jar in jars if _VERSION.sub("", jar.name) not in there]
