"""The membership's network thread and its requests, over simulated connections.

`Network` has the methods of the consumer's own `Network`, which takes sockets and kafka-python. As there, the
coordinator has a connection of its own; a request that times out closes its connection, and with it all other
requests on it; a connection that was lost is opened again by the next request.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Mapping, MutableMapping
from typing import Any

from confluent_kafka import OFFSET_END

from groupwright.assignors import JoinedMember, Topic
from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._network.request_stats import RequestStats
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
    Partitions,
    SyncGroupResponse,
    TopicPartitionKey,
)
from groupwright.testing._simulation import broker_messages as bmsg
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import AnyRequest, Cluster, Connection
from groupwright.testing._simulation.scheduler import SECOND
from simulation import runtime
from simulation.runtime import MemberProcess, VirtualThread

_LEAVE_TIMEOUT = 5.0
"""Seconds; as in the consumer's own network."""


class _Future:
    """A result that a coroutine awaits, as kafka-python's."""

    __slots__ = ("_error", "_value", "_waiting", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiting: list[Callable[[], object]] = []

    def success(self, value: Any) -> None:
        if not self.is_done:
            self._value = value
            self._settle()

    def failure(self, error: BaseException) -> None:
        if not self.is_done:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        self.is_done = True
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    def __await__(self) -> Generator["_Future", None, Any]:
        if not self.is_done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, resume: Callable[[], object]) -> None:
        self._waiting.append(resume)


class _Timer:
    """A scheduled callback of the network thread."""

    __slots__ = ("_event", "_function", "_network")

    def __init__(self, network: "Network", seconds: float, function: Callable[[], object]) -> None:
        self._network = network
        self._function: Callable[[], object] | None = function
        delay = None if seconds == math.inf else max(0, math.ceil(seconds * SECOND))
        self._event = None if delay is None else network.process.call_in(delay, self._expire)

    def _expire(self) -> None:
        self._network.run(self._call)

    def _call(self) -> None:
        if self._function is not None:
            self._function()

    def cancel(self) -> None:
        self._function = None
        if self._event is not None:
            self._event.cancel()


class _Link:
    """A connection to one broker, as a client keeps it: with timeouts, and opened when it is needed."""

    def __init__(self, network: "Network", broker: int) -> None:
        self._network = network
        self._broker = broker
        self._connection: Connection | None = None
        self._under_way: dict[_Future, None] = {}
        self._connecting: _Future | None = None

    async def request(self, request: AnyRequest, timeout: float) -> Any:
        await self.open()
        connection = self._connection
        if connection is None or not connection.open:
            raise DisconnectedError("the broker closed the connection")
        future = _Future()
        self._under_way[future] = None
        connection.send(request, lambda response: self._network.run(lambda: future.success(response)))
        timer = self._network.call_in(timeout, lambda: self.close("the request timed out"))
        try:
            return await future
        finally:
            timer.cancel()
            self._under_way.pop(future, None)

    async def open(self) -> None:
        if self._connection is not None and self._connection.open:
            return
        if self._connecting is None:
            self._connecting = opened = _Future()
            self._network.cluster.connect(
                self._network.process,
                self._broker,
                lambda connection: self._network.run(lambda: self._opened(opened, connection)),
                lambda: self._network.run(lambda: self._not_opened(opened)),
                lambda: self._network.run(lambda: self.close("the broker closed the connection")),
            )
        await self._connecting

    def _opened(self, opened: _Future, connection: Connection) -> None:
        self._connection, self._connecting = connection, None
        if self._network.ended:
            connection.close()
        opened.success(None)

    def _not_opened(self, opened: _Future) -> None:
        self._connecting = None
        opened.failure(DisconnectedError(f"broker {self._broker} cannot be reached"))

    def close(self, reason: str) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        failed, self._under_way = self._under_way, {}
        for future in failed:
            future.failure(DisconnectedError(reason))


class Network:
    """The simulated network thread of one member, with the consumer's requests."""

    cluster: Cluster
    """The cluster of the simulation; set for each simulation."""
    lookup_failures = ""
    """Brokers that could not be reached, for the log."""

    def __init__(self, config: NetworkConfig) -> None:
        """Prepare in the present thread's process."""
        self.request_stats = RequestStats()
        self.ended = False
        self.process: MemberProcess = runtime.current().process
        self._pid = os.getpid()
        self._config = config
        self._random = runtime.present().random
        self._queue: deque[Callable[[], object]] = deque()
        self._unstarted: set[Coroutine[Any, Any, None]] = set()
        self._thread = VirtualThread(self.process, self._run)
        self._links: dict[int, _Link] = {}
        self._coordinator: tuple[int, _Link] | None = None

    # --- The thread

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _run(self) -> None:
        queue = self._queue
        try:
            while not self.ended:
                while queue:
                    queue.popleft()()
                if not self.ended:
                    self._thread.block(math.inf)
        finally:
            for coroutine in self._unstarted:
                coroutine.close()  # else Python warns that it was never awaited

    def run(self, function: Callable[[], object]) -> None:
        """Run a function on the network thread, now or once it is free."""
        if not self.ended and self.process.alive:
            self._queue.append(function)
            self._thread.wake_now()

    def end(self) -> None:
        """End the thread, and close all connections."""
        self.ended = True
        for link in [*self._links.values(), *([self._coordinator[1]] if self._coordinator else [])]:
            link.close("the consumer is closed")

    @property
    def started(self) -> bool:
        """True: a virtual thread is always started."""
        return True

    def join_thread(self, timeout: float) -> None:
        """Wait until the thread has ended; in a forked child it does not exist."""
        if self._thread is not runtime.current() and os.getpid() == self._pid:
            self._thread.join(timeout)

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        """Run `function` on the network thread."""
        if not self.ended and self.process.alive:
            self._queue.append(lambda: function(*args))
            self._thread.wake()

    def call_at(self, when: float, function: Callable[[], object]) -> _Timer:
        """Run `function` at a time of the clock."""
        return self.call_in(when - runtime.present().monotonic(), function)

    def call_in(self, seconds: float, function: Callable[[], object]) -> _Timer:
        """Run `function` after some time."""
        return _Timer(self, seconds, function)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine on the network thread."""
        self._unstarted.add(coroutine)
        self.call_soon(self._start_coroutine, coroutine)

    def _start_coroutine(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._unstarted.discard(coroutine)
        self._step(coroutine)

    def _step(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            awaited = coroutine.send(None)
        except StopIteration:
            return
        awaited.then(lambda: self._queue.append(lambda: self._step(coroutine)))

    async def sleep(self, seconds: float) -> None:
        """Wait on the network thread."""
        future = _Future()
        self.call_in(seconds, lambda: future.success(None))
        await future

    def future(self) -> _Future:
        """Return an awaitable."""
        return _Future()

    # --- Any broker

    @property
    def group_id(self) -> str:
        """``group.id``."""
        return self._config.group_id

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Accept credentials, which are not used."""

    async def find_coordinator(self) -> tuple[int, str]:
        """Send FindCoordinator, and connect to the coordinator."""
        return await self.process.requests.look_up(self._find_coordinator())

    async def _find_coordinator(self) -> tuple[int, str]:
        request = bmsg.FindCoordinatorRequest(self.group_id)
        answered = self.request_stats.sent(request)
        response = await self._anywhere(request)
        answered(response)
        if response.error:
            return int(response.error), "the coordinator could not be looked up"
        if self._coordinator is None or self._coordinator[0] != response.broker:
            if self._coordinator is not None:
                self._coordinator[1].close("the coordinator has moved")
            self._coordinator = (response.broker, _Link(self, response.broker))
        await self._coordinator[1].open()
        self.request_stats.found_coordinator(response.broker)
        return 0, ""

    async def fetch_topics(self, topics: Iterable[str] | None) -> MetadataResponse:
        """Send Metadata."""
        names = None if topics is None else frozenset(topics)
        response = await self._anywhere(bmsg.MetadataRequest(names))
        return MetadataResponse({name: Topic(count) for name, count in response.topics.items()})

    async def list_offsets(
        self,
        wanted: Collection[tuple[TopicPartitionKey, int]],
        found: MutableMapping[tuple[TopicPartitionKey, int], int | None],
        timeout: float,
        *,
        read_committed: bool,
    ) -> None:
        """Send ListOffsets to the leaders."""
        del read_committed  # there are no transactions
        metadata = await self._anywhere(bmsg.MetadataRequest(frozenset(topic for (topic, _), _ in wanted)))
        by_leader: dict[tuple[int, int], list[TopicPartitionKey]] = {}
        for key, timestamp in sorted(wanted):
            leader = metadata.leaders.get(key, -1)
            if leader >= 0:
                by_leader.setdefault((leader, timestamp), []).append(key)
        for (leader, timestamp), keys in by_leader.items():
            request = bmsg.ListOffsetsRequest(tuple(keys), end=timestamp == OFFSET_END)
            try:
                response = await self._link(leader).request(request, timeout)
            except DisconnectedError:
                continue
            found.update({(key, timestamp): offset for key, offset in response.offsets.items()})

    async def _anywhere(self, request: AnyRequest) -> Any:
        live = len(self.cluster.brokers)
        broker = self._random.randrange(live)
        timeout = min(self._config.request_timeout, self._config.session_timeout / 3)
        return await self._link(broker).request(request, timeout)

    def _link(self, broker: int) -> _Link:
        if broker not in self._links:
            self._links[broker] = _Link(self, broker)
        return self._links[broker]

    # --- The coordinator

    async def join(self, request: JoinGroupPayload) -> JoinGroupResponse:
        """Send JoinGroup."""
        self.process.reason = request.reason
        self.process.requests.joins()
        config = self._config
        response = await self._to_coordinator(
            msg.JoinGroupRequest(
                config.group_id,
                request.member_id,
                config.group_instance_id,
                round(config.session_timeout * 1000),
                round(config.rebalance_timeout * 1000),
                PROTOCOL_TYPE,
                tuple(msg.Protocol(name, data) for name, data in request.protocols),
                config.client_id,
            ),
            max(config.request_timeout, config.rebalance_timeout + 5.0),
        )
        return JoinGroupResponse(
            int(response.error),
            response.generation_id,
            response.protocol_type,
            response.protocol_name,
            response.leader,
            response.member_id,
            tuple(
                JoinedMember(each.member_id, each.group_instance_id, each.metadata)
                for each in response.members
            ),
            response.skip_assignment,
        )

    async def sync(self, identity: MemberIdentity, assignments: Mapping[str, bytes]) -> SyncGroupResponse:
        """Send SyncGroup."""
        config = self._config
        request = msg.SyncGroupRequest(
            config.group_id,
            identity.member_id,
            identity.generation,
            config.group_instance_id,
            PROTOCOL_TYPE,
            identity.protocol,
            tuple(assignments.items()),
        )
        timeout = max(config.request_timeout, config.session_timeout)
        response = await self._to_coordinator(request, timeout)
        return SyncGroupResponse(
            int(response.error), response.protocol_type, response.protocol_name, response.assignment
        )

    async def heartbeat(self, identity: MemberIdentity) -> int:
        """Send Heartbeat."""
        config = self._config
        request = msg.HeartbeatRequest(
            config.group_id, identity.member_id, identity.generation, config.group_instance_id
        )
        response = await self._to_coordinator(request, config.session_timeout)
        return int(response.error)

    async def leave(self, identity: MemberIdentity, reason: str) -> int:
        """Send LeaveGroup."""
        del reason
        config = self._config
        member = msg.LeavingMember(identity.member_id, config.group_instance_id)
        response = await self._to_coordinator(
            msg.LeaveGroupRequest(config.group_id, (member,)), min(config.request_timeout, _LEAVE_TIMEOUT)
        )
        return next((int(error) for _, error in response.members), int(response.error))

    async def fetch_offsets(self, partitions: Partitions) -> OffsetFetchResponse:
        """Send OffsetFetch."""
        keys = tuple((topic, int(number)) for topic, numbers in partitions.items() for number in numbers)
        response = await self._to_coordinator(msg.OffsetFetchRequest(self.group_id, keys))
        found = {key: Offset(each.offset, each.leader_epoch) for key, each in response.partitions}
        return OffsetFetchResponse(int(response.error), found, dict.fromkeys(found, 0))

    async def commit(self, identity: MemberIdentity, offsets: Offsets) -> OffsetCommitResponse:
        """Send OffsetCommit."""
        request = msg.OffsetCommitRequest(
            self.group_id,
            tuple(
                (key, msg.CommittedOffset(each.offset, "", each.leader_epoch))
                for key, each in offsets.items()
            ),
            identity.member_id,
            identity.generation,
            self._config.group_instance_id if identity.member_id else None,
        )
        response = await self._to_coordinator(request)
        return OffsetCommitResponse({key: int(error) for key, error in response.partitions})

    async def describe_group(self) -> GroupDescription:
        """Send DescribeGroups."""
        response = await self._to_coordinator(msg.DescribeGroupsRequest(self.group_id))
        clients = {each.member_id: each.client_id for each in response.members}
        return GroupDescription(response.state, response.protocol, clients, {})

    def drop_connection(self) -> None:
        """Close the connection to the coordinator."""
        if self._coordinator is not None:
            self._coordinator[1].close("closed by the membership")

    async def _to_coordinator(self, request: msg.Request, timeout: float | None = None) -> Any:
        if self._coordinator is None:
            raise DisconnectedError("the coordinator is not known")
        answer = None
        answered = self.request_stats.sent(request)
        try:
            answer = await self._coordinator[1].request(request, timeout or self._config.request_timeout)
        finally:
            answered(answer)
        self.process.requests.answered(request, answer)
        return answer
