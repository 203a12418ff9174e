"""The thread that writes a collector's gauges in prometheus-client's multiprocess mode."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import threading
import weakref
from pathlib import Path
from typing import Protocol

from groupwright.instrumentation._metrics import multiprocess

_log = logging.getLogger("groupwright.instrumentation")
_numbers = itertools.count()
_LAST_WRITE = 5.0
"""Seconds to wait at the process's exit for the last write."""


class Publishable(Protocol):
    """A collector whose gauges are to be written."""

    def publish(self, folder: Path, number: int) -> None:
        """Write the gauges as the process's collector of this number."""


class Publisher:
    """Writes a collector's gauges every few seconds, in each process that starts it. Thread-safe."""

    def __init__(self, collector: Publishable, folder: Path) -> None:
        """Start no thread yet: the process may fork."""
        self._collector = weakref.ref(collector)
        self._folder = folder
        self._number = next(_numbers)
        self._pid: int | None = None
        self._failed = False
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_ending = False

    def start(self) -> None:
        """Write the gauges now and, in a process that has not started it yet, from now on."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._wake = os.getpid(), threading.Event()
                thread = threading.Thread(target=self._run, name="groupwright-gauges", daemon=True)
                atexit.register(self._end, self._pid, thread)
                thread.start()
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait(multiprocess.INTERVAL)
            self._wake.clear()
            collector, is_last = self._collector(), self._is_ending
            if collector is None:
                return
            try:
                collector.publish(self._folder, self._number)
                multiprocess.remove_dead(self._folder)
            except Exception as error:  # noqa: BLE001 - the next write may succeed
                if not self._failed:
                    self._failed = True
                    _log.exception("the gauges cannot be written to %s: %r", self._folder, error)
            del collector
            if is_last:
                return

    def _end(self, pid: int, thread: threading.Thread) -> None:
        """Write the counters and remove the gauges of this process at its exit.

        A forked process inherits the registration.
        """
        if os.getpid() == pid:
            self._is_ending = True
            self._wake.set()
            thread.join(_LAST_WRITE)  # otherwise it may write the gauges again
            multiprocess.remove(self._folder, pid)
