"""Handle recovery: recreates librdkafka's handle after it has lost all its brokers.

librdkafka removes brokers that are missing in a metadata response
(`rd_kafka_metadata_decommission_unavailable_brokers`, seen in 2.16). The response of a broker that shuts down
may contain no brokers, not even itself. If that was the last broker known, the handle has none, never
bootstraps again, and fetches nothing, without any error. The membership has its own connections, so it would
keep the partitions.

So the handle is checked some time after the coordinator was lost and found again: librdkafka is asked for
metadata. If it reports several times that it has no broker, while the coordinator is known, the handle is
closed and created again, in the same Python object, and continues at the application's positions. The group
is not affected.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import TopicPartition

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.handle import Handle, Native, request_metadata
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._protocol.timers import Clock

_FAILED_CHECKS = 3
"""Consecutive checks without a broker after which the handle is recreated."""
_CHECK_INTERVAL = 2.0
"""Seconds between these checks."""
_EXCLUSIVE_TIMEOUT = 1.0
"""Seconds to wait until no other thread uses the handle."""
_LONGEST_DELAY = 600.0


class HandleRecovery:
    """Checks a consumer's handle on the polling thread, and recreates it; any thread may request that."""

    def __init__(
        self,
        reachable: Callable[[], bool],
        offsets: OffsetTracker,
        prefetch: PrefetchBuffer,
        guard: AccessGuard,
        log: logging.LoggerAdapter[logging.Logger],
        *,
        delay: float,
        clock: Clock = time.monotonic,
    ) -> None:
        """Create it with no check due.

        Args:
            reachable: Whether the coordinator is known. Otherwise the cluster is unreachable for librdkafka,
                too.
            offsets: Has the offsets of the last seeks.
            prefetch: Has the paused partitions, and the application's positions.
            guard: Gives this thread exclusive use of the handle.
            log: Receives a warning for each new handle.
            delay: Seconds from the coordinator's return to the check; librdkafka must have reconnected by
                then, its longest backoff included.
            clock: Monotonic seconds.
        """
        self.next_check = math.inf
        """Monotonic time at which `check` is due, in seconds."""
        self._credentials: tuple[str, str] | None = None
        self._reachable = reachable
        self._offsets = offsets
        self._prefetch = prefetch
        self._guard = guard
        self._log = log
        self._delay = self._first_delay = delay
        self._clock = clock
        self._failed = 0
        self._starts: list[TopicPartition] | None = None
        """Partitions with their start offsets for the next handle; None if there is a handle."""

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Keep credentials that were set after the handle was created, for the next handle."""
        self._credentials = (username, password)

    def schedule_check(self) -> None:
        """Schedule a check, because the coordinator was lost and found; callable from any thread."""
        self.next_check = self._clock() + self._delay
        self._guard.wake()

    def check(self, handle: Handle, config: Callable[[], dict[str, Any]]) -> None:
        """Recreate the handle if it had no broker at each of the last checks.

        Args:
            handle: The consumer's handle.
            config: Returns the configuration of the handle.

        Raises:
            KafkaException: The handle cannot be created; the next call tries again.
        """
        if self._starts is None and not self._is_lost(handle):
            return
        self.next_check = self._clock()  # so that the next poll tries again if this raises
        with self._guard.exclusive(_EXCLUSIVE_TIMEOUT) as alone:
            if alone:
                self._recreate(handle, config())
        self.next_check = self._clock() + (self._delay if alone else _CHECK_INTERVAL)

    def _is_lost(self, handle: Handle) -> bool:
        """Return whether librdkafka has lost all its brokers; otherwise schedule the next check."""
        now, assigned = self._clock(), Native.assignment(handle)
        if not assigned:
            # Without partitions, nothing is to be fetched.
            self._failed, self.next_check = 0, now + self._delay
        elif not self._reachable() or request_metadata(handle, assigned[0].topic):
            self._failed, self.next_check = 0, math.inf
            self._delay = self._first_delay
        else:
            self._failed, self.next_check = self._failed + 1, now + _CHECK_INTERVAL
        return self._failed >= _FAILED_CHECKS

    def _recreate(self, handle: Handle, config: dict[str, Any]) -> None:
        if self._starts is None:
            assigned = Native.assignment(handle)
            positions = Native.position(handle, assigned)
            self._starts = list(map(self._start, positions, assigned))
            self._prefetch.seed_positions(positions)
            self._log.warning(
                "librdkafka has lost all its brokers and does not reconnect, although the coordinator "
                "answers; its handle is created again, and continues with %d partitions at the application's "
                "positions",
                len(assigned),
            )
        Native.close(handle)
        Native.__init__(handle, config)
        if self._credentials is not None:
            Native.set_sasl_credentials(handle, *self._credentials)
        starts, self._starts = self._starts, None
        self._failed = 0
        # If this did not help, the cause is another one, so the next recovery comes later.
        self._delay = min(2 * self._delay, _LONGEST_DELAY)
        Native.incremental_assign(handle, starts)
        paused = [p for p in starts if (p.topic, p.partition) in self._prefetch.paused]
        if paused:
            Native.pause(handle, paused)

    def _start(self, position: TopicPartition, assigned: TopicPartition) -> TopicPartition:
        """Return a partition with the offset to continue at.

        Its position, its last seek, or its first offset.
        """
        if position.offset >= 0:
            return position
        sought = self._offsets.sought((assigned.topic, assigned.partition))
        return assigned if sought is None else TopicPartition(assigned.topic, assigned.partition, sought)
