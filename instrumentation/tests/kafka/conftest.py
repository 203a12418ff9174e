"""Fixtures: a broker with short KIP-848 heartbeats and sessions, and members of every kind of client."""

import asyncio
import contextlib
import functools
import importlib.util
import inspect
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewPartitions, NewTopic
from prometheus_client import CollectorRegistry

import groupwright.consumer as ours
from groupwright.instrumentation import EventSink, RebalanceEvent, create_instrumented, to_callback
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE


@dataclass(frozen=True)
class Client:
    """A kind of client, with the protocol that its members speak."""

    make: Any
    protocol: str
    ours: bool
    """True if it is Groupwright's `Consumer`."""

    @property
    def broker_assigned(self) -> bool:
        return self.protocol == "consumer"

    @property
    def own_membership(self) -> bool:
        return self.ours and not self.broker_assigned

    @property
    def eager(self) -> bool:
        return self.protocol in {"range", "roundrobin"}


CLIENTS = {
    "groupwright-range": Client(ours.Consumer, "range", ours=True),
    "groupwright-cooperative": Client(ours.Consumer, "cooperative-sticky", ours=True),
    "groupwright-kip848": Client(ours.Consumer, "consumer", ours=True),
    "groupwright-deserializing": Client(ours.DeserializingConsumer, "range", ours=True),
    "plain-range": Client(confluent_kafka.Consumer, "range", ours=False),
    "plain-roundrobin": Client(confluent_kafka.Consumer, "roundrobin", ours=False),
    "plain-cooperative": Client(confluent_kafka.Consumer, "cooperative-sticky", ours=False),
    "plain-kip848": Client(confluent_kafka.Consumer, "consumer", ours=False),
    "plain-deserializing": Client(confluent_kafka.DeserializingConsumer, "roundrobin", ours=False),
}
if importlib.util.find_spec("confluent_kafka.aio"):  # from 2.13 on
    from confluent_kafka.aio import AIOConsumer

    CLIENTS["groupwright-asyncio"] = Client(ours.AIOConsumer, "cooperative-sticky", ours=True)
    CLIENTS["plain-asyncio"] = Client(AIOConsumer, "cooperative-sticky", ours=False)


_FIRST = ("groupwright-cooperative", "groupwright-kip848", "plain-range", "plain-kip848")
"""Kinds with each way of being a member and of being assigned; tests with the others are for endurance."""
_RARE = (pytest.mark.slow, pytest.mark.endurance)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that wants a `client` for each kind of client, or for those of its module's `ONLY`."""
    if "client" in metafunc.fixturenames:
        clients = [
            pytest.param(client, id=name, marks=() if name in _FIRST else _RARE)
            for name, client in _clients(metafunc.module).items()
        ]
        metafunc.parametrize("client", clients, scope="module")


def _clients(module: Any) -> Mapping[str, Client]:
    only = getattr(module, "ONLY", CLIENTS)
    return {name: client for name, client in CLIENTS.items() if name in only}


class Member:
    """A member of a group, with the values of its series, and times taken around what it does."""

    def __init__(
        self,
        client: Client,
        servers: str,
        topic: str,
        client_id: str,
        events: EventSink,
        *,
        lag_by_partition: bool = False,
        **more: Any,
    ) -> None:
        self.registry = CollectorRegistry()
        self.calls: list[tuple[str, int]] = []
        self.errors: list[int] = []
        self.owned = 0
        self.messages = 0
        self.began = 0.0
        self.in_callbacks = 0.0
        self.client = client
        self.id = client_id
        self._closed = False
        self._runner = asyncio.Runner() if inspect.iscoroutinefunction(client.make.poll) else None
        self._labels = {"group": topic, "client_id": client_id}
        config = {
            "bootstrap.servers": servers,
            "group.id": topic,
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "statistics.interval.ms": 200,
            "topic.metadata.refresh.interval.ms": 500,
            **_protocol(client),
            **more,
        }

        create = functools.partial(
            create_instrumented,
            client.make,
            config,
            registry=self.registry,
            events=[events],
            lag_by_partition=lag_by_partition,
            advise=False,
        )

        async def create_in_loop() -> Any:
            return create()

        self.consumer = self._runner.run(create_in_loop()) if self._runner else create()

    def do(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the consumer, and wait for it where it is a coroutine."""
        result = getattr(self.consumer, method)(*args, **kwargs)
        return self._runner.run(result) if self._runner else result

    def join(self, *topics: str) -> None:
        self.began = time.monotonic()
        names = {"on_assign": "assign", "on_revoke": "revoke", "on_lost": "lost"}
        callback = self._coroutine if self._runner else self._function
        self.do("subscribe", list(topics), **{key: callback(name) for key, name in names.items()})

    def poll(self) -> Any:
        """Return the next message; of an error, keep the code."""
        try:
            message = self.do("poll", timeout=0.02)
        except KafkaException as error:
            self.errors.append(error.args[0].code())
            return None
        if message is not None and message.error() is not None:
            self.errors.append(message.error().code())
            return None
        self.messages += message is not None
        return message

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"groupwright_{name}", {**self._labels, **labels})

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        """All series of a metric, by the values of the labels that do not say whose they are."""
        return {
            tuple(
                value for key, value in sorted(sample.labels.items()) if key not in self._labels
            ): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == f"groupwright_{name}"
        }

    def rebalances(self, outcome: str = "completed") -> float:
        """Return the number over all protocols; a failed rebalance has no protocol."""
        return sum(value for labels, value in self.values("rebalances_total").items() if labels[0] == outcome)

    def partitions(self, topic: str) -> list[float | None]:
        """Assigned, revoked, lost, and owned now."""
        words = ("assigned", "revoked", "lost")
        counts = [self.value(f"partitions_{word}_total", topic=topic) for word in words]
        return [*counts, self.value("partitions_owned", topic=topic)]

    def close(self) -> None:
        """Leave; again is no error."""
        if not self._closed:
            self._closed = True
            self.do("close")
            if self._runner:
                self._runner.close()

    def _function(self, name: str) -> Callable[..., None]:
        return lambda _, partitions: self._record_call(name, partitions)

    def _coroutine(self, name: str) -> Callable[..., Any]:
        async def call(_: Any, partitions: list[TopicPartition]) -> None:
            self._record_call(name, partitions)

        return call

    def _record_call(self, name: str, partitions: list[TopicPartition]) -> None:
        started = time.monotonic()
        self.calls.append((name, len(partitions)))
        self.owned += len(partitions) if name == "assign" else -len(partitions)
        self.in_callbacks += time.monotonic() - started


def _protocol(client: Client) -> dict[str, Any]:
    if client.broker_assigned:
        return {"group.protocol": "consumer"}
    return {"heartbeat.interval.ms": 500, "partition.assignment.strategy": client.protocol}


def session(client: Client) -> dict[str, Any]:
    """Return the settings of a member that is missed after 6 s; the broker has those of KIP-848's."""
    return {} if client.broker_assigned else {"session.timeout.ms": 6000}


class ScenarioRun:
    """One client's run of a scenario: its topics, members and events. All members are closed at its end."""

    def __init__(
        self,
        kafka: LocalKafka,
        client: Client,
        name: str,
        cleanup: contextlib.ExitStack,
        barrier: threading.Barrier,
    ) -> None:
        self._barrier = barrier
        self.kafka = kafka
        self.client = client
        self.name = name
        self.events: list[RebalanceEvent] = []
        self._cleanup = cleanup
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        self._sink = cleanup.enter_context(to_callback(self.events.append))

    def topic(
        self,
        suffix: str = "",
        partitions: int = 4,
        messages: int = 0,
        config: Mapping[str, str] | None = None,
    ) -> str:
        name = self.name + suffix
        new = NewTopic(name, partitions, 1, config=dict(config or {}))
        (made,) = self._admin.create_topics([new]).values()
        made.result(PATIENCE)
        self._await_partitions(name, partitions)
        self.produce(name, range(partitions), messages)
        return name

    def produce(self, topic: str, partitions: Iterable[int], messages: int) -> None:
        """Append messages to each of these partitions."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers})
        for partition in partitions:
            for _ in range(messages):
                producer.produce(topic, b"x", b"key", partition)
        assert producer.flush(PATIENCE) == 0

    def ends(self, topic: str, partitions: int) -> dict[int, int]:
        """Return the log ends up to which a `read_committed` consumer reads."""
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, number): latest for number in range(partitions)}
        found = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED)
        return {each.partition: future.result(PATIENCE).offset for each, future in found.items()}

    def grow(self, topic: str, partitions: int) -> None:
        (grown,) = self._admin.create_partitions([NewPartitions(topic, partitions)]).values()
        grown.result(PATIENCE)
        self._await_partitions(topic, partitions)

    def _await_partitions(self, topic: str, partitions: int) -> None:
        """Wait until the broker lists them, so that no leader assigns by older metadata."""
        deadline = time.monotonic() + PATIENCE
        while len(self._admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions) != partitions:
            assert time.monotonic() < deadline, topic

    def member(self, group: str, client_id: str, **more: Any) -> Member:
        member = Member(self.client, self.kafka.bootstrap_servers, group, client_id, self._sink, **more)
        self._cleanup.callback(member.close)
        return member

    @contextlib.contextmanager
    def victim(self, topic: str) -> Iterator[Callable[[Member], None]]:
        """Start a member in a process of its own; the yielded function kills it once it has partitions."""
        config = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": topic,
            "client.id": "victim",
            **_protocol(self.client),
            **session(self.client),
        }
        program = Path(__file__).with_name("victim.py")
        process = subprocess.Popen(
            [sys.executable, program, json.dumps(config), topic], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        output = process.stdout
        line = ThreadPoolExecutor(1)
        has_partitions = line.submit(output.readline)

        def kill(meanwhile: Member) -> None:
            self.until(has_partitions.done, meanwhile)
            process.kill()

        try:
            yield kill
        finally:
            process.kill()
            process.wait(PATIENCE)
            line.shutdown()
            output.close()

    def until(self, condition: Callable[[], bool], *members: Member) -> None:
        """Poll these members until it holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                states = [(member.id, member.owned, member.calls, member.errors) for member in members]
                raise TimeoutError(f"{self.name}: {states}")
            for member in members:
                member.poll()

    def settle(self, number: int, *members: Member) -> None:
        """Poll until the members have reported `number` completed rebalances in total."""
        self.until(lambda: sum(member.rebalances() for member in members) == number, *members)

    def together(self, action: Callable[[], None]) -> None:
        """Wait until all clients' runs have come this far; then call `action` once."""
        first = self._barrier.wait(PATIENCE) == 0
        if first:
            action()
        self._barrier.wait(PATIENCE)

    def reasons(self, number: int, member: Member) -> list[str | None]:
        """Return the reasons of a member's first rebalances, once the sink's thread has delivered them."""

        def delivered() -> list[str | None]:
            return [event.reason for event in self.events if event.client_id == member.id]

        self.until(lambda: len(delivered()) >= number, member)
        return delivered()


@pytest.fixture(scope="session")
def brisk_kafka() -> Iterator[LocalKafka]:
    """A broker whose KIP-848 members send a heartbeat every 0.5 s, and are expelled after 6 s."""
    settings: dict[str, str | int | bool] = {
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.consumer.heartbeat.interval.ms": 500,
        "group.consumer.min.session.timeout.ms": 6000,
        "group.consumer.session.timeout.ms": 6000,
        "log.cleaner.backoff.ms": 200,
    }
    with LocalKafka(config=settings) as kafka:
        yield kafka


Scenario = Callable[[ScenarioRun], Any]


@pytest.fixture(scope="module")
def outcome_of(brisk_kafka: LocalKafka, request: pytest.FixtureRequest) -> Callable[[Scenario, Client], Any]:
    """Return a scenario's outcome for one kind of client; the first call runs it for such kinds at once."""
    outcomes: dict[tuple[Scenario, bool], dict[Client, Future[Any]]] = {}
    is_preview = brisk_kafka.version.startswith("3.")
    clients = {
        name: each
        for name, each in _clients(request.module).items()
        if not (is_preview and each.broker_assigned)
    }

    def run_one(scenario: Scenario, name: str, client: Client, barrier: threading.Barrier) -> Any:
        with contextlib.ExitStack() as cleanup:
            title = f"{scenario.__name__}-{name}".replace("_", "-")
            return scenario(ScenarioRun(brisk_kafka, client, title, cleanup, barrier))

    def ask(scenario: Scenario, client: Client) -> Any:
        if client not in clients.values():
            pytest.skip(f"Kafka {brisk_kafka.version} has group.protocol=consumer in preview only")
        is_first = client in map(CLIENTS.get, _FIRST)
        if (scenario, is_first) not in outcomes:
            together = {name: each for name, each in clients.items() if (name in _FIRST) is is_first}
            with ThreadPoolExecutor(len(together)) as threads:
                barrier = threading.Barrier(len(together))
                outcomes[scenario, is_first] = {
                    each: threads.submit(run_one, scenario, name, each, barrier)
                    for name, each in together.items()
                }
        return outcomes[scenario, is_first][client].result()

    return ask
