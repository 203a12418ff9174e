"""A run writes its plan, output and findings, however it ends; old runs are removed."""

import json
from collections import Counter
from pathlib import Path

import pytest

from integration_tests.soak import run_directory
from integration_tests.soak.checker import Findings, Violation
from integration_tests.soak.conductor import Plan, Result

PLAN = Plan(7, 120, ("range",))


def test_the_newest_runs_are_kept(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"20260101-0000{number:02}-seed-7").mkdir()
    (tmp_path / "notes").mkdir()

    made = run_directory.create(8, tmp_path)

    left = sorted(member.name for member in tmp_path.iterdir())
    assert len(left) == run_directory.KEPT_RUNS + 1
    assert {made.name, "notes", "20260101-000024-seed-7"} <= set(left)
    assert "20260101-000000-seed-7" not in left


def test_two_runs_of_one_second_have_directories_of_their_own(tmp_path: Path) -> None:
    assert run_directory.create(8, tmp_path) != run_directory.create(8, tmp_path)


def test_what_a_run_raises_is_kept(tmp_path: Path) -> None:
    def fail() -> None:
        with run_directory.recorded(PLAN, tmp_path) as output:
            output.write("begun\n")
            raise TimeoutError("no answer in time")

    with pytest.raises(TimeoutError):
        fail()

    kept = (tmp_path / run_directory.OUTPUT).read_text()
    assert kept.startswith("begun\n")
    assert "TimeoutError: no answer in time" in kept
    assert json.loads((tmp_path / "plan.json").read_text())["seed"] == 7


def test_the_findings_are_kept(tmp_path: Path) -> None:
    findings = Findings([Violation("skipped", "g", "a gap", ("t", 0), ("a",), 1.0)], messages=5)

    run_directory.write_findings(Result(PLAN, findings, Counter(kill=2), {"g": 3}, drained=True), 1, tmp_path)

    kept = json.loads((tmp_path / "findings.json").read_text())
    assert (kept["status"], kept["broken"], kept["counts"]["messages"]) == (1, {"skipped": 1}, 5)
    assert kept["violations"][0]["text"] == "a gap"
