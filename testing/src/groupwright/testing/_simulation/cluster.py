"""A simulated cluster: brokers with topics, the group coordinator, and connections that can fail.

A connection delivers requests and responses in order, each after a random delay. A broker handles the
requests of a connection one at a time, so a parked JoinGroup delays all that follow it. Different connections
are independent, so their requests overtake each other.
"""

import dataclasses
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from groupwright.core import ErrorCode, TopicPartitionKey
from groupwright.testing._simulation import broker_messages as bmsg
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.coordinator import Coordinator, failed
from groupwright.testing._simulation.records import Log
from groupwright.testing._simulation.scheduler import MS, SECOND, Event, Process, Scheduler
from groupwright.testing._simulation.settings import GroupSettings, KafkaVersion

AnyRequest = msg.Request | bmsg.FindCoordinatorRequest | bmsg.MetadataRequest | bmsg.ListOffsetsRequest
AnyResponse = msg.Response | bmsg.FindCoordinatorResponse | bmsg.MetadataResponse | bmsg.ListOffsetsResponse

CONNECT_TIMEOUT = 30 * SECOND
"""After this time a connection without an answer has failed (`socket.connection.setup.timeout.ms`)."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Delays of messages and of metadata; all in microseconds.

    Attributes:
        latency: Shortest and longest usual delay of a message.
        slow_latency: Shortest and longest delay of a slow message.
        slow_share: Share of slow messages.
        metadata_lag: Longest time until a broker knows of a change of topics or of other brokers.
    """

    latency: tuple[int, int] = (200, 2_000)
    slow_latency: tuple[int, int] = (5 * MS, 60 * MS)
    slow_share: float = 0.02
    metadata_lag: int = 500 * MS


@dataclass(slots=True)
class Topic:
    """A topic.

    Attributes:
        id: Number that no other topic has had.
        ends: End offset of each partition.
        fetchers: Called once for each partition, at its next message or when the topic is deleted.
    """

    id: int
    ends: list[int]
    fetchers: dict[int, list[Callable[[], object]]] = field(default_factory=dict)


@dataclass(slots=True)
class Broker:
    """A broker.

    Attributes:
        number: Its id.
        address: Number of its address, which no other broker has had.
        up: Whether it runs.
        topics: Id and number of partitions by topic, as this broker knows them.
        brokers: Address of each live broker, as this broker knows them.
        coordinator: Broker of the coordinator as this broker knows it, or -1.
        version: Version of what it knows.
    """

    number: int
    address: int
    up: bool = True
    topics: dict[str, tuple[int, int]] = field(default_factory=dict)
    brokers: dict[int, int] = field(default_factory=dict)
    coordinator: int = -1
    version: int = 0


class Connection:
    """A client's connection to a broker; its client sends requests, and is notified when it is lost."""

    def __init__(
        self, cluster: "Cluster", process: Process, broker: Broker, on_lost: Callable[[], object]
    ) -> None:
        """Create an open connection; `Cluster.connect` does."""
        self.process = process
        self.broker = broker
        self.open = True
        """True if the client takes it for open."""
        self.silent = False
        """True if all messages are dropped, and neither side knows (half-open)."""
        self._cluster = cluster
        self._on_lost = on_lost
        self._sent = self._answered = 0
        """Times of the last arrival at the broker and at the client."""
        self._queue: deque[tuple[AnyRequest, Callable[[AnyResponse], object]]] = deque()
        """Requests that wait at the broker behind one that is not answered yet."""
        self._busy = False
        self._answer: Callable[[AnyResponse], object] | None = None

    def send(self, request: AnyRequest, on_response: Callable[[AnyResponse], object]) -> None:
        """Send a request. `on_response` is never called if the connection is lost or half-open."""
        if self.open and not self.silent:
            self._sent = max(self._sent + 1, self._cluster.arrival(self))
            self._cluster.scheduler.call_at(self._sent, lambda: self._arrive(request, on_response))

    def close(self) -> None:
        """Close it; the client is not notified. Requests that have arrived are still handled."""
        self.open = False
        self._cluster.forget(self)

    def lose(self) -> None:
        """Lose it, as with a reset: the client is notified after a short delay."""
        if self.open:
            self.silent = True
            self._cluster.forget(self)
            self.process.call_at(self._cluster.arrival(self), self._lost)

    def _lost(self) -> None:
        if self.open:
            self.open = False
            self._on_lost()

    def _arrive(self, request: AnyRequest, on_response: Callable[[AnyResponse], object]) -> None:
        if not self.silent and self.broker.up:
            self._queue.append((request, on_response))
            self._handle_next()

    def _handle_next(self) -> None:
        while self._queue and not self._busy:
            request, self._answer = self._queue.popleft()
            self._busy = True
            self._cluster.handle(self, request)

    def answer(self, response: AnyResponse) -> None:
        """Answer the request in hand; for the broker."""
        on_response, self._answer, self._busy = self._answer, None, False
        if on_response is not None and not self.silent:
            self._answered = max(self._answered + 1, self._cluster.arrival(self))
            self.process.call_at(self._answered, lambda: self.open and on_response(response))
        self._handle_next()


class Cluster:
    """Brokers, their topics, and the coordinator of all groups."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        brokers: int = 3,
        network: NetworkSettings | None = None,
        settings: GroupSettings | None = None,
        version: KafkaVersion = KafkaVersion.KAFKA_4_3,
    ) -> None:
        """Start a cluster without topics; broker 0 is the coordinator."""
        self.scheduler = scheduler
        self.topics: dict[str, Topic] = {}
        self.brokers = [Broker(number, number) for number in range(brokers)]
        self.changed_at = scheduler.now
        """Time of the last change of a broker or of the coordinator, in microseconds."""
        self.coordinator_broker: int | None = 0
        """Broker of the coordinator; None while there is none."""
        self.on_answer: Callable[[Process, msg.Request, msg.Response], object] = _ignore
        """Called with each response of the coordinator, when it is sent."""
        self.on_coordinator: Callable[[], object] = _nothing
        """Called whenever the coordinator has changed state."""
        self._network = network or NetworkSettings()
        self._settings = settings or GroupSettings()
        self._version = version
        self._random = scheduler.stream("network")
        self._ids = scheduler.stream("member ids")
        self._connections: dict[Connection, None] = {}
        self._isolated: dict[str, bool] = {}
        self._parked: dict[int, tuple[Connection, msg.Request]] = {}
        self._requests = self._topic_ids = self._version_published = self._elections = 0
        self._addresses = brokers
        self._loading = False
        self._timer: Event | None = None
        self.coordinator = self._elect({})
        self._publish(lag=0)

    # --- Topics

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic; brokers know of it one after the other."""
        self._topic_ids += 1
        self.topics[name] = Topic(self._topic_ids, [0] * partitions)
        self._publish(self._network.metadata_lag)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, with the group's offsets of it."""
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.coordinator.delete_topic(name)
            self._publish(self._network.metadata_lag)
            for fetchers in topic.fetchers.values():
                for fetch in fetchers:
                    fetch()

    def add_partitions(self, name: str, partitions: int) -> None:
        """Have a topic grow to this number of partitions."""
        ends = self.topics[name].ends
        ends.extend([0] * (partitions - len(ends)))
        self._publish(self._network.metadata_lag)

    def produce(self, topic: str, partition: int, messages: int = 1) -> None:
        """Append messages to a partition."""
        found = self.topics[topic]
        found.ends[partition] += messages
        for fetch in found.fetchers.pop(partition, ()):
            fetch()

    def leader(self, partition: TopicPartitionKey) -> int:
        """Return the leader of a partition: the first live broker of its replicas, or -1."""
        count = len(self.brokers)
        preferred = self.brokers[partition[1] % count]
        if preferred.up:
            return preferred.number
        order = (self.brokers[(partition[1] + step) % count] for step in range(count))
        return next((broker.number for broker in order if broker.up), -1)

    # --- The network

    def connect(
        self,
        process: Process,
        broker: int,
        connected: Callable[[Connection], object],
        failed: Callable[[], object],
        lost: Callable[[], object],
    ) -> None:
        """Connect to a broker: `connected` or `failed` is called, and `lost` once after `connected`."""
        self.connect_to(process, self.brokers[broker].address, connected, failed, lost)

    def connect_to(
        self,
        process: Process,
        address: int,
        connected: Callable[[Connection], object],
        failed: Callable[[], object],
        lost: Callable[[], object],
    ) -> None:
        """Connect to the broker that has an address, as `connect`; `failed` is called if none has it."""
        arrival = self.scheduler.now + self._delay() + self._delay()
        target = next((broker for broker in self.brokers if broker.address == address), None)

        def arrive() -> None:
            if self._isolated.get(process.name):
                process.call_in(CONNECT_TIMEOUT, failed)
            elif target is None or not target.up:
                failed()
            else:
                connection = Connection(self, process, target, lost)
                self._connections[connection] = None
                connected(connection)

        process.call_at(arrival, arrive)

    def reaches(self, process: Process, broker: int) -> bool:
        """Return whether messages between a process and a broker arrive."""
        return broker >= 0 and self.brokers[broker].up and not self._isolated.get(process.name)

    def cut(self, process: Process) -> None:
        """Reset all connections of a process; it may connect again at once."""
        for connection in self._of(process):
            connection.lose()

    def isolate(self, process: Process) -> None:
        """Drop all messages of a process until `rejoin`; its connections are half-open from now on."""
        self._isolated[process.name] = True
        for connection in self._of(process):
            connection.silent = True

    def rejoin(self, process: Process) -> None:
        """End `isolate`; connections from before stay half-open."""
        self._isolated.pop(process.name, None)

    def arrival(self, _connection: Connection) -> int:
        """Return the time at which a message that is sent now arrives."""
        return self.scheduler.now + self._delay()

    def forget(self, connection: Connection) -> None:
        """Forget a connection that its client has closed or lost."""
        self._connections.pop(connection, None)

    def _delay(self) -> int:
        settings = self._network
        slow = self._random.random() < settings.slow_share
        low, high = settings.slow_latency if slow else settings.latency
        return low + int(self._random.random() * (high - low))

    def _of(self, process: Process) -> list[Connection]:
        return [connection for connection in self._connections if connection.process is process]

    # --- Brokers

    def stop_broker(self, number: int, *, clean: bool, election: int = 4 * SECOND) -> None:
        """Stop a broker.

        Args:
            number: The broker.
            clean: Whether it hands its coordinator over first; otherwise the others take it for alive until
                the `election`.
            election: Microseconds until the others know, and another broker is the coordinator.
        """
        broker = self.brokers[number]
        if not broker.up:
            return
        if self.coordinator_broker == number and clean:
            self.move_coordinator()
        broker.up = False
        for connection in [each for each in self._connections if each.broker is broker and not each.silent]:
            connection.lose()
        if self.coordinator_broker == number:  # it was not handed over, or there is no other live broker
            self.coordinator_broker = None
            self._parked.clear()
            self.scheduler.call_in(election, self._elect_if_none)
        self.changed_at = self.scheduler.now
        if clean:
            self._publish(self._network.metadata_lag)
        else:
            self.scheduler.call_in(election, lambda: self._publish(self._network.metadata_lag))

    def start_broker(self, number: int, *, moves: bool = False) -> None:
        """Start a broker that was stopped; at first it knows no topics and no brokers.

        If it `moves`, it has a new address.
        """
        broker = self.brokers[number]
        if not broker.up:
            self.brokers[number] = Broker(number, self._addresses if moves else broker.address)
            self._addresses += moves
            self._publish(self._network.metadata_lag)
            self._elect_if_none()

    def move_coordinator(self, loading: int = 50 * MS) -> None:
        """Move the coordinator to another live broker, which loads the log for `loading` microseconds."""
        others = [each.number for each in self.brokers if each.up and each.number != self.coordinator_broker]
        if self.coordinator_broker is None or not others:
            return
        if not self._loading:  # else the last coordinator has resigned, or crashed
            self._reply(self.coordinator.resign(self._now_ms))
        self._parked.clear()
        self._start_coordinator(self._random.choice(others), loading)

    def _elect_if_none(self) -> None:
        live = [each.number for each in self.brokers if each.up]
        if self.coordinator_broker is None and live:
            self._start_coordinator(self._random.choice(live), 50 * MS)

    def _start_coordinator(self, broker: int, loading: int) -> None:
        self.coordinator_broker, self._loading = broker, True
        self._elections += 1
        election = self._elections

        def loaded() -> None:
            if election == self._elections and self.coordinator_broker == broker:
                self.coordinator, self._loading = self._elect(self.coordinator.log), False
                self._coordinator_acted()

        self.scheduler.call_in(loading, loaded)
        self._publish(self._network.metadata_lag)

    def _elect(self, log: Log) -> Coordinator:
        return Coordinator(self._new_member_id, self._settings, self._version, log=log, now=self._now_ms)

    def _new_member_id(self, prefix: str) -> str:
        return f"{prefix}{self._ids.getrandbits(48):012x}"

    def _publish(self, lag: int) -> None:
        """Have each live broker learn the present state of the cluster, after up to `lag` microseconds."""
        self._version_published += 1
        version = self._version_published
        self.changed_at = self.scheduler.now
        live = {each.number: each.address for each in self.brokers if each.up}
        coordinator = -1 if self.coordinator_broker is None else self.coordinator_broker
        topics = {name: (topic.id, len(topic.ends)) for name, topic in self.topics.items()}
        for broker in self.brokers:

            def learn(broker: Broker = broker) -> None:
                if version > broker.version:
                    broker.version = version
                    broker.topics, broker.brokers, broker.coordinator = topics, live, coordinator

            delay = int(self._random.random() * lag)
            if delay:
                self.scheduler.call_in(delay, learn)
            else:
                learn()

    # --- Requests

    @property
    def _now_ms(self) -> int:
        return self.scheduler.now // MS

    def handle(self, connection: Connection, request: AnyRequest) -> None:
        """Handle a request that has arrived at a connection's broker."""
        broker = connection.broker
        match request:
            case bmsg.FindCoordinatorRequest():
                address = broker.brokers.get(broker.coordinator, -1)
                error = ErrorCode.NONE if address >= 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE
                connection.answer(bmsg.FindCoordinatorResponse(error, broker.coordinator, address))
            case bmsg.MetadataRequest():
                connection.answer(self._metadata(broker, request.topics))
            case bmsg.ListOffsetsRequest():
                connection.answer(self._list_offsets(broker, request))
            case _:
                self._to_coordinator(connection, request)

    def _metadata(self, broker: Broker, names: frozenset[str] | None) -> bmsg.MetadataResponse:
        known = {
            name: topic for name, topic in sorted(broker.topics.items()) if names is None or name in names
        }
        return bmsg.MetadataResponse(
            tuple(broker.brokers),
            {name: partitions for name, (_, partitions) in known.items()},
            {name: number for name, (number, _) in known.items()},
            {
                (name, partition): self.leader((name, partition))
                for name, (_, partitions) in known.items()
                for partition in range(partitions)
            },
            broker.brokers,
        )

    def _list_offsets(self, broker: Broker, request: bmsg.ListOffsetsRequest) -> bmsg.ListOffsetsResponse:
        found = {}
        for name, partition in request.partitions:
            topic = self.topics.get(name)
            is_known = topic is not None and partition < len(topic.ends)
            if topic is not None and is_known and self.leader((name, partition)) == broker.number:
                found[name, partition] = topic.ends[partition] if request.end else 0
        return bmsg.ListOffsetsResponse(found)

    def _to_coordinator(self, connection: Connection, request: msg.Request) -> None:
        self._requests += 1
        number = self._requests
        self._parked[number] = (connection, request)
        if connection.broker.number != self.coordinator_broker:
            self._reply([msg.Reply(number, failed(request, ErrorCode.NOT_COORDINATOR))])
        elif self._loading:
            self._reply([msg.Reply(number, failed(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))])
        elif isinstance(request, msg.OffsetCommitRequest) and (unknown := self._unknown(request)):
            self._commit_known(number, request, unknown)
        else:
            self._reply(self.coordinator.handle(number, request, self._now_ms))
            self._coordinator_acted()

    def _unknown(self, request: msg.OffsetCommitRequest) -> list[TopicPartitionKey]:
        """Return the partitions of topics that do not exist, which the coordinator is not asked about."""
        return [key for key, _ in request.offsets if key[0] not in self.topics]

    def _commit_known(
        self, number: int, request: msg.OffsetCommitRequest, unknown: list[TopicPartitionKey]
    ) -> None:
        """Commit the offsets of existing topics, and answer for the others as KafkaApis does."""
        answers = [(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for key in unknown]
        offsets = tuple((key, offset) for key, offset in request.offsets if key not in unknown)
        if offsets:
            known = dataclasses.replace(request, offsets=offsets)
            (reply,) = self.coordinator.handle(number, known, self._now_ms)
            assert isinstance(reply.response, msg.OffsetCommitResponse)  # noqa: S101 - for the type
            answers += reply.response.partitions
        self._reply([msg.Reply(number, msg.OffsetCommitResponse(tuple(answers)))])
        self._coordinator_acted()

    def _reply(self, replies: list[msg.Reply]) -> None:
        for reply in replies:
            connection, request = self._parked.pop(reply.correlation_id)
            self.on_answer(connection.process, request, reply.response)
            connection.answer(reply.response)

    def _coordinator_acted(self) -> None:
        """Set the timer to the coordinator's next one."""
        self.on_coordinator()
        when = self.coordinator.next_timer()
        if self._timer is not None and self._timer.when == (when or 0) * MS:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when is not None:
            self._timer = self.scheduler.call_at(when * MS, self._advance)

    def _advance(self) -> None:
        self._timer = None
        if self.coordinator_broker is not None and not self._loading:
            self._reply(self.coordinator.advance(self._now_ms))
            self._coordinator_acted()


def _ignore(_process: Process, _request: msg.Request, _response: msg.Response) -> None:
    """Do nothing with a response."""


def _nothing() -> None:
    """Do nothing."""
