"""Requests to brokers, their responses as the model's objects, and their errors in words."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError

from groupwright.cli._cluster import apis
from groupwright.cli._cluster.model import (
    CommittedOffset,
    GroupType,
    ListedGroup,
    OpenTransaction,
    TopicMetadata,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.core import TopicPartitionKey
from groupwright.core.kafka_apis import LIST_OFFSETS, OFFSET_COMMIT
from groupwright.core.wire_format import Request

FORBIDDEN = frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)


@dataclass(frozen=True, slots=True)
class WithGroup:
    """A response about one group, which does not name it."""

    group_id: str
    response: Any

    @property
    def error_code(self) -> int:
        """The error of the group, or the first of a partition."""
        errors = (row.error_code for topic in self.response.topics for row in topic.partitions)
        return getattr(self.response, "error_code", 0) or next(filter(None, errors), 0)


def listed_group(row: Any, broker: int) -> ListedGroup:
    """Return a group in a response to ListGroups."""
    kind = (row.group_type or "").lower()
    return ListedGroup(
        id=row.group_id,
        type=GroupType(kind) if kind in set(GroupType) else GroupType.CLASSIC,
        state=row.group_state or "",
        protocol_type=row.protocol_type,
        coordinator=broker,
    )


def topic_metadata(row: Any, racks: Mapping[int, str]) -> TopicMetadata:
    """Return a topic in a response to Metadata."""
    rows = sorted(row.partitions, key=lambda each: each.partition_index)
    return TopicMetadata(
        name=row.name,
        id=str(uuid.UUID(bytes=row.topic_id)) if any(row.topic_id) else "",
        leaders=tuple(each.leader_id for each in rows),
        racks=tuple(frozenset(racks[node] for node in each.replica_nodes if node in racks) for each in rows),
        is_internal=bool(row.is_internal),
    )


def open_transaction(row: Any) -> OpenTransaction:
    """Return a transaction in a response to DescribeTransactions."""
    return OpenTransaction(
        transactional_id=row.transactional_id,
        state=row.transaction_state,
        producer_id=row.producer_id,
        started=row.transaction_start_time_ms / 1000,
        partitions={topic.topic: tuple(sorted(topic.partitions)) for topic in row.topics},
    )


def offset_commit(
    group: str, offsets: Mapping[TopicPartitionKey, CommittedOffset], ids: Mapping[str, bytes]
) -> Request:
    """Return the request that commits offsets of a group without members.

    Args:
        group: The group.
        offsets: The offsets.
        ids: The topics' ids, by name. If one is missing, topics are named instead.
    """
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for (name, partition), offset in offsets.items():
        by_topic[name].append(
            {
                "partition_index": partition,
                "committed_offset": offset.offset,
                "committed_leader_epoch": -1 if offset.leader_epoch is None else offset.leader_epoch,
                "committed_metadata": offset.metadata,
            }
        )
    topics = [
        {"name": name, "topic_id": ids.get(name), "partitions": rows} for name, rows in by_topic.items()
    ]
    commit = apis.OFFSETS_COMMIT if by_topic.keys() <= ids.keys() else OFFSET_COMMIT
    return commit(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)


def offset_delete(group: str, partitions: Iterable[TopicPartitionKey]) -> Request:
    """Return the request that deletes committed offsets."""
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for name, partition in partitions:
        by_topic[name].append({"partition_index": partition})
    topics = [{"name": name, "partitions": rows} for name, rows in by_topic.items()]
    return apis.OFFSET_DELETE(group_id=group, topics=topics)


def describe_share_offsets(groups: Iterable[str]) -> Request:
    """Return the request for all start offsets of share groups."""
    return apis.DESCRIBE_SHARE_GROUP_OFFSETS(groups=[{"group_id": id_} for id_ in groups])


def list_offsets(partitions: Iterable[TopicPartitionKey], timestamp: int, *, read_committed: bool) -> Request:
    """Return the request for offsets of logs; see `Cluster.offsets`."""
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for name, partition in partitions:
        by_topic[name].append({"partition_index": partition, "timestamp": timestamp})
    topics = [{"name": name, "partitions": rows} for name, rows in by_topic.items()]
    return LIST_OFFSETS(isolation_level=int(read_committed), topics=topics)


def words(code: int) -> str:
    """Return an error in librdkafka's words, with the name of its code."""
    error = KafkaError(code)
    return f"{error.str()} ({error.name()})"


def forbidden(what: str, code: int, right: str) -> CommandError:
    """Return the error of a missing right, such as `READ on the group`."""
    return CommandError(
        f"these credentials may not access {what}: {words(code)}. They need {right}", ExitStatus.FORBIDDEN
    )
