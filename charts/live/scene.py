"""Two groups on a real Kafka, one of Groupwright's consumers and one of plain ones, and what can befall them."""

import contextlib
import itertools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from charts.live.prometheus import PATIENCE_SECONDS, wait_until
from confluent_kafka import KafkaException, Producer
from prometheus_client import CollectorRegistry, start_http_server

from groupwright.consumer import Consumer
from groupwright.instrumentation import EventSink, create_instrumented, to_callback
from groupwright.testing import LocalKafka
from groupwright.testing._kafka.ports import HOST

BROKER = {"group.min.session.timeout.ms": 1000}
"""The broker's settings: sessions are short, for all to happen soon."""
TOPICS = {"orders": 12, "refunds": 6}

_MAX_POLL_SECONDS = 3.0
_EAGER, _COOPERATIVE = "range", "cooperative-sticky"
_COMMIT_EVERY = 40
_STALL_EVERY = 4
_SHOWN_SECONDS = 3.0
"""Time that a slow rebalance stays the last one, for Prometheus to scrape it more than once."""


class Actor:
    """A consumer in a loop of polls, on a thread of its own."""

    def __init__(self, consumer: Any, callback_seconds: float) -> None:
        """Subscribe, and begin to poll; rebalance callbacks take so long."""
        self.consumer = consumer
        self.owned = 0
        self._callback_seconds = callback_seconds
        self._stop, self._stall = threading.Event(), threading.Event()
        consumer.subscribe(
            [*TOPICS], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stall(self) -> None:
        """Do not poll for longer than `max.poll.interval.ms`, once."""
        self._stall.set()

    def leave(self) -> None:
        """Close the consumer, on its own thread."""
        self._stop.set()
        self._thread.join(PATIENCE_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.consumer} did not close")

    def _run(self) -> None:
        taken = itertools.count(1)
        while not self._stop.is_set():
            # What is refused is what the scene is about; the consumer says so in its metrics.
            with contextlib.suppress(KafkaException, RuntimeError):
                message = self.consumer.poll(0.1)
                if message is not None and message.error() is None and self._done_with_batch(next(taken)):
                    self.consumer.commit(message=message, asynchronous=False)

        with contextlib.suppress(KafkaException, RuntimeError):
            self.consumer.close()

    def _done_with_batch(self, taken: int) -> bool:
        """Process a batch: in no time, or, if it is to stall, for too long."""
        if self._stall.is_set():
            self._stall.clear()
            self._stop.wait(_MAX_POLL_SECONDS * 1.5)
            return True
        return taken % _COMMIT_EVERY == 0

    def _assigned(self, _consumer: object, partitions: list[Any]) -> None:
        self._stop.wait(self._callback_seconds / 2)
        self.owned += len(partitions)

    def _revoked(self, _consumer: object, partitions: list[Any]) -> None:
        self._stop.wait(self._callback_seconds)
        self.owned -= len(partitions)


class Scene:
    """The groups ``billing`` (Groupwright's consumers) and ``mail`` (plain ones), three members each, and a producer."""

    def __init__(self, kafka: LocalKafka) -> None:
        """Set the scene on a broker that has the settings `BROKER`."""
        self.kafka = kafka
        self.members: dict[str, Actor] = {}
        self._registries = {"billing": CollectorRegistry(), "mail": CollectorRegistry()}
        self._events: EventSink = to_callback(lambda _: None)
        self._servers: list[Any] = []
        self.targets: dict[str, int] = {}
        """The ports that serve metrics, by job."""
        self._over = threading.Event()
        self._producing = threading.Thread(target=self._produce, daemon=True)

    def __enter__(self) -> Self:
        """Create topics, serve metrics, produce, and let all members join."""
        for topic, partitions in TOPICS.items():
            self.kafka.create_topic(topic, partitions=partitions)
        for job, registry in self._registries.items():
            server, _ = start_http_server(0, addr=HOST, registry=registry)
            self._servers.append(server)
            self.targets[job] = server.server_port
        self._producing.start()
        for group in self._registries:
            for number in (1, 2, 3):
                self.join(group, f"{group}-{number}", callback_seconds=0.05 * number)
        self.settle()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End everything."""
        for member in self.members.values():
            member.leave()
        self._over.set()
        self._producing.join(PATIENCE_SECONDS)
        self._events.close()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def settle(self) -> None:
        """Wait until the members own all partitions."""
        everything = sum(TOPICS.values())
        for group in self._registries:
            wait_until(lambda group=group: self._owned(group) == everything, f"all is owned in {group}")  # type: ignore[misc] # mypy cannot infer a lambda with a default

    def join(
        self, group: str, name: str, *, callback_seconds: float = 0.05, instance: str | None = None
    ) -> Actor:
        """Let a new member join."""
        static = {} if instance is None else {"group.instance.id": instance}
        config = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 3000,
            "heartbeat.interval.ms": 300,
            "max.poll.interval.ms": int(_MAX_POLL_SECONDS * 1000),
            "statistics.interval.ms": 500,
            "partition.assignment.strategy": _COOPERATIVE if group == "billing" else _EAGER,
            **static,
        }
        make: Any = Consumer if group == "billing" else confluent_kafka.Consumer
        consumer = create_instrumented(
            make,
            config,
            registry=self._registries[group],
            events=[self._events],
            lag_by_partition=True,
        )
        self.members[name] = actor = Actor(consumer, callback_seconds)
        return actor

    def leave(self, name: str) -> None:
        """Let a member go."""
        self.members.pop(name).leave()

    def restart_broker(self) -> None:
        """Crash and restart the broker, and wait until the groups have found themselves again."""
        # One that shuts down in good order may lose librdkafka's own consumers for good: see `LocalKafka.stop`.
        self.kafka.kill()
        self.kafka.start()
        self.settle()

    def storm(self, over: Callable[[], bool]) -> None:
        """Let members come and go, poll too late, and take each other's place, until it is over."""
        self._fence()
        for number in itertools.count():
            stalls = number % _STALL_EVERY == 0
            if stalls:
                for group in self._registries:
                    self.members[f"{group}-3"].stall()
            self._flap(_SHOWN_SECONDS if stalls else 0.0)
            if over():
                return

    def _flap(self, stay_seconds: float) -> None:
        """Let a fourth member join each group, and leave some time after it owns something."""
        visitors = [f"{group}-4" for group in self._registries]
        for group, name in zip(self._registries, visitors, strict=True):
            self.join(group, name)
        for name in visitors:
            self._wait_for(self.members[name], name)
        self._over.wait(stay_seconds)
        for name in visitors:
            self.leave(name)

    def _fence(self) -> None:
        """Let two consumers take the same place in each group, one after the other; the first one is fenced."""
        for group in self._registries:
            name = f"{group}-static-a"
            self._wait_for(self.join(group, name, instance=f"{group}-0"), name)
            self.join(group, f"{group}-static-b", instance=f"{group}-0")

    def _wait_for(self, member: Actor, name: str) -> None:
        wait_until(lambda: member.owned > 0, f"{name} owns something")

    def _owned(self, group: str) -> int:
        return sum(member.owned for name, member in self.members.items() if name.startswith(group))

    def _produce(self) -> None:
        config = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "client.id": "shop",
            "statistics.interval.ms": 500,
        }
        producer = create_instrumented(Producer, config, registry=self._registries["billing"])
        topics = itertools.cycle(TOPICS)
        while not self._over.wait(0.02):
            with contextlib.suppress(BufferError):
                producer.produce(next(topics), b"a message")
            producer.poll(0)
        producer.flush(PATIENCE_SECONDS)
