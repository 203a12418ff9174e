"""Schemas of all tables: the meaning of a row, and the columns with their types and meanings.

`python -m groupwright.pipeline.reference` generates TABLES.md from this module. All timestamps are in UTC.
All columns are nullable.
"""

from collections.abc import Iterable
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
    MapType,
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

TRIGGERS = (
    "first",
    "join",
    "leave",
    "expiry",
    "subscription",
    "metadata",
    "handover",
    "epoch",
    "unknown",
)
"""Reasons for rebalances, derived from two consecutive generations (`_transforms.generations`)."""


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


TOPIC_PARTITIONS = ArrayType(_struct(topic=STRING, partitions=ArrayType(INT)))
"""Partitions by topic, by the topic's name."""
ID_PARTITIONS = ArrayType(_struct(topic_id=STRING, partitions=ArrayType(INT)))
"""Partitions by topic, by the topic's id, as KIP-848 has it."""


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


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, nullable=True, metadata={"comment": comment})


_WHERE = (
    _column("log_partition", INT, "Partition of the topic from which the record was read."),
    _column("log_offset", LONG, "The record's offset in it; identifies the row together with the partition."),
    _column(
        "log_time",
        TIME,
        "The record's timestamp: the time of writing on the broker, or on the producer for events.",
    ),
)
_GROUP = _column("group_id", STRING, "The consumer group.")
_CLIENT = _column("client_id", STRING, "The member's `client.id`.")


def _table(name: str, row: str, *fields: StructField, date: str) -> Table:
    return Table(name, row, StructType([*fields, _column(PARTITION_COLUMN, DATE, date)]))


def _base(name: str, row: str, *fields: StructField) -> Table:
    return _table(name, row, *fields, *_WHERE, date="Date of `log_time`.")


def _derived(name: str, row: str, *fields: StructField, date: str) -> Table:
    table = _table(name, row, *fields, date=date)
    return Table(table.name, table.row, table.schema, derived=True)


OFFSET_COMMITS = _base(
    "offset_commits",
    "A committed offset, or its tombstone.",
    _GROUP,
    _column("topic", STRING, "The topic."),
    _column("partition", INT, "Its partition."),
    _column("committed_offset", LONG, "The next offset to read; null for a tombstone."),
    _column(
        "leader_epoch",
        INT,
        "The leader epoch of the last consumed record; null if the consumer sent none.",
    ),
    _column("metadata", STRING, "The metadata that the consumer sent with the commit."),
    _column("commit_time", TIME, "When the coordinator received the commit."),
    _column("expire_time", TIME, "When the offset expires; only in records of version 1."),
    _column(
        "topic_id", STRING, "The topic id, base64-encoded as in Kafka's tools; null if the record has none."
    ),
    _column("tombstone", BOOLEAN, "Whether the record deletes the offset: it expired, or was deleted."),
)
GROUP_GENERATIONS = _base(
    "group_generations",
    "A generation of a classic group, an epoch of a KIP-848 group, or a tombstone if the group was deleted.",
    _GROUP,
    _column("group_type", STRING, "`classic`, or `consumer` for KIP-848."),
    _column(
        "protocol_type",
        STRING,
        "`consumer`, or the type of another client of the protocol, such as `connect`.",
    ),
    _column("generation", INT, "The generation; for KIP-848 the group epoch."),
    _column("protocol", STRING, "The assignor that the group selected."),
    _column("leader", STRING, "Member id of the group leader; null for KIP-848, where the broker assigns."),
    _column("state_time", TIME, "When the group entered the recorded state."),
    _column(
        "member_count", INT, "Number of members; null for KIP-848, whose members have records of their own."
    ),
    _column("tombstone", BOOLEAN, "Whether the record deletes the group."),
)
GROUP_MEMBERS = _base(
    "group_members",
    "A member in a generation of a classic group.",
    _GROUP,
    _column("generation", INT, "The generation."),
    _column("member_id", STRING, "The member id that the coordinator assigned."),
    _column("instance_id", STRING, "`group.instance.id` of a static member."),
    _CLIENT,
    _column("client_host", STRING, "The host it connected from."),
    _column("rack", STRING, "Its `client.rack`, if its subscription contains one."),
    _column("rebalance_timeout_ms", INT, "Time that a rebalance waits for the member."),
    _column("session_timeout_ms", INT, "Time without a heartbeat after which the member is removed."),
    _column("subscribed", STRINGS, "The subscribed topics."),
    _column(
        "owned",
        TOPIC_PARTITIONS,
        "The partitions it reported as owned in JoinGroup: ConsumerProtocol's field, or sticky's user data.",
    ),
    _column("owned_generation", INT, "The generation in which it was assigned them; null if not reported."),
    _column("assigned", TOPIC_PARTITIONS, "The assigned partitions."),
)
CONSUMER_GROUP_RECORDS = _base(
    "consumer_group_records",
    "A decoded record of a KIP-848 group. The struct of its kind is set; the others are null.",
    _GROUP,
    _column(
        "record_kind",
        STRING,
        "`consumer_group`, `consumer_partition_metadata`, `consumer_member`, "
        "`target_assignment`, `target_member`, `current_member` or `regular_expression`.",
    ),
    _column("tombstone", BOOLEAN, "Whether the record is a tombstone."),
    _column("consumer_group", _struct(epoch=INT, metadata_hash=LONG), "The group's new epoch."),
    _column(
        "consumer_partition_metadata",
        _struct(topics=ArrayType(_struct(topic_id=STRING, topic=STRING, partitions=INT))),
        "The topics that the group subscribes to.",
    ),
    _column(
        "consumer_member",
        _struct(
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
    _column("target_assignment", _struct(epoch=INT, time=TIME), "The epoch of the target assignment."),
    _column(
        "target_member", _struct(member_id=STRING, partitions=ID_PARTITIONS), "A member's target assignment."
    ),
    _column(
        "current_member",
        _struct(
            member_id=STRING,
            epoch=INT,
            previous_epoch=INT,
            state=STRING,
            assigned=ID_PARTITIONS,
            pending_revocation=ID_PARTITIONS,
        ),
        "A member's current assignment; `state` is `stable`, `unrevoked` or `unreleased`.",
    ),
    _column(
        "regular_expression",
        _struct(regex=STRING, topics=STRINGS, version=LONG, time=TIME),
        "The topics that match a subscribed pattern.",
    ),
)
CLIENT_EVENTS = _base(
    "client_events",
    "A rebalance as observed by one member: an event of groupwright.instrumentation.",
    _column("id", STRING, "The event's id; duplicates have the same id."),
    _GROUP,
    _CLIENT,
    _column("member_id", STRING, "The member id that the coordinator assigned; null if unknown."),
    _column(
        "generation", INT, "The resulting generation, for KIP-848 the member epoch; null if there is none."
    ),
    _column("protocol", STRING, "The assignor."),
    _column("kind", STRING, "`eager`, `cooperative`, or `consumer` for KIP-848."),
    _column(
        "outcome",
        STRING,
        "`completed`; `lost`: completed after the owned partitions had been lost; `failed`.",
    ),
    _column("trigger", STRING, "The reason as the member knows it, as text."),
    _column("started_at", TIME, "When the rebalance began; null if the member did not observe it."),
    _column("ended_at", TIME, "When the assignment was applied, or the rebalance failed."),
    _column("duration_seconds", DOUBLE, "`ended_at` - `started_at`, in seconds."),
    _column(
        "phases",
        MapType(STRING, DOUBLE),
        "Seconds by phase: `revoke`, `join`, `sync`, `join_and_sync`, `assign`.",
    ),
    _column("partitions_before", MapType(STRING, ArrayType(INT)), "The partitions owned before, by topic."),
    _column(
        "partitions_after", MapType(STRING, ArrayType(INT)), "The partitions owned afterwards, by topic."
    ),
    _column(
        "leader",
        _struct(members=INT, moved=INT, moves_needed=INT, imbalance=INT),
        "Statistics of the assignment; null unless the member is the group leader.",
    ),
    _column("error", STRING, "The error, if the rebalance failed."),
)
QUARANTINE = _base(
    "quarantine",
    "A record that could not be decoded, in whole or in part, or is of an unknown kind.",
    _column("topic", STRING, "The topic from which it was read."),
    _column(
        "record_kind",
        STRING,
        "`malformed`, `unknown`, `client_event`, or `group_metadata`: a generation with a member whose "
        "subscription or assignment is malformed; its other columns are in `group_members`.",
    ),
    _column("key_version", INT, "The first two bytes of the key, as a number."),
    _column("value_version", INT, "The first two bytes of the value, as a number."),
    _column("error", STRING, "The reason why it could not be decoded."),
    _column("raw_key", BINARY, "The key."),
    _column("raw_value", BINARY, "The value."),
)
END_OFFSETS = _table(
    "end_offsets",
    "A sample of a partition's log-end offset.",
    _column("topic", STRING, "The topic."),
    _column("partition", INT, "Its partition."),
    _column("end_offset", LONG, "The offset of the next message."),
    _column("time", TIME, "When the offset was sampled."),
    _column("topic_id", STRING, "The topic id, base64-encoded as in Kafka's tools."),
    date="Date of `time`.",
)
READ_POSITIONS = _table(
    "read_positions",
    "The position of the jobs in a partition that they read, after a batch.",
    _column("sequence", LONG, "Number of the snapshot, ascending; the rows of a snapshot have the same."),
    _column("cluster_id", STRING, "The cluster's id."),
    _column("topic", STRING, "The topic."),
    _column("topic_id", STRING, "The topic id, base64-encoded as in Kafka's tools."),
    _column("log_partition", INT, "Its partition."),
    _column("next_offset", LONG, "The first offset that has not been read."),
    _column("time", TIME, "When the batch was added."),
    date="Date of `time`.",
)
REBALANCES = _derived(
    "rebalances",
    "A completed rebalance: a new generation, or a KIP-848 group that is stable in a new epoch.",
    _GROUP,
    _column("group_type", STRING, "`classic`, or `consumer` for KIP-848."),
    _column("generation", INT, "The resulting generation or epoch."),
    _column("previous_generation", INT, "The previous generation in the log; null if there is none."),
    _column("protocol", STRING, "The assignor."),
    _column(
        "started",
        TIME,
        "When it began: from KIP-848's records, else from the earliest member event; null if unknown.",
    ),
    _column(
        "completed",
        TIME,
        "When the new generation was written to the log; the last member event may be later.",
    ),
    _column(
        "duration_seconds",
        DOUBLE,
        "Seconds from `started` to the last member event; null if unknown.",
    ),
    _column("trigger", STRING, "The reason: " + ", ".join(f"`{trigger}`" for trigger in TRIGGERS) + "."),
    _column("members_before", INT, "Members in the previous generation."),
    _column("members_after", INT, "Members in this one."),
    _column("joined", STRINGS, "Member ids that are only in the new generation."),
    _column("left", STRINGS, "Member ids that are only in the previous generation."),
    _column("partitions", INT, "Assigned partitions."),
    _column(
        "moved",
        INT,
        "Partitions taken from a member that could have kept them: it is still in the group and still "
        "subscribes to the topic.",
    ),
    _column("fewest_moves", INT, "The minimum of these moves for an optimally balanced assignment."),
    _column(
        "imbalance_before", INT, "Maximum minus minimum partitions per member, in the previous generation."
    ),
    _column("imbalance_after", INT, "The same, in this generation."),
    _column(
        "messages_reprocessed",
        LONG,
        "Messages by which committed offsets went back, until the next rebalance.",
    ),
    _column("client_events", INT, "Number of member events for this rebalance."),
    _column("error", STRING, "The first error among these events."),
    date="Date of `completed`.",
)
LAG = _derived(
    "lag",
    "A group's lag in a partition when its log-end offset was sampled.",
    _GROUP,
    _column("topic", STRING, "The topic."),
    _column("partition", INT, "Its partition."),
    _column("time", TIME, "When the log-end offset was sampled."),
    _column("committed_offset", LONG, "The last offset committed by then."),
    _column("end_offset", LONG, "The log-end offset."),
    _column("lag_messages", LONG, "The difference, in messages."),
    _column(
        "lag_seconds",
        DOUBLE,
        "Age of the oldest of these messages, interpolated between samples of the log-end offset; "
        "null if it is older than the first sample.",
    ),
    date="Date of `time`.",
)
CHURN = _derived(
    "churn",
    "The rebalances of a group, or of one of its members, within an hour.",
    _column("hour", TIME, "Start of the hour."),
    _GROUP,
    _column("member_id", STRING, "The member; null for the whole group."),
    _column("client_id", STRING, "Its `client.id`."),
    _column("rebalances", INT, "Number of rebalances; for a member, those in which it joined or left."),
    _column("moved", INT, "Partitions moved in these rebalances."),
    _column("fewest_moves", INT, "The minimum of moves needed."),
    _column(
        "seconds_not_consuming",
        DOUBLE,
        "Total duration; for a member, from its own events. Null if unknown.",
    ),
    _column("storm", BOOLEAN, "Whether there were 5 or more rebalances within 10 minutes."),
    _column(
        "flapping",
        BOOLEAN,
        "Whether members with this `client.id` joined or left 6 or more times; for a group, "
        "whether that holds for any of its clients.",
    ),
    date="Date of `hour`.",
)

BASE_TABLES = (
    OFFSET_COMMITS,
    GROUP_GENERATIONS,
    GROUP_MEMBERS,
    CONSUMER_GROUP_RECORDS,
    CLIENT_EVENTS,
    QUARANTINE,
    END_OFFSETS,
    READ_POSITIONS,
)
DERIVED_TABLES = (REBALANCES, LAG, CHURN)
TABLES = {table.name: table for table in (*BASE_TABLES, *DERIVED_TABLES)}
"""All tables, by name."""


def names(tables: Iterable[Table]) -> str:
    """Return the tables' names, separated by commas."""
    return ", ".join(table.name for table in tables)
