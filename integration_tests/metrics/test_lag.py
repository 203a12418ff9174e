"""Members, exporter, commands, pipeline and report give the same lag, which is that counted by hand."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined] # it exports it
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from groupwright.cli._cluster.client import Cluster
from groupwright.cli.app import app
from groupwright.cli.exporter import catalogue
from groupwright.cli.exporter.admin_source import AdminSource
from groupwright.cli.exporter.limits import GroupLimit, Patterns
from groupwright.cli.exporter.state import ExporterState, Options
from groupwright.consumer import Consumer
from groupwright.instrumentation import create_instrumented
from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline._jobs import derive
from groupwright.pipeline.jobs import FEW_ROWS, Settings, local_session, run_batch
from groupwright.pipeline.report import write_report
from groupwright.testing import Kafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until
from integration_tests.metrics.conftest import Value

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MESSAGES = 5
"""Messages to read in each topic."""
HELD = 40
"""Messages of the transaction that stays open."""
ABORTED = 5 * (3 + 1)
"""Offsets of five aborted transactions with three messages each."""
PROTOCOLS: dict[str, dict[str, Any]] = {
    "classic": {"heartbeat.interval.ms": 200},
    "consumer": {"group.protocol": "consumer"},
}
Lags = dict[str, int]
"""Messages by topic."""


@dataclass(frozen=True)
class Logs:
    """A topic of each kind, with one partition.

    Attributes:
        plain: Without transactions.
        compacted: With gaps.
        aborted: Ends with aborted transactions.
        open: Ends with an open transaction.
    """

    plain: str = "lag-plain"
    compacted: str = "lag-compacted"
    aborted: str = "lag-aborted"
    open: str = "lag-open"

    @property
    def all(self) -> tuple[str, ...]:
        return self.plain, self.compacted, self.aborted, self.open


@pytest.fixture(scope="module")
def logs(kafka: Kafka) -> Iterator[Logs]:
    """The topics, each with messages to read."""
    made, servers = Logs(), {"bootstrap.servers": kafka.bootstrap_servers}
    compaction = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    for topic in made.all:
        kafka.create_topic(topic, 1, compaction if topic == made.compacted else None)
    plain = Producer(servers)
    for number in range(MESSAGES):
        plain.produce(made.plain, b"x")
        plain.produce(made.compacted, b"x", key=str(number))
    assert plain.flush(PATIENCE) == 0
    compact(kafka, plain, made.compacted)
    with ExitStack() as cleanup:
        for topic in (made.aborted, made.open):
            producer = Producer({**servers, "transactional.id": topic, "transaction.timeout.ms": 600_000})
            producer.init_transactions(PATIENCE)
            begin(producer, topic, MESSAGES)
            producer.commit_transaction(PATIENCE)
            if topic == made.open:
                begin(producer, topic, HELD)
                cleanup.callback(producer.abort_transaction, PATIENCE)
            else:
                for _ in range(5):
                    begin(producer, topic, 3)
                    producer.abort_transaction(PATIENCE)
        yield made


def begin(producer: Producer, topic: str, messages: int) -> None:
    producer.begin_transaction()
    for _ in range(messages):
        producer.produce(topic, b"x")
    assert producer.flush(PATIENCE) == 0


def compact(kafka: Kafka, producer: Producer, topic: str) -> None:
    """Write one key again until compaction has removed some of its messages."""
    deadline = time.monotonic() + PATIENCE
    while len(readable(kafka, topic)) == end(kafka, topic):
        assert time.monotonic() < deadline, "the log is not compacted"
        producer.produce(topic, b"again", key="0")
        assert producer.flush(PATIENCE) == 0


def end(kafka: Kafka, topic: str, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED) -> int:
    """Return the last stable offset, or the high watermark."""
    request = {TopicPartition(topic, 0): OffsetSpec.latest()}  # type: ignore[no-untyped-call] # confluent-kafka's gap
    (future,) = kafka.admin().list_offsets(request, isolation_level=isolation).values()
    return int(future.result(PATIENCE).offset)


def readable(kafka: Kafka, topic: str) -> list[int]:
    """Return the offsets of the messages that a consumer with `read_committed` gets."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "by-hand",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while (message := consumer.poll(PATIENCE)) is not None and message.error() is None:
        found.append(int(message.offset() or 0))
    consumer.close()
    assert message is not None
    return found


class Member:
    """A member of a group, which reads as far as it is told."""

    def __init__(self, consumer: Any, ends: Mapping[str, int]) -> None:
        self.consumer = consumer
        self._ends = ends
        self._positions = dict.fromkeys(ends, 0)
        consumer.subscribe(list(ends))

    def read(self, positions: Mapping[str, int]) -> None:
        """Read each topic up to a position, and commit it."""
        if self.consumer.assignment():
            self.consumer.resume([TopicPartition(topic, 0) for topic in self._ends])
        wait_until(lambda: self._read(positions), "the messages")
        offsets = [TopicPartition(topic, 0, position) for topic, position in positions.items()]
        self.consumer.commit(offsets=offsets, asynchronous=False)

    def shows(self, metric: str, lags: Lags, value: Value, **labels: str) -> bool:
        """Poll, and return whether the metric shows these lags."""
        self.consumer.poll(0)
        return {topic: value("reader", metric, topic=topic, **labels) for topic in self._ends} == lags

    def _read(self, positions: Mapping[str, int]) -> bool:
        message = self.consumer.poll(0.1)
        if message is not None:
            assert message.error() is None
            topic = str(message.topic())
            self._positions[topic] = int(message.offset() or 0) + 1
            if self._positions[topic] == positions[topic] < self._ends[topic]:
                self.consumer.pause([TopicPartition(topic, 0)])
        return self._positions == positions


@pytest.fixture
def start(kafka: Kafka, group: str, registry: CollectorRegistry) -> Iterator[Callable[..., Member]]:
    """Start an instrumented member of the test's group."""
    with ExitStack() as members:

        def make(client: Any, settings: Mapping[str, Any], ends: Mapping[str, int]) -> Member:
            config = {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": group,
                "client.id": "reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "statistics.interval.ms": 100,
                **settings,
            }
            consumer = create_instrumented(client, config, registry=registry)
            members.callback(consumer.close)
            return Member(consumer, ends)

        yield make


def of_exporter(cluster: Cluster, group: str, spec: catalogue.ExporterSpec) -> Lags:
    snapshot = AdminSource(cluster, GroupLimit(Patterns.of([group], []), 1)).snapshot()
    samples = ExporterState(Options()).update(snapshot).samples[spec]
    return {topic: int(value) for (_, topic), value in samples.items()}


def of_command(*arguments: str, kafka: Kafka) -> Any:
    """Return the document that a command prints."""
    environment = {"GROUPWRIGHT_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
    result = CliRunner().invoke(app, [*arguments, "--output", "json"], env=environment)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("client", [confluent_kafka.Consumer, Consumer])
def test_the_lag_is_that_counted_by_hand_wherever_it_is_shown(
    kafka: Kafka,
    logs: Logs,
    group: str,
    value: Value,
    start: Callable[..., Member],
    client: Any,
    protocol: str,
) -> None:
    """A member reads a part of the messages, then all of them."""
    offsets = {topic: readable(kafka, topic) for topic in logs.all}
    parts = {topic: found[2] + 1 for topic, found in offsets.items()}
    everything = {topic: found[-1] + 1 for topic, found in offsets.items()}
    stable = {topic: end(kafka, topic) for topic in logs.all}
    marker = 1
    assert end(kafka, logs.open, IsolationLevel.READ_UNCOMMITTED) == MESSAGES + marker + HELD
    assert stable[logs.open] == MESSAGES + marker
    assert stable[logs.aborted] == MESSAGES + marker + ABORTED

    member = start(client, PROTOCOLS[protocol], everything)
    for positions in (parts, everything):
        member.read(positions)
        by_hand = {
            topic: stable[topic] - position if position <= offsets[topic][-1] else 0
            for topic, position in positions.items()
        }

        rows = of_command("lag", group, "--by", "topic", kafka=kafka)
        described = of_command("describe", group, kafka=kafka)
        watched = of_command("watch", group, "--once", kafka=kafka)
        with Cluster({"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
            exported = of_exporter(cluster, group, catalogue.LAG)
            held = of_exporter(cluster, group, catalogue.HELD)
        assert {row["topic"]: row["messages"] for row in rows} == by_hand
        assert {row["topic"]: row["lag"] for row in described["partitions"]} == by_hand
        assert exported == by_hand
        assert watched["lag"]["messages"] == described["lag"] == sum(by_hand.values())
        assert held == {topic: HELD if topic == logs.open else 0 for topic in logs.all}
        wait_until(partial(member.shows, "lag", by_hand, value), "the member to show it")
        # From the committed offset, markers and aborted messages count: the application commits none of them.
        to_the_end = {topic: stable[topic] - position for topic, position in positions.items()}
        wait_until(partial(member.shows, "committed_lag", to_the_end, value), "the committed lag")


@pytest.mark.endurance
def test_the_pipeline_and_its_report_have_the_lag_that_the_exporter_and_members_have(
    kafka: Kafka,
    logs: Logs,
    group: str,
    value: Value,
    start: Callable[..., Member],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Markers and aborted messages count: the pipeline has committed offsets, and reads no messages."""
    for other in ("rebalances", "states", "churn"):  # take most of a job's time
        monkeypatch.setattr(derive, f"_derive_{other}", lambda *_: None)
    offsets = {topic: readable(kafka, topic) for topic in logs.all}
    everything = {topic: found[-1] + 1 for topic, found in offsets.items()}
    parts = {topic: found[2] + 1 for topic, found in offsets.items()}
    by_hand: dict[str, Lags] = {}
    for protocol, positions in (("classic", parts), ("consumer", everything)):
        name = f"{group}-{protocol}"
        member = start(Consumer, {**PROTOCOLS[protocol], "group.id": name}, everything)
        member.read(positions)
        by_hand[name] = {topic: end(kafka, topic) - position for topic, position in positions.items()}
        shows = partial(member.shows, "committed_lag", by_hand[name], value, group=name)
        wait_until(shows, "the committed lag")
        with Cluster({"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
            exported = [of_exporter(cluster, name, each) for each in (catalogue.LAG, catalogue.UNREADABLE)]
        assert {topic: sum(each[topic] for each in exported) for topic in logs.all} == by_hand[name]

    with local_session("lag", settings=FEW_ROWS) as spark:
        tables = open_tables(spark, str(tmp_path / "tables"))
        settings = Settings(bootstrap_servers=kafka.bootstrap_servers, tables=str(tmp_path / "tables"))
        run_batch(spark, settings)
        sampled = tables.read(schemas.LAG).where(f"group_id in {tuple(by_hand)}")
        rows = {(row.group_id, row.topic): row.lag_messages for row in sampled.collect()}
        lag = {schemas.LAG.name: tables.read(schemas.LAG)}
        page = write_report(lag, tmp_path / "report.html", made_at=datetime.now(UTC)).read_text()
    assert rows == {(name, topic): lag for name, lags in by_hand.items() for topic, lag in lags.items()}
    shown = re.findall(r'<b title="([^"]+)">.*?</b>peak (\d+), at the last sample (\d+)', page)
    totals = {name: str(sum(lags.values())) for name, lags in by_hand.items()}
    assert {name: (peak, last) for name, peak, last in shown if name in totals} == {
        name: (total, total) for name, total in totals.items()
    }
