"""Environment of a scenario: its own topics and groups, recording consumers, other threads.

A scenario is an ordinary program that uses `Lab`. It runs unchanged on confluent-kafka's consumer and on
ours, and cannot distinguish them.
"""

import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, Message, Producer, TopicPartition, aio
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from groupwright.testing import LocalKafka
from groupwright.testing._kafka.kafka import delete_records
from groupwright.testing._kafka.proxy import Link
from integration_tests.parity.aio_client import AIOClient
from integration_tests.parity.client import Client, record, show
from integration_tests.parity.trace import Trace

PATIENCE = 30.0
"""Seconds for the broker and for other threads; less than a scenario or a random program may take."""
_STORED = -1001
_LEAVE_GROUP, _ALTER_CLIENT_QUOTAS = 13, 49


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes under test."""

    consumer: type[confluent_kafka.Consumer]
    deserializing: type[confluent_kafka.DeserializingConsumer[Any, Any]]
    aio: type[aio.AIOConsumer]


class LabError(Exception):
    """A wait of the scenario timed out. The trace records it, and ends there."""


class Lab:
    """One run of a scenario on one side."""

    def __init__(
        self,
        classes: Classes,
        bootstrap_servers: str,
        secured: Mapping[str, Mapping[str, Any]],
        own_kafka: Callable[[], LocalKafka],
    ) -> None:
        """Work on the shared broker; `own_kafka` starts one that this scenario may break."""
        self.id = uuid.uuid4().hex[:12]
        self.trace = Trace()
        self.group = f"{self.id}.g"
        self.bootstrap_servers = bootstrap_servers
        self._classes = classes
        self._secured = secured
        self._own_kafka = own_kafka
        self._clients: list[Client] = []
        self._counts: dict[str, int] = {}
        self._groups: set[str] = set()
        self._topics: dict[str, int] = {}
        self._threads: list[threading.Thread] = []

    # --- Consumers ----------------------------------------------------------------------------------

    def consumer(self, **settings: Any) -> Client:
        """Create a consumer of the side under test; keywords are settings, with ``_`` for each dot."""
        return self._client("c", self._classes.consumer, settings)

    def other_member(self, **settings: Any) -> Client:
        """Create a confluent-kafka consumer on either side: another member, not under test."""
        return self._client("other", confluent_kafka.Consumer, settings)

    @property
    def consumer_class(self) -> type[confluent_kafka.Consumer]:
        """The class under test, for a scenario about construction or subclassing."""
        return self._classes.consumer

    @property
    def deserializing_class(self) -> type[confluent_kafka.DeserializingConsumer[Any, Any]]:
        """The deserializing class under test."""
        return self._classes.deserializing

    def aio_consumer(self, **settings: Any) -> AIOClient:
        """Create an asyncio consumer of the side under test, in a running loop; the scenario closes it."""
        name = self._name("c")
        config = self.config(**settings)
        if (user := config.get("on_commit")) is not None:

            async def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
                self.line(name, f"on_commit {show(self, error)} {show(self, partitions)}")
                await user(error, partitions)

            config["on_commit"] = on_commit
        return AIOClient(self, self._classes.aio(config), name)

    def adopt(self, raw: Any, name: str = "c") -> Client:
        """Record the calls of a consumer that the scenario has created itself."""
        client = Client(self, raw, self._name(name))
        self._clients.append(client)
        return client

    def _client(self, name: str, class_: type[Any], settings: Mapping[str, Any]) -> Client:
        name = self._name(name)
        config = self.config(**settings)
        return self.adopt_named(class_(self._recorded(name, config)), name)

    def adopt_named(self, raw: Any, name: str) -> Client:
        """Record the calls of a consumer, as `adopt` does, under an existing name."""
        client = Client(self, raw, name)
        self._clients.append(client)
        return client

    def config(self, **settings: Any) -> dict[str, Any]:
        """Return a configuration; keywords are settings, with ``_`` for each dot."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": self.group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
        callbacks = {"on_commit", "error_cb", "stats_cb", "throttle_cb", "oauth_cb", "logger", "log_level"}
        config |= {k if k in callbacks else k.replace("_", "."): v for k, v in settings.items()}
        for key in [key for key, value in config.items() if value is Ellipsis]:
            del config[key]  # a setting of these defaults that a scenario goes without
        self._groups.add(str(config.get("group.id")))
        return config

    def secured(self, user: str) -> dict[str, Any]:
        """Return the connection settings of a user with ACLs; pass them with ``**``."""
        return {key.replace(".", "_"): value for key, value in self._secured[user].items()}

    def _recorded(self, name: str, config: dict[str, Any]) -> dict[str, Any]:
        def on_commit(error: Any, partitions: list[TopicPartition]) -> None:
            self.line(name, f"on_commit {show(self, error)} {show(self, partitions)}")
            user(error, partitions)

        def error_cb(error: Any) -> None:
            self.line(name, f"error_cb {show(self, error)}")
            user_error(error)

        user: Any = config.get("on_commit")
        user_error: Any = config.get("error_cb")
        if callable(user):
            config["on_commit"] = on_commit
        if callable(user_error):
            config["error_cb"] = error_cb
        return config

    def _name(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}{self._counts[kind]}"

    # --- Topics -------------------------------------------------------------------------------------

    @cached_property
    def admin(self) -> AdminClient:
        """An admin client with all rights."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    @cached_property
    def producer(self) -> Producer:
        """A producer with all rights."""
        return Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 5, "log_level": 0})

    def topic(self, partitions: int = 1, *, messages: int = 0, name: str = "t", **config: str) -> str:
        """Create a topic, with a number of messages in each partition."""
        topic = self.name_topic(name)
        self.create(topic, partitions, **config)
        for partition in range(partitions if messages else 0):
            self.produce(topic, messages, partition)
        return topic

    def name_topic(self, name: str = "t") -> str:
        """Return the name of a topic that does not exist yet."""
        return f"{self.id}.{self._name(name)}"

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Create a topic by name."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
        self._topics[topic] = partitions
        self.wait(lambda: len(self._partitions(topic)) == partitions, f"{topic} is known")

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([topic])[topic].result(30)
        self._topics.pop(topic, None)
        self.wait(lambda: not self._partitions(topic), f"{topic} is gone")

    def delete_records(self, topic: str, before: int) -> None:
        """Delete the records of partition 0 before an offset."""
        delete_records(self.admin, TopicPartition(topic, 0, before))

    def grow(self, topic: str, partitions: int) -> None:
        """Increase a topic's number of partitions."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        self._topics[topic] = partitions
        self.wait(lambda: len(self._partitions(topic)) == partitions, f"{topic} has grown")
        self.producer.list_topics(topic, timeout=PATIENCE)  # it refuses partitions that it does not know

    def produce(self, topic: str, messages: int = 10, partition: int = 0, *, size: int = 1) -> None:
        """Write numbered messages to a partition."""
        for number in range(messages):
            value = str(number).rjust(size, "0")
            while True:
                try:
                    self.producer.produce(topic, value, key=str(number), partition=partition)
                    break
                except BufferError:
                    self.producer.poll(0.1)
        if self.producer.flush(PATIENCE):
            raise LabError(f"{topic} could not be written to")

    def pattern(self, name: str) -> str:
        """Return a subscription's regular expression for topics of this scenario."""
        return f"^{self.id}[.]{name}"

    def _partitions(self, topic: str) -> Mapping[int, object]:
        found = self.admin.list_topics(topic, timeout=10).topics[topic]
        return {} if found.error is not None else found.partitions

    # --- Around it ----------------------------------------------------------------------------------

    @cached_property
    def kafka(self) -> LocalKafka:
        """A broker that this scenario may break; every later client connects to it through `link`."""
        kafka = self._own_kafka()
        self.bootstrap_servers = kafka.proxied_servers
        self.__dict__.pop("admin", None)
        self.__dict__.pop("producer", None)
        return kafka

    @property
    def link(self) -> Link:
        """The link between clients and `kafka`."""
        return self.kafka.link()

    def spawn(self, name: str, program: Callable[[], object]) -> threading.Thread:
        """Run a part of the scenario on a thread of this name; its calls have a separate timeline."""

        def run() -> None:
            try:
                program()
            except LabError as error:
                self.line(name, f"stopped: {error}")
            except BaseException as error:  # noqa: BLE001 - part of what is compared
                self.line(name, f"ended by {show(self, error)}")

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def wait(self, condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
        """Wait for a condition that does not need a poll."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise LabError(f"after {seconds:.0f} s still not: {what}".replace(f"{self.id}.", ""))
            time.sleep(0.02)

    def line(self, timeline: str, text: str, seconds: float | None = None) -> None:
        """Add a line to a consumer's timeline, or on another thread to the thread's timeline."""
        thread = threading.current_thread()
        if thread is not threading.main_thread() and thread.name != timeline:
            timeline = f"{timeline}@{thread.name}"
        self.trace.add(timeline, text, seconds)

    def note(self, text: str) -> None:
        """Record a finding of the scenario itself."""
        self.line("scenario", text)

    def attempt(self, what: str, call: Callable[[], object]) -> object:
        """Call a function that is no method of the consumer, and record its outcome."""
        began = time.monotonic()
        try:
            result = call()
        except Exception as error:  # noqa: BLE001 - part of what is compared
            self.line("scenario", f"{what} {show(self, error)}", time.monotonic() - began)
            return None
        self.line("scenario", f"{what} = {show(self, result)}", time.monotonic() - began)
        return result

    def together(self, *clients: Client, until: Callable[[], object], what: str) -> None:
        """Poll several consumers in turn until a condition holds."""
        began = time.monotonic()
        while not until():
            if time.monotonic() - began > PATIENCE:
                self.note(f"until {what} = not within {PATIENCE:.0f} s")
                return
            for client in clients:
                with suppress(KafkaException):  # it is in the trace
                    client.poll(0.02)
        self.line("scenario", f"until {what} = done", time.monotonic() - began)

    def expel(self, client: Client) -> None:
        """Remove a member from the group by an admin request, as if its session had expired."""
        answer = self._request(_LEAVE_GROUP, 1, _text(self.group) + _text(client.raw.memberid()))
        (code,) = struct.unpack(">h", answer[4:6])
        if code:
            raise LabError(f"the coordinator keeps the member: error {code}")

    def throttle(self, client_id: str, bytes_per_second: float) -> None:
        """Set a fetch quota for this client id."""
        one, no = struct.pack(">i", 1), b"\0"
        entity = one + _text("client-id") + _text(client_id)
        limit = one + _text("consumer_byte_rate") + struct.pack(">d", bytes_per_second) + no
        answer = self._request(_ALTER_CLIENT_QUOTAS, 0, one + entity + limit + no)
        (code,) = struct.unpack(">h", answer[8:10])
        if code:
            raise LabError(f"there is no quota: error {code}")

    def _request(self, key: int, version: int, body: bytes) -> bytes:
        """Send a raw request; return the body of the response."""
        request = struct.pack(">hhih", key, version, 1, -1) + body
        host, _, port = self.bootstrap_servers.rpartition(":")
        with (
            socket.create_connection((host, int(port)), PATIENCE) as connection,
            connection.makefile("rb") as read,
        ):
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", read.read(4))
            return read.read(size)[4:]

    def members(self, group: str | None = None) -> int:
        """Return the coordinator's number of members in the group."""
        name = self.group if group is None else group
        return len(self.admin.describe_consumer_groups([name])[name].result(30).members)

    def group_is_stable(self) -> bool:
        """Return whether the group has members, all with their assignments."""
        described = self.admin.describe_consumer_groups([self.group])[self.group].result(30)
        return described.state is confluent_kafka.ConsumerGroupState.STABLE

    def note_members(self, expected: int) -> None:
        """Wait briefly until the group has so many members, and record their number."""
        with suppress(LabError):
            self.wait(lambda: self.members() == expected, "members", seconds=3)
        self.note(f"members: {self.members()}")

    def stored(self, topic: str, group: str | None = None, *, partitions: int = 1) -> list[int]:
        """Return the coordinator's committed offsets of a topic."""
        wanted = [TopicPartition(topic, partition) for partition in range(partitions)]
        config = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": group or self.group,
            "log_level": 0,
        }
        asking = confluent_kafka.Consumer(config)
        try:
            return [partition.offset for partition in asking.committed(wanted, timeout=PATIENCE)]
        finally:
            asking.close()

    # --- The end ------------------------------------------------------------------------------------

    def end(self) -> None:
        """Close all open consumers, and record the committed offsets."""
        for client in self._clients:
            if not client.closed:
                with suppress(Exception):
                    client.raw.close()
        for thread in self._threads:
            thread.join(PATIENCE)
        for group in sorted(self._groups):
            for topic, partitions in sorted(self._topics.items()):
                self._note_stored(group, topic, partitions)

    def _note_stored(self, group: str, topic: str, partitions: int) -> None:
        try:
            offsets = self.stored(topic, group, partitions=partitions)
        except KafkaException as error:
            self.trace.add("stored", f"{topic.removeprefix(self.id + '.')}: {show(self, error)}")
            return
        for partition, offset in enumerate(offsets):
            if offset != _STORED:
                name = show(self, TopicPartition(topic, partition, offset))
                self.trace.add(
                    "stored", name if group == self.group else f"{name} of {group.removeprefix(self.id)}"
                )


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def callbacks() -> dict[str, Callable[..., None]]:
    """Return three rebalance callbacks that do nothing; their calls are recorded."""
    return {"on_assign": record, "on_revoke": record, "on_lost": record}


def partitions(topic: str, *offsets: int) -> list[TopicPartition]:
    """Return partitions 0, 1, … of a topic at these offsets."""
    return [TopicPartition(topic, partition, offset) for partition, offset in enumerate(offsets)]


def values(messages: Sequence[Message] | Iterable[Message]) -> list[bytes | None]:
    """Return the messages' values."""
    return [message.value() for message in messages]
