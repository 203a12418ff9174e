"""Requests of the membership to brokers, over connections of its own.

`Network` has a coroutine for each request, which takes and returns the values of
`_protocol.model`. The coordinator has a connection of its own. It responds in order, so a parked JoinGroup
delays every request that follows it on the connection.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from typing import Any

from confluent_kafka import KafkaError

from groupwright.assignors import JoinedMember, Topic
from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._network.any_broker import NoBrokerError, record_failure
from groupwright.consumer._network.brokers import Brokers, Node, milliseconds
from groupwright.consumer._network.connection_errors import RequestRefusedError
from groupwright.consumer._network.event_loop import Timer
from groupwright.consumer._network.request_stats import RequestStats
from groupwright.consumer._protocol.known_brokers import Address
from groupwright.consumer._protocol.model import (
    PROTOCOL_TYPE,
    DisconnectedError,
    GroupDescription,
    JoinGroupPayload,
    JoinGroupResponse,
    MemberIdentity,
    MetadataResponse,
    Offset,
    OffsetCommitResponse,
    OffsetFetchResponse,
    Offsets,
    SyncGroupResponse,
)
from groupwright.core import ErrorCode, Partitions, TopicPartitionKey
from groupwright.core.kafka_apis import (
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from groupwright.core.wire_format import Message, Request

__all__ = ["Network", "NetworkConfig", "NoBrokerError", "RequestRefusedError", "Timer"]

_REASON_LIMIT = 255  # characters; the broker rejects more (KIP-800)
_RETRIABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""Retriable errors of ListOffsets, such as those of a new topic."""
_LEAVE_TIMEOUT = 5.0  # seconds


class Network(Brokers):
    """The network thread, and the requests that the membership sends on it.

    Each request raises `RequestRefusedError` if a retry will not help, and its base class `DisconnectedError`
    for any other failure. Error codes in responses are returned. Timeouts are in seconds.
    """

    def __init__(self, config: NetworkConfig) -> None:
        """Prepare; nothing is connected before the first request."""
        super().__init__(config)
        self.request_stats = RequestStats()
        self._coordinator: Node | None = None
        self._racks: dict[int, str | None] = {}
        """The racks of all brokers that were ever listed, by id; None for a broker without a rack."""

    @property
    def group_id(self) -> str:
        """``group.id``."""
        return self._config.group_id

    # --- Any broker ---------------------------------------------------------------------------------

    async def find_coordinator(self) -> tuple[int, str]:
        """Send FindCoordinator to any broker, and connect to the coordinator.

        Returns:
            The broker's error code (0: found and connected), and a message for the application.

        Raises:
            DisconnectedError: No broker responded in time.
            RequestRefusedError: The brokers refuse this client.
        """
        group = self._config.group_id
        request = FIND_COORDINATOR(key=group, key_type=0, coordinator_keys=[group])

        async def ask(address: Address) -> tuple[Address, Any]:
            answered = self.request_stats.sent(request.api.name)
            response = None
            try:
                response = await self._ask(address, request)
            finally:
                answered(response)
            return address, response

        asked, response = await self._first(ask)
        now = time.monotonic()
        result = response.coordinators[0] if response.coordinators else response
        if result.error_code:
            reason = f": {result.error_message}" if result.error_message else ""
            # Another broker is asked next, which may know better.
            self._known.failed(asked, f"FindCoordinator: {KafkaError(result.error_code).name()}", now)
            return (
                result.error_code,
                f"the coordinator of the group {self._config.group_id!r} could not be looked up{reason}",
            )
        address = Address(result.host, int(result.port))
        self._known.learn_one(int(result.node_id), address)
        self._coordinator = Node(address, "coordinator")
        self.spawn(self._refresh(asked))
        try:
            # For some seconds after a broker's death, others name it as the coordinator.
            timeout = self._known.timeout(
                address, self.any_broker_timeout, self._config.transport.setup_timeout
            )
            await self._await_connection(self._coordinator, timeout)
        except DisconnectedError as error:
            record_failure(self._known, address, error)
            self._known.failed(asked, f"it names {address} as the coordinator", now)
            if isinstance(error, RequestRefusedError):
                raise
            raise DisconnectedError(self._known.describe_failures()) from error
        self._known.answered(address)
        self._known.found()
        self.request_stats.found_coordinator(result.node_id)
        return 0, ""

    async def _refresh(self, address: Address) -> None:
        """Fetch the brokers' addresses: the coordinator changes where brokers come, go and move."""
        request = METADATA(topics=[])
        with contextlib.suppress(DisconnectedError):
            await self._ask(address, request)

    @property
    def lookup_failures(self) -> str:
        """The brokers that were asked in vain since the coordinator was last found, each with the reason."""
        return self._known.describe_failures()

    async def fetch_topics(self, topics: Iterable[str] | None) -> MetadataResponse:
        """Send Metadata for these topics; None for all.

        If brokers have racks, each topic has the racks of its replicas, offline ones too (KIP-881). Racks are
        kept by broker id, because Metadata does not list a broker that is down.

        Raises:
            DisconnectedError: No broker responded in time.
            RequestRefusedError: The brokers refuse this client.
        """
        request = METADATA(
            topics=None if topics is None else [{"name": name} for name in sorted(topics)],
            allow_auto_topic_creation=self._config.allow_auto_create_topics and topics is not None,
        )
        response = await self.ask_anywhere(request)
        if not response.brokers:  # of a broker that has just started, and knows no topic either
            raise DisconnectedError("the broker names no brokers yet")
        self._racks |= {broker.node_id: broker.rack or None for broker in response.brokers}
        racks = {node: rack for node, rack in self._racks.items() if rack is not None}
        found = [topic for topic in response.topics if not topic.error_code]
        unauthorized = KafkaError.TOPIC_AUTHORIZATION_FAILED
        return MetadataResponse(
            {topic.name: _topic(topic, racks) for topic in found},
            frozenset(topic.name for topic in found if topic.is_internal),
            frozenset(topic.name for topic in response.topics if topic.error_code == unauthorized),
            {topic.name: _replicas(topic) for topic in found},
            dict(self._racks),
        )

    async def list_offsets(
        self,
        wanted: Collection[tuple[TopicPartitionKey, int]],
        found: MutableMapping[tuple[TopicPartitionKey, int], int | None],
        timeout: float,
        *,
        read_committed: bool,
    ) -> None:
        """Send ListOffsets to the leaders of partitions.

        Args:
            wanted: Partitions, each with ``OFFSET_BEGINNING`` or ``OFFSET_END`` (the timestamps of
                ListOffsets).
            found: Receives each offset as soon as it is known, and None for a partition with an error that is
                not retriable. Partitions with a retriable error are left out.
            timeout: Seconds for each request.
            read_committed: Whether the end is the last stable offset.

        Raises:
            DisconnectedError: No broker has returned the leaders in time.
        """
        by_leader = await self._leaders({topic for (topic, _), _ in wanted}, timeout)
        requests: dict[tuple[int, int], list[TopicPartitionKey]] = {}  # a request has each partition once
        for key, timestamp in wanted:
            if key in by_leader:
                requests.setdefault((by_leader[key], timestamp), []).append(key)
        done, under_way = self.future(), len(requests)

        async def ask(leader: int, timestamp: int, partitions: list[TopicPartitionKey]) -> None:
            nonlocal under_way
            request = _offsets_request(partitions, timestamp, read_committed=read_committed)
            try:
                response = await self.send_to_broker(request, leader, timeout)
                found.update(_offsets(response, timestamp))
            except DisconnectedError:
                pass  # the caller retries what was not found
            finally:
                under_way -= 1
                if not under_way:
                    done.success(None)

        for (leader, timestamp), partitions in requests.items():
            self.spawn(ask(leader, timestamp, partitions))
        if requests:
            await done

    async def _leaders(self, topics: Iterable[str], timeout: float) -> dict[TopicPartitionKey, int]:
        """Return the node ids of partition leaders; partitions without a leader are left out."""
        request = METADATA(topics=[{"name": name} for name in sorted(topics)])
        response = await self.ask_anywhere(request, min(timeout, self.any_broker_timeout))
        return {
            (topic.name, row.partition_index): int(row.leader_id)
            for topic in response.topics
            for row in topic.partitions
            if row.leader_id >= 0
        }

    # --- The coordinator ----------------------------------------------------------------------------

    async def join(self, request: JoinGroupPayload) -> JoinGroupResponse:
        """Send JoinGroup; the coordinator responds when all members have joined."""
        config = self._config
        response = await self._send(
            JOIN_GROUP(
                group_id=config.group_id,
                session_timeout_ms=milliseconds(config.session_timeout),
                rebalance_timeout_ms=milliseconds(config.rebalance_timeout),
                member_id=request.member_id,
                group_instance_id=config.group_instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[{"name": name, "metadata": data} for name, data in request.protocols],
                reason=request.reason[:_REASON_LIMIT],
            ),
            timeout=max(config.request_timeout, config.rebalance_timeout + 5.0),
        )
        return JoinGroupResponse(
            error=response.error_code,
            generation=response.generation_id,
            protocol_type=response.protocol_type,
            protocol=response.protocol_name,
            leader=response.leader,
            member_id=response.member_id,
            members=tuple(
                JoinedMember(member.member_id, member.group_instance_id, member.metadata)
                for member in response.members
            ),
            skip_assignment=bool(response.skip_assignment),
        )

    async def sync(self, identity: MemberIdentity, assignments: Mapping[str, bytes]) -> SyncGroupResponse:
        """Send SyncGroup; the coordinator responds when the leader has sent its assignment."""
        config = self._config
        response = await self._send(
            SYNC_GROUP(
                group_id=config.group_id,
                generation_id=identity.generation,
                member_id=identity.member_id,
                group_instance_id=config.group_instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=identity.protocol,
                assignments=[
                    {"member_id": member_id, "assignment": data} for member_id, data in assignments.items()
                ],
            ),
            timeout=max(config.request_timeout, config.session_timeout),
        )
        return SyncGroupResponse(
            response.error_code, response.protocol_type, response.protocol_name, response.assignment
        )

    async def heartbeat(self, identity: MemberIdentity) -> int:
        """Send Heartbeat; return its error code."""
        request = HEARTBEAT(
            group_id=self._config.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=self._config.group_instance_id,
        )
        response = await self._send(request, timeout=self._config.session_timeout)
        return int(response.error_code)

    async def leave(self, identity: MemberIdentity, reason: str) -> int:
        """Send LeaveGroup; return its error code."""
        member = {
            "member_id": identity.member_id,
            "group_instance_id": self._config.group_instance_id,
            "reason": reason[:_REASON_LIMIT],
        }
        request = LEAVE_GROUP(group_id=self._config.group_id, member_id=identity.member_id, members=[member])
        # The response changes nothing, so close() does not wait longer for it than librdkafka's does.
        response = await self._send(request, min(self._config.request_timeout, _LEAVE_TIMEOUT))
        return next((int(m.error_code) for m in response.members or ()), int(response.error_code))

    async def fetch_offsets(self, partitions: Partitions) -> OffsetFetchResponse:
        """Send OffsetFetch. An offset that an open transaction may still change is an error (KIP-447)."""
        topics = [
            {"name": name, "partition_indexes": list(map(int, numbers))}
            for name, numbers in partitions.items()
        ]
        group_id = self._config.group_id
        response = await self._send(
            OFFSET_FETCH(
                group_id=group_id,
                topics=topics,
                groups=[{"group_id": group_id, "topics": topics}],
                require_stable=True,
            )
        )
        answer = response.groups[0] if response.groups else response
        offsets: dict[TopicPartitionKey, Offset] = {}
        errors: dict[TopicPartitionKey, int] = {}
        for topic in answer.topics or ():
            for row in topic.partitions:
                key = (topic.name, row.partition_index)
                errors[key] = row.error_code
                text = None if row.metadata is None else row.metadata.removesuffix("\0")  # see `commit`
                offsets[key] = Offset(row.committed_offset, row.committed_leader_epoch, text)
        return OffsetFetchResponse(answer.error_code, offsets, errors)

    async def commit(self, identity: MemberIdentity, offsets: Offsets) -> OffsetCommitResponse:
        """Send OffsetCommit as this member of this generation."""
        by_topic: dict[str, list[Any]] = {}
        for (name, number), offset in offsets.items():
            by_topic.setdefault(name, []).append(
                {
                    "partition_index": number,
                    "committed_offset": offset.offset,
                    "committed_leader_epoch": offset.leader_epoch,
                    # As in confluent-kafka, which reads metadata up to a NUL byte.
                    "committed_metadata": None if offset.metadata is None else f"{offset.metadata}\0",
                }
            )
        response = await self._send(
            OFFSET_COMMIT(
                group_id=self._config.group_id,
                generation_id_or_member_epoch=identity.generation,
                member_id=identity.member_id,
                # With an instance id, the coordinator requires a member id (KAFKA-14201).
                group_instance_id=self._config.group_instance_id if identity.member_id else None,
                topics=[{"name": name, "partitions": rows} for name, rows in by_topic.items()],
            )
        )
        return OffsetCommitResponse(
            {
                (topic.name, row.partition_index): row.error_code
                for topic in response.topics
                for row in topic.partitions
            }
        )

    async def describe_group(self) -> GroupDescription:
        """Send DescribeGroups for this group."""
        response = await self._send(DESCRIBE_GROUPS(groups=[self._config.group_id]))
        group = response.groups[0]
        return GroupDescription(
            group.group_state,
            group.protocol_data,
            {member.member_id: member.client_id for member in group.members},
            {member.member_id: member.client_host.removeprefix("/") for member in group.members},
        )

    def drop_connection(self) -> None:
        """Close the connection to the coordinator; its requests in flight fail at once."""
        connection = None if self._coordinator is None else self._connections.get(self._coordinator)
        if connection is not None:
            connection.close(DisconnectedError("closed by the membership"))

    # --- Sending ------------------------------------------------------------------------------------

    async def _send(self, request: Request, timeout: float | None = None) -> Message:
        if self._coordinator is None:
            raise DisconnectedError("the coordinator is not known")
        return await self._send_counted(request, self._coordinator, timeout)

    async def _send_counted(self, request: Request, node: Node, timeout: float | None) -> Message:
        response = None
        answered = self.request_stats.sent(request.api.name)
        try:
            response = await self.send_to(request, node, timeout)
        finally:
            answered(response)
        return response


def _offsets_request(
    partitions: Iterable[TopicPartitionKey], timestamp: int, *, read_committed: bool
) -> Request:
    rows: dict[str, list[Any]] = {}
    for name, number in partitions:
        rows.setdefault(name, []).append({"partition_index": number, "timestamp": timestamp})
    return LIST_OFFSETS(
        isolation_level=int(read_committed),
        topics=[{"name": name, "partitions": numbers} for name, numbers in rows.items()],
    )


def _offsets(response: Any, timestamp: int) -> dict[tuple[TopicPartitionKey, int], int | None]:
    """Return the offsets of a ListOffsets response; None for an error that is not retriable."""
    return {
        ((topic.name, row.partition_index), timestamp): None
        if row.error_code or row.offset < 0
        else row.offset
        for topic in response.topics
        for row in topic.partitions
        if row.error_code not in _RETRIABLE
    }


def _replicas(topic: Any) -> tuple[tuple[int, ...], ...]:
    rows = sorted(topic.partitions, key=lambda row: row.partition_index)
    distinct: dict[tuple[int, ...], tuple[int, ...]] = {}
    return tuple(distinct.setdefault(nodes, nodes) for nodes in (tuple(row.replica_nodes) for row in rows))


def _topic(topic: Any, racks: Mapping[int, str]) -> Topic:
    if not racks:
        return Topic(len(topic.partitions))
    rows = sorted(topic.partitions, key=lambda row: row.partition_index)
    return Topic(len(rows), [{racks[node] for node in row.replica_nodes if node in racks} for row in rows])
