"""The tables that what-if fills."""

from pyspark.sql.types import DataType, StructField, StructType

from groupwright.pipeline.schemas import DATE, DOUBLE, INT, LONG, PARTITION_COLUMN, STRING, TIME, Table


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, nullable=True, metadata={"comment": comment})


_GROUP = _column("group_id", STRING, "The consumer group.")
_ASSIGNOR = _column(
    "assignor", STRING, "One of ours by name, a user's by import path, or `actual`: the recorded assignment."
)

WHAT_IF_GENERATIONS = Table(
    "what_if_generations",
    "A generation of a group, as an assignor would have had it, or as it was in fact.",
    StructType(
        [
            _GROUP,
            _ASSIGNOR,
            _column("generation", INT, "The generation."),
            _column("time", TIME, "When it was written."),
            _column("members", INT, "Its members."),
            _column(
                "partitions", INT, "The partitions of the topics that they subscribe to, as far as known."
            ),
            _column(
                "moved",
                INT,
                "Partitions taken from a member that could have kept them: it is still there, and still subscribes.",
            ),
            _column(
                "fewest_moves", INT, "The fewest that the best balance needs from what members owned then."
            ),
            _column("imbalance", INT, "The most partitions of a member, less the fewest."),
            _column(
                "topic_spread",
                DOUBLE,
                "The mean over topics of the most of its partitions that a subscriber has, less the fewest.",
            ),
            _column(
                "far",
                INT,
                "Partitions whose consumer is in a rack where they have no replica; null where racks are not known.",
            ),
            _column(
                "rounds",
                INT,
                "Rebalances that it takes: more than 1 of a cooperative assignor that moves something.",
            ),
            _column(
                "seconds", DOUBLE, "What working it out took; next to nothing where it was known already."
            ),
            _column("error", STRING, "Why the assignor has no result; members go on with what they had."),
            _column(PARTITION_COLUMN, DATE, "Date of `time`."),
        ]
    ),
    derived=True,
)
WHAT_IF = Table(
    "what_if",
    "What an assignor would have made of a group's whole history.",
    StructType(
        [
            _GROUP,
            _ASSIGNOR,
            _column("rebalances", LONG, "Generations with members."),
            _column("moved", LONG, "Partitions moved in all of them."),
            _column("fewest_moves", LONG, "The fewest needed, each time from what members owned then."),
            _column("moved_actual", LONG, "Partitions that were really moved."),
            _column("imbalance_mean", DOUBLE, "The mean imbalance."),
            _column("imbalance_max", INT, "The largest."),
            _column("topic_spread_mean", DOUBLE, "The mean topic spread."),
            _column(
                "far_mean",
                DOUBLE,
                "The mean number of partitions far from their consumers; null without racks.",
            ),
            _column(
                "rounds",
                LONG,
                "Rebalances that it would have taken, with those that a cooperative assignor adds.",
            ),
            _column("seconds", DOUBLE, "What working it out took."),
            _column("errors", LONG, "Generations for which it has no result."),
            _column("error", STRING, "One of its errors."),
            _column("since", TIME, "The first generation's time."),
            _column("until", TIME, "The last one's."),
            _column(PARTITION_COLUMN, DATE, "Date of `until`."),
        ]
    ),
    derived=True,
)
