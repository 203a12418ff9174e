"""Cost of a rebalance to the users of a group: partitions stopped, and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from groupwright.core import assignor_traits
from groupwright.pipeline._what_if.history import RecordedGeneration

BROKER_SECONDS = 2.5
"""Mean time for which a partition stops under KIP-848: half of the broker's default heartbeat interval."""

ASSUMPTIONS = (
    (
        "Members join, leave and subscribe at the recorded times, whatever the assignor. A faster rebalance "
        "would not have prevented an expiry."
    ),
    (
        "The second rebalance of a cooperative assignor (handover) belongs to the rebalance that caused it, "
        "in the recorded history as in the simulated ones."
    ),
    (
        "With an eager assignor every partition that had an owner stops; with a cooperative one only the "
        "partitions that move and those whose owner has left."
    ),
    (
        "A stopped partition stops for the whole measured duration of its rebalance, and a partition that a "
        "cooperative assignor moves for that of the handover. If a duration is unknown, the group's median "
        "is used, and for handovers that of its other rebalances; without any measured duration "
        "partition-seconds are unknown."
    ),
    (
        "No partition is owned at the start of the history. Numbers of partitions are those seen in the "
        "assignments, unless a table of topics is given."
    ),
    (
        "sticky and cooperative-sticky are Groupwright's, which make the fewest moves. java:sticky and "
        "java:cooperative-sticky are the classes of Kafka's Java client, without racks."
    ),
    (
        "broker:uniform and broker:range are what the broker would assign (KIP-848), in one target "
        "assignment instead of rounds. The same partitions stop as with a cooperative assignor, each until "
        f"the next heartbeat of its new owner: {BROKER_SECONDS} s on average with the default "
        "group.consumer.heartbeat.interval.ms."
    ),
)
"""Assumptions of a what-if study, in sentences."""


def is_cooperative(protocol: str | None) -> bool | None:
    """Return whether an assignor rebalances cooperatively; None if its name is unknown.

    Args:
        protocol: The assignor's name; `consumer` for KIP-848, which is cooperative.
    """
    if protocol is None:
        return None
    return True if protocol == "consumer" else assignor_traits.is_cooperative(protocol)


def durations(recorded: RecordedGeneration) -> tuple[float | None, float | None]:
    """Return the measured durations of a rebalance and of its handovers in seconds; None if unknown.

    A handover lasts from the generation that withheld partitions until they are assigned, since their former
    owners revoke them as soon as they get that generation.
    """
    spans = [each.measured for each in (recorded, *recorded.handovers) if each.measured is not None]
    if not spans:
        return None, None
    started, ended = min(start for start, _ in spans), max(end for _, end in spans)
    if not recorded.handovers:
        return (ended - started) / 1e6, None
    withheld = recorded.time
    return (
        (withheld - started) / 1e6 if started <= withheld else None,
        (ended - withheld) / 1e6 if ended >= withheld else None,
    )


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations of a group's rebalances in seconds, for those whose own duration is unknown.

    Attributes:
        rebalance: Median of the rebalances, without handovers; None if none is known.
        handover: Median of the handovers; None if none is known.
    """

    rebalance: float | None
    handover: float | None

    @classmethod
    def of(cls, generations: Sequence[RecordedGeneration]) -> "Durations":
        """Return the medians of a history."""
        known, handovers = zip(*map(durations, generations), strict=True) if generations else ((), ())
        return cls(_median(known), _median(handovers))

    def partition_seconds(self, recorded: RecordedGeneration, stopped: int, handed_over: int) -> float | None:
        """Return the sum of the times for which the partitions are stopped; None if unknown.

        Args:
            recorded: The generation.
            stopped: Number of stopped partitions.
            handed_over: Number of these that stop during the handover only.
        """
        if not stopped:
            return 0.0
        first, handover = durations(recorded)
        first = self.rebalance if first is None else first
        handover = self.handover if handover is None else handover
        # Without measured handovers they are taken to last as long as the rebalance, and the reverse.
        first, handover = (handover if first is None else first), (first if handover is None else handover)
        if first is None or handover is None:
            return None
        return (stopped - handed_over) * first + handed_over * handover


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
