"""Times for which messages waited although brokers had acknowledged them, by fault. Pure."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from groupwright.testing.groups import Consumed, Event, Produced

if TYPE_CHECKING:
    from groupwright.core import TopicPartitionKey


def waits(
    histories: Mapping[str, Sequence[Event]], produced: Iterable[Produced]
) -> list[tuple[float, float]]:
    """Return the time of each delivery of new messages, and the seconds without one before it, in order.

    The seconds count from the partition's former delivery, or from the acknowledgement of the first of these
    messages if that is later: a partition without a leader, which takes no messages, is no gap.
    """
    acknowledged: defaultdict[TopicPartitionKey, list[tuple[int, float]]] = defaultdict(list)
    for sent in produced:
        for span in sent.spans:
            acknowledged[span.topic, span.partition].append((span.start, sent.time))
    for each in acknowledged.values():
        each.sort()
    consumed = (event for events in histories.values() for event in events if isinstance(event, Consumed))
    last: dict[TopicPartitionKey, tuple[int, float]] = {}
    found: list[tuple[float, float]] = []
    for event in sorted(consumed, key=lambda event: event.time):
        for span in event.spans:
            partition = span.topic, span.partition
            end, before = last.get(partition, (0, 0.0))
            if span.stop <= end:
                continue  # a redelivery
            times = acknowledged[partition]
            at = bisect_right(times, (max(span.start, end), float("inf"))) - 1
            since = max(before, times[at][1]) if at >= 0 else event.time
            found.append((event.time, max(0.0, event.time - since)))
            last[partition] = span.stop, event.time
    return found


def longest_between(found: Iterable[tuple[float, float]], bounds: Sequence[float]) -> list[float]:
    """Return the longest wait from each bound to the next one, and from the last one on; 0 for none."""
    longest = [0.0] * len(bounds)
    for time, seconds in found:
        if (index := bisect_right(bounds, time) - 1) >= 0:
            longest[index] = max(longest[index], seconds)
    return longest
