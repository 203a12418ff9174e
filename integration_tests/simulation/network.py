"""The membership's network thread and its requests, over simulated connections.

`Network` has the methods of the consumer's own `Network`, which takes sockets. As there, the
coordinator has a connection of its own; a request that times out closes its connection, and with it all other
requests on it; a connection that was lost is opened again by the next request.
"""

import contextlib
import math
import os
import random
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    MutableMapping,
)
from typing import Any

from confluent_kafka import OFFSET_END

from groupwright.assignors import JoinedMember, Topic
from groupwright.consumer._config.network_config import NetworkConfig
from groupwright.consumer._network.any_broker import AnyBroker, record_failure
from groupwright.consumer._network.connection_errors import RequestTimedOutError
from groupwright.consumer._network.request_stats import RequestStats
from groupwright.consumer._protocol.known_brokers import Address, KnownBrokers, parse_addresses
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
from groupwright.core import Partitions, TopicPartitionKey
from groupwright.testing._simulation import broker_messages as bmsg
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import AnyRequest, Cluster, Connection
from groupwright.testing._simulation.scheduler import SECOND
from integration_tests.simulation import runtime
from integration_tests.simulation.runtime import MemberProcess, VirtualThread

BOOTSTRAP = "boot-"
"""Begins the names of brokers in `bootstrap.servers`; the broker's number follows."""
_NODE = "node"
"""Host of all addresses that the cluster names; the port tells them apart."""
_CLOSED = DisconnectedError("the broker closed the connection")
_AGREEMENT = SECOND
"""Time after a change in which all brokers learn of it."""
_LEAVE_TIMEOUT = 5.0
"""Seconds; as in the consumer's own network."""


def _address(number: int) -> Address:
    return Address(_NODE, number)


class _Future:
    """A result that a coroutine awaits, as `Future`."""

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
    """A connection to one address, as a client keeps it: with timeouts, and opened when it is needed."""

    def __init__(self, network: "Network", address: Address) -> None:
        self._network = network
        self._address = address
        self.has_answered = False
        """True if the present connection has answered a request."""
        self._connection: Connection | None = None
        self._under_way: dict[_Future, None] = {}
        self._connecting: _Future | None = None

    async def request(self, request: AnyRequest, timeout: float) -> Any:
        await self.open()
        connection = self._connection
        if connection is None or not connection.open:
            raise _CLOSED
        future = _Future()
        self._under_way[future] = None
        connection.send(request, lambda response: self._network.run(lambda: future.success(response)))
        late = RequestTimedOutError("the request timed out")
        timer = self._network.call_in(timeout, lambda: self.close(late))
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
            self.has_answered = False
            self._network.cluster.connect_to(
                self._network.process,
                self._network.resolve(self._address),
                lambda connection: self._network.run(lambda: self._opened(opened, connection)),
                lambda: self._network.run(lambda: self._not_opened(opened)),
                lambda: self._network.run(lambda: self.close(_CLOSED)),
            )
        await self._connecting

    def _opened(self, opened: _Future, connection: Connection) -> None:
        self._connection, self._connecting = connection, None
        self._network.known.connected(self._address)
        if self._network.ended:
            connection.close()
        opened.success(None)

    def _not_opened(self, opened: _Future) -> None:
        self._connecting = None
        self._network.known.not_connected(self._address, runtime.present().monotonic())
        opened.failure(DisconnectedError(f"{self._address} cannot be reached"))

    @property
    def is_open(self) -> bool:
        """True if a request is sent at once."""
        return self._connection is not None and self._connection.open

    def close_if_idle(self) -> None:
        """Close the connection, unless a request waits for its response."""
        if not self._under_way:
            self.close(_CLOSED)

    def close(self, error: DisconnectedError) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        failed, self._under_way = self._under_way, {}
        for future in failed:
            future.failure(error)


class Network:
    """The simulated network thread of one member, with the consumer's requests."""

    cluster: Cluster
    """The cluster of the simulation; set for each simulation."""

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
        chance = random.Random(self._random.random())  # noqa: S311 - no secret
        self.known = KnownBrokers(parse_addresses(config.bootstrap_servers), chance=chance)
        self._links: dict[Address, _Link] = {}
        self._coordinator: tuple[Address, _Link] | None = None
        self._seen: set[Address] = set(self.known.bootstrap)
        """Every address that a response has named, for the checks."""

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
            link.close(DisconnectedError("the consumer is closed"))

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
        return await self.process.requests.look_up(self._find_coordinator(), self._is_to_be_found)

    async def _find_coordinator(self) -> tuple[int, str]:
        request = bmsg.FindCoordinatorRequest(self.group_id)

        async def ask(address: Address) -> tuple[Address, bmsg.FindCoordinatorResponse]:
            answered = self.request_stats.sent(type(request).__name__.removesuffix("Request"))
            response = await self._ask(address, request)
            answered(response)
            return address, response

        asked, response = await self._first(ask)
        now = runtime.present().monotonic()
        if response.error:
            self.known.failed(asked, "FindCoordinator", now)
            return int(response.error), "the coordinator could not be looked up"
        address = _address(response.address)
        self._seen.add(address)
        self.known.learn_one(response.broker, address)
        if self._coordinator is None or self._coordinator[0] != address:
            if self._coordinator is not None:
                self._coordinator[1].close(DisconnectedError("the coordinator has moved"))
            self._coordinator = (address, _Link(self, address))
        self.spawn(self._refresh(asked))
        try:
            await self._coordinator[1].open()
        except DisconnectedError as error:
            record_failure(self.known, address, error)
            self.known.failed(asked, f"it names {address} as the coordinator", now)
            raise
        self.known.answered(address)
        self.known.found()
        self.request_stats.found_coordinator(response.broker)
        return 0, ""

    async def _refresh(self, address: Address) -> None:
        with contextlib.suppress(DisconnectedError):
            await self._ask(address, bmsg.MetadataRequest(frozenset()))

    @property
    def lookup_failures(self) -> str:
        """How the brokers have failed."""
        return self.known.describe_failures()

    def _is_to_be_found(self) -> bool:
        """Return whether the brokers agree on the coordinator, and one that this member has seen answers."""
        cluster = self.cluster
        live = {broker.address: broker.number for broker in cluster.brokers if broker.up}
        found = (live.get(self.resolve(address)) for address in self._seen)
        is_settled = cluster.scheduler.now - cluster.changed_at > _AGREEMENT
        coordinator = -1 if cluster.coordinator_broker is None else cluster.coordinator_broker
        return (
            is_settled
            and cluster.reaches(self.process, coordinator)
            and any(each is not None and cluster.reaches(self.process, each) for each in found)
        )

    def resolve(self, address: Address) -> int:
        """Return the number of an address; a bootstrap server's name follows its broker to new addresses."""
        if address.host == _NODE:
            return address.port
        return self.cluster.brokers[
            int(address.host.removeprefix(BOOTSTRAP)) % len(self.cluster.brokers)
        ].address

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
                address = self.known.address_of(leader)
                if address is None:
                    continue
                response = await self._link(address).request(request, timeout)
            except DisconnectedError:
                continue
            found.update({(key, timestamp): offset for key, offset in response.offsets.items()})

    async def _anywhere(self, request: AnyRequest) -> Any:
        return await self._first(lambda address: self._ask(address, request))

    async def _first(self, attempt: Callable[[Address], Awaitable[Any]]) -> Any:
        connected = {address for address, link in self._links.items() if link.is_open}
        return await AnyBroker(self, self.known, attempt, connected=connected).result()

    async def _ask(self, address: Address, request: AnyRequest) -> Any:
        """Send a request; over a new connection Metadata before it, as the consumer's own network does."""
        link = self._link(address)
        longest = min(self._config.request_timeout, self._config.session_timeout)
        timeout = self.known.timeout(address, longest / 3, longest)
        try:
            await link.open()
            if not link.has_answered and not isinstance(request, bmsg.MetadataRequest):
                self._learn(await link.request(bmsg.MetadataRequest(frozenset()), timeout), address)
            response = await link.request(request, timeout)
            link.has_answered = True
        finally:
            if not self.known.is_named(address):
                link.close_if_idle()
        if isinstance(response, bmsg.MetadataResponse):
            self._learn(response, address)
        return response

    def _learn(self, response: bmsg.MetadataResponse, source: Address) -> None:
        brokers = {broker: _address(number) for broker, number in response.addresses.items()}
        self._seen.update(brokers.values())
        self.known.learn(brokers, None, source)

    def _link(self, address: Address) -> _Link:
        if address not in self._links:
            self._links[address] = _Link(self, address)
        return self._links[address]

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
            self._coordinator[1].close(DisconnectedError("closed by the membership"))

    async def _to_coordinator(self, request: msg.Request, timeout: float | None = None) -> Any:
        if self._coordinator is None:
            raise DisconnectedError("the coordinator is not known")
        answer = None
        answered = self.request_stats.sent(type(request).__name__.removesuffix("Request"))
        try:
            answer = await self._coordinator[1].request(request, timeout or self._config.request_timeout)
        finally:
            answered(answer)
        self.process.requests.answered(request, answer)
        return answer
