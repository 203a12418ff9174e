"""Translates the model's requests and responses to those of the wire, and back."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from groupwright.cli._cluster.apis import OFFSET_DELETE
from groupwright.core import ErrorCode, TopicPartitionKey
from groupwright.core.kafka_apis import (
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from groupwright.core.wire_format import INT16, INT32, STRING, Api, Array, Message
from groupwright.core.wire_format import Request as WireRequest
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.messages import Request, Response

DELETE_GROUPS = Api(
    "DeleteGroups",
    42,
    versions=(0, 2),
    flexible=2,
    request={"groups_names": Array(STRING)},
    response={"throttle_time_ms": INT32, "results": Array({"group_id": STRING, "error_code": INT16})},
)
_Encoded = tuple[WireRequest, int]
"""A request and its version."""


def encode(request: Request) -> _Encoded:
    """Return the request for the wire, with the newest version that names topics and groups by name."""
    return _ENCODERS[type(request)](request)


def decode(request: Request, answer: Message) -> Response:
    """Return the response to this request."""
    return _DECODERS[type(request)](request, answer)


def canonical(request: Request, response: Response) -> Response:
    """Return a response as it can be compared: sorted, and without what its version does not have.

    Kafka lists members, and 3.9 partitions, in the order of a hash table.
    """
    match request, response:
        case msg.JoinGroupRequest(version=version), msg.JoinGroupResponse():
            members = sorted(response.members, key=lambda member: member.member_id)
            if version < 5:
                members = [replace(member, group_instance_id=None) for member in members]
            response = replace(
                response,
                protocol_type=(response.protocol_type or None) if version >= 7 else None,
                protocol_name=response.protocol_name or None,
                members=tuple(members),
            )
        case msg.SyncGroupRequest(version=version), msg.SyncGroupResponse():
            named = version >= 5
            response = replace(
                response,
                protocol_type=(response.protocol_type or None) if named else None,
                protocol_name=(response.protocol_name or None) if named else None,
            )
        case _, msg.DescribeGroupsResponse():
            described = sorted(response.members, key=lambda member: member.member_id)
            response = replace(response, members=tuple(described))
        case _, msg.OffsetCommitResponse() | msg.OffsetDeleteResponse():
            response = replace(response, partitions=tuple(sorted(response.partitions)))
        case _, msg.OffsetFetchResponse():
            by_partition = sorted(response.partitions, key=lambda row: row[0])
            response = replace(response, partitions=tuple(by_partition))
        case _:
            pass
    return response


# --- Requests


def _join(request: msg.JoinGroupRequest) -> _Encoded:
    encoded = JOIN_GROUP(
        group_id=request.group_id,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id if request.version >= 5 else None,
        protocol_type=request.protocol_type,
        protocols=[{"name": each.name, "metadata": each.metadata} for each in request.protocols],
        reason="",
    )
    return encoded, request.version


def _sync(request: msg.SyncGroupRequest) -> _Encoded:
    encoded = SYNC_GROUP(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=[{"member_id": name, "assignment": value} for name, value in request.assignments],
    )
    return encoded, request.version


def _heartbeat(request: msg.HeartbeatRequest) -> _Encoded:
    encoded = HEARTBEAT(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )
    return encoded, 4


def _leave(request: msg.LeaveGroupRequest) -> _Encoded:
    members = [
        {"member_id": each.member_id, "group_instance_id": each.group_instance_id} for each in request.members
    ]
    return LEAVE_GROUP(group_id=request.group_id, members=members), 5


def _commit(request: msg.OffsetCommitRequest) -> _Encoded:
    by_topic: dict[str, list[Any]] = {}
    for (name, number), offset in request.offsets:
        row = {
            "partition_index": number,
            "committed_offset": offset.offset,
            "committed_leader_epoch": offset.leader_epoch,
            "committed_metadata": offset.metadata,
        }
        by_topic.setdefault(name, []).append(row)
    encoded = OFFSET_COMMIT(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[{"name": name, "partitions": rows} for name, rows in by_topic.items()],
    )
    return encoded, request.version


def _numbers(partitions: Iterable[TopicPartitionKey]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for name, number in partitions:
        by_topic.setdefault(name, []).append(number)
    return by_topic


def _fetch(request: msg.OffsetFetchRequest) -> _Encoded:
    topics = [
        {"name": name, "partition_indexes": numbers} for name, numbers in _numbers(request.partitions).items()
    ]
    return OFFSET_FETCH(groups=[{"group_id": request.group_id, "topics": topics}], require_stable=True), 8


def _delete_offsets(request: msg.OffsetDeleteRequest) -> _Encoded:
    topics = [
        {"name": name, "partitions": [{"partition_index": number} for number in numbers]}
        for name, numbers in _numbers(request.partitions).items()
    ]
    return OFFSET_DELETE(group_id=request.group_id, topics=topics), 0


def _describe(request: msg.DescribeGroupsRequest) -> _Encoded:
    return DESCRIBE_GROUPS(groups=[request.group_id]), 5


def _delete(request: msg.DeleteGroupsRequest) -> _Encoded:
    return DELETE_GROUPS(groups_names=[request.group_id]), 2


_ENCODERS: dict[type, Callable[[Any], _Encoded]] = {
    msg.JoinGroupRequest: _join,
    msg.SyncGroupRequest: _sync,
    msg.HeartbeatRequest: _heartbeat,
    msg.LeaveGroupRequest: _leave,
    msg.OffsetCommitRequest: _commit,
    msg.OffsetFetchRequest: _fetch,
    msg.OffsetDeleteRequest: _delete_offsets,
    msg.DescribeGroupsRequest: _describe,
    msg.DeleteGroupsRequest: _delete,
}


# --- Responses


def _joined(request: msg.JoinGroupRequest, answer: Message) -> msg.JoinGroupResponse:
    return msg.JoinGroupResponse(
        ErrorCode(answer.error_code),
        answer.generation_id,
        answer.protocol_type if request.version >= 7 else None,
        answer.protocol_name,
        answer.leader,
        bool(answer.skip_assignment) if request.version >= 9 else False,
        answer.member_id,
        tuple(
            msg.JoinedMember(
                each.member_id,
                each.group_instance_id if request.version >= 5 else None,
                each.metadata,
            )
            for each in answer.members
        ),
    )


def _synced(request: msg.SyncGroupRequest, answer: Message) -> msg.SyncGroupResponse:
    named = request.version >= 5
    return msg.SyncGroupResponse(
        ErrorCode(answer.error_code),
        answer.protocol_type if named else None,
        answer.protocol_name if named else None,
        answer.assignment,
    )


def _heartbeat_answered(_: msg.HeartbeatRequest, answer: Message) -> msg.HeartbeatResponse:
    return msg.HeartbeatResponse(ErrorCode(answer.error_code))


def _left(_: msg.LeaveGroupRequest, answer: Message) -> msg.LeaveGroupResponse:
    return msg.LeaveGroupResponse(
        ErrorCode(answer.error_code),
        tuple(
            (msg.LeavingMember(each.member_id, each.group_instance_id), ErrorCode(each.error_code))
            for each in answer.members
        ),
    )


def _errors(answer: Message) -> tuple[tuple[TopicPartitionKey, ErrorCode], ...]:
    return tuple(
        ((topic.name, row.partition_index), ErrorCode(row.error_code))
        for topic in answer.topics
        for row in topic.partitions
    )


def _committed(_: msg.OffsetCommitRequest, answer: Message) -> msg.OffsetCommitResponse:
    return msg.OffsetCommitResponse(_errors(answer))


def _fetched(_: msg.OffsetFetchRequest, answer: Message) -> msg.OffsetFetchResponse:
    (group,) = answer.groups
    return msg.OffsetFetchResponse(
        ErrorCode(group.error_code),
        tuple(
            (
                (topic.name, row.partition_index),
                msg.CommittedOffset(row.committed_offset, row.metadata or "", row.committed_leader_epoch),
            )
            for topic in group.topics
            for row in topic.partitions
        ),
    )


def _offsets_deleted(_: msg.OffsetDeleteRequest, answer: Message) -> msg.OffsetDeleteResponse:
    return msg.OffsetDeleteResponse(ErrorCode(answer.error_code), _errors(answer))


def _described(_: msg.DescribeGroupsRequest, answer: Message) -> msg.DescribeGroupsResponse:
    (group,) = answer.groups
    return msg.DescribeGroupsResponse(
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(
            msg.DescribedMember(
                each.member_id,
                each.group_instance_id,
                each.client_id,
                each.member_metadata,
                each.member_assignment,
            )
            for each in group.members
        ),
        ErrorCode(group.error_code),
    )


def _deleted(_: msg.DeleteGroupsRequest, answer: Message) -> msg.DeleteGroupsResponse:
    (result,) = answer.results
    return msg.DeleteGroupsResponse(ErrorCode(result.error_code))


_DECODERS: dict[type, Callable[[Any, Any], Response]] = {
    msg.JoinGroupRequest: _joined,
    msg.SyncGroupRequest: _synced,
    msg.HeartbeatRequest: _heartbeat_answered,
    msg.LeaveGroupRequest: _left,
    msg.OffsetCommitRequest: _committed,
    msg.OffsetFetchRequest: _fetched,
    msg.OffsetDeleteRequest: _offsets_deleted,
    msg.DescribeGroupsRequest: _described,
    msg.DeleteGroupsRequest: _deleted,
}
