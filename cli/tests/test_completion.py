"""Completion in real shells: commands, options, values, and names of groups."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from groupwright.cli._cluster.completion import completable
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import find_program

Run = Callable[..., "subprocess.CompletedProcess[str]"]

BASH = """
source <(groupwright completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_groupwright_completion groupwright
printf '%s\\n' "${COMPREPLY[@]}"
"""
# `_arguments` and `compdef` are functions of the line editor, which a script does not have.
ZSH = """
_arguments() { print -r -- $@ }
compdef() { : }
source <(groupwright completion zsh)
words=("$@") CURRENT=$#
_groupwright_completion
"""
FISH = """
groupwright completion fish | source
complete --do-complete "$argv"
"""


def run(program: str, script: str, *arguments: str, **environment: str) -> list[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        [program, "-c", script, *arguments],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert found.stderr == ""
    return found.stdout.splitlines()


def in_bash(*line: str, **environment: str) -> list[str]:
    return run("bash", BASH, "bash", *line, **environment)


@pytest.mark.medium
def test_bash_completes_commands_options_and_their_values() -> None:
    assert in_bash("groupwright", "de") == ["describe", "demo"]
    assert in_bash("groupwright", "lag", "--b") == ["--by", "--bootstrap-servers"]
    assert in_bash("groupwright", "groups", "--output", "") == ["table", "json", "csv"]
    assert in_bash("groupwright", "completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.integration
def test_zsh_completes() -> None:
    zsh = find_program("zsh", hint="Debian's package zsh has it")
    (offered,) = run(zsh, ZSH, "zsh", "groupwright", "de")
    assert re.findall(r'"([\w-]+)":', offered) == ["describe", "demo"]


@pytest.mark.integration
def test_fish_completes(tmp_path: Path) -> None:
    fish = find_program("fish", hint="Debian's package fish has it")
    lines = run(fish, FISH, "groupwright de", HOME=str(tmp_path))
    assert [line.split("\t")[0] for line in lines] == ["demo", "describe"]


@pytest.mark.medium
def test_names_of_groups_need_a_cluster_and_its_absence_is_no_error() -> None:
    assert in_bash("groupwright", "describe", "b") == [""]
    for command in ("describe", "explain"):
        assert in_bash("groupwright", command, "b", GROUPWRIGHT_BOOTSTRAP_SERVERS="127.0.0.1:1") == [""]


@pytest.mark.medium
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(groupwright: Run, shell: str) -> None:
    result = groupwright("completion", shell)

    assert (result.returncode, result.stderr) == (0, "")
    assert f"_GROUPWRIGHT_COMPLETE=complete_{shell}" in result.stdout
    if shell != "fish":
        run("bash", 'bash -n <(echo "$0")', result.stdout)


def test_other_shells_are_refused_with_those_there_are(groupwright: Run) -> None:
    result = groupwright("completion", "tcsh")

    assert result.returncode == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr


def test_no_name_means_more_to_a_shell_than_a_word() -> None:
    harmless = ["billing", "team.billing-eu_1", "app:v1@eu", "größe"]
    harmful = [
        "$(id)",
        "\\$(id)",
        "`id`",
        'a\\";id',
        "a b",
        "a;id",
        "a|id",
        "~",
        "*",
        "=id",
        "--execute",
        "a\nid",
        "",
    ]

    assert completable([*harmless, *harmful]) == harmless
