"""Schemas of the tables of decoded group records, and the terms in which all schemas are written."""

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

STRING, BINARY, BOOLEAN, INT, LONG = StringType(), BinaryType(), BooleanType(), IntegerType(), LongType()
DOUBLE, TIME, DATE = DoubleType(), TimestampType(), DateType()
STRINGS = ArrayType(STRING)

PARTITION_COLUMN = "date"
"""The column that every table is partitioned by."""


def struct(**fields: DataType) -> StructType:
    """Return a struct."""
    return StructType([StructField(name, kind) for name, kind in fields.items()])


TOPIC_PARTITIONS = ArrayType(struct(topic=STRING, partitions=ArrayType(INT)))
"""Partitions by topic, by the topic's name."""
ID_PARTITIONS = ArrayType(struct(topic_id=STRING, partitions=ArrayType(INT)))
"""Partitions by topic, by the topic's id, as KIP-848 has it."""
OWNED_PARTITIONS = ArrayType(
    struct(topic_id=STRING, partitions=ArrayType(INT), assignment_epochs=ArrayType(INT))
)
"""A member's partitions, by the topic's id, with the epoch at which each was assigned."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: Its name, and its folder's.
        row: The meaning of a row.
        schema: Its columns, each with a `comment` in its metadata.
        derived: Whether the table is a pure function of other tables, rewritten date by date. Base tables are
            append-only.
    """

    name: str
    row: str
    schema: StructType
    derived: bool = False

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return self.schema.names


def column(name: str, kind: DataType, comment: str) -> StructField:
    """Return a column with its meaning."""
    return StructField(name, kind, nullable=True, metadata={"comment": comment})


LOG_POSITION = (
    column("log_partition", INT, "Partition of the topic from which the record was read."),
    column("log_offset", LONG, "The record's offset in it; identifies the row together with the partition."),
    column(
        "log_time",
        TIME,
        "The record's timestamp: the time of writing on the broker, or on the producer for events.",
    ),
)
GROUP_ID = column("group_id", STRING, "The consumer group.")
CLIENT_ID = column("client_id", STRING, "The member's `client.id`.")


def make_table(name: str, row: str, *fields: StructField, date: str) -> Table:
    """Return a base table with these columns and the date, whose meaning is given."""
    return Table(name, row, StructType([*fields, column(PARTITION_COLUMN, DATE, date)]))


def base_table(name: str, row: str, *fields: StructField) -> Table:
    """Return a table of records, with their position in the log."""
    return make_table(name, row, *fields, *LOG_POSITION, date="Date of `log_time`.")


CONSUMER_GROUP_RECORDS = base_table(
    "consumer_group_records",
    "A decoded record of a KIP-848 group. The struct of its kind is set; the others are null.",
    GROUP_ID,
    column(
        "record_kind",
        STRING,
        "`consumer_group`, `consumer_partition_metadata`, `consumer_member`, "
        "`target_assignment`, `target_member`, `current_member` or `regular_expression`.",
    ),
    column("tombstone", BOOLEAN, "Whether the record is a tombstone."),
    column("consumer_group", struct(epoch=INT, metadata_hash=LONG), "The group's new epoch."),
    column(
        "consumer_partition_metadata",
        struct(topics=ArrayType(struct(topic_id=STRING, topic=STRING, partitions=INT))),
        "The topics that the group subscribes to.",
    ),
    column(
        "consumer_member",
        struct(
            member_id=STRING,
            instance_id=STRING,
            rack=STRING,
            client_id=STRING,
            client_host=STRING,
            topics=STRINGS,
            regex=STRING,
            rebalance_timeout_ms=INT,
            server_assignor=STRING,
            classic_protocols=STRINGS,
        ),
        "A member and its subscription.",
    ),
    column("target_assignment", struct(epoch=INT, time=TIME), "The epoch of the target assignment."),
    column(
        "target_member", struct(member_id=STRING, partitions=ID_PARTITIONS), "A member's target assignment."
    ),
    column(
        "current_member",
        struct(
            member_id=STRING,
            epoch=INT,
            previous_epoch=INT,
            state=STRING,
            assigned=OWNED_PARTITIONS,
            pending_revocation=OWNED_PARTITIONS,
        ),
        "A member's current assignment; `state` is `stable`, `unrevoked` or `unreleased`, and "
        "`assignment_epochs` has the epoch at which each partition was assigned (KIP-1251, Kafka 4.3).",
    ),
    column(
        "regular_expression",
        struct(regex=STRING, topics=STRINGS, version=LONG, time=TIME),
        "The topics that match a subscribed pattern.",
    ),
)
_TASKS = ArrayType(struct(subtopology=STRING, partitions=ArrayType(INT)))
"""Tasks of a Kafka Streams application, by subtopology."""
_NAMED_TOPICS = ArrayType(struct(topic_id=STRING, topic=STRING, partitions=ArrayType(INT)))

SHARE_GROUP_RECORDS = base_table(
    "share_group_records",
    "A decoded record of a share group (KIP-932). The struct of its kind is set; the others are null.",
    GROUP_ID,
    column(
        "record_kind",
        STRING,
        "`share_group`, `share_member`, `share_target_assignment`, `share_target_member`, "
        "`share_current_member` or `share_state_partitions`.",
    ),
    column("tombstone", BOOLEAN, "Whether the record is a tombstone."),
    column("share_group", struct(epoch=INT, metadata_hash=LONG), "The group's new epoch."),
    column(
        "share_member",
        struct(member_id=STRING, rack=STRING, client_id=STRING, client_host=STRING, topics=STRINGS),
        "A member and its subscription.",
    ),
    column("share_target_assignment", struct(epoch=INT, time=TIME), "The epoch of the target assignment."),
    column(
        "share_target_member",
        struct(member_id=STRING, partitions=ID_PARTITIONS),
        "A member's target assignment.",
    ),
    column(
        "share_current_member",
        struct(member_id=STRING, epoch=INT, previous_epoch=INT, state=STRING, assigned=ID_PARTITIONS),
        "A member's current assignment; members can share a partition.",
    ),
    column(
        "share_state_partitions",
        struct(
            initializing=_NAMED_TOPICS,
            initialized=_NAMED_TOPICS,
            deleting=ArrayType(struct(topic_id=STRING, topic=STRING)),
        ),
        "The partitions whose delivery state is being initialized, is kept, or is being deleted.",
    ),
)
STREAMS_GROUP_RECORDS = base_table(
    "streams_group_records",
    "A decoded record of a streams group (KIP-1071). The struct of its kind is set; the others are null.",
    GROUP_ID,
    column(
        "record_kind",
        STRING,
        "`streams_group`, `streams_member`, `streams_target_assignment`, `streams_target_member`, "
        "`streams_current_member` or `streams_topology`.",
    ),
    column("tombstone", BOOLEAN, "Whether the record is a tombstone."),
    column(
        "streams_group",
        struct(epoch=INT, metadata_hash=LONG),
        "The group's new epoch.",
    ),
    column(
        "streams_member",
        struct(
            member_id=STRING,
            instance_id=STRING,
            rack=STRING,
            client_id=STRING,
            client_host=STRING,
            rebalance_timeout_ms=INT,
            topology_epoch=INT,
            process_id=STRING,
        ),
        "A member.",
    ),
    column("streams_target_assignment", struct(epoch=INT, time=TIME), "The epoch of the target assignment."),
    column(
        "streams_target_member",
        struct(member_id=STRING, active=_TASKS, standby=_TASKS, warmup=_TASKS),
        "A member's target assignment.",
    ),
    column(
        "streams_current_member",
        struct(
            member_id=STRING,
            epoch=INT,
            previous_epoch=INT,
            state=STRING,
            active=_TASKS,
            standby=_TASKS,
            warmup=_TASKS,
            pending_revocation=_TASKS,
        ),
        "A member's current tasks, and the active tasks that it has to revoke; `state` is `stable`, "
        "`unrevoked` or `unreleased`.",
    ),
    column(
        "streams_topology",
        struct(
            epoch=INT,
            subtopologies=ArrayType(
                struct(
                    subtopology=STRING,
                    source_topics=STRINGS,
                    source_topic_patterns=STRINGS,
                    repartition_sink_topics=STRINGS,
                )
            ),
        ),
        "The application's topology.",
    ),
)

MEMBER_RECORDS = (CONSUMER_GROUP_RECORDS, SHARE_GROUP_RECORDS, STREAMS_GROUP_RECORDS)
"""Tables of which all dates are kept: a member's newest record can be of any age."""
