"""Kafka's requests that a member of a group sends: their fields in each version.

The oldest versions are those of Kafka 0.11, and with SASL of 1.0. Versions that name topics by ids are left
out, as are those that add nothing for a member.
"""

from groupwright.core.wire_format import (
    BOOLEAN,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UUID,
    Api,
    Array,
    field,
)

_THROTTLE_TIME = {"throttle_time_ms": INT32}

API_VERSIONS = Api(
    "ApiVersions",
    18,
    versions=(0, 4),
    flexible=3,
    request={
        "client_software_name": field(STRING, 3),
        "client_software_version": field(STRING, 3),
    },
    response={
        "error_code": INT16,
        "api_keys": Array({"api_key": INT16, "min_version": INT16, "max_version": INT16}),
        "throttle_time_ms": field(INT32, 1),
    },
)
SASL_HANDSHAKE = Api(
    "SaslHandshake",
    17,
    versions=(1, 1),
    request={"mechanism": STRING},
    response={"error_code": INT16, "mechanisms": Array(STRING)},
)
SASL_AUTHENTICATE = Api(
    "SaslAuthenticate",
    36,
    versions=(0, 2),
    flexible=2,
    request={"auth_bytes": BYTES},
    response={
        "error_code": INT16,
        "error_message": NULLABLE_STRING,
        "auth_bytes": BYTES,
        "session_lifetime_ms": field(INT64, 1),
    },
)
METADATA = Api(
    "Metadata",
    3,
    versions=(4, 12),
    flexible=9,
    request={
        "topics": Array({"topic_id": field(UUID, 10), "name": NULLABLE_STRING}, nullable=True),
        "allow_auto_topic_creation": BOOLEAN,
        "include_cluster_authorized_operations": field(BOOLEAN, 8, 10),
        "include_topic_authorized_operations": field(BOOLEAN, 8),
    },
    response={
        **_THROTTLE_TIME,
        "brokers": Array({"node_id": INT32, "host": STRING, "port": INT32, "rack": NULLABLE_STRING}),
        "cluster_id": NULLABLE_STRING,
        "controller_id": INT32,
        "topics": Array(
            {
                "error_code": INT16,
                "name": NULLABLE_STRING,
                "topic_id": field(UUID, 10),
                "is_internal": BOOLEAN,
                "partitions": Array(
                    {
                        "error_code": INT16,
                        "partition_index": INT32,
                        "leader_id": INT32,
                        "leader_epoch": field(INT32, 7, default=-1),
                        "replica_nodes": Array(INT32),
                        "isr_nodes": Array(INT32),
                        "offline_replicas": field(Array(INT32), 5),
                    }
                ),
                "topic_authorized_operations": field(INT32, 8),
            }
        ),
        "cluster_authorized_operations": field(INT32, 8, 10),
    },
)
FIND_COORDINATOR = Api(
    "FindCoordinator",
    10,
    versions=(1, 6),
    flexible=3,
    request={
        "key": field(STRING, 0, 3),
        "key_type": INT8,
        "coordinator_keys": field(Array(STRING), 4),
    },
    response={
        **_THROTTLE_TIME,
        "error_code": field(INT16, 0, 3),
        "error_message": field(NULLABLE_STRING, 0, 3),
        "node_id": field(INT32, 0, 3),
        "host": field(STRING, 0, 3),
        "port": field(INT32, 0, 3),
        "coordinators": field(
            Array(
                {
                    "key": STRING,
                    "node_id": INT32,
                    "host": STRING,
                    "port": INT32,
                    "error_code": INT16,
                    "error_message": NULLABLE_STRING,
                }
            ),
            4,
        ),
    },
)
JOIN_GROUP = Api(
    "JoinGroup",
    11,
    versions=(2, 9),
    flexible=6,
    request={
        "group_id": STRING,
        "session_timeout_ms": INT32,
        "rebalance_timeout_ms": INT32,
        "member_id": STRING,
        "group_instance_id": field(NULLABLE_STRING, 5, required=True),
        "protocol_type": STRING,
        "protocols": Array({"name": STRING, "metadata": BYTES}),
        "reason": field(NULLABLE_STRING, 8),
    },
    response={
        **_THROTTLE_TIME,
        "error_code": INT16,
        "generation_id": INT32,
        "protocol_type": field(NULLABLE_STRING, 7),
        "protocol_name": NULLABLE_STRING,
        "leader": STRING,
        "skip_assignment": field(BOOLEAN, 9),
        "member_id": STRING,
        "members": Array(
            {"member_id": STRING, "group_instance_id": field(NULLABLE_STRING, 5), "metadata": BYTES}
        ),
    },
)
SYNC_GROUP = Api(
    "SyncGroup",
    14,
    versions=(1, 5),
    flexible=4,
    request={
        "group_id": STRING,
        "generation_id": INT32,
        "member_id": STRING,
        "group_instance_id": field(NULLABLE_STRING, 3, required=True),
        "protocol_type": field(NULLABLE_STRING, 5),
        "protocol_name": field(NULLABLE_STRING, 5),
        "assignments": Array({"member_id": STRING, "assignment": BYTES}),
    },
    response={
        **_THROTTLE_TIME,
        "error_code": INT16,
        "protocol_type": field(NULLABLE_STRING, 5),
        "protocol_name": field(NULLABLE_STRING, 5),
        "assignment": BYTES,
    },
)
HEARTBEAT = Api(
    "Heartbeat",
    12,
    versions=(1, 4),
    flexible=4,
    request={
        "group_id": STRING,
        "generation_id": INT32,
        "member_id": STRING,
        "group_instance_id": field(NULLABLE_STRING, 3, required=True),
    },
    response={**_THROTTLE_TIME, "error_code": INT16},
)
LEAVE_GROUP = Api(
    "LeaveGroup",
    13,
    versions=(1, 5),
    flexible=4,
    request={
        "group_id": STRING,
        "member_id": field(STRING, 0, 2),
        "members": field(
            Array(
                {
                    "member_id": STRING,
                    "group_instance_id": NULLABLE_STRING,
                    "reason": field(NULLABLE_STRING, 5),
                }
            ),
            3,
        ),
    },
    response={
        **_THROTTLE_TIME,
        "error_code": INT16,
        "members": field(
            Array({"member_id": STRING, "group_instance_id": NULLABLE_STRING, "error_code": INT16}), 3
        ),
    },
)
COMMITTED_PARTITIONS = Array(
    {
        "partition_index": INT32,
        "committed_offset": INT64,
        "committed_leader_epoch": field(INT32, 6, default=-1),
        "committed_metadata": NULLABLE_STRING,
    }
)
"""Partitions of a topic in OffsetCommit."""
PARTITION_ERRORS = Array({"partition_index": INT32, "error_code": INT16})
"""Partitions of a topic in the response."""
OFFSET_COMMIT = Api(
    "OffsetCommit",
    8,
    versions=(2, 9),
    flexible=8,
    request={
        "group_id": STRING,
        "generation_id_or_member_epoch": INT32,
        "member_id": STRING,
        "group_instance_id": field(NULLABLE_STRING, 7, required=True),
        "retention_time_ms": field(INT64, 2, 4, default=-1),
        "topics": Array({"name": STRING, "partitions": COMMITTED_PARTITIONS}),
    },
    response={
        "throttle_time_ms": field(INT32, 3),
        "topics": Array({"name": STRING, "partitions": PARTITION_ERRORS}),
    },
)
_FETCHED_TOPICS = Array(
    {
        "name": STRING,
        "partitions": Array(
            {
                "partition_index": INT32,
                "committed_offset": INT64,
                "committed_leader_epoch": field(INT32, 5, default=-1),
                "metadata": NULLABLE_STRING,
                "error_code": INT16,
            }
        ),
    }
)
_WANTED_TOPICS = Array({"name": STRING, "partition_indexes": Array(INT32)}, nullable=True)
OFFSET_FETCH = Api(
    "OffsetFetch",
    9,
    versions=(2, 8),
    flexible=6,
    request={
        "group_id": field(STRING, 0, 7),
        "topics": field(_WANTED_TOPICS, 0, 7),
        "groups": field(
            Array(
                {
                    "group_id": STRING,
                    "topics": _WANTED_TOPICS,
                }
            ),
            8,
        ),
        "require_stable": field(BOOLEAN, 7),
    },
    response={
        "throttle_time_ms": field(INT32, 3),
        "topics": field(_FETCHED_TOPICS, 0, 7),
        "error_code": field(INT16, 2, 7),
        "groups": field(Array({"group_id": STRING, "topics": _FETCHED_TOPICS, "error_code": INT16}), 8),
    },
)
LIST_OFFSETS = Api(
    "ListOffsets",
    2,
    versions=(2, 7),
    flexible=6,
    request={
        "replica_id": field(INT32, default=-1),
        "isolation_level": INT8,
        "topics": Array(
            {
                "name": STRING,
                "partitions": Array(
                    {
                        "partition_index": INT32,
                        "current_leader_epoch": field(INT32, 4, default=-1),
                        "timestamp": INT64,
                    }
                ),
            }
        ),
    },
    response={
        **_THROTTLE_TIME,
        "topics": Array(
            {
                "name": STRING,
                "partitions": Array(
                    {
                        "partition_index": INT32,
                        "error_code": INT16,
                        "timestamp": INT64,
                        "offset": INT64,
                        "leader_epoch": field(INT32, 4, default=-1),
                    }
                ),
            }
        ),
    },
)
DESCRIBE_GROUPS = Api(
    "DescribeGroups",
    15,
    versions=(1, 6),
    flexible=5,
    request={"groups": Array(STRING), "include_authorized_operations": field(BOOLEAN, 3)},
    response={
        **_THROTTLE_TIME,
        "groups": Array(
            {
                "error_code": INT16,
                "error_message": field(NULLABLE_STRING, 6),
                "group_id": STRING,
                "group_state": STRING,
                "protocol_type": STRING,
                "protocol_data": STRING,
                "members": Array(
                    {
                        "member_id": STRING,
                        "group_instance_id": field(NULLABLE_STRING, 4),
                        "client_id": STRING,
                        "client_host": STRING,
                        "member_metadata": BYTES,
                        "member_assignment": BYTES,
                    }
                ),
                "authorized_operations": field(INT32, 3),
            }
        ),
    },
)
