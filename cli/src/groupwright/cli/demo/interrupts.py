"""Ctrl-C and its like, noted at any moment and heeded at moments of the demo's choice."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ALWAYS = (signal.SIGINT, signal.SIGTERM)


class InterruptedDemo(BaseException):
    """The user, or the system, wants the demo to end."""

    def __init__(self, signal_number: int) -> None:
        """Keep the signal."""
        super().__init__(signal_number)
        self.exit_status = 128 + signal_number


class Interrupts:
    """Counts the signals that ask for an end while it is entered. For the main thread.

    The first raises `InterruptedDemo`: at the next `check`, or at once inside `at_once`. The cleanup after
    that runs undisturbed, and can ask whether another signal is `pending`.
    """

    def __init__(self) -> None:
        """Count none yet."""
        self._received: list[int] = []
        self._heeded = 0
        self._immediate = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take over the signals."""
        for number in _SIGNALS:
            if number not in _ALWAYS and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup wants it ignored
            self._former[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._former.items():
            signal.signal(number, handler)

    @property
    def pending(self) -> bool:
        """Whether a signal came that nobody has heeded."""
        return len(self._received) > self._heeded

    def heed(self) -> None:
        """Take note of the signals so far: they raise no more."""
        self._heeded = len(self._received)

    def check(self) -> None:
        """Raise if a signal is pending.

        Raises:
            InterruptedDemo: One is.
        """
        if self.pending:
            self.heed()
            raise InterruptedDemo(self._received[-1])

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise as soon as a signal comes: for code that waits long, knows no `check`, and cleans up."""
        self.check()
        self._immediate = True
        try:
            yield
        finally:
            self._immediate = False
        self.check()

    def _note(self, number: int, _: FrameType | None) -> None:
        self._received.append(number)
        if self._immediate:
            self._immediate = False  # its cleanup shall not be interrupted
            self.check()
