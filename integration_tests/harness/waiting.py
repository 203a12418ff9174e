"""Waiting for conditions instead of sleeping."""

import threading
import time
from collections.abc import Callable

import pytest

from integration_tests.harness.patience import PATIENCE


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds; fail with `what` after the timeout."""
    if not holds_within(condition, PATIENCE):
        pytest.fail(f"{what}: not within {PATIENCE:.0f} s")


def holds_within(condition: Callable[[], bool], seconds: float, pause: float = 0.02) -> bool:
    """Wait until `condition` holds, for `seconds` at most, and return whether it does.

    Args:
        condition: The condition.
        seconds: The longest time to wait.
        pause: Seconds between two calls of the condition.
    """
    deadline = time.monotonic() + seconds
    waiting = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        waiting.wait(pause)
    return True


def stays_so(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Check that `condition` holds for so many seconds; fail with `what` as soon as it does not."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < end:
        if not condition():
            pytest.fail(f"{what}: not for {seconds} s")
        pause.wait(0.05)
