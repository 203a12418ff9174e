"""Kafka's requests that the commands send and members do not: their fields in each version."""

from dataclasses import replace

from groupwright.core.kafka_apis import (
    COMMITTED_PARTITIONS,
    FIND_COORDINATOR,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PARTITION_ERRORS,
)
from groupwright.core.wire_format import (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    Api,
    Array,
    Struct,
    field,
)

__all__ = [
    "CONSUMER_GROUP_DESCRIBE",
    "DESCRIBE_CONFIGS",
    "DESCRIBE_SHARE_GROUP_OFFSETS",
    "DESCRIBE_TRANSACTIONS",
    "FIND_COORDINATORS",
    "LIST_GROUPS",
    "LIST_TRANSACTIONS",
    "OFFSETS_COMMIT",
    "OFFSETS_FETCH",
    "OFFSET_DELETE",
    "SHARE_GROUP_DESCRIBE",
    "STREAMS_GROUP_DESCRIBE",
]

FIND_COORDINATORS = replace(FIND_COORDINATOR, versions=(4, FIND_COORDINATOR.versions[1]))
"""FindCoordinator of several groups."""
OFFSETS_FETCH = replace(OFFSET_FETCH, versions=(8, OFFSET_FETCH.versions[1]))
"""OffsetFetch of several groups."""
OFFSETS_COMMIT = Api(
    "OffsetCommit",
    8,
    versions=(OFFSET_COMMIT.versions[0], 10),
    flexible=8,
    request={
        **OFFSET_COMMIT.request,
        "topics": Array(
            {
                "topic_id": field(UUID, 10),
                "name": field(STRING, 2, 9),
                "partitions": COMMITTED_PARTITIONS,
            }
        ),
    },
    response={
        "throttle_time_ms": field(INT32, 3),
        "topics": Array(
            {
                "topic_id": field(UUID, 10),
                "name": field(STRING, 2, 9),
                "partitions": PARTITION_ERRORS,
            }
        ),
    },
)
"""OffsetCommit of topics by their ids where the broker can (version 10, Kafka 4.1), else by names."""

LIST_GROUPS = Api(
    "ListGroups",
    16,
    versions=(0, 5),
    flexible=3,
    request={"states_filter": field(Array(STRING), 4), "types_filter": field(Array(STRING), 5)},
    response={
        "throttle_time_ms": field(INT32, 1),
        "error_code": INT16,
        "groups": Array(
            {
                "group_id": STRING,
                "protocol_type": STRING,
                "group_state": field(STRING, 4),
                "group_type": field(STRING, 5),
            }
        ),
    },
)
DESCRIBE_CONFIGS = Api(
    "DescribeConfigs",
    32,
    versions=(1, 4),
    flexible=4,
    request={
        "resources": Array(
            {
                "resource_type": INT8,
                "resource_name": STRING,
                "configuration_keys": Array(STRING, nullable=True),
            }
        ),
        "include_synonyms": BOOLEAN,
        "include_documentation": field(BOOLEAN, 3),
    },
    response={
        "throttle_time_ms": INT32,
        "results": Array(
            {
                "error_code": INT16,
                "error_message": NULLABLE_STRING,
                "resource_type": INT8,
                "resource_name": STRING,
                "configs": Array(
                    {
                        "name": STRING,
                        "value": NULLABLE_STRING,
                        "read_only": BOOLEAN,
                        "config_source": INT8,
                        "is_sensitive": BOOLEAN,
                        "synonyms": Array({"name": STRING, "value": NULLABLE_STRING, "source": INT8}),
                        "config_type": field(INT8, 3),
                        "documentation": field(NULLABLE_STRING, 3),
                    }
                ),
            }
        ),
    },
)
LIST_TRANSACTIONS = Api(
    "ListTransactions",
    66,
    versions=(0, 1),
    flexible=0,
    request={
        "state_filters": Array(STRING),
        "producer_id_filters": Array(INT64),
        "duration_filter": field(INT64, 1, default=-1),
    },
    response={
        "throttle_time_ms": INT32,
        "error_code": INT16,
        "unknown_state_filters": Array(STRING),
        "transaction_states": Array(
            {"transactional_id": STRING, "producer_id": INT64, "transaction_state": STRING}
        ),
    },
)
DESCRIBE_TRANSACTIONS = Api(
    "DescribeTransactions",
    65,
    versions=(0, 0),
    flexible=0,
    request={"transactional_ids": Array(STRING)},
    response={
        "throttle_time_ms": INT32,
        "transaction_states": Array(
            {
                "error_code": INT16,
                "transactional_id": STRING,
                "transaction_state": STRING,
                "transaction_timeout_ms": INT32,
                "transaction_start_time_ms": INT64,
                "producer_id": INT64,
                "producer_epoch": INT16,
                "topics": Array({"topic": STRING, "partitions": Array(INT32)}),
            }
        ),
    },
)
OFFSET_DELETE = Api(
    "OffsetDelete",
    47,
    versions=(0, 0),
    request={
        "group_id": STRING,
        "topics": Array({"name": STRING, "partitions": Array({"partition_index": INT32})}),
    },
    response={
        "error_code": INT16,
        "throttle_time_ms": INT32,
        "topics": Array(
            {"name": STRING, "partitions": Array({"partition_index": INT32, "error_code": INT16})}
        ),
    },
)

# --- Groups of other types --------------------------------------------------------------------------

_DESCRIBE_REQUEST = {"group_ids": Array(STRING), "include_authorized_operations": BOOLEAN}
_DESCRIBED = {
    "error_code": INT16,
    "error_message": NULLABLE_STRING,
    "group_id": STRING,
    "group_state": STRING,
    "group_epoch": INT32,
    "assignment_epoch": INT32,
}
_ASSIGNMENT = Struct(
    {
        "topic_partitions": Array({"topic_id": UUID, "topic_name": STRING, "partitions": Array(INT32)}),
    }
)
CONSUMER_GROUP_DESCRIBE = Api(
    "ConsumerGroupDescribe",
    69,
    versions=(0, 1),
    flexible=0,
    request=_DESCRIBE_REQUEST,
    response={
        "throttle_time_ms": INT32,
        "groups": Array(
            {
                **_DESCRIBED,
                "assignor_name": STRING,
                "members": Array(
                    {
                        "member_id": STRING,
                        "instance_id": NULLABLE_STRING,
                        "rack_id": NULLABLE_STRING,
                        "member_epoch": INT32,
                        "client_id": STRING,
                        "client_host": STRING,
                        "subscribed_topic_names": Array(STRING),
                        "subscribed_topic_regex": NULLABLE_STRING,
                        "assignment": _ASSIGNMENT,
                        "target_assignment": _ASSIGNMENT,
                        "member_type": field(INT8, 1, default=-1),
                    }
                ),
                "authorized_operations": INT32,
            }
        ),
    },
)
"""Groups of KIP-848."""
SHARE_GROUP_DESCRIBE = Api(
    "ShareGroupDescribe",
    77,
    versions=(1, 1),
    flexible=0,
    request=_DESCRIBE_REQUEST,
    response={
        "throttle_time_ms": INT32,
        "groups": Array(
            {
                **_DESCRIBED,
                "assignor_name": STRING,
                "members": Array(
                    {
                        "member_id": STRING,
                        "rack_id": NULLABLE_STRING,
                        "member_epoch": INT32,
                        "client_id": STRING,
                        "client_host": STRING,
                        "subscribed_topic_names": Array(STRING),
                        "assignment": _ASSIGNMENT,
                    }
                ),
                "authorized_operations": INT32,
            }
        ),
    },
)
"""Share groups (KIP-932)."""
DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    "DescribeShareGroupOffsets",
    90,
    versions=(0, 1),
    flexible=0,
    request={
        "groups": Array(
            {
                "group_id": STRING,
                "topics": Array({"topic_name": STRING, "partitions": Array(INT32)}, nullable=True),
            }
        )
    },
    response={
        "throttle_time_ms": INT32,
        "groups": Array(
            {
                "group_id": STRING,
                "topics": Array(
                    {
                        "topic_name": STRING,
                        "topic_id": UUID,
                        "partitions": Array(
                            {
                                "partition_index": INT32,
                                "start_offset": INT64,
                                "leader_epoch": INT32,
                                "lag": field(INT64, 1, default=-1),
                                "error_code": INT16,
                                "error_message": NULLABLE_STRING,
                            }
                        ),
                    }
                ),
                "error_code": INT16,
                "error_message": NULLABLE_STRING,
            }
        ),
    },
)
"""Start offsets (KIP-932) and lag (KIP-1226) of share groups."""
_TASKS = Array({"subtopology_id": STRING, "partitions": Array(INT32)})
_TASK_ASSIGNMENT = Struct({"active_tasks": _TASKS, "standby_tasks": _TASKS, "warmup_tasks": _TASKS})
_TASK_OFFSETS = Array({"subtopology_id": STRING, "partition": INT32, "offset": INT64})
_PAIRS = Array({"key": STRING, "value": STRING})
_TOPICS = Array({"name": STRING, "partitions": INT32, "replication_factor": INT16, "topic_configs": _PAIRS})
STREAMS_GROUP_DESCRIBE = Api(
    "StreamsGroupDescribe",
    89,
    versions=(0, 0),
    flexible=0,
    request=_DESCRIBE_REQUEST,
    response={
        "throttle_time_ms": INT32,
        "groups": Array(
            {
                **_DESCRIBED,
                "topology": Struct(
                    {
                        "epoch": INT32,
                        "subtopologies": Array(
                            {
                                "subtopology_id": STRING,
                                "source_topics": Array(STRING),
                                "repartition_sink_topics": Array(STRING),
                                "state_changelog_topics": _TOPICS,
                                "repartition_source_topics": _TOPICS,
                            },
                            nullable=True,
                        ),
                    },
                    nullable=True,
                ),
                "members": Array(
                    {
                        "member_id": STRING,
                        "member_epoch": INT32,
                        "instance_id": NULLABLE_STRING,
                        "rack_id": NULLABLE_STRING,
                        "client_id": STRING,
                        "client_host": STRING,
                        "topology_epoch": INT32,
                        "process_id": STRING,
                        "user_endpoint": Struct({"host": STRING, "port": UINT16}, nullable=True),
                        "client_tags": _PAIRS,
                        "task_offsets": _TASK_OFFSETS,
                        "task_end_offsets": _TASK_OFFSETS,
                        "assignment": _TASK_ASSIGNMENT,
                        "target_assignment": _TASK_ASSIGNMENT,
                        "is_classic": BOOLEAN,
                    }
                ),
                "authorized_operations": INT32,
            }
        ),
    },
)
"""Streams groups (KIP-1071)."""
