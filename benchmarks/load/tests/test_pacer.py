"""A member spends a set time on each message: no less, and no more if the client is slow for a moment."""

import pytest

from benchmarks.load.programs.pacer import Pacer


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def pacer(clock: Clock) -> Pacer:
    return Pacer(service=0.004, slack=0.002, clock=clock, sleep=clock.sleep)


def test_a_backlog_is_served_at_the_set_pace() -> None:
    clock = Clock()
    serving = pacer(clock)
    serving.serve()
    began = clock.now

    for _ in range(250):
        clock.now += 0.001  # the client's own work
        serving.serve()

    assert clock.now - began == pytest.approx(1.0)


def test_a_member_that_waited_does_not_make_up_for_it() -> None:
    clock = Clock()
    serving = pacer(clock)
    serving.serve()
    clock.now += 10
    began = clock.now

    serving.serve()
    serving.serve()

    assert clock.now - began == pytest.approx(0.006)
