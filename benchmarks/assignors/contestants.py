"""Contestants: the command that starts each one, or the reason why it is missing on this machine."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.assignors.cases import AIOKAFKA, FRANZ_GO, GROUPWRIGHT, JAVA, KAFKA_PYTHON, Case
from groupwright.testing._java.java_programs import compile_java
from groupwright.testing.errors import JarResolutionError, JavaCompilationError, JavaNotFoundError

ROOT = Path(__file__).parents[2]
"""Working directory of the commands: the repository's root."""

_PROGRAMS = Path(__file__).parent / "programs"
_KAFKA_VERSION = "4.3.1"
_KAFKA_CLIENTS = f"org.apache.kafka:kafka-clients:{_KAFKA_VERSION}"
_GO_ANSWER_SECONDS = 20
# Its step may become six times faster after five seconds without any change.
_JIT_PATIENCE = 3
# The first time, Go compiles franz-go and all that it needs.
_GO_BUILD_SECONDS = 600


@dataclass(frozen=True)
class Contestant:
    """A contestant of the benchmark.

    Attributes:
        name: Its name in the tables.
        version: Versions of the library and its runtime.
        command: Command line, without the arguments of `programs.harness`.
        absent: Reason why it is missing on this machine; empty if present.
        knows_racks: Whether its assignors accept racks.
        patience: Factor on the patience of the other contestants.
    """

    name: str
    version: str
    command: tuple[str, ...] = ()
    absent: str = ""
    knows_racks: bool = True
    patience: float = 1

    def lacks(self, case: Case) -> str:
        """Return the reason why it cannot run this cell, if any."""
        if self.absent:
            return self.absent
        if case.is_weighted and self.name != GROUPWRIGHT:
            return case.assignor
        return "racks" if case.racks and not self.knows_racks else ""


class _AbsentError(Exception):
    """The contestant is missing on this machine."""


def prepare(folder: Path, names: Collection[str]) -> list[Contestant]:
    """Compile programs into the folder, and return the contestants in the order of the tables."""
    makers: dict[str, Callable[[Path], Contestant]] = {
        GROUPWRIGHT: _groupwright,
        JAVA: _java,
        FRANZ_GO: _franz_go,
        KAFKA_PYTHON: _kafka_python,
        AIOKAFKA: _aiokafka,
    }
    return [_made(name, maker, folder) for name, maker in makers.items() if name in names]


def _made(name: str, maker: Callable[[Path], Contestant], folder: Path) -> Contestant:
    try:
        return maker(folder)
    except _AbsentError as reason:
        return Contestant(name, version="absent", absent=str(reason))


def _groupwright(_folder: Path) -> Contestant:
    version = (
        f"{metadata.version('groupwright')}, numpy {metadata.version('numpy')}, Python {_python_version()}"
    )
    return Contestant(GROUPWRIGHT, version, _python("groupwright_leader"))


def _java(folder: Path) -> Contestant:
    try:
        program = compile_java(folder, [_PROGRAMS / "java" / "Leader.java"], _KAFKA_CLIENTS)
    except (JavaNotFoundError, JarResolutionError, JavaCompilationError) as error:
        raise _AbsentError(str(error)) from error
    version = f"kafka-clients {_KAFKA_VERSION}, Java {program.java.version}"
    run = tuple(program.command("Leader", "-XX:MaxRAMPercentage=60"))
    return Contestant(JAVA, version, run, patience=_JIT_PATIENCE)


def _franz_go(folder: Path) -> Contestant:
    go = shutil.which("go")
    if go is None:
        raise _AbsentError("no `go` is on the PATH")
    program = folder / "leader"
    _call(_GO_BUILD_SECONDS, go, "build", "-C", str(_PROGRAMS / "go"), "-o", str(program), ".")
    module = re.search(r"twmb/franz-go (\S+)", (_PROGRAMS / "go" / "go.mod").read_text())
    version = (
        f"franz-go {module[1] if module else ''}, {_call(_GO_ANSWER_SECONDS, go, 'env', 'GOVERSION').strip()}"
    )
    # Its client sets partitions' racks in a private field of its balancers.
    return Contestant(FRANZ_GO, version, (str(program),), knows_racks=False)


def _kafka_python(_folder: Path) -> Contestant:
    version = f"kafka-python {metadata.version('kafka-python')}"
    return Contestant(KAFKA_PYTHON, version, _python("kafka_python_leader"), knows_racks=False)


def _aiokafka(_folder: Path) -> Contestant:
    try:
        version = f"aiokafka {metadata.version('aiokafka')}"
    except metadata.PackageNotFoundError as error:
        raise _AbsentError("aiokafka is not installed") from error
    return Contestant(AIOKAFKA, version, _python("aiokafka_leader"), knows_racks=False)


def _python(program: str) -> tuple[str, ...]:
    return sys.executable, "-W", "ignore", "-m", f"benchmarks.assignors.programs.{program}"


def _python_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _call(seconds: float, *command: str) -> str:
    """Return the output of a command.

    Raises:
        _AbsentError: The command fails or times out.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)  # noqa: S603 - compilers
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout).strip().splitlines()[-1:]
        raise _AbsentError(f"{command[0]} failed: {' '.join(last)}") from error
    except subprocess.TimeoutExpired as error:
        raise _AbsentError(f"{command[0]} took more than {seconds:.0f} s") from error
    return done.stdout
