"""Members driven request by request, to observe the coordinator's responses and their times."""

import select
import socket
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from confluent_kafka import KafkaError

from groupwright.assignors import Subscription, encode_subscription
from groupwright.consumer._network.pipeline import Pipeline
from groupwright.core.kafka_apis import (
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    METADATA,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from groupwright.core.wire_format import Message, Request
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

OK = "NO_ERROR"
_GROUP = 0


class Wire:
    """A connection to one broker; responses arrive in the order of the requests."""

    def __init__(self, address: str, client_id: str = "wire") -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._pipeline = Pipeline[None](client_id, 1 << 30)
        self._answers: deque[Message] = deque()

    def send(self, request: Request, version: int | None = None) -> None:
        """Send a request, in the newest version unless one is given, without waiting for its response."""
        version = request.api.versions[1] if version is None else version
        self._socket.sendall(self._pipeline.send(request, version, None))

    def answer(self) -> Message:
        """Wait for the response to the oldest request."""
        while not self._answers:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the broker has closed the connection")
            self._answers.extend(answer for _, answer in self._pipeline.receive(data))
        return self._answers.popleft()

    def ask(self, request: Request, version: int | None = None) -> Message:
        """Send a request, and wait for its response."""
        self.send(request, version)
        return self.answer()

    def answered(self) -> bool:
        """Return whether a response is ready to be read."""
        return bool(self._answers or select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        """Close the connection without LeaveGroup."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_coordinators(servers: str, groups: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the coordinator's node and address for each group, by FindCoordinator."""
    with Wire(servers.split(",", maxsplit=1)[0]) as wire:
        answer = wire.ask(FIND_COORDINATOR(key_type=_GROUP, coordinator_keys=list(groups)), 4)
    assert [row.error_code for row in answer.coordinators] == [0] * len(groups), answer
    return {row.key: (row.node_id, f"{row.host}:{row.port}") for row in answer.coordinators}


def wait_until_known(servers: str, topic: str, partitions: int) -> None:
    """Wait until each broker knows the topic, its partitions and their leaders.

    The controller creates a topic, and its metadata reaches the brokers one after the other. A group whose
    leader queries a broker without it is correctly assigned no partitions at first, which most tests do not
    expect.
    """
    request = METADATA(topics=[{"name": topic}])
    for address in servers.split(","):
        with Wire(address) as wire:

            def is_known(wire: Wire = wire) -> bool:
                (found,) = wire.ask(request, 9).topics
                led = [row for row in found.partitions if not row.error_code and row.leader_id >= 0]
                return not found.error_code and len(led) == partitions

            wait_until(is_known, f"{address} to know {topic}")


class WireMember:
    """A member without automatic behaviour: no heartbeats, no rejoin, no LeaveGroup at the end."""

    def __init__(
        self,
        servers: str,
        group: str,
        client_id: str = "wire",
        *,
        topics: Iterable[str] = ("any",),
        subscription: bytes | None = None,
        protocols: Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        instance_id: str | None = None,
        session_ms: int = 6_000,
        rebalance_ms: int = 30_000,
    ) -> None:
        """Connect to the group's coordinator.

        Protocols are in order of preference. A subscription in bytes replaces the one to the topics.
        """
        self.id = ""
        self.generation = -1
        self.leader = ""
        self.protocol: str | None = None
        self.members: list[str] = []
        """Of the leader: the ids of all members."""
        self.assignment = b""
        """The assignment in the last response to SyncGroup."""
        self._group = group
        self._instance_id = instance_id
        self._protocol_type = protocol_type
        self._timeouts = {"session_timeout_ms": session_ms, "rebalance_timeout_ms": rebalance_ms}
        if subscription is None:
            subscription = encode_subscription(Subscription(tuple(topics)))
        self._subscription = subscription
        self._protocols = tuple(protocols)
        self._wire = Wire(find_coordinators(servers, [group])[group][1], client_id)

    @property
    def leads(self) -> bool:
        """True if the member leads its generation."""
        return self.leader == self.id

    # --- Joining

    def send_join(self) -> None:
        """Send JoinGroup; its response arrives when all members have joined."""
        self._wire.send(
            JOIN_GROUP(
                group_id=self._group,
                member_id=self.id,
                group_instance_id=self._instance_id,
                protocol_type=self._protocol_type,
                protocols=[{"name": name, "metadata": self._subscription} for name in self._protocols],
                reason="",
                **self._timeouts,
            )
        )

    def joined(self) -> str:
        """Wait for JoinGroup's response; return its error."""
        answer = self._wire.answer()
        if answer.member_id:
            self.id = answer.member_id
        if not answer.error_code:
            self.generation, self.leader, self.protocol = (
                answer.generation_id,
                answer.leader,
                answer.protocol_name,
            )
            self.members = [member.member_id for member in answer.members]
        return _name(answer.error_code)

    def be_given_id(self) -> None:
        """Send the first JoinGroup, so that the coordinator assigns a member id (KIP-394)."""
        self.send_join()
        assert self.joined() == "MEMBER_ID_REQUIRED"

    def join(self) -> str:
        """Send JoinGroup and wait for its response; return its error."""
        if not self.id and self._instance_id is None:
            self.be_given_id()
        self.send_join()
        return self.joined()

    def join_refused(self) -> str:
        """Send the first JoinGroup, and again with the assigned id if required; return the last error."""
        self.send_join()
        error = self.joined()
        return self.join() if error == "MEMBER_ID_REQUIRED" else error

    def settle(self, *others: "WireMember") -> None:
        """Complete a rebalance with the others, members or not; all assignments are empty.

        A new group is first founded by this member alone: a member that joins meanwhile is part of the next
        rebalance.
        """
        if others and self.generation < 0:
            self.settle()
        everyone = (self, *others)
        for member in everyone:
            if not member.id and member._instance_id is None:
                member.be_given_id()
        self.send_join()
        if others:
            # A follower that joins a stable group with an unchanged subscription gets the current generation.
            wait_until(lambda: others[0].state() == "PreparingRebalance", "the rebalance to begin")
        for member in others:
            member.send_join()
        assert [member.joined() for member in everyone] == [OK] * len(everyone)
        for member in everyone:
            member.send_sync(dict.fromkeys(member.members, b""))
        assert [member.synced() for member in everyone] == [OK] * len(everyone)

    def send_sync(self, plan: Mapping[str, bytes] | None = None) -> None:
        """Send SyncGroup; its response arrives when the leader has sent the assignment."""
        self._wire.send(
            SYNC_GROUP(
                group_id=self._group,
                generation_id=self.generation,
                member_id=self.id,
                group_instance_id=self._instance_id,
                protocol_type=self._protocol_type,
                protocol_name=self.protocol,
                assignments=[
                    {"member_id": member, "assignment": data} for member, data in (plan or {}).items()
                ],
            )
        )

    def synced(self) -> str:
        """Wait for SyncGroup's response; return its error."""
        answer = self._wire.answer()
        self.assignment = answer.assignment
        return _name(answer.error_code)

    def waits(self) -> bool:
        """Return whether a request has no response yet."""
        return not self._wire.answered()

    # --- Being a member

    def heartbeat(self, generation: int | None = None) -> str:
        """Send a heartbeat, optionally of another generation; return its error."""
        answer = self._wire.ask(
            HEARTBEAT(
                group_id=self._group,
                generation_id=self.generation if generation is None else generation,
                member_id=self.id,
                group_instance_id=self._instance_id,
            )
        )
        return _name(answer.error_code)

    def commit(self, topic: str, offset: int, generation: int | None = None) -> str:
        """Commit an offset of partition 0, optionally as of another generation; return the error."""
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        answer = self._wire.ask(
            OFFSET_COMMIT(
                group_id=self._group,
                generation_id_or_member_epoch=self.generation if generation is None else generation,
                member_id=self.id,
                group_instance_id=self._instance_id,
                topics=[{"name": topic, "partitions": [row]}],
            )
        )
        return _name(answer.topics[0].partitions[0].error_code)

    def leave(self) -> str:
        """Leave the group; return the error."""
        identity = {"member_id": self.id, "group_instance_id": self._instance_id, "reason": ""}
        answer = self._wire.ask(LEAVE_GROUP(group_id=self._group, members=[identity]))
        return _name(answer.error_code or answer.members[0].error_code)

    # --- Beside it

    def state(self) -> str:
        """Return the group's state, as DescribeGroups names it."""
        return str(self._wire.ask(DESCRIBE_GROUPS(groups=[self._group]), 5).groups[0].group_state)

    def close(self) -> None:
        """Close the connection without LeaveGroup."""
        self._wire.close()


def commit_expiring(servers: str, group: str, topic: str, offset: int, retention_ms: int) -> str:
    """Commit an offset of partition 0, outside of the group, with a retention time; return the error.

    From version 5 on, requests have no retention time: it is a setting of the broker (KIP-211).
    """
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    request = OFFSET_COMMIT(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=retention_ms,
        topics=[{"name": topic, "partitions": [row]}],
    )
    with Wire(find_coordinators(servers, [group])[group][1]) as wire:
        answer = wire.ask(request, 4)
    return _name(answer.topics[0].partitions[0].error_code)


def _name(code: int) -> str:
    return KafkaError(code).name()
