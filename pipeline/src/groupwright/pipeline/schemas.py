"""Schemas of the tables of the jobs: the meaning of a row, and the columns with their types and meanings.

`python -m groupwright.pipeline.reference` generates TABLES.md from them. All timestamps are in UTC.
All columns are nullable.
"""

from collections.abc import Iterable

from pyspark.sql.types import ArrayType, MapType, StructField

from groupwright.pipeline.record_schemas import (
    BINARY,
    BOOLEAN,
    CLIENT_ID,
    CONSUMER_GROUP_RECORDS,
    DOUBLE,
    GROUP_ID,
    INT,
    LONG,
    MEMBER_RECORDS,
    PARTITION_COLUMN,
    SHARE_GROUP_RECORDS,
    STREAMS_GROUP_RECORDS,
    STRING,
    STRINGS,
    TIME,
    TOPIC_PARTITIONS,
    Table,
    base_table,
    column,
    make_table,
    struct,
)

__all__ = [
    "BASE_TABLES",
    "CAUSES",
    "CHURN",
    "CLIENT_EVENTS",
    "CONSUMER_GROUP_RECORDS",
    "DERIVED_TABLES",
    "END_OFFSETS",
    "GROUP_EPOCHS",
    "GROUP_GENERATIONS",
    "GROUP_MEMBERS",
    "GROUP_STATES",
    "LAG",
    "MEMBER_RECORDS",
    "OFFSET_COMMITS",
    "PARTITION_COLUMN",
    "QUARANTINE",
    "READ_POSITIONS",
    "REBALANCES",
    "SHARE_GROUP_RECORDS",
    "STREAMS_GROUP_RECORDS",
    "TABLES",
    "TOPIC_PARTITIONS",
    "Table",
    "names",
]

CAUSES = (
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
"""Causes of rebalances, derived from two consecutive generations (`_transforms.generations`)."""


def _derived(name: str, row: str, *fields: StructField, date: str) -> Table:
    table = make_table(name, row, *fields, date=date)
    return Table(table.name, table.row, table.schema, derived=True)


OFFSET_COMMITS = base_table(
    "offset_commits",
    "A committed offset, or its tombstone.",
    GROUP_ID,
    column("topic", STRING, "The topic."),
    column("partition", INT, "Its partition."),
    column("committed_offset", LONG, "The next offset to read; null for a tombstone."),
    column(
        "leader_epoch",
        INT,
        "The leader epoch of the last consumed record; null if the consumer sent none.",
    ),
    column("metadata", STRING, "The metadata that the consumer sent with the commit."),
    column("commit_time", TIME, "When the coordinator received the commit."),
    column("expire_time", TIME, "When the offset expires; only in records of version 1."),
    column(
        "topic_id", STRING, "The topic id, base64-encoded as in Kafka's tools; null if the record has none."
    ),
    column("tombstone", BOOLEAN, "Whether the record deletes the offset: it expired, or was deleted."),
)
GROUP_GENERATIONS = base_table(
    "group_generations",
    "A generation of a classic group, an epoch of another one, or a tombstone if the group was deleted or "
    "has expired.",
    GROUP_ID,
    column("group_type", STRING, "`classic`, `consumer` for KIP-848, `share` or `streams`."),
    column(
        "protocol_type",
        STRING,
        "`consumer`, `share`, `streams`, or the type of another client of the protocol, such as `connect`.",
    ),
    column("generation", INT, "The generation; the group epoch if the group is not classic."),
    column("protocol", STRING, "The assignor that the group selected."),
    column("leader", STRING, "Member id of the group leader; null if the broker assigns."),
    column("state_time", TIME, "When the group entered the recorded state."),
    column(
        "member_count", INT, "Number of members; null if they have records of their own, as with KIP-848."
    ),
    column("tombstone", BOOLEAN, "Whether the record deletes the group."),
)
GROUP_MEMBERS = base_table(
    "group_members",
    "A member in a generation of a classic group.",
    GROUP_ID,
    column("generation", INT, "The generation."),
    column("member_id", STRING, "The member id that the coordinator assigned."),
    column("instance_id", STRING, "`group.instance.id` of a static member."),
    CLIENT_ID,
    column("client_host", STRING, "The host it connected from."),
    column("rack", STRING, "Its `client.rack`, if its subscription contains one."),
    column("rebalance_timeout_ms", INT, "Time that a rebalance waits for the member."),
    column("session_timeout_ms", INT, "Time without a heartbeat after which the member is removed."),
    column("subscribed", STRINGS, "The subscribed topics."),
    column(
        "owned",
        TOPIC_PARTITIONS,
        "The partitions it reported as owned in JoinGroup: ConsumerProtocol's field, or sticky's user data.",
    ),
    column("owned_generation", INT, "The generation in which it was assigned them; null if not reported."),
    column("assigned", TOPIC_PARTITIONS, "The assigned partitions."),
)
CLIENT_EVENTS = base_table(
    "client_events",
    "A rebalance as observed by one member: an event of groupwright.instrumentation.",
    column("id", STRING, "The event's id; duplicates have the same id."),
    GROUP_ID,
    CLIENT_ID,
    column("member_id", STRING, "The member id that the coordinator assigned; null if unknown."),
    column(
        "generation", INT, "The resulting generation, for KIP-848 the member epoch; null if there is none."
    ),
    column("protocol", STRING, "The assignor."),
    column("kind", STRING, "`eager`, `cooperative`, or `consumer` for KIP-848."),
    column(
        "outcome",
        STRING,
        "`completed`; `lost`: completed after the owned partitions had been lost; `failed`.",
    ),
    column("trigger", STRING, "`member`: this member began the rebalance; `group`: others did."),
    column("reason", STRING, "The reason in words, as the member knows it."),
    column("started_at", TIME, "When the rebalance began; null if the member did not observe it."),
    column("ended_at", TIME, "When the assignment was applied, or the rebalance failed."),
    column("duration_seconds", DOUBLE, "`ended_at` - `started_at`, in seconds."),
    column(
        "phases",
        MapType(STRING, DOUBLE),
        "Seconds by phase: `revoke`, `join`, `sync`, `join_and_sync`, `assign`.",
    ),
    column("partitions_before", MapType(STRING, ArrayType(INT)), "The partitions owned before, by topic."),
    column("partitions_after", MapType(STRING, ArrayType(INT)), "The partitions owned afterwards, by topic."),
    column(
        "leader",
        struct(members=INT, moved=INT, min_moves=INT, imbalance=INT),
        "Statistics of the assignment; null unless the member is the group leader.",
    ),
    column("error", STRING, "The error, if the rebalance failed."),
)
QUARANTINE = base_table(
    "quarantine",
    "A record that could not be decoded, in whole or in part, or is of an unknown kind.",
    column("topic", STRING, "The topic from which it was read."),
    column(
        "record_kind",
        STRING,
        "`malformed`, `unknown`, `client_event`, or `group_metadata`: a generation with a member whose "
        "subscription or assignment is malformed; its other columns are in `group_members`.",
    ),
    column("key_version", INT, "The first two bytes of the key, as a number."),
    column("value_version", INT, "The first two bytes of the value, as a number."),
    column("error", STRING, "The reason why it could not be decoded."),
    column("raw_key", BINARY, "The key."),
    column("raw_value", BINARY, "The value."),
)
END_OFFSETS = make_table(
    "end_offsets",
    "A sample of a partition's log-end and log-start offset.",
    column("topic", STRING, "The topic."),
    column("partition", INT, "Its partition."),
    column("start_offset", LONG, "The offset of the first message that has not been deleted."),
    column("end_offset", LONG, "The last stable offset: messages behind an open transaction come after it."),
    column("time", TIME, "When the offsets were sampled."),
    column("topic_id", STRING, "The topic id, base64-encoded as in Kafka's tools."),
    date="Date of `time`.",
)
READ_POSITIONS = make_table(
    "read_positions",
    "The position of the jobs in a partition that they read, after a batch.",
    column("sequence", LONG, "Number of the snapshot, ascending; the rows of a snapshot have the same."),
    column("cluster_id", STRING, "The cluster's id."),
    column("topic", STRING, "The topic."),
    column("topic_id", STRING, "The topic id, base64-encoded as in Kafka's tools."),
    column("log_partition", INT, "Its partition."),
    column("next_offset", LONG, "The first offset that has not been read."),
    column("time", TIME, "When the batch was added."),
    date="Date of `time`.",
)
REBALANCES = _derived(
    "rebalances",
    "A completed rebalance: a new generation, or a KIP-848 group that is stable in a new epoch.",
    GROUP_ID,
    column("group_type", STRING, "`classic`, or `consumer` for KIP-848."),
    column("generation", INT, "The resulting generation or epoch."),
    column("previous_generation", INT, "The previous generation in the log; null if there is none."),
    column("protocol", STRING, "The assignor."),
    column(
        "started",
        TIME,
        "When it began: from KIP-848's records, else from the earliest member event; null if unknown.",
    ),
    column(
        "completed",
        TIME,
        "When the new generation was written to the log; the last member event may be later.",
    ),
    column(
        "duration_seconds",
        DOUBLE,
        "Seconds from `started` to the last member event; null if unknown.",
    ),
    column("cause", STRING, "The cause: " + ", ".join(f"`{cause}`" for cause in CAUSES) + "."),
    column(
        "members_before",
        INT,
        "Members in the previous generation; null, as the moves and who joined or left, if the previous "
        "generation is older than `lookback_days` or the tables.",
    ),
    column("members_after", INT, "Members in this one."),
    column("joined", STRINGS, "Member ids that are only in the new generation; null if unknown."),
    column("left", STRINGS, "Member ids that are only in the previous generation; null if unknown."),
    column("partitions", INT, "Assigned partitions."),
    column(
        "moved",
        INT,
        "Partitions taken from a member that could have kept them: it is still in the group and still "
        "subscribes to the topic. Null, as `min_moves`, if `members_before` is, or if `error` says why.",
    ),
    column("min_moves", INT, "The minimum of these moves for an optimally balanced assignment."),
    column(
        "imbalance_before", INT, "Maximum minus minimum partitions per member, in the previous generation."
    ),
    column("imbalance_after", INT, "The same, in this generation."),
    column(
        "messages_reprocessed",
        LONG,
        "Messages by which committed offsets went back, until the next rebalance.",
    ),
    column("client_events", INT, "Number of member events for this rebalance."),
    column("error", STRING, "Why the moves cannot be computed, or else the first error among these events."),
    date="Date of `completed`.",
)
GROUP_EPOCHS = _derived(
    "group_epochs",
    "An epoch of a share or streams group that all its members have reached. Their rebalances are not in "
    "`rebalances`: partitions of a share group have no owner, and tasks are more than partitions.",
    GROUP_ID,
    column("group_type", STRING, "`share` or `streams`."),
    column("generation", INT, "The epoch."),
    column("previous_generation", INT, "The previous epoch in this table; null if there is none."),
    column("started", TIME, "When the first epoch since the previous row was written; null if unknown."),
    column("completed", TIME, "When the last member had reached the epoch."),
    column("duration_seconds", DOUBLE, "Seconds from `started` to `completed`; null if unknown."),
    column(
        "cause",
        STRING,
        "The cause, as in `rebalances`: `first`, `join`, `leave`, `subscription` (for streams, another "
        "topology), `metadata`, `epoch`, `unknown`.",
    ),
    column(
        "members_before",
        INT,
        "Members in the previous epoch; null, as who joined or left, if that is older than the tables.",
    ),
    column("members_after", INT, "Members in this one."),
    column("joined", STRINGS, "Member ids that are only in the new epoch; null if unknown."),
    column("left", STRINGS, "Member ids that are only in the previous epoch; null if unknown."),
    column("partitions", INT, "Assigned partitions, each counted once; for streams, active tasks."),
    column(
        "members",
        ArrayType(struct(member_id=STRING, client_id=STRING, subscribed=STRINGS, assigned=TOPIC_PARTITIONS)),
        "The members, by id, with their partitions; for streams, active tasks by subtopology.",
    ),
    date="Date of `completed`.",
)
GROUP_STATES = _derived(
    "group_states",
    "State of a KIP-848, share or streams group at the end of a date, with which the derivation of the next "
    "date begins. The jobs keep it for `lookback_days`, and derive it again if it is missing.",
    GROUP_ID,
    column("group_type", STRING, "`consumer`, `share` or `streams`."),
    column("state", STRING, "Members, epochs and the last stable epoch, as JSON. Its format may change."),
    date="The date.",
)
LAG = _derived(
    "lag",
    "A group's lag in a partition when its log-end offset was sampled.",
    GROUP_ID,
    column("topic", STRING, "The topic."),
    column("partition", INT, "Its partition."),
    column("time", TIME, "When the log-end offset was sampled."),
    column("committed_offset", LONG, "The last offset committed by then."),
    column("start_offset", LONG, "The log-start offset; messages below it have been deleted."),
    column("end_offset", LONG, "The log-end offset: the last stable one."),
    column(
        "lag_messages",
        LONG,
        "The offsets from the committed offset, or from the log-start offset if that is higher, to the "
        "log-end offset: messages, and what a reader does not get, such as markers of transactions.",
    ),
    column(
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
    column("hour", TIME, "Start of the hour."),
    GROUP_ID,
    column("member_id", STRING, "The member; null for the whole group."),
    column("client_id", STRING, "Its `client.id`."),
    column("rebalances", INT, "Number of rebalances; for a member, those in which it joined or left."),
    column("moved", INT, "Partitions moved in these rebalances."),
    column("min_moves", INT, "The minimum of moves needed."),
    column(
        "seconds_not_consuming",
        DOUBLE,
        "Total duration; for a member, from its own events. Null if unknown.",
    ),
    column("storm", BOOLEAN, "Whether there were 5 or more rebalances within 10 minutes."),
    column(
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
    SHARE_GROUP_RECORDS,
    STREAMS_GROUP_RECORDS,
    CLIENT_EVENTS,
    QUARANTINE,
    END_OFFSETS,
    READ_POSITIONS,
)
DERIVED_TABLES = (REBALANCES, GROUP_EPOCHS, GROUP_STATES, LAG, CHURN)
TABLES = {table.name: table for table in (*BASE_TABLES, *DERIVED_TABLES)}
"""All tables, by name."""


def names(tables: Iterable[Table]) -> str:
    """Return the tables' names, separated by commas."""
    return ", ".join(table.name for table in tables)
