"""Contestants: version and command of each one, or the reason why it is missing on this machine."""

import os
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from benchmarks.load.plan import BY_TIME, COUNTS, LAG_BASED, LOAD_AWARE, MAX_POLL_RECORDS
from groupwright.testing._java.java_programs import JavaProgram, compile_java
from groupwright.testing._kafka.local_kafka import DEFAULT_VERSION
from groupwright.testing.errors import JarResolutionError, JavaCompilationError, JavaNotFoundError

_PROGRAMS = Path(__file__).parent / "programs"
_KAFKA_CLIENTS = f"org.apache.kafka:kafka-clients:{DEFAULT_VERSION}"
_LAG_BASED_JAR = "com.github.grantneale:kafka-lag-based-assignor:2.0.0"
_LAG_BASED_CLASS = "com.github.grantneale.kafka.LagBasedPartitionAssignor"
_STRATEGIES = {COUNTS: "cooperative-sticky", LOAD_AWARE: "load-aware", BY_TIME: "load-aware/time"}
"""Strategies of Groupwright's members, as their program knows them."""
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC")


@dataclass(frozen=True)
class Contestant:
    """A contestant of the benchmark.

    Attributes:
        name: One of `plan.CONTESTANTS`.
        version: Versions of the library and its runtime.
        command: Command of its members; empty if it is missing.
        settings: The assignor, and further settings of the members.
        one_process: Whether one process has all members, instead of one process for each.
        absent: Reason why it is missing on this machine; empty if present.
    """

    name: str
    version: str
    command: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    one_process: bool = False
    absent: str = ""


def prepare(folder: Path, lag_based: Path | None = None) -> list[Contestant]:
    """Compile programs into the folder, and return the contestants in the order of their turns.

    Args:
        folder: Folder for classes.
        lag_based: The lag-based assignor's jar or its source file. By default, its jar comes from a Maven
            repository.
    """
    return [
        groupwright(COUNTS),
        _lag_based(folder, lag_based),
        groupwright(LOAD_AWARE),
        groupwright(BY_TIME),
    ]


def python(program: str) -> tuple[str, ...]:
    """Return the command of one of the Python programs."""
    return sys.executable, "-W", "ignore", "-m", f"benchmarks.load.programs.{program}"


def compile_members(folder: Path, *sources: Path, artifacts: tuple[str, ...] = ()) -> JavaProgram:
    """Compile Java's members into a folder, with further sources and artifacts.

    Raises:
        JavaNotFoundError: There is no Java to run.
        JarResolutionError: The compiler or an artifact cannot be downloaded.
        JavaCompilationError: The sources do not compile.
    """
    members = _PROGRAMS / "java" / "PacedMembers.java"
    return compile_java(folder, [members, *sources], _KAFKA_CLIENTS, *artifacts)


def groupwright(name: str) -> Contestant:
    """Return a contestant with Groupwright's consumer."""
    interpreter = ".".join(map(str, sys.version_info[:3]))
    version = (
        f"{metadata.version('groupwright')}, confluent-kafka {metadata.version('confluent-kafka')}, "
        f"Python {interpreter}"
    )
    # The leader rebalances at the enforced moments alone, as in the other contestants' groups.
    settings = (("assignor", _STRATEGIES[name]), ("load.check.interval.ms", "0"))
    return Contestant(name, version, python("members"), settings)


def _lag_based(folder: Path, given: Path | None) -> Contestant:
    sources = [given] if given is not None and given.suffix == ".java" else []
    artifacts = () if given is not None else (_LAG_BASED_JAR,)
    try:
        program = compile_members(folder, *sources, artifacts=artifacts)
    except (JavaNotFoundError, JarResolutionError, JavaCompilationError) as error:
        return Contestant(LAG_BASED, version="absent", absent=str(error))
    if given is not None and given.suffix == ".jar":
        program = replace(program, class_path=os.pathsep.join((program.class_path, str(given.resolve()))))
    assignor = _LAG_BASED_JAR if given is None else given.name
    version = f"{assignor}, kafka-clients {DEFAULT_VERSION}, Java {program.java.version}"
    settings = (("assignor", _LAG_BASED_CLASS), ("max.poll.records", str(MAX_POLL_RECORDS)))
    command = tuple(program.command("PacedMembers", *JAVA_OPTIONS))
    return Contestant(LAG_BASED, version, command, settings, one_process=True)
