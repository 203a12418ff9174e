"""Schemas of the what-if tables."""

from pyspark.sql.types import StructType

from groupwright.pipeline.record_schemas import (
    DATE,
    DOUBLE,
    GROUP_ID,
    INT,
    LONG,
    PARTITION_COLUMN,
    STRING,
    TIME,
    Table,
    column,
)

_ASSIGNOR = column(
    "assignor",
    STRING,
    "Name of a built-in assignor, import path of a custom one, or `actual` for the recorded assignments.",
)

WHAT_IF_GENERATIONS = Table(
    "what_if_generations",
    "A generation of a group, with the handovers that followed from it, as an assignor would have assigned "
    "it, or as recorded.",
    StructType(
        [
            GROUP_ID,
            _ASSIGNOR,
            column("generation", INT, "The generation."),
            column("time", TIME, "When it was written."),
            column("members", INT, "Number of members."),
            column("partitions", INT, "Number of known partitions of the subscribed topics."),
            column(
                "stopped",
                INT,
                "Partitions that stop: with an eager assignor all that had an owner, with a cooperative one "
                "those that move and those whose owner has left. Null if the recorded assignor is unknown.",
            ),
            column(
                "partition_seconds",
                DOUBLE,
                "Sum of the times for which these partitions stop, from measured durations; null if unknown.",
            ),
            column(
                "moved",
                INT,
                "Partitions taken from a member that could have kept them: it is still a subscriber.",
            ),
            column("min_moves", INT, "The minimum of these moves for an optimally balanced assignment."),
            column("imbalance", INT, "Maximum minus minimum partitions per member."),
            column("held_seconds", DOUBLE, "Time until the next generation; null for the last one."),
            column(
                "peak_load",
                DOUBLE,
                "The largest load of a member divided by the mean load; null if weights are unknown.",
            ),
            column(
                "topic_spread",
                DOUBLE,
                "Maximum minus minimum partitions of a topic per subscriber, averaged over topics.",
            ),
            column(
                "rack_mismatches",
                INT,
                "Partitions whose owner is in a rack without a replica; null if racks are unknown.",
            ),
            column(
                "rounds",
                INT,
                "Rebalances needed: more than 1 for a cooperative assignor that moves partitions.",
            ),
            column("seconds", DOUBLE, "Computing time; close to 0 for a cached result."),
            column("error", STRING, "Why the assignor has no result; members keep their partitions."),
            column(PARTITION_COLUMN, DATE, "Date of `time`."),
        ]
    ),
    derived=True,
)
WHAT_IF = Table(
    "what_if",
    "A group's whole history, replayed with an assignor.",
    StructType(
        [
            GROUP_ID,
            _ASSIGNOR,
            column("rebalances", LONG, "Number of generations with members, without handovers."),
            column("stopped", LONG, "Partitions stopped, in total; null if unknown for one of them."),
            column("stopped_actual", LONG, "Partitions that were actually stopped; null if unknown."),
            column(
                "partition_seconds",
                DOUBLE,
                "Sum of the times for which partitions stopped; null if unknown for one of them.",
            ),
            column("partition_seconds_actual", DOUBLE, "The same, as recorded."),
            column("moved", LONG, "Partitions moved, in total."),
            column("min_moves", LONG, "The minimum of moves needed, in total."),
            column("moved_actual", LONG, "Partitions that were actually moved."),
            column(
                "imbalance_mean",
                DOUBLE,
                "The mean imbalance over time: each generation counts for as long as it was held.",
            ),
            column("imbalance_max", INT, "The largest."),
            column("peak_load_mean", DOUBLE, "The mean of `peak_load` over time; null if unknown."),
            column("topic_spread_mean", DOUBLE, "The mean topic spread."),
            column(
                "rack_mismatches_mean",
                DOUBLE,
                "The mean of `rack_mismatches`; null if racks are unknown.",
            ),
            column(
                "rounds",
                LONG,
                "Rebalances, including the handovers of a cooperative assignor.",
            ),
            column("seconds", DOUBLE, "Computing time."),
            column("errors", LONG, "Generations without a result."),
            column("error", STRING, "One of its errors."),
            column("since", TIME, "Time of the first generation."),
            column("until", TIME, "Time of the last generation."),
            column(PARTITION_COLUMN, DATE, "Date of `until`."),
        ]
    ),
    derived=True,
)
