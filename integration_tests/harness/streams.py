"""Members of streams groups (KIP-1071), which only Java's Kafka Streams has: their heartbeats, by hand."""

import uuid

from groupwright.consumer.cluster import ClusterConnection
from groupwright.core.wire_format import (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    NULLABLE_STRING,
    STRING,
    Api,
    Array,
    Message,
    Struct,
    field,
)
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

_NAMES = Array(STRING)
_NAMES_OR_NULL = Array(STRING, nullable=True)
_TASKS = Array({"subtopology_id": STRING, "partitions": Array(INT32)}, nullable=True)
STREAMS_GROUP_HEARTBEAT = Api(
    "StreamsGroupHeartbeat",
    88,
    versions=(0, 0),
    flexible=0,
    request={
        "group_id": STRING,
        "member_id": STRING,
        "member_epoch": INT32,
        "endpoint_information_epoch": INT32,
        "instance_id": NULLABLE_STRING,
        "rack_id": NULLABLE_STRING,
        "rebalance_timeout_ms": field(INT32, default=-1),
        "topology": Struct(
            {
                "epoch": INT32,
                "subtopologies": Array(
                    {
                        "subtopology_id": STRING,
                        "source_topics": _NAMES,
                        "source_topic_regex": _NAMES,
                        "state_changelog_topics": _NAMES,
                        "repartition_sink_topics": _NAMES,
                        "repartition_source_topics": _NAMES,
                        "copartition_groups": _NAMES,
                    }
                ),
            },
            nullable=True,
        ),
        "active_tasks": _TASKS,
        "standby_tasks": _TASKS,
        "warmup_tasks": _TASKS,
        "process_id": NULLABLE_STRING,
        "user_endpoint": Struct({"host": STRING}, nullable=True),
        "client_tags": _NAMES_OR_NULL,
        "task_offsets": _NAMES_OR_NULL,
        "task_end_offsets": _NAMES_OR_NULL,
        "shutdown_application": BOOLEAN,
    },
    response={
        "throttle_time_ms": INT32,
        "error_code": INT16,
        "error_message": NULLABLE_STRING,
        "member_id": STRING,
        "member_epoch": INT32,
        "heartbeat_interval_ms": INT32,
        "acceptable_recovery_lag": INT32,
        "task_offset_interval_ms": INT32,
        "status": Array({"status_code": INT8, "status_detail": STRING}, nullable=True),
        "active_tasks": _TASKS,
        "standby_tasks": _TASKS,
        "warmup_tasks": _TASKS,
        "partitions_by_user_endpoint": _NAMES_OR_NULL,
    },
)
"""Join a streams group, or stay in it; lists that are always empty have no types of their own."""


def join_streams_group(bootstrap_servers: str, group: str, topic: str) -> None:
    """Add a member that is assigned all tasks; it stays until its session ends, after 45 s."""
    member = {"group_id": group, "member_id": str(uuid.uuid4())}
    join = STREAMS_GROUP_HEARTBEAT(
        **member,
        rebalance_timeout_ms=60_000,
        process_id="process",
        topology={"subtopologies": [{"subtopology_id": "0", "source_topics": [topic]}]},
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        client_tags=[],
    )
    with ClusterConnection({"bootstrap.servers": bootstrap_servers}, timeout=PATIENCE) as cluster:
        (broker,) = cluster.brokers()
        answers: list[Message] = []

        def is_assigned() -> bool:
            epoch = answers[-1].member_epoch if answers else 0
            beat = STREAMS_GROUP_HEARTBEAT(**member, member_epoch=epoch)
            answers.append(cluster.send(beat if answers else join, broker))
            assert not answers[-1].error_code, answers[-1].error_message
            return bool(answers[-1].active_tasks)

        wait_until(is_assigned, "tasks are assigned")
