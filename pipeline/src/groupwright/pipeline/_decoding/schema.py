"""Arrow schemas of raw and decoded records; the README describes the columns."""

import pyarrow as pa

from groupwright.pipeline._decoding.types import TIMESTAMP

_STRING, _INT, _LONG, _BINARY = pa.string(), pa.int32(), pa.int64(), pa.binary()

TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", _STRING), ("partitions", pa.list_(_INT))]))
"""Partitions by topic name."""

_TASKS = pa.list_(pa.struct([("subtopology", _STRING), ("partitions", pa.list_(_INT))]))
_NAMED_TOPICS = pa.list_(
    pa.struct([("topic_id", _STRING), ("topic", _STRING), ("partitions", pa.list_(_INT))])
)
_TOPIC_ID_PARTITIONS = pa.list_(pa.struct([("topic_id", _STRING), ("partitions", pa.list_(_INT))]))
_OWNED_PARTITIONS = pa.list_(
    pa.struct([("topic_id", _STRING), ("partitions", pa.list_(_INT)), ("assignment_epochs", pa.list_(_INT))])
)

SUBSCRIPTION = pa.struct(
    [
        ("version", _INT),
        ("topics", pa.list_(_STRING)),
        ("owned", TOPIC_PARTITIONS),
        ("generation", _INT),
        ("rack", _STRING),
        ("user_data", _BINARY),
        ("sticky_generation", _INT),
        ("sticky_owned", TOPIC_PARTITIONS),
        ("error", _STRING),
    ]
)
"""Subscription of a member of a classic group."""

ASSIGNMENT = pa.struct(
    [("version", _INT), ("partitions", TOPIC_PARTITIONS), ("user_data", _BINARY), ("error", _STRING)]
)
"""Assignment of a member of a classic group."""

CLASSIC_MEMBER = pa.struct(
    [
        ("member_id", _STRING),
        ("instance_id", _STRING),
        ("client_id", _STRING),
        ("client_host", _STRING),
        ("rebalance_timeout_ms", _INT),
        ("session_timeout_ms", _INT),
        ("subscription", SUBSCRIPTION),
        ("assignment", ASSIGNMENT),
    ]
)

COLUMNS = {
    "offset_commit": pa.struct(
        [
            ("topic", _STRING),
            ("partition", _INT),
            ("committed_offset", _LONG),
            ("leader_epoch", _INT),
            ("metadata", _STRING),
            ("commit_time", TIMESTAMP),
            ("expire_time", TIMESTAMP),
            ("topic_id", _STRING),
        ]
    ),
    "group_metadata": pa.struct(
        [
            ("protocol_type", _STRING),
            ("generation", _INT),
            ("protocol", _STRING),
            ("leader", _STRING),
            ("state_time", TIMESTAMP),
            ("members", pa.list_(CLASSIC_MEMBER)),
        ]
    ),
    "consumer_group": pa.struct([("epoch", _INT), ("metadata_hash", _LONG)]),
    "consumer_partition_metadata": pa.struct(
        [("topics", pa.list_(pa.struct([("topic_id", _STRING), ("topic", _STRING), ("partitions", _INT)])))]
    ),
    "consumer_member": pa.struct(
        [
            ("member_id", _STRING),
            ("instance_id", _STRING),
            ("rack", _STRING),
            ("client_id", _STRING),
            ("client_host", _STRING),
            ("topics", pa.list_(_STRING)),
            ("regex", _STRING),
            ("rebalance_timeout_ms", _INT),
            ("server_assignor", _STRING),
            ("classic_protocols", pa.list_(_STRING)),
        ]
    ),
    "target_assignment": pa.struct([("epoch", _INT), ("time", TIMESTAMP)]),
    "target_member": pa.struct([("member_id", _STRING), ("partitions", _TOPIC_ID_PARTITIONS)]),
    "current_member": pa.struct(
        [
            ("member_id", _STRING),
            ("epoch", _INT),
            ("previous_epoch", _INT),
            ("state", _STRING),
            ("assigned", _OWNED_PARTITIONS),
            ("pending_revocation", _OWNED_PARTITIONS),
        ]
    ),
    "regular_expression": pa.struct(
        [("regex", _STRING), ("topics", pa.list_(_STRING)), ("version", _LONG), ("time", TIMESTAMP)]
    ),
    "share_state_partitions": pa.struct(
        [
            ("initializing", _NAMED_TOPICS),
            ("initialized", _NAMED_TOPICS),
            ("deleting", pa.list_(pa.struct([("topic_id", _STRING), ("topic", _STRING)]))),
        ]
    ),
    "streams_member": pa.struct(
        [
            ("member_id", _STRING),
            ("instance_id", _STRING),
            ("rack", _STRING),
            ("client_id", _STRING),
            ("client_host", _STRING),
            ("rebalance_timeout_ms", _INT),
            ("topology_epoch", _INT),
            ("process_id", _STRING),
            ("epoch", _INT),
            ("previous_epoch", _INT),
            ("state", _STRING),
            ("active", _TASKS),
            ("standby", _TASKS),
            ("warmup", _TASKS),
            ("pending_revocation", _TASKS),
        ]
    ),
    "streams_topology": pa.struct(
        [
            ("epoch", _INT),
            (
                "subtopologies",
                pa.list_(
                    pa.struct(
                        [
                            ("subtopology", _STRING),
                            ("source_topics", pa.list_(_STRING)),
                            ("source_topic_patterns", pa.list_(_STRING)),
                            ("repartition_sink_topics", pa.list_(_STRING)),
                        ]
                    )
                ),
            ),
        ]
    ),
}
"""The structs of records, by column: `RecordKind.column` of their kind."""

RAW = pa.schema(
    [
        ("key", _BINARY),
        ("value", _BINARY),
        ("partition", _INT),
        ("offset", _LONG),
        ("timestamp", TIMESTAMP),
    ]
)
"""Input of the decoder: columns of Spark's Kafka source."""

DECODED = pa.schema(
    [
        ("log_partition", _INT),
        ("log_offset", _LONG),
        ("log_time", TIMESTAMP),
        ("record_kind", _STRING),
        ("key_version", _INT),
        ("value_version", _INT),
        ("tombstone", pa.bool_()),
        ("group_id", _STRING),
        ("error", _STRING),
        ("raw_key", _BINARY),
        ("raw_value", _BINARY),
        *COLUMNS.items(),
    ]
)
"""Decoded records."""

OTHERS = "others"
COMPACT = pa.schema(
    [
        *(field for field in DECODED if field.name == "offset_commit" or field.name not in COLUMNS),
        (OTHERS, pa.list_(pa.struct([item for item in COLUMNS.items() if item[0] != "offset_commit"]))),
    ]
)
"""Decoded records on the way from Python to Spark.

Most are commits, and in Arrow a null struct takes as much memory as any other. So the structs of all other
kinds are in a list, which is empty for a commit.
"""

COMMITS = pa.schema(
    [
        *(
            DECODED.field(name)
            for name in ("log_partition", "log_offset", "log_time", "group_id", "tombstone")
        ),
        *COLUMNS["offset_commit"],
    ]
)
"""Committed offsets alone."""
