"""What Kafka's own classes serialize, and what they say it is, field by field.

Burrow reads the length of version 4's metadata as one byte, which it is only up to 126 characters, and so
gets all that follows wrong. Here strings are long, not of ASCII, empty and null, and there are tagged fields
from the future.
"""

import base64
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from groupwright.pipeline._decoding import COLUMNS, decode_batch
from groupwright.pipeline._decoding.messages import RECORD_KINDS

Fields = Mapping[str, Any]

_KIND_OF = {
    "LegacyOffsetCommit": "offset_commit",
    "OffsetCommit": "offset_commit",
    "GroupMetadata": "group_metadata",
    "ConsumerGroupMetadata": "consumer_group",
    "ConsumerGroupPartitionMetadata": "consumer_partition_metadata",
    "ConsumerGroupMemberMetadata": "consumer_member",
    "ConsumerGroupTargetAssignmentMetadata": "target_assignment",
    "ConsumerGroupTargetAssignmentMember": "target_member",
    "ConsumerGroupCurrentMemberAssignment": "current_member",
    "ConsumerGroupRegularExpression": "regular_expression",
    "ShareGroupMetadata": "share_group",
    "ShareGroupMemberMetadata": "share_member",
    "ShareGroupTargetAssignmentMetadata": "share_target_assignment",
    "ShareGroupTargetAssignmentMember": "share_target_member",
    "ShareGroupCurrentMemberAssignment": "share_current_member",
    "ShareGroupStatePartitionMetadata": "share_state_partitions",
    "StreamsGroupMetadata": "streams_group",
    "StreamsGroupMemberMetadata": "streams_member",
    "StreamsGroupTargetAssignmentMetadata": "streams_target_assignment",
    "StreamsGroupTargetAssignmentMember": "streams_target_member",
    "StreamsGroupCurrentMemberAssignment": "streams_current_member",
    "StreamsGroupTopology": "streams_topology",
}


def _time(milliseconds: int | None) -> datetime | None:
    if milliseconds is None or milliseconds < 0:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def _or_none(number: int | None) -> int | None:
    return None if number is None or number == -1 else number


def _not_negative(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def _by_id(listed: list[Fields]) -> list[Fields]:
    return [{"topic_id": each["topicId"], "partitions": each["partitions"]} for each in listed]


def _offset_commit(key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {
        "topic": key["topic"],
        "partition": key["partition"],
        "committed_offset": value.get("offset"),
        "leader_epoch": _or_none(value.get("leaderEpoch")),
        "metadata": value.get("metadata"),
        "commit_time": _time(value.get("commitTimestamp")),
        "expire_time": _time(value.get("expireTimestamp")),
        "topic_id": value.get("topicId"),
    }


def _group_metadata(_key: Fields, value: Fields, nested: Fields) -> Fields:
    def member(says: Fields) -> Fields:
        is_consumer = value["protocolType"] == "consumer"
        subscription = nested.get(f"subscription:{says['subscription']}", {})
        assignment = nested.get(f"assignment:{says['assignment']}", {})
        return {
            "member_id": says["memberId"],
            "instance_id": says.get("groupInstanceId"),
            "client_id": says["clientId"],
            "client_host": says["clientHost"],
            "rebalance_timeout_ms": _or_none(says.get("rebalanceTimeout")),
            "session_timeout_ms": says["sessionTimeout"],
            "subscription": _subscription(subscription) if is_consumer else None,
            "assignment": _assignment(assignment) if is_consumer and says["assignment"] else None,
        }

    return {
        "protocol_type": value["protocolType"],
        "generation": value["generation"],
        "protocol": value["protocol"],
        "leader": value["leader"],
        "state_time": _time(value.get("currentStateTimestamp")),
        "members": [member(each) for each in value["members"]],
    }


def _subscription(says: Fields) -> Fields:
    sticky = says.get("stickyOwned")
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sticky or ():
        by_topic.setdefault(topic, []).append(partition)
    return {
        "version": says["version"],
        "topics": says["topics"],
        "owned": says.get("ownedPartitions"),
        "generation": _not_negative(says.get("generationId")),
        "rack": says.get("rackId"),
        "user_data": None if says["userData"] is None else base64.b64decode(says["userData"]),
        "sticky_generation": says.get("stickyGeneration"),
        "sticky_owned": None if sticky is None else by_topic,
        "error": None,
    }


def _assignment(says: Fields) -> Fields:
    return {
        "version": says["version"],
        "partitions": says["assignedPartitions"],
        "user_data": None if says["userData"] is None else base64.b64decode(says["userData"]),
        "error": None,
    }


def _member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    classic = value.get("classicMemberMetadata")
    return {
        "member_id": key["memberId"],
        "instance_id": value["instanceId"],
        "rack": value["rackId"],
        "client_id": value["clientId"],
        "client_host": value["clientHost"],
        "topics": value["subscribedTopicNames"],
        "regex": value["subscribedTopicRegex"],
        "rebalance_timeout_ms": _or_none(value["rebalanceTimeoutMs"]),
        "server_assignor": value["serverAssignor"],
        "classic_protocols": classic and [each["name"] for each in classic["supportedProtocols"]],
    }


def _owned(listed: list[Fields]) -> list[Fields]:
    return [
        {**by_id, "assignment_epochs": each.get("assignmentEpochs") or []}
        for by_id, each in zip(_by_id(listed), listed, strict=True)
    ]


def _current_member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {
        "member_id": key["memberId"],
        "epoch": value["memberEpoch"],
        "previous_epoch": value["previousMemberEpoch"],
        "state": ("stable", "unrevoked", "unreleased")[value["state"]],
        "assigned": _owned(value["assignedPartitions"]),
        "pending_revocation": _owned(value["partitionsPendingRevocation"]),
    }


def _partition_metadata(_key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {
        "topics": [
            {"topic_id": each["topicId"], "topic": each["topicName"], "partitions": each["numPartitions"]}
            for each in value["topics"]
        ]
    }


def _target_assignment(_key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {"epoch": value["assignmentEpoch"], "time": _time(value.get("assignmentTimestamp"))}


def _target_member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {"member_id": key["memberId"], "partitions": _by_id(value["topicPartitions"])}


def _share_current_member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    full = _current_member(key, {**value, "partitionsPendingRevocation": []}, {})
    return {name: each for name, each in full.items() if name != "pending_revocation"}


def _share_state_partitions(_key: Fields, value: Fields, _nested: Fields) -> Fields:
    def topics(listed: list[Fields]) -> list[Fields]:
        return [
            {
                "topic_id": each["topicId"],
                "topic": each["topicName"],
                **({"partitions": each["partitions"]} if "partitions" in each else {}),
            }
            for each in listed
        ]

    return {
        "initializing": topics(value["initializingTopics"]),
        "initialized": topics(value["initializedTopics"]),
        "deleting": topics(value["deletingTopics"]),
    }


def _streams_member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {
        "member_id": key["memberId"],
        "instance_id": value["instanceId"],
        "rack": value["rackId"],
        "client_id": value["clientId"],
        "client_host": value["clientHost"],
        "rebalance_timeout_ms": _or_none(value["rebalanceTimeoutMs"]),
        "topology_epoch": value["topologyEpoch"],
        "process_id": value["processId"],
    }


def _tasks(listed: list[Fields]) -> list[Fields]:
    return [{"subtopology": each["subtopologyId"], "partitions": each["partitions"]} for each in listed]


def _streams_target_member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    roles = {role: _tasks(value[f"{role}Tasks"]) for role in ("active", "standby", "warmup")}
    return {"member_id": key["memberId"], **roles}


def _streams_current_member(key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {
        **_streams_target_member(key, value, {}),
        "epoch": value["memberEpoch"],
        "previous_epoch": value["previousMemberEpoch"],
        "state": (None, "stable", "unrevoked", "unreleased")[value["state"]],
        "pending_revocation": _tasks(value["activeTasksPendingRevocation"]),
    }


def _streams_topology(_key: Fields, value: Fields, _nested: Fields) -> Fields:
    return {
        "epoch": value["epoch"],
        "subtopologies": [
            {
                "subtopology": each["subtopologyId"],
                "source_topics": each["sourceTopics"],
                "source_topic_patterns": each["sourceTopicRegex"],
                "repartition_sink_topics": each["repartitionSinkTopics"],
            }
            for each in value["subtopologies"]
        ],
    }


_SAID: Mapping[str, Callable[[Fields, Fields, Fields], Fields]] = {
    "offset_commit": _offset_commit,
    "group_metadata": _group_metadata,
    "consumer_group": lambda _key, value, _: {
        "epoch": value["epoch"],
        "metadata_hash": value.get("metadataHash"),
    },
    "consumer_partition_metadata": _partition_metadata,
    "consumer_member": _member,
    "target_assignment": _target_assignment,
    "target_member": _target_member,
    "current_member": _current_member,
    "regular_expression": lambda key, value, _: {
        "regex": key["regularExpression"],
        "topics": value["topics"],
        "version": value["version"],
        "time": _time(value["timestamp"]),
    },
    "share_group": lambda _key, value, _: {
        "epoch": value["epoch"],
        "metadata_hash": value["metadataHash"],
    },
    "share_member": lambda key, value, _: {
        "member_id": key["memberId"],
        "rack": value["rackId"],
        "client_id": value["clientId"],
        "client_host": value["clientHost"],
        "topics": value["subscribedTopicNames"],
    },
    "share_target_assignment": _target_assignment,
    "share_target_member": _target_member,
    "share_current_member": _share_current_member,
    "share_state_partitions": _share_state_partitions,
    "streams_group": lambda _key, value, _: {
        "epoch": value["epoch"],
        "metadata_hash": value["metadataHash"],
    },
    "streams_member": _streams_member,
    "streams_target_assignment": _target_assignment,
    "streams_target_member": _streams_target_member,
    "streams_current_member": _streams_current_member,
    "streams_topology": _streams_topology,
}
_KEY_FIELDS = {
    "topic": "topic",
    "partition": "partition",
    "member_id": "memberId",
    "regex": "regularExpression",
}


def _comparable(column: str, found: Fields) -> Fields:
    """Return the fields with what sticky members owned by topic: Java's order is that of a hash map.

    Kafka writes null epochs, or leaves out empty ones: both are none.
    """
    for each in (*(found.get("assigned") or ()), *(found.get("pending_revocation") or ())):
        if "assignment_epochs" in each:
            each["assignment_epochs"] = each["assignment_epochs"] or []
    if column != "group_metadata":
        return found
    for member in found["members"] or ():
        owned = member["subscription"] and member["subscription"]["sticky_owned"]
        if owned is not None:
            by_topic = {each["topic"]: each["partitions"] for each in owned}
            member["subscription"]["sticky_owned"] = by_topic
    return found


@pytest.mark.slow
def test_every_field_of_every_kind_and_version_is_what_kafka_says(
    golden_records: list[Any], batch: Callable[..., pa.RecordBatch]
) -> None:
    decoded = decode_batch(batch([(record.key, record.value) for record in golden_records]))
    decoded.validate(full=True)
    seen: Counter[tuple[str, int | None]] = Counter()
    for record, row in zip(golden_records, decoded.to_pylist(), strict=True):
        says = record.says
        kind = _KIND_OF[says["kind"]]
        group = says["key_fields"].get("groupId", says["key_fields"].get("group"))
        head = {
            "record_kind": kind,
            "key_version": says["key_version"],
            "value_version": says.get("version"),
            "tombstone": record.value is None,
            "group_id": group,
            "error": None,
            "raw_key": None,
            "raw_value": None,
        }
        assert {name: row[name] for name in head} == head
        of_kind = RECORD_KINDS[says["key_version"]].column
        for column in COLUMNS:
            if column != of_kind:
                assert row[column] is None
            elif record.value is None:
                of_key = {name: says["key_fields"].get(_KEY_FIELDS.get(name)) for name in row[column]}
                assert row[column] == of_key
            else:
                expected = _SAID[kind](says["key_fields"], says["value_fields"], says["nested"])
                assert _comparable(kind, row[column]) == {**dict.fromkeys(row[column]), **expected}
        seen[says["kind"], says.get("version")] += 1
    versions = {"LegacyOffsetCommit": 5, "OffsetCommit": 5, "GroupMetadata": 5}
    assert all(seen[kind, version] for kind in _KIND_OF for version in range(versions.get(kind, 1)))
    assert {row["key_version"] for row in decoded.to_pylist()} == {*range(9), *range(10, 18), *range(19, 24)}


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7])
def test_a_record_is_decoded_alike_whatever_stands_beside_it(
    golden_records: list[Any], batch: Callable[..., pa.RecordBatch], size: int
) -> None:
    records = [(record.key, record.value) for record in golden_records[:: 5 * size]]
    together = decode_batch(batch(records))
    for first in range(0, len(records), size):
        alone = decode_batch(batch(records)[first : first + size])
        assert alone.equals(together[first : first + size])
