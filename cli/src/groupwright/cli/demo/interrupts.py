"""Deferred handling of SIGINT, SIGTERM and SIGHUP: they raise at defined points of the demo."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ALWAYS = (signal.SIGINT, signal.SIGTERM)


class InterruptedDemo(BaseException):
    """A signal asked the demo to end."""

    def __init__(self, signal_number: int) -> None:
        """Derive the exit status from the signal: 128 + its number, as in shells."""
        super().__init__(signal_number)
        self.exit_status = 128 + signal_number


class Interrupts:
    """Context manager that records signals, in the main thread.

    The first signal raises `InterruptedDemo`: at the next `check`, or immediately inside `at_once`. Signals
    during the cleanup that follows do not raise; `pending` says whether there was one.
    """

    def __init__(self) -> None:
        """Start with no signals."""
        self._received: list[int] = []
        self._acknowledged = 0
        self._immediate = False
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        for number in _SIGNALS:
            if number not in _ALWAYS and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup ignores SIGHUP
            self._previous_handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore the previous handlers."""
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    @property
    def pending(self) -> bool:
        """True if a signal has arrived that was not acknowledged."""
        return len(self._received) > self._acknowledged

    def acknowledge(self) -> None:
        """Acknowledge the signals so far: they no longer raise."""
        self._acknowledged = len(self._received)

    def check(self) -> None:
        """Raise if a signal is pending.

        Raises:
            InterruptedDemo: One is.
        """
        if self.pending:
            self.acknowledge()
            raise InterruptedDemo(self._received[-1])

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise as soon as a signal arrives, for blocking code that calls no `check` and cleans up itself."""
        self.check()
        self._immediate = True
        try:
            yield
        finally:
            self._immediate = False
        self.check()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self._received.append(number)
        if self._immediate:
            self._immediate = False  # the cleanup must not be interrupted
            self.check()
