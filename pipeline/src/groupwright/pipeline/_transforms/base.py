"""Base tables: decoded records, without aggregation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from pyspark.sql.types import StringType, StructField, StructType

from groupwright.pipeline import schemas
from groupwright.pipeline.schemas import Table

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic in which group coordinators store offsets and group metadata."""

CLIENT_EVENT = "client_event"
"""The `record_kind` of records of the events' topic in `quarantine`."""

WITH_ERROR = "with_error"
"""The kind of records that have an error, in addition to their `record_kind`."""

_KIP_848 = (
    "consumer_group",
    "consumer_partition_metadata",
    "consumer_member",
    "target_assignment",
    "target_member",
    "current_member",
    "regular_expression",
)
_SHARE = {
    "share_group": "consumer_group",
    "share_member": "consumer_member",
    "share_target_assignment": "target_assignment",
    "share_target_member": "target_member",
    "share_current_member": "current_member",
    "share_state_partitions": "share_state_partitions",
}
"""Kinds of records of share groups, with the columns in which they are decoded."""
_STREAMS = {
    "streams_group": "consumer_group",
    "streams_member": "streams_member",
    "streams_target_assignment": "target_assignment",
    "streams_target_member": "streams_member",
    "streams_current_member": "streams_member",
    "streams_topology": "streams_topology",
}
"""The same for streams groups."""
_EPOCHS = ("consumer_group", "share_group", "streams_group")
"""Kinds of records with a group's new epoch, or its tombstone."""
_NO_GENERATION = -1
MAX_LOSS_DELAY = timedelta(minutes=10)
"""Maximum time until a member whose session expired reports that its partitions were lost."""


def select_columns(rows: DataFrame, table: Table) -> DataFrame:
    """Select the table's columns, cast to its types, with its comments."""
    return rows.select(
        *(
            F.col(field.name).cast(field.dataType).alias(field.name, metadata=field.metadata)
            for field in table.schema
        )
    )


def offset_commits(decoded: DataFrame) -> DataFrame:
    """Return the rows of `offset_commits`."""
    rows = _of_kind(decoded, "offset_commit").select("*", "offset_commit.*")
    return _with_date(rows, schemas.OFFSET_COMMITS)


def group_generations(decoded: DataFrame) -> DataFrame:
    """Return the rows of `group_generations`, of groups of all types."""
    classic = F.col("record_kind") == "group_metadata"
    type_ = F.regexp_replace("record_kind", "_group$", "")
    metadata = F.col("group_metadata")
    rows = _of_kind(decoded, "group_metadata", *_EPOCHS).select(
        "*",
        F.when(classic, "classic").otherwise(type_).alias("group_type"),
        F.when(classic, metadata.protocol_type).otherwise(type_).alias("protocol_type"),
        F.when(classic, metadata.generation).otherwise(F.col("consumer_group.epoch")).alias("generation"),
        metadata.protocol.alias("protocol"),
        metadata.leader.alias("leader"),
        metadata.state_time.alias("state_time"),
        F.when(metadata.members.isNotNull(), F.size(metadata.members)).alias("member_count"),
    )
    return _with_date(rows, schemas.GROUP_GENERATIONS)


def group_members(decoded: DataFrame) -> DataFrame:
    """Return the rows of `group_members`.

    Owned partitions are a field of ConsumerProtocolSubscription from version 1. In version 0 they are in the
    user data of the sticky assignor.
    """
    rows = _of_kind(decoded, "group_metadata").select(
        "*",
        F.col("group_metadata.generation").alias("generation"),
        F.explode("group_metadata.members").alias("member"),
    )
    subscription = F.col("member.subscription")
    sticky = F.coalesce(F.size(subscription.owned), F.lit(0)) <= 0
    owned_generation = F.when(
        sticky, F.coalesce(subscription.sticky_generation, subscription.generation)
    ).otherwise(subscription.generation)
    rows = rows.select(
        "*",
        "member.*",
        subscription.rack.alias("rack"),
        subscription.topics.alias("subscribed"),
        F.when(sticky, F.coalesce(subscription.sticky_owned, subscription.owned))
        .otherwise(subscription.owned)
        .alias("owned"),
        F.when(owned_generation > _NO_GENERATION, owned_generation).alias("owned_generation"),
        F.col("member.assignment.partitions").alias("assigned"),
    )
    return _with_date(rows, schemas.GROUP_MEMBERS)


def consumer_group_records(decoded: DataFrame) -> DataFrame:
    """Return the rows of `consumer_group_records`."""
    return _with_date(_of_kind(decoded, *_KIP_848), schemas.CONSUMER_GROUP_RECORDS)


def share_group_records(decoded: DataFrame) -> DataFrame:
    """Return the rows of `share_group_records`."""
    without_epochs = F.transform("current_member.assigned", lambda each: each.dropFields("assignment_epochs"))
    current = F.col("current_member").withField("assigned", without_epochs)
    return _records(decoded.withColumn("current_member", current), _SHARE, schemas.SHARE_GROUP_RECORDS)


def streams_group_records(decoded: DataFrame) -> DataFrame:
    """Return the rows of `streams_group_records`."""
    return _records(decoded, _STREAMS, schemas.STREAMS_GROUP_RECORDS)


def client_events(events: DataFrame) -> DataFrame:
    """Return the rows of `client_events`: the valid rows of `parsed_events`."""
    event = F.col("event")
    rows = events.where(is_event()).select(
        "*",
        event["group"].alias("group_id"),
        *(event[name].alias(name) for name in _EVENT.names if name != "group"),
    )
    return _with_date(rows, schemas.CLIENT_EVENTS)


def quarantine(decoded: DataFrame) -> DataFrame:
    """Return the rows of `quarantine` for records that `decode` could not read, or not all of."""
    rows = decoded.where("error is not null").withColumn("topic", F.lit(OFFSETS_TOPIC))
    return _with_date(rows, schemas.QUARANTINE)


def event_quarantine(events: DataFrame) -> DataFrame:
    """Return the rows of `quarantine` for the invalid rows of `parsed_events`."""
    rows = events.where(~is_event()).select(
        "*",
        F.lit(CLIENT_EVENT).alias("record_kind"),
        F.lit(None).alias("key_version"),
        F.lit(None).alias("value_version"),
        F.lit(
            "not a rebalance event in JSON: `id`, `group` and `ended_at` are required, and times, also the "
            "record's own, must be before the year 9999"
        ).alias("error"),
        F.col("key").alias("raw_key"),
        F.col("value").alias("raw_value"),
    )
    return _with_date(rows, schemas.QUARANTINE)


def parsed_events(records: DataFrame) -> DataFrame:
    """Return raw records of the events' topic with the parsed `event`.

    Unknown keys are ignored, as the events' schema demands. A producer sets its records' time, which can be
    one that no table can have: then `has_time` is false, and `log_time` is 1970.
    """
    has_time = _is_time(F.col("timestamp"))
    return records.select(
        "topic",
        "key",
        "value",
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        has_time.alias("has_time"),
        F.when(has_time, F.col("timestamp")).otherwise(F.timestamp_seconds(F.lit(0))).alias("log_time"),
        F.from_json(F.col("value").cast("string"), _EVENT, {"mode": "PERMISSIVE"}).alias("event"),
    )


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a base table: `rows` selects records of `kinds` from decoded records or parsed events."""

    table: Table
    kinds: frozenset[str]
    rows: Callable[[DataFrame], DataFrame]


FROM_DECODED = (
    Source(schemas.OFFSET_COMMITS, frozenset({"offset_commit"}), offset_commits),
    Source(schemas.GROUP_GENERATIONS, frozenset({"group_metadata", *_EPOCHS}), group_generations),
    Source(schemas.GROUP_MEMBERS, frozenset({"group_metadata"}), group_members),
    Source(schemas.CONSUMER_GROUP_RECORDS, frozenset(_KIP_848), consumer_group_records),
    Source(schemas.SHARE_GROUP_RECORDS, frozenset(_SHARE), share_group_records),
    Source(schemas.STREAMS_GROUP_RECORDS, frozenset(_STREAMS), streams_group_records),
    Source(schemas.QUARANTINE, frozenset({WITH_ERROR}), quarantine),
)
"""Sources from decoded records."""

FROM_EVENTS = (
    Source(schemas.CLIENT_EVENTS, frozenset({CLIENT_EVENT}), client_events),
    Source(schemas.QUARANTINE, frozenset({CLIENT_EVENT}), event_quarantine),
)
"""Sources from parsed events."""


def _of_kind(decoded: DataFrame, *kinds: str) -> DataFrame:
    return decoded.where(F.col("record_kind").isin(*kinds))


def _records(decoded: DataFrame, columns: Mapping[str, str], table: Table) -> DataFrame:
    """Return the rows of some kinds of records, each with the struct of its kind.

    Args:
        decoded: Decoded records.
        columns: The column in which each kind is decoded; a kind's struct can have fewer fields.
        table: A table with a column for each kind.
    """
    structs = {}
    for kind, column in columns.items():
        fields = table.schema[kind].dataType.fieldNames()  # type: ignore[attr-defined]
        struct = F.struct(*(F.col(f"{column}.{name}").alias(name) for name in fields))
        structs[kind] = F.when(F.col("record_kind") == kind, struct)
    rows = _of_kind(decoded, *columns)
    kept = [name for name in rows.columns if name not in structs]
    return _with_date(rows.select(*kept, *(each.alias(kind) for kind, each in structs.items())), table)


def _with_date(rows: DataFrame, table: Table) -> DataFrame:
    return select_columns(rows.withColumn(schemas.PARTITION_COLUMN, F.to_date("log_time")), table)


def is_event() -> Column:
    """Return whether a row of `parsed_events` is valid."""
    event = F.col("event")
    is_complete = event["id"].isNotNull() & event["group"].isNotNull() & _is_time(event["ended_at"])
    return F.coalesce(
        F.col("has_time") & is_complete & (event["started_at"].isNull() | _is_time(event["started_at"])),
        F.lit(False),  # noqa: FBT003 - a value of the table
    )


def date_before() -> Column:
    """Return the date before that of a valid event's record if its rebalance can be of that date, else null.

    A loss can be that of a member that was removed minutes before (`rebalances`).
    """
    event = F.col("event")
    ended = F.when(event["outcome"] == "lost", event["ended_at"] - F.lit(MAX_LOSS_DELAY)).otherwise(
        event["ended_at"]
    )
    before = F.date_sub(F.to_date("log_time"), 1)
    return F.when(F.to_date(F.least(event["started_at"], ended)) == before, before)


def _is_time(time: Column) -> Column:
    """Return whether Python can represent a time: Spark reads one in milliseconds as the year 50,000."""
    return F.year(time).between(1, 9998)


def _event_schema() -> StructType:
    """Return the schema of the events' JSON, where `group_id` is `group`."""
    fields = [
        field
        for field in schemas.CLIENT_EVENTS.schema
        if field.name not in {"group_id", "date"} | _LOG_POSITION
    ]
    return StructType([StructField("group", StringType()), *fields])


_LOG_POSITION = {"log_partition", "log_offset", "log_time"}
_EVENT = _event_schema()
