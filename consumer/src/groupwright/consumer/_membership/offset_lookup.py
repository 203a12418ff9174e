"""Offset look-up.

ListOffsets for "beginning" and "end", sent by the network thread without blocking a poll.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Coroutine, MutableMapping
from typing import Any, Protocol

from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.consumer._protocol.timers import Clock
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.core import TopicPartitionKey

LogicalOffset = tuple[TopicPartitionKey, int]
"""A partition, and ``OFFSET_BEGINNING`` or ``OFFSET_END``."""

_TIMEOUT = 1.0
"""Seconds for all requests of a look-up, retries included."""
_PAUSE = 0.05
"""Seconds between two attempts."""


class OffsetSource(Protocol):
    """The part of `Network` that a look-up needs."""

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        """Call a function on the network thread."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine; on the network thread."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def list_offsets(
        self,
        wanted: Collection[LogicalOffset],
        found: MutableMapping[LogicalOffset, int | None],
        timeout: float,
        *,
        read_committed: bool,
    ) -> None:
        """Ask the leaders of partitions for offsets."""


class OffsetLookup:
    """One look-up at a time.

    The polling thread begins it and reads the result; the network thread sends requests.
    """

    def __init__(
        self,
        source: OffsetSource,
        log: logging.LoggerAdapter[logging.Logger],
        clock: Clock = time.monotonic,
        *,
        read_committed: bool = True,
    ) -> None:
        """Create it with nothing to look up.

        Args:
            source: Sends the requests.
            log: Receives failed attempts, at DEBUG.
            clock: Monotonic seconds.
            read_committed: Whether "end" is the last stable offset, not the high watermark.
        """
        self._source = source
        self._log = log
        self._clock = clock
        self._read_committed = read_committed
        self._found: dict[LogicalOffset, int | None] = {}
        self._wanted: frozenset[LogicalOffset] = frozenset()
        self._deadline = 0.0
        self._answered = Wakeup()

    def begin(self, wanted: Collection[LogicalOffset]) -> None:
        """Begin a look-up, which replaces the previous one."""
        found: dict[LogicalOffset, int | None] = {}
        self._found = found
        self._wanted = frozenset(wanted)
        self._deadline = self._clock() + _TIMEOUT
        if self._wanted:
            run, deadline = self._run, self._deadline
            self._source.call_soon(lambda: self._source.spawn(run(frozenset(wanted), found, deadline)))

    @property
    def pending(self) -> bool:
        """True if an offset is missing, and the look-up has not timed out."""
        return len(self._found) < len(self._wanted) and self._clock() < self._deadline

    def find(self, key: TopicPartitionKey, offset: int) -> int | None:
        """Return the offset for a logical one; None if it was not found."""
        return self._found.get((key, offset))

    def wait(self, seconds: float) -> None:
        """Wait until the look-up has ended, for `seconds` at most."""
        if self.pending:
            self._answered.wait(min(seconds, self._deadline - self._clock()))

    async def _run(
        self, wanted: frozenset[LogicalOffset], found: dict[LogicalOffset, int | None], deadline: float
    ) -> None:
        """Send requests until all offsets are found, or the look-up times out or is replaced."""
        try:
            while found is self._found and (missing := wanted - found.keys()):
                seconds = deadline - self._clock()
                if seconds <= 0:
                    break
                try:
                    await self._source.list_offsets(
                        missing, found, seconds, read_committed=self._read_committed
                    )
                except DisconnectedError as error:
                    self._log.debug("ListOffsets failed, retrying: %s", error)
                if wanted - found.keys():
                    await self._source.sleep(_PAUSE)
        finally:
            self._answered.notify()
