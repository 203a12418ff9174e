"""The refreshes: a thread takes snapshots at an interval, and publishes their pages."""

import gc
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from groupwright.cli._command_line.exit import CommandError
from groupwright.cli.exporter.exposition import text
from groupwright.cli.exporter.server import Pages
from groupwright.cli.exporter.snapshot import Snapshot
from groupwright.cli.exporter.state import ExporterState
from groupwright.cli.exporter.status import ExporterStatus

_logger = logging.getLogger("groupwright.exporter")


class Source(Protocol):
    """Takes snapshots of a cluster."""

    def snapshot(self) -> Snapshot:
        """Take a snapshot.

        Raises:
            CommandError: The cluster does not respond, or refuses.
        """


class Refresher:
    """Refreshes at an interval, in a thread of its own, until it is stopped."""

    def __init__(
        self, source: Source, state: ExporterState, status: ExporterStatus, pages: Pages, interval: float
    ) -> None:
        """Prepare.

        Args:
            source: Takes the snapshots.
            state: Takes the snapshots, and gives the samples.
            status: Records the refreshes.
            pages: Where the pages go.
            interval: Seconds from the start of one refresh to that of the next.
        """
        self._source = source
        self._state = state
        self._status = status
        self._pages = pages
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="exporter-refresh", daemon=True)

    def start(self) -> None:
        """Refresh from now on."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Begin no other refresh, and wait for the end of the present one."""
        self._stop.set()
        self._thread.join(timeout)

    def refresh(self) -> None:
        """Take a snapshot and publish its page. A failure is logged and counted, and the page stays."""
        with _without_garbage_collection():
            self._refresh()

    def _refresh(self) -> None:
        started = time.monotonic()
        try:
            page = self._state.update(self._source.snapshot())
            self._pages.publish(text(page.samples))
        except CommandError as error:
            self._fail(str(error))
        except Exception as error:  # the exporter goes on: the next refresh may succeed
            self._fail(f"{type(error).__name__}: {error}")
            _logger.debug("refresh failed", exc_info=True)
        else:
            self._status.succeeded(page, page.snapshot.time, time.monotonic() - started)

    def _fail(self, reason: str) -> None:
        self._status.failed()
        if not self._stop.is_set():
            _logger.error("the refresh failed: %s", reason)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self.refresh()
            due = max(due + self._interval, time.monotonic())
            self._stop.wait(due - time.monotonic())


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Defer garbage collection to the end of the context.

    A refresh creates hundreds of thousands of objects. A full collection visits all of them in 50 to 100 ms,
    during which no scrape gets a response. They have no cycles, so they are freed without it.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
