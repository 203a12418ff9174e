"""Small Java programs, compiled by Eclipse's compiler: a runtime without `javac` suffices."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing._java.java import MINIMUM_JAVA, JavaRuntime, find_java, resolve_jars
from groupwright.testing.errors import JavaCompilationError

_COMPILER = "org.eclipse.jdt:ecj:3.42.0"
_COMPILE_SECONDS = 120.0


@dataclass(frozen=True)
class JavaProgram:
    """Compiled classes, with the Java runtime and the class path to run them."""

    java: JavaRuntime
    class_path: str

    def command(self, main: str, *options: str) -> list[str]:
        """Return the command line up to the class `main`; `options` are the JVM's."""
        return [str(self.java.executable), *options, "-classpath", self.class_path, main]


def compile_java(folder: Path, sources: Iterable[Path], *artifacts: str) -> JavaProgram:
    """Compile Java sources into a folder with the Eclipse compiler, which is itself a jar.

    Args:
        folder: Folder for the classes.
        sources: The `.java` files.
        artifacts: Their dependencies, as `group:artifact:version`.

    Raises:
        JavaNotFoundError: There is no Java to run.
        JarResolutionError: The compiler or an artifact cannot be downloaded.
        JavaCompilationError: The sources do not compile, or the compiler took more than 120 s.
    """
    java = find_java()
    class_path = os.pathsep.join(map(str, (folder, *(resolve_jars(*artifacts) if artifacts else ()))))
    compiler = os.pathsep.join(map(str, resolve_jars(_COMPILER)))
    # `--release` needs the `ct.sym` file of a JDK, which a runtime does not have.
    target = ("-source", str(MINIMUM_JAVA), "-target", str(MINIMUM_JAVA))
    command: list[str | Path] = [
        java.executable,
        "-jar",
        compiler,
        "-proc:none",
        *target,
        "-classpath",
        class_path,
    ]
    try:
        subprocess.run(  # noqa: S603 - a compiler, on the caller's sources
            [*command, "-d", folder, *sources],
            check=True,
            capture_output=True,
            text=True,
            timeout=_COMPILE_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise JavaCompilationError(f"The sources do not compile:\n{error.stderr or error.stdout}") from error
    except subprocess.TimeoutExpired as error:
        raise JavaCompilationError(f"The compiler took more than {_COMPILE_SECONDS:.0f} s") from error
    return JavaProgram(java, class_path)
