"""Groups in virtual time keep their guarantees, and a seed is played the same way each time."""

import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from integration_tests.simulation.guarantee import GUARANTEES, PAGE, with_guarantees
from integration_tests.simulation.stories import STORIES

ROOT = Path(__file__).parents[2]
_LIMIT_SECONDS = 600
_DIGEST = re.compile(r"digest ([0-9a-f]{8})")
_OF_SECONDS = {
    "stopped-after-on-assign",
    "closed-before-on-assign",
    "rejected-after-a-commit-under-way",
    "a-commit-under-way-when-the-group-assigns",
    "busy-after-an-interrupted-assignment",
    "left-before-the-group-has-assigned",
}
"""Stories of many scenarios."""


def simulate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command; it needs a process of its own, in which the consumer was not imported before."""
    return subprocess.run(
        [sys.executable, "-m", "integration_tests.simulation", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )


def seed_of_the_source() -> int:
    """Return a seed made from the content of the commit: a rerun plays the same seeds again."""
    git = ["git", "rev-parse", "HEAD^{tree}"]
    tree = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    return int(tree.stdout[:7], 16) if tree.returncode == 0 else secrets.randbelow(16**7)


@pytest.mark.slow
def test_fresh_seeds_break_no_guarantee() -> None:
    """If one does, the output says how to replay it."""
    done = simulate("--core-minutes", "0.15", "--lanes", "1", "--first", str(seed_of_the_source()))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_seed_is_replayed_to_the_bit(tmp_path: Path) -> None:
    picture = tmp_path / "timeline.svg"
    first, second = simulate("--seed", "13"), simulate("--seed", "13", "--picture", str(picture))

    assert first.returncode == second.returncode == 0, first.stdout + first.stderr
    assert _DIGEST.findall(first.stdout) == _DIGEST.findall(second.stdout) != []
    assert "on_assign" in first.stdout
    assert picture.read_text().startswith("<svg")


@pytest.mark.slow
@pytest.mark.parametrize(
    "story",
    [pytest.param(each, marks=pytest.mark.endurance if each in _OF_SECONDS else ()) for each in STORIES],
)
def test_what_once_broke_a_guarantee_does_so_no_more(story: str) -> None:
    played = simulate("--story", story)

    assert f"{story}: every guarantee was kept\n" in played.stdout, played.stdout + played.stderr


@pytest.mark.medium
def test_a_rebalance_passes_through_few_files() -> None:
    """A reader follows these paths; `integration_tests.simulation.paths` says what they count."""
    done = subprocess.run(
        [sys.executable, "-m", "integration_tests.simulation.paths"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=True,
    )
    line = r"^(\w+): (\d+) files: (\d+) that decide or convert, (\d+) of the model$"
    counts = {name: tuple(map(int, rest)) for name, *rest in re.findall(line, done.stdout, re.MULTILINE)}

    assert counts.keys() == {"leader", "revocation"}
    for name, limits in (("leader", (15, 12, 3)), ("revocation", (19, 18, 1))):
        assert all(0 < count <= limit for count, limit in zip(counts[name], limits, strict=True)), done.stdout


def test_the_page_has_the_guarantees_and_each_is_checked() -> None:
    page = PAGE.read_text(encoding="utf-8")
    checks = "".join(
        file.read_text(encoding="utf-8")
        for file in PAGE.parent.glob("*.py")
        if file.name not in {"guarantee.py", Path(__file__).name}
    )

    assert page == with_guarantees(page), "write it anew: make docs"
    assert [name for name in GUARANTEES if f'"{name}"' not in checks] == []


def test_a_wrong_argument_is_refused() -> None:
    done = simulate("--seed", "many")

    assert done.returncode == 2
    assert "invalid int value" in done.stderr
