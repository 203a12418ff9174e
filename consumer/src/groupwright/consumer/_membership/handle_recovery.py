"""Handle recovery: recreates librdkafka's handle once it has lost all its brokers for good.

librdkafka forgets the brokers that a metadata answer leaves out. A broker that is shutting down may name none
at all, not even itself; if it was the only one that was left, the handle has no broker then, and nothing
makes it look for one: it fetches nothing any more, without a word
(`rd_kafka_metadata_decommission_unavailable_brokers`, seen in 2.16). The membership has connections of its
own, and would keep partitions that nobody consumes.

So whenever the coordinator has been found, a look some time later asks librdkafka for metadata. If it says
again and again that it has no broker, while the coordinator answers, the handle is closed and made once more,
in the same object, and fetches on where the application is. Nothing of this touches the group.
"""

import logging
import math
import time
from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.group_membership import Handle, Native
from groupwright.consumer._membership.offset_tracker import OffsetTracker
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._protocol.rebalance import Clock

_FAILED_CHECKS = 3
"""As many without a broker, one after the other, prove that there will be none."""
_CHECK_INTERVAL = 2.0
_CHECK_TIMEOUT = 0.2
_EXCLUSIVE_TIMEOUT = 1.0
"""Seconds to wait for other threads to come out of the handle."""
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
            reachable: Whether the coordinator is known, and answers: else librdkafka is not to blame.
            offsets: Where partitions were sought.
            prefetch: Which partitions are paused, and how far each has come.
            guard: Who uses the handle.
            log: Hears of each new start.
            delay: Seconds after which librdkafka should have connected anew, its longest backoff included.
            clock: Monotonic seconds.
        """
        self.next_check = math.inf
        """Monotonic time at which `look` is due."""
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
        """Where partitions are to go on, while there is no handle."""

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Keep credentials that were set after the handle was created, for the next handle."""
        self._credentials = (username, password)

    def schedule_check(self) -> None:
        """Request a check of the handle, because the coordinator was lost and has been found."""
        self.next_check = self._clock() + self._delay
        self._guard.wake()

    def check(self, handle: Handle, config: Callable[[], dict[str, Any]]) -> None:
        """Recreate the handle if it had no broker at each of the last checks.

        Args:
            handle: The consumer's handle.
            config: Returns what the handle is made with.

        Raises:
            KafkaException: the handle cannot be made; the next call tries again.
        """
        if self._starts is None and not self._is_lost(handle):
            return
        self.next_check = self._clock()  # should the handle not be made, the next poll tries again
        with self._guard.exclusive(_EXCLUSIVE_TIMEOUT) as alone:
            if alone:
                self._recreate(handle, config())
        self.next_check = self._clock() + (self._delay if alone else _CHECK_INTERVAL)

    def _is_lost(self, handle: Handle) -> bool:
        """Return whether librdkafka will have no broker any more; else plan when to look again."""
        now, assigned = self._clock(), Native.assignment(handle)
        if not assigned:
            # Nothing is to be fetched, by a handle without brokers either.
            self._failed, self.next_check = 0, now + self._delay
        elif not self._reachable() or _has_broker(handle, assigned[0].topic):
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
                "librdkafka has lost all its brokers and does not look for them, although the "
                "coordinator answers; "
                "it is started anew, and goes on with %d partitions where the application is",
                len(assigned),
            )
        Native.close(handle)
        Native.__init__(handle, config)
        if self._credentials is not None:
            Native.set_sasl_credentials(handle, *self._credentials)
        starts, self._starts = self._starts, None
        self._failed = 0
        # If that did not help, something else is wrong, and this is no remedy for it.
        self._delay = min(2 * self._delay, _LONGEST_DELAY)
        Native.incremental_assign(handle, starts)
        paused = [p for p in starts if (p.topic, p.partition) in self._prefetch.paused]
        if paused:
            Native.pause(handle, paused)

    def _start(self, position: TopicPartition, assigned: TopicPartition) -> TopicPartition:
        """Return where a partition continues: its position, where it was sought, or its first offset."""
        if position.offset >= 0:
            return position
        sought = self._offsets.sought((assigned.topic, assigned.partition))
        return assigned if sought is None else TopicPartition(assigned.topic, assigned.partition, sought)


def _has_broker(handle: Handle, topic: str) -> bool:
    try:
        Native.list_topics(handle, topic=topic, timeout=_CHECK_TIMEOUT)
    except confluent_kafka.KafkaException as error:
        # Any other error is a broker's, or that of one that is slow.
        return bool(error.args[0].code() != KafkaError._TRANSPORT)  # noqa: SLF001 - librdkafka's public code
    return True
