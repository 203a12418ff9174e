"""Helpers of the tests of processes."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import holds_within


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Wait for a condition on processes, which send no signal when they end."""

    return lambda condition: holds_within(condition, PATIENCE)


@pytest.fixture
def alive() -> Callable[[int | None], bool]:
    """Return whether the process with an id exists and has not ended."""

    def check(pid: int | None) -> bool:
        assert pid is not None
        try:
            return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    return check


@pytest.fixture
def child_commands() -> Callable[[int], list[str]]:
    """The command lines of a process's living descendants."""

    def commands(pid: int) -> list[str]:
        found = []
        for child in psutil.Process(pid).children(recursive=True):
            try:
                found.append(" ".join(child.cmdline()))
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return [command for command in found if command]

    return commands


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, in which this test's brokers make theirs (those of other programs by `TMPDIR`)."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory
