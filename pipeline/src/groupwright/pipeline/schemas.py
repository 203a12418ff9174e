"""Every table: what a row of it is, its columns with their types and meanings, and what it is partitioned by.

The reference page, TABLES.md, is made from this module (`python -m groupwright.pipeline.reference`). All timestamps
are in UTC. A column is nullable unless its meaning could not do without it.
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
"""What every table is partitioned by."""

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
"""Why a group rebalanced; `transforms.triggers` says how it is known."""


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
        row: What one row is.
        schema: Its columns, each with a `comment` in its metadata.
        derived: Whether it is a pure function of other tables, and rewritten date by date; else rows are added only.
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
    _column("log_partition", INT, "Partition of the topic that the record was read from."),
    _column("log_offset", LONG, "Its offset there: with the partition, what a row is known by."),
    _column("log_time", TIME, "Its timestamp: the broker's time of writing (of an event, the producer's)."),
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
    "A committed offset, or its end.",
    _GROUP,
    _column("topic", STRING, "The topic."),
    _column("partition", INT, "Its partition."),
    _column("committed_offset", LONG, "The next offset to read; null for a tombstone."),
    _column(
        "leader_epoch",
        INT,
        "The partition leader's epoch that the consumer had read in; null if it said none.",
    ),
    _column("metadata", STRING, "What the consumer added."),
    _column("commit_time", TIME, "When the coordinator took the commit."),
    _column("expire_time", TIME, "When it expires, in records of version 1 alone."),
    _column(
        "topic_id", STRING, "The topic's id, in base64 as Kafka writes it; null where the record has none."
    ),
    _column("tombstone", BOOLEAN, "Whether the record ends the offset: it expired, or was deleted."),
)
GROUP_GENERATIONS = _base(
    "group_generations",
    "A generation of a classic group, or an epoch of a KIP-848 group; a tombstone where the group was deleted.",
    _GROUP,
    _column("group_type", STRING, "`classic`, or `consumer` for KIP-848."),
    _column(
        "protocol_type", STRING, "`consumer`, or what other users of the protocol write, such as `connect`."
    ),
    _column("generation", INT, "The generation; of KIP-848 the group's epoch."),
    _column("protocol", STRING, "The assignor that the group voted for."),
    _column("leader", STRING, "Member id of the one that assigned; null with KIP-848: the broker does."),
    _column("state_time", TIME, "When the group came into the state that the record holds."),
    _column(
        "member_count", INT, "How many members; null with KIP-848, whose members have records of their own."
    ),
    _column("tombstone", BOOLEAN, "Whether the record ends the group."),
)
GROUP_MEMBERS = _base(
    "group_members",
    "A member in a generation of a classic group.",
    _GROUP,
    _column("generation", INT, "The generation."),
    _column("member_id", STRING, "What the coordinator named it."),
    _column("instance_id", STRING, "`group.instance.id` of a static member."),
    _CLIENT,
    _column("client_host", STRING, "Where it connected from."),
    _column("rack", STRING, "Its `client.rack`, if its subscription says so."),
    _column("rebalance_timeout_ms", INT, "How long a rebalance waits for it."),
    _column("session_timeout_ms", INT, "How long it may be silent."),
    _column("subscribed", STRINGS, "The topics it subscribed to."),
    _column(
        "owned", TOPIC_PARTITIONS, "What it said it owned as it joined: its own field, or sticky's user data."
    ),
    _column("owned_generation", INT, "The generation in which it got them; null if it did not say."),
    _column("assigned", TOPIC_PARTITIONS, "What it was given."),
)
CONSUMER_GROUP_RECORDS = _base(
    "consumer_group_records",
    "A record of a KIP-848 group, as it is. The struct of its kind is set, and the others are null.",
    _GROUP,
    _column(
        "record_kind",
        STRING,
        "`consumer_group`, `consumer_partition_metadata`, `consumer_member`, "
        "`target_assignment`, `target_member`, `current_member` or `regular_expression`.",
    ),
    _column("tombstone", BOOLEAN, "Whether the record ends what it is about."),
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
    _column(
        "target_assignment", _struct(epoch=INT, time=TIME), "The epoch that the target assignment is for."
    ),
    _column(
        "target_member", _struct(member_id=STRING, partitions=ID_PARTITIONS), "What a member shall have."
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
        "What a member has; `state` is `stable`, `unrevoked` or `unreleased`.",
    ),
    _column(
        "regular_expression",
        _struct(regex=STRING, topics=STRINGS, version=LONG, time=TIME),
        "The topics that a subscribed pattern stands for.",
    ),
)
CLIENT_EVENTS = _base(
    "client_events",
    "A rebalance as one member saw it: an event of groupwright.instrumentation.",
    _column("id", STRING, "The event's id; one that was delivered twice has the same."),
    _GROUP,
    _CLIENT,
    _column("member_id", STRING, "What the coordinator named it; null if unknown."),
    _column(
        "generation", INT, "The generation that it led to, of KIP-848 the member's epoch; null for none."
    ),
    _column("protocol", STRING, "The assignor."),
    _column("kind", STRING, "`eager`, `cooperative`, or `consumer` for KIP-848."),
    _column("outcome", STRING, "`completed`; `lost`: after what was owned had been lost; `failed`."),
    _column("trigger", STRING, "Why it began, in words, as far as the member knows."),
    _column("started_at", TIME, "Null if its beginning could not be seen."),
    _column("ended_at", TIME, "When the assignment was applied, or the rebalance failed."),
    _column("duration_seconds", DOUBLE, "From one to the other."),
    _column(
        "phases",
        MapType(STRING, DOUBLE),
        "Seconds by phase: `revoke`, `join`, `sync`, `join_and_sync`, `assign`.",
    ),
    _column("partitions_before", MapType(STRING, ArrayType(INT)), "What it owned, by topic."),
    _column("partitions_after", MapType(STRING, ArrayType(INT)), "What it owns, by topic."),
    _column(
        "leader",
        _struct(members=INT, moved=INT, moves_needed=INT, imbalance=INT),
        "What the group's leader knows of the assignment; null of other members.",
    ),
    _column("error", STRING, "Why it failed."),
)
QUARANTINE = _base(
    "quarantine",
    "A record that could not be read, or of a kind that is not known.",
    _column("topic", STRING, "The topic that it was read from."),
    _column("record_kind", STRING, "`malformed`, `unknown`, or `client_event`."),
    _column("key_version", INT, "The key's first two bytes."),
    _column("value_version", INT, "The value's."),
    _column("error", STRING, "What is wrong with it."),
    _column("raw_key", BINARY, "The key."),
    _column("raw_value", BINARY, "The value."),
)
END_OFFSETS = _table(
    "end_offsets",
    "Where a partition's log ended when the job asked.",
    _column("topic", STRING, "The topic."),
    _column("partition", INT, "Its partition."),
    _column("end_offset", LONG, "The offset that the next message gets."),
    _column("time", TIME, "When the job asked."),
    _column("topic_id", STRING, "The topic's id, in base64 as Kafka writes it."),
    date="Date of `time`.",
)
REBALANCES = _derived(
    "rebalances",
    "A rebalance that came to an end: a generation after another, or a KIP-848 group stable in a new epoch.",
    _GROUP,
    _column("group_type", STRING, "`classic`, or `consumer` for KIP-848."),
    _column("generation", INT, "The generation (epoch) that it led to."),
    _column(
        "previous_generation", INT, "The one before, as far as the log still has it; null if there is none."
    ),
    _column("protocol", STRING, "The assignor."),
    _column(
        "started",
        TIME,
        "When it began: by KIP-848's records, else the earliest of the members' events; or null.",
    ),
    _column("completed", TIME, "When the log had it done; the last member's event may be later."),
    _column(
        "duration_seconds",
        DOUBLE,
        "From its beginning until the last member that tells was done; null if nothing shows it.",
    ),
    _column("trigger", STRING, "Why: " + ", ".join(f"`{trigger}`" for trigger in TRIGGERS) + "."),
    _column("members_before", INT, "Members in the generation before."),
    _column("members_after", INT, "Members in this one."),
    _column("joined", STRINGS, "Member ids that are new."),
    _column("left", STRINGS, "Member ids that are gone."),
    _column("partitions", INT, "Partitions that somebody has now."),
    _column(
        "moved",
        INT,
        "Partitions taken from a member that could have kept them: it is still there, and still "
        "subscribes to the topic.",
    ),
    _column("fewest_moves", INT, "The fewest of these that the best balance needs."),
    _column(
        "imbalance_before", INT, "The most partitions of a member, less the fewest, in the generation before."
    ),
    _column("imbalance_after", INT, "The same in this one."),
    _column(
        "messages_reprocessed", LONG, "By how many messages committed offsets went back, until the next one."
    ),
    _column("client_events", INT, "How many members' events tell of it."),
    _column("error", STRING, "The first error that one of these has."),
    date="Date of `completed`.",
)
LAG = _derived(
    "lag",
    "How far a group was behind in a partition when the log's end was sampled.",
    _GROUP,
    _column("topic", STRING, "The topic."),
    _column("partition", INT, "Its partition."),
    _column("time", TIME, "When the log's end was sampled."),
    _column("committed_offset", LONG, "The last offset committed until then."),
    _column("end_offset", LONG, "The log's end."),
    _column("lag_messages", LONG, "The messages between."),
    _column(
        "lag_seconds",
        DOUBLE,
        "For how long the first of them had been waiting, by when the log's end passed "
        "it; null if that was before the first sample.",
    ),
    date="Date of `time`.",
)
CHURN = _derived(
    "churn",
    "What an hour's rebalances were to a group, or to one of its members.",
    _column("hour", TIME, "The hour's beginning."),
    _GROUP,
    _column("member_id", STRING, "The member; null for the group as a whole."),
    _column("client_id", STRING, "Its `client.id`."),
    _column("rebalances", INT, "How many there were; of a member, those by which it came or went."),
    _column("moved", INT, "Partitions moved in these."),
    _column("fewest_moves", INT, "The fewest that were needed."),
    _column(
        "seconds_not_consuming",
        DOUBLE,
        "How long they took; of a member, by its own events. Null if nothing shows it.",
    ),
    _column("storm", BOOLEAN, "Whether there were 5 rebalances within 10 minutes."),
    _column(
        "flapping",
        BOOLEAN,
        "Whether a member with this `client.id` came or went at least 6 times, so 3 times "
        "each; of a group, whether one of its members did.",
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
)
DERIVED_TABLES = (REBALANCES, LAG, CHURN)
TABLES = {table.name: table for table in (*BASE_TABLES, *DERIVED_TABLES)}
"""All tables, by name."""


def names(tables: Iterable[Table]) -> str:
    """Return the tables' names in one text."""
    return ", ".join(table.name for table in tables)
