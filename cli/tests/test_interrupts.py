"""Signals are noted at any moment, and raise only where that is safe."""

import os
import signal

import pytest

from groupwright.cli.demo.interrupts import InterruptedDemo, Interrupts


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def interrupted_at_once(interrupts: Interrupts) -> None:
    with interrupts.at_once():
        interrupt(signal.SIGTERM)
        pytest.fail("it went on")


def interrupted_in_the_cleanup(interrupts: Interrupts, cleaned: list[str]) -> None:
    with interrupts.at_once():
        try:
            interrupt()
        finally:
            interrupt()
            cleaned.append("in full")


def test_a_signal_waits_for_the_check() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
        interrupt()
        assert interrupts.pending
        with pytest.raises(InterruptedDemo) as raised:
            interrupts.check()
        assert raised.value.exit_status == 130
        interrupts.check()


def test_a_signal_raises_at_once_where_that_is_wanted() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(InterruptedDemo) as raised:
            interrupted_at_once(interrupts)
        assert raised.value.exit_status == 143
        assert not interrupts.pending


def test_the_cleanup_after_a_signal_is_not_interrupted_by_the_next() -> None:
    with Interrupts() as interrupts:
        cleaned: list[str] = []
        with pytest.raises(InterruptedDemo):
            interrupted_in_the_cleanup(interrupts, cleaned)
        assert cleaned == ["in full"]
        assert interrupts.pending


def test_a_signal_that_came_before_raises_first() -> None:
    with Interrupts() as interrupts:
        interrupt()
        with pytest.raises(InterruptedDemo), interrupts.at_once():
            pytest.fail("it went on")


def test_a_signal_that_was_heeded_is_over() -> None:
    with Interrupts() as interrupts:
        interrupt()
        interrupts.acknowledge()
        assert not interrupts.pending
        interrupts.check()


def test_the_signals_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
