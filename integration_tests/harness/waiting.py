"""Conditions to wait for, instead of times."""

import threading
import time
from collections.abc import Callable

import pytest

from harness.members import PATIENCE


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Return once `condition` holds; fail, saying `what` did not come, if it does not."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {PATIENCE:.0f} s")
        pause.wait(0.02)


def stays_so(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Return if `condition` holds for so many seconds; fail, saying `what` has ended, as soon as it does not."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < end:
        if not condition():
            pytest.fail(f"{what}: not for {seconds} s")
        pause.wait(0.05)
