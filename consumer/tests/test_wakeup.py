"""The wake-up between threads."""

import threading
import time

from groupwright.consumer._protocol.wakeup import Wakeup
from integration_tests.harness.patience import PATIENCE


def test_a_wait_ends_with_a_ring() -> None:
    wakeup = Wakeup()
    waiting = threading.Thread(target=lambda: wakeup.wait(2 * PATIENCE), daemon=True)
    waiting.start()
    wakeup.notify()
    waiting.join(PATIENCE)

    assert not waiting.is_alive()


def test_rings_before_a_wait_end_that_one_and_no_other() -> None:
    wakeup = Wakeup()
    wakeup.notify()
    wakeup.notify()
    wakeup.wait(PATIENCE)
    began = time.monotonic()
    wakeup.wait(0.05)

    assert time.monotonic() - began >= 0.05


def test_a_wait_for_no_time_returns() -> None:
    wakeup = Wakeup()
    wakeup.wait(-1.0)
    wakeup.wait(0.0)
