"""Two groups on a real Kafka, of Groupwright's and of plain consumers, and the events for the dashboards."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaException, Message, Producer
from prometheus_client import CollectorRegistry, start_http_server

from charts.live.prometheus import PATIENCE_SECONDS
from charts.live.stream import stream_status
from groupwright.assignors import LoadAwareAssignor, Throughput
from groupwright.cli._cluster.client import Cluster
from groupwright.cli.exporter.exposition import text
from groupwright.cli.exporter.limits import GroupLimit, Patterns
from groupwright.cli.exporter.offsets_topic_source import OffsetsLog, OffsetsTopicSource
from groupwright.cli.exporter.refresher import Refresher
from groupwright.cli.exporter.server import Pages
from groupwright.cli.exporter.state import ExporterState, Options
from groupwright.cli.exporter.status import ExporterStatus
from groupwright.consumer import Consumer
from groupwright.core.http_server import HttpServer
from groupwright.instrumentation import EventSink, create_instrumented, to_callback
from groupwright.testing import LocalKafka
from groupwright.testing.groups import Hooks, LoadedGroup, Member

BROKER = {"group.min.session.timeout.ms": 1000}
"""Settings of the broker, which allow short sessions."""
TOPICS = {"orders": 12, "refunds": 6}

_HOST = "127.0.0.1"
_MAX_POLL_SECONDS = 3.0
_COMMIT_EVERY = 40
_STALL_EVERY = 4
_SHOWN_SECONDS = 3.0
"""Time that a slow rebalance stays the last one, for Prometheus to scrape it more than once."""
_CLIENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "billing": (
        Consumer,
        {
            "partition.assignment.strategy": LoadAwareAssignor(weights=Throughput(window=10)),
            "load.check.interval.ms": 1000,
        },
    ),
    "mail": (confluent_kafka.Consumer, {"partition.assignment.strategy": "range"}),
}
"""Each group's consumers, and the settings of their assignor."""


class Application:
    """A member's application: it processes messages, and spends some time in its callbacks."""

    def __init__(self, callback_seconds: float) -> None:
        """Create the application; `callback_seconds` is the duration of its callbacks."""
        self._stall, self._over = threading.Event(), threading.Event()
        self._consumed = itertools.count(1)
        self.hooks = Hooks(
            on_assign=lambda _: self._spend(callback_seconds / 2),
            on_revoke=lambda _: self._spend(callback_seconds),
            on_lost=lambda _: self._spend(callback_seconds),
            on_messages=self._process,
        )

    def stall(self) -> None:
        """Exceed `max.poll.interval.ms` once."""
        self._stall.set()

    def end(self) -> None:
        """End all waiting."""
        self._over.set()

    def _spend(self, seconds: float) -> None:
        self._over.wait(seconds)

    def _process(self, consumer: Any, messages: list[Message]) -> None:
        for message in messages:
            stalls = self._stall.is_set()
            if stalls:
                self._stall.clear()
                self._spend(_MAX_POLL_SECONDS * 1.5)
            if next(self._consumed) % _COMMIT_EVERY == 0 or stalls:
                # A commit that is rejected is what the scene is about; the consumer says so in its metrics.
                with contextlib.suppress(KafkaException, RuntimeError):
                    consumer.commit(message=message, asynchronous=False)


@contextlib.contextmanager
def exporting(servers: str) -> Iterator[int]:
    """Run the exporter for the block, and return its port."""
    settings, groups = {"bootstrap.servers": servers}, GroupLimit(Patterns(), 100)
    status = ExporterStatus("0.1.0", "offsets-topic")
    pages = Pages(lambda: text(status.samples()))
    server = HttpServer(_HOST, 0, pages)
    with Cluster(settings) as cluster, contextlib.closing(OffsetsLog(settings, PATIENCE_SECONDS)) as log:
        status.records = log.content.records
        source = OffsetsTopicSource(cluster, groups, log)
        refresher = Refresher(source, ExporterState(Options()), status, pages, interval=1.0)
        server.start()
        refresher.start()
        try:
            yield server.port
        finally:
            refresher.stop(PATIENCE_SECONDS)
            server.close()


class Scene:
    """Groups ``billing`` (Groupwright) and ``mail`` (confluent-kafka), three members each, and a producer."""

    def __init__(self, kafka: LocalKafka) -> None:
        """Create the scene on a broker with the settings `BROKER`."""
        self.kafka = kafka
        self.targets: dict[str, int] = {}
        """The ports that serve metrics, by job."""
        self._registries = {group: CollectorRegistry() for group in _CLIENTS}
        self._events: EventSink = to_callback(lambda _: None)
        self._groups: dict[str, LoadedGroup] = {}
        self._members: dict[str, tuple[Member, Application]] = {}
        self._pause = threading.Event()
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Create topics, serve metrics, produce, and start all members."""
        for topic, partitions in TOPICS.items():
            self.kafka.create_topic(topic, partitions=partitions)
        self._cleanup.callback(self._events.close)
        self.targets["exporter"] = self._cleanup.enter_context(exporting(self.kafka.bootstrap_servers))
        for group, registry in self._registries.items():
            server, _ = start_http_server(0, addr=_HOST, registry=registry)
            self._cleanup.callback(server.server_close)
            self._cleanup.callback(server.shutdown)
            self.targets[group] = server.server_port
            self._groups[group] = self._cleanup.enter_context(self._group(group))
            for number, callback_seconds in ((1, 0.05), (2, 0.05), (3, 0.2)):
                self.join(group, f"{group}-{number}", callback_seconds=callback_seconds)
        self.settle()
        self.targets["stream"] = self._cleanup.enter_context(stream_status())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End everything."""
        for _, application in self._members.values():
            application.end()
        self._cleanup.close()

    def settle(self) -> None:
        """Wait until each partition has one owner, in both groups."""
        for group in self._groups.values():
            group.wait_until_settled()

    def join(
        self, group: str, name: str, *, callback_seconds: float = 0.05, instance: str | None = None
    ) -> Member:
        """Start a new member."""
        application = Application(callback_seconds)
        static = {} if instance is None else {"group.instance.id": instance}
        member = self._groups[group].start_member(name, static, hooks=application.hooks)
        self._members[name] = member, application
        return member

    def leave(self, group: str, name: str) -> None:
        """Stop a member."""
        member, application = self._members.pop(name)
        application.end()
        self._groups[group].leave(member)

    def restart_broker(self) -> None:
        """Crash and restart the broker, and wait until the groups have settled again."""
        # After a clean shutdown, librdkafka's consumers may never reconnect: see `LocalKafka.stop`.
        self.kafka.kill()
        self.kafka.start()
        self.settle()

    def storm(self, over: Callable[[], bool]) -> None:
        """Make members join, leave, poll too late and fence each other, until `over` returns True."""
        self._fence()
        for number in itertools.count():
            stalls = number % _STALL_EVERY == 0
            if stalls:
                for group in self._groups:
                    self._members[f"{group}-3"][1].stall()
            self._flap(_SHOWN_SECONDS if stalls else 0.0)
            if over():
                return

    def _flap(self, stay_seconds: float) -> None:
        """Start a fourth member in each group, and stop it some time after it owns partitions."""
        visitors = {group: self.join(group, f"{group}-4") for group in self._groups}
        for group, member in visitors.items():
            self._wait_for(group, member)
        self._pause.wait(stay_seconds)
        for group, member in visitors.items():
            self.leave(group, member.name)

    def _fence(self) -> None:
        """Start two members with the same instance id in each group; the second one fences the first."""
        for group in self._groups:
            self._wait_for(group, self.join(group, f"{group}-static-a", instance=f"{group}-0"))
        self._pause.wait(_SHOWN_SECONDS)  # the counter of the first ones must be scraped at 0
        for group in self._groups:
            self.join(group, f"{group}-static-b", instance=f"{group}-0")

    def _wait_for(self, group: str, member: Member) -> None:
        self._groups[group].wait_until(lambda: bool(member.owned), f"{member.name} to own partitions")

    def _group(self, group: str) -> LoadedGroup:
        registry = self._registries[group]
        make, assigning = _CLIENTS[group]
        return LoadedGroup(
            self.kafka,
            TOPICS,
            lambda config: create_instrumented(
                make, config, registry=registry, events=[self._events], lag_by_partition=True
            ),
            group_id=group,
            config={
                "enable.auto.commit": False,
                "session.timeout.ms": 3000,
                "heartbeat.interval.ms": 300,
                "max.poll.interval.ms": int(_MAX_POLL_SECONDS * 1000),
                "statistics.interval.ms": 500,
                **assigning,
            },
            messages_per_second=50 if group == "billing" else 0,
            producer=lambda config: create_instrumented(Producer, config, registry=registry),
            # Its messages may be late while the broker restarts.
            producer_config={"client.id": "shop", "statistics.interval.ms": 500},
            patience=PATIENCE_SECONDS,
        )
