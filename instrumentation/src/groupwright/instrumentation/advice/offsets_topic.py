"""Rule about groups whose offsets are no longer found after partitions were added to the offsets topic.

A group's id hashes to a partition of ``__consumer_offsets``, whose leader coordinates the group. After
partitions were added to that topic, most ids hash to another one. Brokers count the partitions when they
start, so they look for the group in its new partition from their next restart on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for
from groupwright.instrumentation.advice.findings import Finding, note, warning


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """The number of partitions of ``__consumer_offsets``: the present one, and the configured one."""

    partitions: int
    configured: int
    """``offsets.topic.num.partitions`` of the broker."""


def on_offsets_topic(group: str, topic: OffsetsTopic) -> list[Finding]:
    """Return the findings if partitions seem to have been added to the topic after its creation."""
    return list(_grown(group, topic))


def _grown(group: str, topic: OffsetsTopic) -> Iterator[Finding]:
    if topic.partitions == topic.configured:
        return
    before, after = partition_for(group, topic.configured), partition_for(group, topic.partitions)
    evidence = (
        f"{OFFSETS_TOPIC} has {topic.partitions} partitions, and the broker's offsets.topic.num.partitions "
        f"is {topic.configured}"
    )
    if before == after:
        yield note(
            "offsets-topic-grown",
            f"{evidence}; the group {group!r} is in partition {after} with both",
            "If partitions were added to the topic after its creation, most groups' offsets are no longer "
            "found; this group's still are",
            "Before any broker restarts, check the other groups, and repair those whose partition has "
            f"changed (docs/offsets-topic.md). A part of that is to set offsets.topic.num.partitions to "
            f"{topic.partitions}",
        )
    else:
        yield warning(
            "offsets-topic-grown",
            f"{evidence}; the group {group!r} is in partition {after}, and was in {before} with "
            f"{topic.configured}",
            "If partitions were added to the topic after its creation, offsets committed before are not "
            "found once the brokers have restarted: auto.offset.reset then decides where the group starts, "
            "which skips or repeats messages",
            "In this order (docs/offsets-topic.md): save the group's committed offsets now, before any "
            "broker restarts; stop the group, and save them again; set offsets.topic.num.partitions to "
            f"{topic.partitions}, and restart all brokers; commit the saved offsets while the group is "
            "empty; start the group",
        )
