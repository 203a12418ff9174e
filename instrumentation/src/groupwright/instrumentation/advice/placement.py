"""The rule that finds groups whose records are in another partition of ``__consumer_offsets`` than brokers expect.

A group belongs to the partition of ``__consumer_offsets`` that its id hashes to, and is coordinated by that
partition's leader. When the topic is given more partitions, most ids hash to another one. Brokers count the
partitions when they start: from their next start on they look for the group where it never was.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from groupwright.core.placement import OFFSETS_TOPIC, partition_for
from groupwright.instrumentation.advice.findings import Finding, note, warning


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """How many partitions ``__consumer_offsets`` has, and how many it would be created with."""

    partitions: int
    configured: int
    """``offsets.topic.num.partitions`` of the broker."""


def on_offsets_topic(group: str, topic: OffsetsTopic) -> list[Finding]:
    """Return what is found where the topic has other partitions than it was, by all appearances, created with."""
    return list(_grown(group, topic))


def _grown(group: str, topic: OffsetsTopic) -> Iterator[Finding]:
    if topic.partitions == topic.configured:
        return
    before, after = partition_for(group, topic.configured), partition_for(group, topic.partitions)
    evidence = (
        f"{OFFSETS_TOPIC} has {topic.partitions} partitions, and the broker's offsets.topic.num.partitions is "
        f"{topic.configured}"
    )
    if before == after:
        yield note(
            "offsets-topic-grown",
            f"{evidence}; the group {group!r} is in partition {after} by either",
            "If the topic was given partitions after its creation, most groups' offsets are not found any more; this one's "
            "are",
            f"Look at the other groups, and set offsets.topic.num.partitions to {topic.partitions}",
        )
    else:
        yield warning(
            "offsets-topic-grown",
            f"{evidence}; the group {group!r} is in partition {after}, and was in {before} with {topic.configured}",
            "If the topic was given partitions after its creation, offsets that were committed before are not found once "
            "the brokers have restarted: auto.offset.reset decides where the group begins, which skips or repeats messages",
            f"Commit the group's offsets anew while it is empty (docs/offsets-topic.md), and set "
            f"offsets.topic.num.partitions to {topic.partitions}",
        )
