"""The thread that writes a collector's gauges in prometheus-client's multiprocess mode."""

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

    def start(self) -> None:
        """Write the gauges now and, in a process that has not started it yet, from now on."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._wake = os.getpid(), threading.Event()
                atexit.register(_remove_own, self._folder, self._pid)
                threading.Thread(target=self._run, name="groupwright-gauges", daemon=True).start()
        self._wake.set()

    def _run(self) -> None:
        while True:
            self._wake.wait(multiprocess.INTERVAL)
            self._wake.clear()
            collector = self._collector()
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


def _remove_own(folder: Path, pid: int) -> None:
    """Remove the gauges of this process at its exit; a forked process inherits the registration."""
    if os.getpid() == pid:
        multiprocess.remove(folder, pid)
