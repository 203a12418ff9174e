"""Processing times that members sent their leader: the last field of `load-aware`'s user data.

The data is untrusted. What cannot be decoded, negative numbers and NaN are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.group import Member, Topic
from groupwright.assignors._wire import primitives
from groupwright.assignors._wire.load_data import PROCESSING_TIMES_VERSION, is_capacity
from groupwright.assignors.errors import MalformedBytesError

_PAIR = np.dtype([("partition", ">i4"), ("milliseconds", ">f2")])


def sent_processing_times(
    members: Iterable[Member], topics: Mapping[str, Topic]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the seconds per message that members sent, times their capacities; NaN where no member did.

    Two members usually send nothing about the same partition. If they do, this is the average.

    Args:
        members: The members.
        topics: The topics of which times are wanted.
    """
    sums = {name: np.zeros(topic.partitions) for name, topic in topics.items()}
    counts = {name: np.zeros(topic.partitions) for name, topic in topics.items()}
    for member in members:
        for name, pairs, capacity in _sent_times(member.user_data):
            if name in topics:
                numbers = pairs["partition"].astype(np.int64)
                seconds = pairs["milliseconds"].astype(np.float64) / 1000 * capacity
                is_usable = (numbers >= 0) & (numbers < topics[name].partitions)
                is_usable &= np.isfinite(seconds) & (seconds >= 0)
                np.add.at(sums[name], numbers[is_usable], seconds[is_usable])
                np.add.at(counts[name], numbers[is_usable], 1)
    return {
        name: np.divide(sums[name], of_topic, out=np.full(of_topic.size, np.nan), where=of_topic > 0)
        for name, of_topic in counts.items()
    }


def sends_processing_times(member: Member) -> bool:
    """Return whether a member sends the processing time of any partition."""
    return any(pairs.size for _, pairs, _ in _sent_times(member.user_data))


def _sent_times(data: bytes | None) -> Iterator[tuple[str, npt.NDArray[np.void], float]]:
    """Yield topics with their pairs, and the capacity of the member."""
    reader = primitives.Reader(data or b"", "user data")
    try:
        if reader.int16("version") < PROCESSING_TIMES_VERSION:
            return
        reader.int32("generation")
        capacity = reader.float64("capacity")
        for _ in range(reader.int32("the number of topics")):
            name, times = reader.string("topic"), reader.nullable_bytes("times") or b""
            usable = len(times) - len(times) % _PAIR.itemsize
            yield name, np.frombuffer(times[:usable], _PAIR), capacity if is_capacity(capacity) else 1.0
    except MalformedBytesError:
        pass
