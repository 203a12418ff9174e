"""The wake-up between threads."""

import threading
import time

from groupwright.consumer._protocol.wakeup import Bell


def test_a_wait_ends_with_a_ring() -> None:
    bell = Bell()
    waiting = threading.Thread(target=lambda: bell.wait(30.0))
    waiting.start()
    bell.ring()
    waiting.join(10.0)

    assert not waiting.is_alive()


def test_rings_before_a_wait_end_that_one_and_no_other() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    bell.wait(30.0)
    began = time.monotonic()
    bell.wait(0.05)

    assert time.monotonic() - began >= 0.05


def test_a_wait_for_no_time_returns() -> None:
    bell = Bell()
    bell.wait(-1.0)
    bell.wait(0.0)
