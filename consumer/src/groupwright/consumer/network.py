"""The membership's connections: the only module that touches kafka-python.

kafka-python's inner layers (`kafka.net`, `kafka.protocol`) bring version negotiation, TLS, SASL, reconnects and
backoff. Here they become coroutines that take and return the plain values of `protocol`, on one event loop
in one daemon thread. The coordinator has a connection of its own: it answers in order, so a parked JoinGroup
holds back whatever is sent behind it.
"""

import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from groupwright.assignors import JoinedMember
from groupwright.consumer.protocol import (
    PROTOCOL_TYPE,
    CommitAnswer,
    DisconnectedError,
    GroupDescription,
    Identity,
    JoinAnswer,
    JoinRequest,
    Offset,
    Offsets,
    OffsetsAnswer,
    Partitions,
    SyncAnswer,
    TopicPartitionKey,
)

_REASON_LIMIT = 255  # characters; the broker refuses more (KIP-800)
_REFUSALS = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
)


class AccessError(DisconnectedError):
    """The broker will not talk to this client: wrong credentials, or a version too old."""

    def __init__(self, code: int, message: str) -> None:
        """Keep the broker's error `code`, or librdkafka's for the like."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """Where and how to connect; times in seconds."""

    bootstrap_servers: str
    client_id: str
    group_id: str
    group_instance_id: str | None = None
    session_timeout: float = 45.0
    rebalance_timeout: float = 300.0
    request_timeout: float = 60.0
    allow_auto_create_topics: bool = False
    transport: Mapping[str, object] = field(default_factory=dict, repr=False)  # may hold a password
    """Settings passed on by kafka-python's names: security, backoff, sizes."""


class Timer:
    """A callback that the loop will run once, unless cancelled."""

    def __init__(self, net: Any, task: Any) -> None:
        """Wrap the loop's own task."""
        self._net = net
        self._task = task

    def cancel(self) -> None:
        """Forget the callback; nothing if it has run."""
        self._net.cancel(self._task)


class Network:
    """An event loop in its own thread, and the requests that membership sends on it."""

    def __init__(self, config: NetworkConfig) -> None:
        """Prepare; nothing is connected before the first request."""
        self._config = config
        self._pid = os.getpid()
        self._net = NetworkSelector(client_id=config.client_id)
        self._manager = KafkaConnectionManager(
            self._net,
            bootstrap_servers=config.bootstrap_servers,
            client_id=config.client_id,
            client_software_name="groupwright",
            client_software_version=metadata.version("groupwright"),
            request_timeout_ms=_ms(config.request_timeout),
            **config.transport,
        )
        self._bootstrapped = False
        self._coordinator: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"groupwright-{config.client_id}", daemon=True)

    # --- The loop -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _run(self) -> None:
        try:
            self._net.run_forever()
        finally:
            self._net.close()

    def end(self) -> None:
        """Close all connections and end the thread; only from the loop's own thread."""
        self._manager.close()
        self._net._stop = True  # noqa: SLF001 - its `stop` also waits for the thread, which here would be for itself

    def join_thread(self, timeout: float) -> None:
        """Wait until the thread has ended, at most `timeout` seconds; not at all on that thread itself."""
        # The collector may run a finalizer on any thread, this one too; after a fork the thread is the parent's.
        if threading.current_thread() is not self._thread and os.getpid() == self._pid:
            self._thread.join(timeout)

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        """Run `function` on the loop; callable from any thread. Nothing happens once it is stopped."""
        if os.getpid() != self._pid:
            return  # after a fork the thread is the parent's
        try:
            self._net.call_soon_threadsafe(lambda: function(*args) and None)
        except RuntimeError:
            if not self._net._closed:  # noqa: SLF001 - the loop has no public word for it
                raise

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Run `function` on the loop at a monotonic time; only from the loop's own thread."""
        return Timer(self._net, self._net.call_at(when, lambda: function() and None))

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run on the loop; only from the loop's own thread."""
        self._net.call_soon(coroutine)

    async def sleep(self, seconds: float) -> None:
        """Wait on the loop."""
        await self._net.sleep(seconds)

    def future(self) -> Any:
        """Return something to await that is settled by ``success(value)``."""
        return Future()

    # --- Any broker ---------------------------------------------------------------------------------

    async def find_coordinator(self) -> tuple[int, str]:
        """Look the group's coordinator up and connect to it.

        Returns:
            The broker's error code (0: found and connected) and its message.

        Raises:
            DisconnectedError: no broker answered in time.
            AccessError: the brokers refuse this client.
        """
        if not self._bootstrapped:
            server = await self._knock()
            timeout = min(self._config.request_timeout, 10.0)
            await self._await(self._manager.bootstrap_async(timeout_ms=_ms(timeout)))
            self._manager.close(server)
            self._bootstrapped = True
        request = FindCoordinatorRequest(
            key=self._config.group_id, key_type=0, coordinator_keys=[self._config.group_id]
        )
        try:
            response = await self._send_anywhere(request)
            result = response.coordinators[0] if response.coordinators else response
            if result.error_code:
                return result.error_code, result.error_message or ""
            self._coordinator = self._manager.cluster.add_coordinator(result, 0, self._config.group_id)
            await self._await_connection(self._coordinator)
        except DisconnectedError:
            self._bootstrapped = False  # the cluster may have moved: start from the configured servers
            raise
        return 0, ""

    async def _knock(self) -> str:
        """Connect to one of the configured servers: bootstrapping says only that it failed, and this says why."""
        failures: list[DisconnectedError] = []
        servers: list[str] = [server.node_id for server in self._manager.cluster.bootstrap_brokers()]
        for server in sorted(servers, key=self._manager.connection_delay):
            try:
                await self._await_connection(server)
            except DisconnectedError as error:
                failures.append(error)
            else:
                return server
        raise next((error for error in failures if isinstance(error, AccessError)), failures[-1])

    async def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the partition count of each topic that exists.

        Raises:
            DisconnectedError: no broker answered in time.
            AccessError: the brokers refuse this client.
        """
        wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(topics)]
        request = MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=self._config.allow_auto_create_topics,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            max_version=12,
        )
        response = await self._send_anywhere(request)
        return {topic.name: len(topic.partitions) for topic in response.topics if not topic.error_code}

    # --- The coordinator ----------------------------------------------------------------------------

    async def join(self, request: JoinRequest) -> JoinAnswer:
        """Send JoinGroup, which the coordinator answers when all members have joined."""
        config = self._config
        protocol = JoinGroupRequest.JoinGroupRequestProtocol
        response = await self._send(
            JoinGroupRequest(
                group_id=config.group_id,
                session_timeout_ms=_ms(config.session_timeout),
                rebalance_timeout_ms=_ms(config.rebalance_timeout),
                member_id=request.member_id,
                group_instance_id=config.group_instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[protocol(name=name, metadata=data) for name, data in request.protocols],
                reason=request.reason[:_REASON_LIMIT],
                max_version=9,
            ),
            timeout=max(config.request_timeout, config.rebalance_timeout + 5.0),
        )
        return JoinAnswer(
            error=response.error_code,
            generation=response.generation_id,
            protocol_type=response.protocol_type,
            protocol=response.protocol_name,
            leader=response.leader,
            member_id=response.member_id,
            members=tuple(
                JoinedMember(member.member_id, member.group_instance_id, bytes(member.metadata))
                for member in response.members
            ),
            skip_assignment=bool(response.skip_assignment),
        )

    async def sync(self, identity: Identity, assignments: Mapping[str, bytes]) -> SyncAnswer:
        """Send SyncGroup, which the coordinator answers when the leader has sent its plan."""
        config = self._config
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        response = await self._send(
            SyncGroupRequest(
                group_id=config.group_id,
                generation_id=identity.generation,
                member_id=identity.member_id,
                group_instance_id=config.group_instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=identity.protocol,
                assignments=[assignment(member_id=id_, assignment=data) for id_, data in assignments.items()],
                max_version=5,
            ),
            timeout=max(config.request_timeout, config.session_timeout),
        )
        return SyncAnswer(
            response.error_code, response.protocol_type, response.protocol_name, bytes(response.assignment)
        )

    async def heartbeat(self, identity: Identity) -> int:
        """Send Heartbeat; return its error code."""
        request = HeartbeatRequest(
            group_id=self._config.group_id,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=self._config.group_instance_id,
            max_version=4,
        )
        response = await self._send(request, timeout=self._config.session_timeout)
        return int(response.error_code)

    async def leave(self, identity: Identity, reason: str) -> int:
        """Send LeaveGroup; return its error code."""
        member = LeaveGroupRequest.MemberIdentity(
            member_id=identity.member_id,
            group_instance_id=self._config.group_instance_id,
            reason=reason[:_REASON_LIMIT],
        )
        request = LeaveGroupRequest(
            group_id=self._config.group_id, member_id=identity.member_id, members=[member], max_version=5
        )
        response = await self._send(request)
        return next((int(m.error_code) for m in response.members or ()), int(response.error_code))

    async def fetch_offsets(self, partitions: Partitions) -> OffsetsAnswer:
        """Send OffsetFetch; an offset that an open transaction may still change is an error (KIP-447)."""
        group = OffsetFetchRequest.OffsetFetchRequestGroup
        topics = [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=list(map(int, numbers)))
            for name, numbers in partitions.items()
        ]
        group_topics = [
            group.OffsetFetchRequestTopics(name=name, partition_indexes=list(map(int, numbers)))
            for name, numbers in partitions.items()
        ]
        response = await self._send(
            OffsetFetchRequest(
                group_id=self._config.group_id,
                topics=topics,
                groups=[group(group_id=self._config.group_id, topics=group_topics)],
                require_stable=True,
                max_version=8,
            )
        )
        answer = response.groups[0] if response.groups else response
        offsets: dict[TopicPartitionKey, Offset] = {}
        errors: dict[TopicPartitionKey, int] = {}
        for topic in answer.topics or ():
            for row in topic.partitions:
                key = (topic.name, row.partition_index)
                errors[key] = row.error_code
                offsets[key] = Offset(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
        return OffsetsAnswer(answer.error_code, offsets, errors)

    async def commit(self, identity: Identity, offsets: Offsets) -> CommitAnswer:
        """Send OffsetCommit as this member of this generation."""
        by_topic: dict[str, list[Any]] = {}
        topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
        for (name, number), offset in offsets.items():
            by_topic.setdefault(name, []).append(
                topic_type.OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        response = await self._send(
            OffsetCommitRequest(
                group_id=self._config.group_id,
                generation_id_or_member_epoch=identity.generation,
                member_id=identity.member_id,
                # With an instance id the coordinator insists on a member id (KAFKA-14201).
                group_instance_id=self._config.group_instance_id if identity.member_id else None,
                topics=[topic_type(name=name, partitions=rows) for name, rows in by_topic.items()],
                max_version=9,  # 10 names topics by id
            )
        )
        return CommitAnswer(
            {
                (topic.name, row.partition_index): row.error_code
                for topic in response.topics
                for row in topic.partitions
            }
        )

    async def describe_group(self) -> GroupDescription:
        """Send DescribeGroups for this group."""
        request = DescribeGroupsRequest(
            groups=[self._config.group_id], include_authorized_operations=False, max_version=5
        )
        response = await self._send(request)
        group = response.groups[0]
        client_ids = tuple(sorted({member.client_id for member in group.members}))
        return GroupDescription(group.group_state, group.protocol_data, client_ids)

    def drop_connection(self) -> None:
        """Close the connection to the coordinator; what is under way on it fails at once."""
        if self._coordinator is not None:
            connection = self._manager._conns.get(self._coordinator)  # noqa: SLF001 - no public way to abort one
            if connection is not None:
                connection.close(kafka_errors.KafkaConnectionError("given up by the membership"))

    # --- Sending ------------------------------------------------------------------------------------

    async def _send(self, request: Any, timeout: float | None = None) -> Any:
        if self._coordinator is None:
            raise DisconnectedError("the coordinator is not known")
        return await self._await(lambda: self._request(request, self._coordinator, timeout))

    async def _send_anywhere(self, request: Any) -> Any:
        node = self._manager.least_loaded_node()
        if node is None:
            self._bootstrapped = False
            raise DisconnectedError("no broker can be reached")
        return await self._await(lambda: self._request(request, node, None))

    def _request(self, request: Any, node: Any, timeout: float | None) -> Any:
        timeout_ms = None if timeout is None else _ms(timeout)
        return self._manager.send(request, node_id=node, request_timeout_ms=timeout_ms)

    async def _await_connection(self, node: str) -> None:
        await self.sleep(self._manager.connection_delay(node))
        await self._await(lambda: self._manager.get_connection(node))

    async def _await(self, awaitable: Any) -> Any:
        """Await, and tell the failures apart: those worth another try from those that are not."""
        try:
            return await (awaitable() if callable(awaitable) else awaitable)
        except _REFUSALS as error:
            raise AccessError(error.errno, f"the broker refused the connection: {error}") from error
        except kafka_errors.UnsupportedVersionError as error:
            raise AccessError(error.errno, f"the broker is too old for this consumer: {error}") from error
        except Exception as error:  # inner layers promise nothing; the caller logs it, and tries again
            raise DisconnectedError(str(error) or type(error).__name__) from error


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
