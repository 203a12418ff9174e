"""The README's program and commands work, and links between pages resolve."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from integration_tests.harness.patience import PATIENCE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.kafka
def test_the_usage_runs_as_it_stands(tmp_path: Path) -> None:
    (program,) = blocks("python")
    script = tmp_path / "usage.py"
    script.write_text(program)

    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "assigned 6\n"


def test_each_command_is_one_that_the_tests_or_ci_run() -> None:
    """The demo's own tests start `make demo`; CI runs these tests; `test_start` follows the page Start."""
    commands = [line for block in blocks("sh") for line in block.splitlines()]

    assert commands == ["make demo", "make test"]
    assert dry_run("demo").splitlines()[-1].endswith("bin/groupwright demo")
    assert "bin/python -m pytest" in dry_run("test")
    in_ci = re.findall(r"^ *(make \S+).* \|\| failed=1$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert in_ci == ["make test", 'make "${TARGET:-test-all}"', "make test-long", "make test-long"]


def test_the_readme_has_one_screen() -> None:
    assert len(README.splitlines()) <= 100


def test_make_help_lists_what_people_need_in_three_groups() -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout

    assert re.findall(r"^(\w.*)", listed, re.MULTILINE) == ["Use it", "Change it", "Measure it"]
    listed_targets = set(re.findall(r"^  make ([a-z-]+) +\S", listed, re.MULTILINE))
    assert {"demo", "test", "test-all", "check", "bench"} <= listed_targets
    assert len(listed_targets) <= 20


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "docs/design.md",
        "docs/releasing.md",
        "docs/stability.md",
    ],
)
def test_links_between_pages_resolve(page: str) -> None:
    source = ROOT / page
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", source.read_text())

    assert links
    assert [link for link in links if not (source.parent / link).exists()] == []


def test_the_files_that_contributing_names_exist() -> None:
    named = re.findall(
        r"`([a-z_]+)/([\w./]+(?:\.py|/))`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    )

    assert len(named) >= 20
    missing = [
        f"{part}/{file}"
        for part, file in named
        if not (ROOT / part / file).exists() and not (ROOT / part / "src/groupwright" / part / file).exists()
    ]
    assert missing == []


def test_the_changelog_has_each_section_once() -> None:
    """Merges keep the lines of both sides of this file, and so may repeat a section."""
    _, *releases = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)

    for release in releases:
        sections = re.findall(r"^### (.+)$", release, re.MULTILINE)
        order = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
        assert sections == [name for name in order if name in sections]


def dry_run(target: str) -> str:
    """Return the commands that make would run, without the arguments of a make that runs this test."""
    outer = {"ARGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"}
    return subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in outer},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout.strip()
