"""The forge's workflows call the project's own commands, and run the matrix of supported versions."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from integration_tests.harness.patience import PATIENCE

ROOT = Path(__file__).parents[2]
WORKFLOWS = {
    file.stem: yaml.safe_load(file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CI_RUN = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
NOT_OURS = ("apt-get ", "docker ", "gh ")
"""What a job needs before make, or does on the forge itself."""


def steps(workflow: str) -> list[dict[str, Any]]:
    return [step for job in WORKFLOWS[workflow]["jobs"].values() for step in job["steps"]]


def commands(workflow: str) -> list[str]:
    return [step["run"] for step in steps(workflow) if "run" in step]


def targets(command: str) -> set[str]:
    """Return the targets of a call of make, without its variables."""
    return {word for word in shlex.split(command)[1:] if "=" not in word}


def supported() -> dict[str, tuple[str, str]]:
    """Return the lowest and the highest supported version of each row of the table."""
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    return {
        name.partition(" (")[0]: (low, high)
        for name, low, high in re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|", page, re.MULTILINE)
    }


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_each_command_is_a_target_of_make(workflow: str) -> None:
    ours = [command for command in commands(workflow) if not command.startswith(NOT_OURS)]

    assert ours
    assert {command for command in ours if command != ".ci/run" and not command.startswith("make ")} == set()
    assert set().union(*(targets(each) for each in ours if each.startswith("make "))) <= TARGETS


def test_ci_runs_the_targets_of_the_local_script() -> None:
    local = set(re.findall(r"\bmake ([a-z-]+)", CI_RUN))
    forge = set().union(*(targets(each) for each in commands("ci") if each.startswith("make ")))

    assert {"lint", "lint-workflows", "types", "test", "test-long"} <= local
    assert ".ci/run" in commands("ci")
    assert {"lint", "lint-workflows", "types", "test-fast", "test-lowest", "test-wheel"} <= forge


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_actions_are_pinned_and_jobs_are_bounded(workflow: str) -> None:
    jobs = WORKFLOWS[workflow]["jobs"].values()

    assert [
        step["uses"]
        for step in steps(workflow)
        if not re.search(r"@[0-9a-f]{40}$", step.get("uses", "@" + "0" * 40))
    ] == []
    assert all("timeout-minutes" in job for job in jobs)
    assert WORKFLOWS[workflow]["permissions"] == {"contents": "read"}


def test_the_matrix_is_that_of_the_supported_versions() -> None:
    jobs, table = WORKFLOWS["ci"]["jobs"], supported()
    pythons = jobs["python"]["strategy"]["matrix"]["python"]
    kafkas = jobs["everything"]["strategy"]["matrix"]["kafka"]
    classifiers = re.findall(r"Python :: (3\.\d+)\b", "\n".join(PROJECT["classifiers"]))

    assert pythons == classifiers
    assert (pythons[0], pythons[-1]) == table["Python"]
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    assert (kafkas[-1], kafkas[0]) == table["Kafka"]
    assert f"KAFKA_VERSION:-{table['Kafka'][1]}" in CI_RUN


def test_the_table_has_the_bounds_of_confluent_kafka() -> None:
    name = "confluent-kafka"
    low, high = supported()[name]
    (requirement,) = (each for each in map(Requirement, PROJECT["dependencies"]) if each.name == name)
    floors = [Version(each.version) for each in requirement.specifier if each.operator == ">="]

    assert floors == [Version(low)]
    assert f"\n{name}=={high} \\\n" in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")


def release_check(tag: str, root: Path) -> list[str]:
    """Return the problems that keep a tag from being released."""
    check = subprocess.run(
        [sys.executable, ROOT / ".ci" / "release-check", tag, root],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert bool(check.stderr) == bool(check.returncode)
    return check.stderr.splitlines()


def test_a_release_is_refused_until_version_changelog_chart_and_pages_are_ready(tmp_path: Path) -> None:
    files = ("pyproject.toml", "CHANGELOG.md", "README.md", "docs/start.md", "charts/groupwright/Chart.yaml")
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n- A change.\n", encoding="utf-8"
    )
    for page in ("README.md", "docs/start.md"):
        (tmp_path / page).write_text("No version is on the package index yet.\n", encoding="utf-8")

    version = PROJECT["version"]
    problems = release_check("v0.0.0", tmp_path)
    assert [problem.partition(":")[0] for problem in problems] == [
        f"The tag is v0.0.0, and pyproject.toml has the version {version}",
        f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'",
        "CHANGELOG.md has changes under [Unreleased]",
        "README.md still says 'No version is on the package index yet'",
        "docs/start.md still says 'No version is on the package index yet'",
    ]

    released = f"# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-12-01\n\n- A change.\n"
    (tmp_path / "CHANGELOG.md").write_text(released, encoding="utf-8")
    for page in ("README.md", "docs/start.md"):
        (tmp_path / page).write_text("pip install groupwright\n", encoding="utf-8")
    assert release_check(f"v{version}", tmp_path) == []


def test_a_release_is_checked_before_it_is_built() -> None:
    build = WORKFLOWS["release"]["jobs"]["build"]["steps"]
    runs = [step["run"] for step in build if "run" in step]
    assert runs[0].startswith("make release-check TAG=")
    assert WORKFLOWS["release"]["jobs"]["publish"]["needs"] == "build"
    assert WORKFLOWS["release"]["jobs"]["image-and-chart"]["needs"] == "publish"


def test_a_release_attests_a_bill_of_materials_with_a_serial_number() -> None:
    """The forge's action accepts no other, and cyclonedx-py omits the number from a reproducible one."""
    recipe = subprocess.run(
        ["make", "--dry-run", "sbom"], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    inputs = [step.get("with", {}) for step in steps("release")]
    (attested,) = [each["sbom-path"] for each in inputs if "sbom-path" in each]

    assert f"--output-file {attested} " in recipe
    assert "--output-reproducible" not in recipe


def test_an_image_is_published_from_a_new_checkout(tmp_path: Path) -> None:
    """Buildx writes the file of metadata to a folder that is there, or fails when it has pushed the image."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\necho "$@" > build/image.json\n', encoding="utf-8")
    docker.chmod(0o755)
    subprocess.run(
        [
            *("make", "--file", ROOT / "Makefile", "--directory", tmp_path, "publish-image"),
            *("REGISTRY=registry.example.com/tools", "TAG=v1.2.3", "FORMATS=iceberg"),
        ],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        timeout=PATIENCE,
        check=True,
    )

    arguments = (tmp_path / "build" / "image.json").read_text(encoding="utf-8")
    assert " --build-arg FORMATS=iceberg " in arguments
    assert " --tag registry.example.com/tools/groupwright:1.2.3 " in arguments
