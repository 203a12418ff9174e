"""Kafka's message definitions for `__consumer_offsets` (of 4.4.0, and of 3.9 where they differ).

Fields have the names of the decoded columns; fields that are not decoded begin with `_`. Source: Kafka's
`group-coordinator/src/main/resources/common/message/*.json`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from groupwright.pipeline._decoding.structs import Array, FieldOf, Fields, Nullable, Struct
from groupwright.pipeline._decoding.types import Int, LengthPrefixed, Time, Type, Uuid

OFFSET_COMMIT, GROUP_METADATA = "offset_commit", "group_metadata"


@dataclass(frozen=True)
class RecordKind:
    """A kind of record of `__consumer_offsets`.

    Attributes:
        name: The `record_kind` of decoded rows.
        key: Fields of the key after the group id.
        values: The value by version.
        shared_column: The column of these records, if another kind has it too; else it has the kind's name.
            Each column costs time for all records, so records that mean the same share one.
    """

    name: str
    key: Fields
    values: Mapping[int, Struct]
    shared_column: str | None = None

    @property
    def column(self) -> str:
        """The column of decoded rows that has the struct."""
        return self.shared_column or self.name

    @property
    def newest(self) -> int:
        """The newest supported version of the value."""
        return max(self.values)


# --- Types of non-flexible and flexible versions (KIP-482), and types shared by several messages

STRING, NULLABLE_STRING = LengthPrefixed(2), LengthPrefixed(2, nullable=True)
COMPACT_STRING, COMPACT_NULLABLE_STRING = LengthPrefixed(0), LengthPrefixed(0, nullable=True)
BYTES, COMPACT_BYTES = LengthPrefixed(4, is_text=False), LengthPrefixed(0, is_text=False)
INT32, INT64 = Int(4), Int(8)
INT32_NULLABLE = Int(4, null_value=-1)

_TOPIC_ID_PARTITIONS = Array(Struct((("topic_id", Uuid()), ("partitions", Array(INT32, 0))), tags={}), 0)

_OWNED_PARTITIONS = Array(
    Struct(
        (("topic_id", Uuid()), ("partitions", Array(INT32, 0))),
        tags={0: ("assignment_epochs", Array(INT32, 0, nullable=True))},
    ),
    0,
)
"""A member's partitions, each with the epoch at which it was assigned (KIP-1251)."""

# --- Offsets and classic groups


def _offset_commit(version: int) -> Struct:
    flexible = version >= 4  # noqa: PLR2004 - the version
    fields: list[tuple[str, Type]] = [("committed_offset", INT64)]
    if version >= 3:  # noqa: PLR2004 - the version
        fields.append(("leader_epoch", INT32_NULLABLE))
    fields += [("metadata", COMPACT_STRING if flexible else STRING), ("commit_time", Time())]
    if version == 1:
        fields.append(("expire_time", Time()))
    return Struct(tuple(fields), tags={0: ("topic_id", Uuid(null_if_zero=True))} if flexible else None)


def _group_metadata(version: int) -> Struct:
    flexible = version >= 4  # noqa: PLR2004 - the version
    string = COMPACT_STRING if flexible else STRING
    nullable = COMPACT_NULLABLE_STRING if flexible else NULLABLE_STRING
    fields: list[tuple[str, Type]] = [
        ("protocol_type", string),
        ("generation", INT32),
        ("protocol", nullable),
        ("leader", nullable),
    ]
    if version >= 2:  # noqa: PLR2004 - the version
        fields.append(("state_time", Time()))
    members = Array(_classic_member(version), 0 if flexible else 4)
    return Struct((*fields, ("members", members)), tags={} if flexible else None)


CLASSIC_MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rebalance_timeout_ms", pa.int32()),
        ("session_timeout_ms", pa.int32()),
        ("subscription", pa.binary()),
        ("assignment", pa.binary()),
    ]
)


def _classic_member(version: int) -> Struct:
    flexible = version >= 4  # noqa: PLR2004 - the version
    string, data = (COMPACT_STRING, COMPACT_BYTES) if flexible else (STRING, BYTES)
    fields: list[tuple[str, Type]] = [("member_id", string)]
    if version >= 3:  # noqa: PLR2004 - the version
        fields.append(("instance_id", COMPACT_NULLABLE_STRING if flexible else NULLABLE_STRING))
    fields += [("client_id", string), ("client_host", string)]
    if version >= 1:
        fields.append(("rebalance_timeout_ms", INT32_NULLABLE))
    fields += [("session_timeout_ms", INT32), ("subscription", data), ("assignment", data)]
    return Struct(tuple(fields), tags={} if flexible else None, arrow_struct=CLASSIC_MEMBER)


# --- Groups of KIP-848


_CONSUMER_GROUP = Struct((("epoch", INT32),), tags={0: ("metadata_hash", INT64)})

_PARTITION_RACKS = Struct((("_partition", INT32), ("_racks", Array(COMPACT_STRING, 0))), tags={})
_TOPIC_METADATA = Struct(
    (
        ("topic_id", Uuid()),
        ("topic", COMPACT_STRING),
        ("partitions", INT32),
        ("_partition_metadata", Array(_PARTITION_RACKS, 0)),
    ),
    tags={},
)
_CONSUMER_PARTITION_METADATA = Struct((("topics", Array(_TOPIC_METADATA, 0)),), tags={})

_CLASSIC_PROTOCOL = Struct((("name", COMPACT_STRING), ("_metadata", COMPACT_BYTES)), tags={})
_CLASSIC_METADATA = Struct(
    (("_session_timeout_ms", INT32), ("classic_protocols", Array(FieldOf("name", _CLASSIC_PROTOCOL), 0))),
    tags={},
)
_CONSUMER_MEMBER = Struct(
    (
        ("instance_id", COMPACT_NULLABLE_STRING),
        ("rack", COMPACT_NULLABLE_STRING),
        ("client_id", COMPACT_STRING),
        ("client_host", COMPACT_STRING),
        ("topics", Array(COMPACT_STRING, 0)),
        ("regex", COMPACT_NULLABLE_STRING),
        ("rebalance_timeout_ms", INT32_NULLABLE),
        ("server_assignor", COMPACT_NULLABLE_STRING),
    ),
    tags={0: ("classic_protocols", Nullable(FieldOf("classic_protocols", _CLASSIC_METADATA)))},
)
_TARGET_ASSIGNMENT = Struct((("epoch", INT32),), tags={0: ("time", Time())})
_TARGET_MEMBER = Struct((("partitions", _TOPIC_ID_PARTITIONS),), tags={})
_MEMBER_STATES = ("stable", "unrevoked", "unreleased")
_MEMBER_STATE = Int(1, names=_MEMBER_STATES)
_CURRENT_MEMBER = Struct(
    (
        ("epoch", INT32),
        ("previous_epoch", INT32),
        ("state", _MEMBER_STATE),
        ("assigned", _OWNED_PARTITIONS),
        ("pending_revocation", _OWNED_PARTITIONS),
    ),
    tags={},
)
_REGULAR_EXPRESSION = Struct(
    (("topics", Array(COMPACT_STRING, 0)), ("version", INT64), ("time", Time())), tags={}
)

# --- Share groups (KIP-932)


_GROUP_EPOCH = Struct((("epoch", INT32), ("metadata_hash", INT64)), tags={})
_SHARE_MEMBER = Struct(
    (
        ("rack", COMPACT_NULLABLE_STRING),
        ("client_id", COMPACT_STRING),
        ("client_host", COMPACT_STRING),
        ("topics", Array(COMPACT_STRING, 0)),
    ),
    tags={},
)
_SHARE_CURRENT_MEMBER = Struct(
    (
        ("epoch", INT32),
        ("previous_epoch", INT32),
        ("state", _MEMBER_STATE),
        ("assigned", _OWNED_PARTITIONS),  # without epochs, and in the column of those of KIP-848
    ),
    tags={},
)
_NAMED_TOPIC: Fields = (("topic_id", Uuid()), ("topic", COMPACT_STRING))
_NAMED_TOPIC_PARTITIONS = Array(Struct((*_NAMED_TOPIC, ("partitions", Array(INT32, 0))), tags={}), 0)
_SHARE_STATE_PARTITIONS = Struct(
    (
        ("initializing", _NAMED_TOPIC_PARTITIONS),
        ("initialized", _NAMED_TOPIC_PARTITIONS),
        ("deleting", Array(Struct(_NAMED_TOPIC, tags={}), 0)),
    ),
    tags={},
)

# --- Streams groups (KIP-1071)


_KEY_VALUE = Struct((("key", COMPACT_STRING), ("value", COMPACT_STRING)), tags={})
_ENDPOINT = Struct((("host", COMPACT_STRING), ("port", Int(2))), tags={})
_STREAMS_MEMBER = Struct(
    (
        ("instance_id", COMPACT_NULLABLE_STRING),
        ("rack", COMPACT_NULLABLE_STRING),
        ("client_id", COMPACT_STRING),
        ("client_host", COMPACT_STRING),
        ("rebalance_timeout_ms", INT32_NULLABLE),
        ("topology_epoch", INT32),
        ("process_id", COMPACT_STRING),
        ("_user_endpoint", Nullable(_ENDPOINT, Int(1))),
        ("_client_tags", Array(_KEY_VALUE, 0)),
    ),
    tags={},
)
_TASKS = Array(Struct((("subtopology", COMPACT_STRING), ("partitions", Array(INT32, 0))), tags={}), 0)
_TASK_ROLES: Fields = (("active", _TASKS), ("standby", _TASKS), ("warmup", _TASKS))
_STREAMS_TARGET_MEMBER = Struct(_TASK_ROLES, tags={})
_STREAMS_CURRENT_MEMBER = Struct(
    (
        ("epoch", INT32),
        ("previous_epoch", INT32),
        ("state", Int(1, names=_MEMBER_STATES, first=1)),
        *_TASK_ROLES,
        ("pending_revocation", _TASKS),
        ("_standby_pending_revocation", _TASKS),
        ("_warmup_pending_revocation", _TASKS),
    ),
    tags={},
)
_STRINGS = Array(COMPACT_STRING, 0)
_TOPIC_INFOS = Array(
    Struct(
        (
            ("_name", COMPACT_STRING),
            ("_partitions", INT32),
            ("_replication_factor", Int(2)),
            ("_configs", Array(_KEY_VALUE, 0)),
        ),
        tags={},
    ),
    0,
)
_COPARTITION_GROUP = Struct(
    tuple((f"_{name}", Array(Int(2), 0)) for name in ("topics", "patterns", "repartition_topics")), tags={}
)
_SUBTOPOLOGY = Struct(
    (
        ("subtopology", COMPACT_STRING),
        ("source_topics", _STRINGS),
        ("source_topic_patterns", _STRINGS),
        ("_changelog_topics", _TOPIC_INFOS),
        ("repartition_sink_topics", _STRINGS),
        ("_repartition_source_topics", _TOPIC_INFOS),
        ("_copartition_groups", Array(_COPARTITION_GROUP, 0)),
    ),
    tags={},
)
_STREAMS_TOPOLOGY = Struct((("epoch", INT32), ("subtopologies", Array(_SUBTOPOLOGY, 0))), tags={})

# --- All kinds

_TOPIC_AND_PARTITION: Fields = (("topic", STRING), ("partition", INT32))
_MEMBER: Fields = (("member_id", STRING),)
_COMMITS = {version: _offset_commit(version) for version in range(5)}

RECORD_KINDS: Mapping[int, RecordKind] = {
    0: RecordKind(OFFSET_COMMIT, _TOPIC_AND_PARTITION, _COMMITS),
    1: RecordKind(OFFSET_COMMIT, _TOPIC_AND_PARTITION, _COMMITS),
    2: RecordKind(GROUP_METADATA, (), {version: _group_metadata(version) for version in range(5)}),
    3: RecordKind("consumer_group", (), {0: _CONSUMER_GROUP}),
    4: RecordKind("consumer_partition_metadata", (), {0: _CONSUMER_PARTITION_METADATA}),
    5: RecordKind("consumer_member", _MEMBER, {0: _CONSUMER_MEMBER}),
    6: RecordKind("target_assignment", (), {0: _TARGET_ASSIGNMENT}),
    7: RecordKind("target_member", _MEMBER, {0: _TARGET_MEMBER}),
    8: RecordKind("current_member", _MEMBER, {0: _CURRENT_MEMBER}),
    16: RecordKind("regular_expression", (("regex", STRING),), {0: _REGULAR_EXPRESSION}),
    10: RecordKind("share_member", _MEMBER, {0: _SHARE_MEMBER}, "consumer_member"),
    11: RecordKind("share_group", (), {0: _GROUP_EPOCH}, "consumer_group"),
    12: RecordKind("share_target_assignment", (), {0: _TARGET_ASSIGNMENT}, "target_assignment"),
    13: RecordKind("share_target_member", _MEMBER, {0: _TARGET_MEMBER}, "target_member"),
    14: RecordKind("share_current_member", _MEMBER, {0: _SHARE_CURRENT_MEMBER}, "current_member"),
    15: RecordKind("share_state_partitions", (), {0: _SHARE_STATE_PARTITIONS}),
    17: RecordKind("streams_group", (), {0: _GROUP_EPOCH}, "consumer_group"),
    19: RecordKind("streams_member", _MEMBER, {0: _STREAMS_MEMBER}),
    20: RecordKind("streams_target_assignment", (), {0: _TARGET_ASSIGNMENT}, "target_assignment"),
    21: RecordKind("streams_target_member", _MEMBER, {0: _STREAMS_TARGET_MEMBER}, "streams_member"),
    22: RecordKind("streams_current_member", _MEMBER, {0: _STREAMS_CURRENT_MEMBER}, "streams_member"),
    23: RecordKind("streams_topology", (), {0: _STREAMS_TOPOLOGY}),
}
"""Kinds by the type at the start of a record's key (Kafka's `CoordinatorRecordType`)."""

OTHER_KINDS: Mapping[int, str] = {
    9: "ShareGroupPartitionMetadata",
    18: "StreamsGroupPartitionMetadata",
    24: "StreamsGroupTargetAssignmentResolvedTopicIds",
}
"""Kafka's names of kinds that are not decoded: two that it has given up, and one of a later version."""
