"""Clients: version and commands of each one, or the reason why it is missing on this machine."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import confluent_kafka

from benchmarks.consumer.plan import AIOKAFKA, CONFLUENT, GROUPWRIGHT, JAVA, KAFKA_PYTHON
from groupwright.testing._java.java_programs import compile_java
from groupwright.testing._kafka.local_kafka import DEFAULT_VERSION
from groupwright.testing.errors import JarResolutionError, JavaCompilationError, JavaNotFoundError

ROOT = Path(__file__).parents[2]
"""Working directory of the commands: the repository's root."""

_PROGRAMS = Path(__file__).parent / "programs"
_KAFKA_CLIENTS = f"org.apache.kafka:kafka-clients:{DEFAULT_VERSION}"


@dataclass(frozen=True)
class Client:
    """A client library.

    Attributes:
        name: One of `plan.CLIENTS`.
        version: Versions of the library and its runtime.
        members: Command of its group members.
        fetch: Command of its consumer of a filled topic.
        load: Command of the steady load; Java only.
        absent: Reason why it is missing on this machine; empty if present.
    """

    name: str
    version: str
    members: tuple[str, ...] = ()
    fetch: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    absent: str = ""


class _AbsentError(Exception):
    """The client is missing on this machine."""


def prepare(folder: Path) -> dict[str, Client]:
    """Compile programs into the folder, and return the clients by name."""
    makers: dict[str, Callable[[Path], Client]] = {
        GROUPWRIGHT: _groupwright,
        CONFLUENT: _confluent,
        KAFKA_PYTHON: _kafka_python,
        AIOKAFKA: _aiokafka,
        JAVA: _java,
    }
    return {name: _made(name, maker, folder) for name, maker in makers.items()}


def python(program: str) -> tuple[str, ...]:
    """Return the command of one of the Python programs."""
    return sys.executable, "-W", "ignore", "-m", f"benchmarks.consumer.programs.{program}"


def _made(name: str, maker: Callable[[Path], Client], folder: Path) -> Client:
    try:
        return maker(folder)
    except _AbsentError as reason:
        return Client(name, version="absent", absent=str(reason))


def _groupwright(_folder: Path) -> Client:
    interpreter = ".".join(map(str, sys.version_info[:3]))
    version = f"{metadata.version('groupwright')}, Python {interpreter}"
    return Client(GROUPWRIGHT, version, python("members"), python("fetch_confluent"))


def _confluent(_folder: Path) -> Client:
    librdkafka, _ = confluent_kafka.libversion()
    version = f"{metadata.version('confluent-kafka')}, librdkafka {librdkafka}"
    return Client(CONFLUENT, version, python("members"), python("fetch_confluent"))


def _kafka_python(_folder: Path) -> Client:
    return Client(KAFKA_PYTHON, metadata.version("kafka-python"), fetch=python("fetch_kafka_python"))


def _aiokafka(_folder: Path) -> Client:
    try:
        version = metadata.version("aiokafka")
    except metadata.PackageNotFoundError as error:
        raise _AbsentError("aiokafka is not installed") from error
    return Client(AIOKAFKA, version, fetch=python("fetch_aiokafka"))


def _java(folder: Path) -> Client:
    sources = [_PROGRAMS / "java" / name for name in ("Members.java", "Load.java")]
    try:
        program = compile_java(folder, sources, _KAFKA_CLIENTS)
    except (JavaNotFoundError, JarResolutionError, JavaCompilationError) as error:
        raise _AbsentError(str(error)) from error
    version = f"kafka-clients {DEFAULT_VERSION}, Java {program.java.version}"
    members, load = (tuple(program.command(main, "-Xmx1g")) for main in ("Members", "Load"))
    return Client(JAVA, version, members=members, load=load)
