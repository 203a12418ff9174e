"""Groups on a real Kafka, of Groupwright's and of plain consumers, and events for dashboards and alerts."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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
_COMMIT_SECONDS = 1.0
_STALL_EVERY = 4
_SHOWN_SECONDS = 3.0
"""Time that a slow rebalance stays the last one, for Prometheus to scrape it more than once."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A group of the scene.

    Attributes:
        make: Creates its members' consumers.
        topics: Its topics, with their numbers of partitions.
        config: The members' settings, such as that of the assignor.
        callback_seconds: Duration of each member's rebalance callbacks.
        messages_per_second: Rate of its topics' producer; 0 for none.
    """

    make: Any
    topics: Mapping[str, int]
    config: Mapping[str, Any]
    callback_seconds: tuple[float, ...] = (0.05, 0.05, 0.2)
    messages_per_second: float = 0


GROUPS = {
    "billing": GroupPlan(
        Consumer,
        TOPICS,
        {
            "partition.assignment.strategy": LoadAwareAssignor(weights=Throughput(window=10)),
            "load.check.interval.ms": 1000,
        },
        messages_per_second=50,
    ),
    "mail": GroupPlan(confluent_kafka.Consumer, TOPICS, {"partition.assignment.strategy": "range"}),
}
"""The two groups of a storm."""
_CONFIG = {
    "enable.auto.commit": False,
    "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 300,
    "max.poll.interval.ms": int(_MAX_POLL_SECONDS * 1000),
    "statistics.interval.ms": 500,
}


class Application:
    """A member's application: it processes messages, and spends some time in its callbacks.

    Attributes:
        commits: Whether it commits every second.
    """

    def __init__(self, callback_seconds: float) -> None:
        """Create the application; `callback_seconds` is the duration of its callbacks."""
        self._stall, self._over = threading.Event(), threading.Event()
        self.commits = True
        self._is_committed, self._committed_at = True, 0.0
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
        self._is_committed = self._is_committed and not messages
        stalls = bool(messages) and self._stall.is_set()
        if stalls:
            self._stall.clear()
            self._spend(_MAX_POLL_SECONDS * 1.5)
        is_due = not self._is_committed and time.monotonic() >= self._committed_at + _COMMIT_SECONDS
        if self.commits and (stalls or is_due):
            self._is_committed, self._committed_at = True, time.monotonic()
            # A commit that is rejected is what a storm is about; the consumer says so in its metrics.
            with contextlib.suppress(KafkaException, RuntimeError):
                consumer.commit(asynchronous=not stalls)


@contextlib.contextmanager
def exporting(servers: str, port: int = 0, options: Options | None = None) -> Iterator[int]:
    """Run the exporter for the block, and return its port; 0 chooses a free one."""
    settings, groups = {"bootstrap.servers": servers}, GroupLimit(Patterns(), 100)
    status = ExporterStatus("0.1.0", "offsets-topic")
    pages = Pages(lambda: text(status.samples()))
    server = HttpServer(_HOST, port, pages)
    with Cluster(settings) as cluster, contextlib.closing(OffsetsLog(settings, PATIENCE_SECONDS)) as log:
        status.records = log.content.records
        source = OffsetsTopicSource(cluster, groups, log)
        refresher = Refresher(source, ExporterState(options or Options()), status, pages, interval=1.0)
        server.start()
        refresher.start()
        try:
            yield server.port
        finally:
            refresher.stop(PATIENCE_SECONDS)
            server.close()


class Scene:
    """Groups with their members and producers, the exporter, and the status of a pipeline."""

    def __init__(
        self,
        kafka: LocalKafka,
        groups: Mapping[str, GroupPlan] = GROUPS,
        *,
        config: Mapping[str, Any] | None = None,
        options: Options | None = None,
        pipeline: bool = True,
    ) -> None:
        """Create the scene.

        Args:
            kafka: A broker with the settings `BROKER`.
            groups: Its groups by name.
            config: Settings of all members, which override the scene's.
            options: The exporter's.
            pipeline: Whether a pipeline, which has found a loss and odd records, shows its status.
        """
        self.kafka = kafka
        self.targets: dict[str, int] = {}
        """The ports that serve metrics, by job."""
        self._plans = groups
        self._config = {**_CONFIG, **(config or {})}
        self._options = options
        self._pipeline = pipeline
        self._registries = {group: CollectorRegistry() for group in groups}
        self._events: EventSink = to_callback(lambda _: None)
        self._groups: dict[str, LoadedGroup] = {}
        self._members: dict[str, tuple[Member, Application]] = {}
        self._started = itertools.count(1)
        self._pause = threading.Event()
        self._exporter = contextlib.ExitStack()
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Create topics, serve metrics, produce, and start all members."""
        with self._cleanup:
            for topic, partitions in {
                topic: number for plan in self._plans.values() for topic, number in plan.topics.items()
            }.items():
                self.kafka.create_topic(topic, partitions=partitions)
            self._cleanup.callback(self._events.close)
            self._cleanup.enter_context(self._exporter)
            self.start_exporter()
            for group, registry in self._registries.items():
                server, _ = start_http_server(0, addr=_HOST, registry=registry)
                self._cleanup.callback(server.server_close)
                self._cleanup.callback(server.shutdown)
                self.targets[group] = server.server_port
                self._groups[group] = self._cleanup.enter_context(self._group(group))
                for number, seconds in enumerate(self._plans[group].callback_seconds, 1):
                    self.join(group, f"{group}-{number}", callback_seconds=seconds)
            self.settle()
            if self._pipeline:
                self.targets["stream"] = self._cleanup.enter_context(stream_status())
            self._cleanup = self._cleanup.pop_all()
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
        """Wait until each partition has one owner, in all groups with members."""
        for group in self._groups.values():
            if group.members:
                group.wait_until_settled()

    def members(self, group: str) -> list[Member]:
        """Return the members of a group."""
        return list(self._groups[group].members)

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

    def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions."""
        return max(plan.topics.get(topic, 0) for plan in self._plans.values())

    def replace(self, *groups: str) -> None:
        """Replace each member by a new one, as a deployment does: the new one first, one after the other."""
        for olds in itertools.zip_longest(*map(self.members, groups)):
            pairs = [(group, old) for group, old in zip(groups, olds, strict=True) if old is not None]
            new = [(group, self.join(group, f"{group}-new-{next(self._started)}")) for group, _ in pairs]
            for group, member in new:
                self._wait_for(group, member)
            for group, old in pairs:
                self.leave(group, old.name)
            self.settle()

    def commit(self, group: str, *, enabled: bool) -> None:
        """Make the applications of a group commit, or process without committing."""
        for member in self.members(group):
            self._members[member.name][1].commits = enabled

    def start_exporter(self) -> None:
        """Start the exporter, on the same port each time."""
        exporter = exporting(self.kafka.bootstrap_servers, self.targets.get("exporter", 0), self._options)
        self.targets["exporter"] = self._exporter.enter_context(exporter)

    def stop_exporter(self) -> None:
        """Stop the exporter."""
        self._exporter.close()

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
            self.flap(_SHOWN_SECONDS if stalls else 0.0)
            if over():
                return

    def flap(self, stay_seconds: float, groups: Iterable[str] | None = None) -> None:
        """Start a fourth member in each group, and stop it some time after it owns partitions."""
        visitors = {group: self.join(group, f"{group}-4") for group in groups or self._groups}
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
        registry, plan = self._registries[group], self._plans[group]
        return LoadedGroup(
            self.kafka,
            plan.topics,
            lambda config: create_instrumented(
                plan.make, config, registry=registry, events=[self._events], lag_by_partition=True
            ),
            group_id=group,
            config={**self._config, **plan.config},
            messages_per_second=plan.messages_per_second,
            producer=lambda config: create_instrumented(Producer, config, registry=registry),
            # Its messages may be late while the broker restarts.
            producer_config={"client.id": "shop", "statistics.interval.ms": 500},
            patience=PATIENCE_SECONDS,
        )
