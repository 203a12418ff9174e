"""Measurements for the weights of a group's partitions: offsets on brokers, and members' processing times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import OFFSET_END

from groupwright.assignors import Member, Topic, sent_processing_times
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.consumer._protocol.timers import Clock
from groupwright.consumer._protocol.wakeup import Wakeup
from groupwright.core import TopicPartitionKey

_ByPartition = dict[str, npt.NDArray[np.float64]]


class LeaderMeasurements:
    """The `GroupMeasurements` of one assignment. The assigning thread waits for the network thread.

    Partitions whose request has no response by the deadline are unknown. No request is retried, since the
    group waits for the assignment.
    """

    def __init__(
        self,
        network: Network,
        members: Collection[Member],
        topics: Mapping[str, Topic],
        seconds: float,
        clock: Clock = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create it with nothing requested yet.

        Args:
            network: Sends the requests.
            members: The members that joined.
            topics: The topics.
            seconds: Time for all requests.
            clock: Monotonic seconds.
            now: Seconds since the epoch, for the timestamps of messages.
        """
        self._network = network
        self._members = members
        self._topics = topics
        self._clock = clock
        self._now = now
        self._deadline = clock() + seconds
        self._listed: dict[int, dict[TopicPartitionKey, int | None]] = {}

    def log_ends(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return the high watermarks."""
        return self._by_partition(self._list(OFFSET_END))

    def at(self, seconds_ago: float) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return the offsets of the first messages that are not older; the log end where there is none."""
        first = self._list(max(0, int((self._now() - seconds_ago) * 1000)))
        ends = self._list(OFFSET_END)
        return self._by_partition(
            {key: ends.get(key) if offset is None else offset for key, offset in first.items()}
        )

    def committed(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return the committed offsets of the group; unknown where there is none."""
        found: dict[TopicPartitionKey, int | None] = {}

        async def fetch() -> None:
            wanted = {name: range(topic.partitions) for name, topic in self._topics.items()}
            response = await self._network.fetch_offsets(wanted)
            found.update(
                {
                    key: offset.offset
                    for key, offset in response.offsets.items()
                    if not response.errors.get(key) and offset.offset >= 0
                }
            )

        self._run(fetch)
        return self._by_partition(found)

    def processing_times(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """Return the seconds per message that members sent, times their capacities."""
        return sent_processing_times(self._members, self._topics)

    def _list(self, timestamp: int) -> Mapping[TopicPartitionKey, int | None]:
        """Return offsets by ListOffsets; only one request is sent for each timestamp."""
        if timestamp in self._listed:
            return self._listed[timestamp]
        answers: dict[tuple[TopicPartitionKey, int], int | None] = {}
        wanted: Collection[tuple[TopicPartitionKey, int]] = [
            ((name, number), timestamp)
            for name, topic in self._topics.items()
            for number in range(topic.partitions)
        ]

        async def ask() -> None:
            seconds = max(0.0, self._deadline - self._clock())
            await self._network.list_offsets(wanted, answers, seconds, read_committed=False)

        self._run(ask)
        found = {key: offset for (key, _), offset in answers.copy().items()}
        self._listed[timestamp] = found
        return found

    def _run(self, request: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a request on the network thread, and wait until it has ended, or time is over."""
        ended = Wakeup()

        async def run() -> None:
            try:
                await request()
            except DisconnectedError:
                pass  # what is not found is unknown
            finally:
                ended.notify()

        self._network.call_soon(lambda: self._network.spawn(run()))
        ended.wait(self._deadline - self._clock())

    def _by_partition(self, found: Mapping[TopicPartitionKey, int | None]) -> _ByPartition:
        arrays = {name: np.full(topic.partitions, math.nan) for name, topic in self._topics.items()}
        for (name, number), offset in found.items():
            if offset is not None and name in arrays and 0 <= number < arrays[name].size:
                arrays[name][number] = offset
        return arrays
