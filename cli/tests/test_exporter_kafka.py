"""`groupwright exporter` on a real broker: its page beside the answers of confluent-kafka's own clients."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # it exports them
    AdminClient,
    OffsetSpec,
)
from prometheus_client.parser import text_string_to_metric_families

from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

SOURCES = ("admin", "offsets-topic")
PARTITIONS = 3
OFFSETS_TOPIC = "__consumer_offsets"

pytestmark = pytest.mark.kafka


class RunningExporter:
    """The command as a process, until `stop`."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._errors = directory / f"{uuid.uuid4().hex}.log"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "groupwright.cli", "exporter", "--port", "0", *arguments],
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )
        self._port = 0

    @property
    def log(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    def wait_until_serving(self) -> None:
        wait_until(lambda: "/metrics" in self.log or self._process.poll() is not None, "a port")
        found = re.search(r"serving http://127.0.0.1:(\d+)/metrics", self.log)
        assert found is not None, self.log
        self._port = int(found[1])

    def samples(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """A scrape."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
        connection.close()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.samples().get((f"groupwright_{name}", frozenset(labels.items())))

    def held_messages(self) -> dict[int, float]:
        """The partitions of the offsets topic that are held back."""
        return {
            int(dict(labels)["partition"]): value
            for (name, labels), value in self.samples().items()
            if name == "groupwright_cluster_offsets_topic_held_messages"
        }

    def wait_for(self, condition: Callable[[float | None], bool], name: str, **labels: str) -> float:
        """Scrape until a sample is as it should be."""
        last: list[float | None] = [None]

        def holds() -> bool:
            last[0] = self.value(name, **labels)
            return condition(last[0])

        wait_until(holds, f"{name}{labels}, which was {last[0]}")
        assert last[0] is not None
        return last[0]

    def wait_for_refreshes(self, number: int = 2) -> None:
        """Wait until whole refreshes have begun and succeeded since now."""
        name, outcome = "exporter_refreshes_total", "succeeded"
        before = self.value(name, outcome=outcome) or 0
        self.wait_for(lambda value: (value or 0) >= before + number, name, outcome=outcome)

    def wait_until_stable(self, group: str, members: int) -> None:
        """Wait for a refresh that sees the group at rest with so many members."""
        self.wait_for_refreshes()
        self.wait_for(lambda value: value == members, "cluster_group_members", group=group)
        self.wait_for(lambda value: value == 1, "cluster_group_state", group=group, state="Stable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what a failed test has not stopped."""
        self._process.kill()
        self._process.wait()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        return self._process.wait(PATIENCE)


@dataclass
class Cluster:
    """Groups of all kinds on one topic, which has 20 messages in each partition."""

    kafka: LocalKafka
    topic: str
    admin: AdminClient
    producer: Producer
    members: dict[str, list[Consumer]] = field(default_factory=dict)

    def produce(self, count: int) -> None:
        for number in range(count * PARTITIONS):
            self.producer.produce(self.topic, b"message", partition=number % PARTITIONS)
        assert self.producer.flush(PATIENCE) == 0

    def new_member(self, group: str, **settings: object) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": group,
                "client.id": f"{group}-{len(self.members.get(group, ()))}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "max.poll.interval.ms": 3_600_000,  # most are polled no more
                **({} if "group.protocol" in settings else {"heartbeat.interval.ms": 300}),
                **settings,
            }
        )
        consumer.subscribe([self.topic])
        self.members.setdefault(group, []).append(consumer)
        return consumer

    def settle(self, group: str, owned: int = PARTITIONS) -> None:
        """Poll all members until together they own all partitions."""

        def is_settled() -> bool:
            for member in self.members[group]:
                member.poll(0.05)
            each = [len(member.assignment()) for member in self.members[group]]
            return sum(each) == owned and min(each) > 0

        wait_until(is_settled, f"an assignment of {group}")

    def commit(self, group: str, offset: int) -> None:
        partitions = [TopicPartition(self.topic, number, offset) for number in range(PARTITIONS)]
        self.members[group][0].commit(offsets=partitions, asynchronous=False)

    @contextlib.contextmanager
    def open_transaction(self, group: str) -> Iterator[str]:
        """Hold the group's partition of the offsets topic back by a transaction; abort it at the end."""
        id_ = f"ex-{uuid.uuid4().hex[:4]}"
        settings = {"transactional.id": id_, "transaction.timeout.ms": 900_000}
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers, **settings})
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        try:
            member = self.members[group][0]
            offsets = [TopicPartition(self.topic, 0, 7)]
            producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), PATIENCE)
            yield id_
        finally:
            producer.abort_transaction(PATIENCE)

    # --- What confluent-kafka says ------------------------------------------------------------------

    def committed(self, group: str) -> list[int]:
        request = ConsumerGroupTopicPartitions(group)
        (future,) = self.admin.list_consumer_group_offsets([request]).values()
        return [each.offset for each in future.result(PATIENCE).topic_partitions]

    def ends(self) -> list[int]:
        return [self.end(self.topic, number) for number in range(PARTITIONS)]

    def end(
        self, topic: str, partition: int, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> int:
        request = {TopicPartition(topic, partition): OffsetSpec.latest()}  # type: ignore[no-untyped-call] # confluent-kafka's gap
        (future,) = self.admin.list_offsets(request, isolation_level=isolation).values()
        return int(future.result(PATIENCE).offset)

    def held_messages(self, partition: int) -> int:
        """Return how many records of this partition of the offsets topic an open transaction holds back."""
        committed = self.end(OFFSETS_TOPIC, partition, IsolationLevel.READ_COMMITTED)
        return self.end(OFFSETS_TOPIC, partition) - committed

    def groups(self) -> list[str]:
        listed = self.admin.list_consumer_groups().result(PATIENCE)
        return [each.group_id for each in listed.valid]

    def excluded(self) -> int:
        """Return how many groups the exporters leave out by their names."""
        return sum(not name.startswith("ex-") or name == "ex-excluded" for name in self.groups())

    def state(self, group: str) -> tuple[str, int]:
        (future,) = self.admin.describe_consumer_groups([group]).values()
        described = future.result(PATIENCE)
        return described.state.name, len(described.members)


@pytest.fixture(scope="module")
def cluster(local_kafka: LocalKafka) -> Iterator[Cluster]:
    topic = f"exporter-{uuid.uuid4().hex[:8]}"
    local_kafka.create_topic(topic, PARTITIONS)
    made = Cluster(
        local_kafka,
        topic,
        local_kafka.admin(),
        Producer({"bootstrap.servers": local_kafka.bootstrap_servers, "linger.ms": 0}),
    )
    try:
        made.produce(20)
        made.new_member("ex-classic")
        made.new_member("ex-broker", **{"group.protocol": "consumer"})
        made.new_member("ex-empty")
        made.new_member("ex-frozen")
        for group in ("ex-classic", "ex-broker", "ex-empty", "ex-frozen"):
            made.settle(group)
            made.commit(group, 5)
        made.members.pop("ex-empty")[0].close()
        yield made
    finally:
        for members in made.members.values():
            for member in members:
                member.close()


@pytest.fixture(scope="module")
def exporters(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningExporter]]:
    """One exporter of each source; what the tests do, all of them see."""
    with contextlib.ExitStack() as cleanup:
        running = [
            cleanup.enter_context(
                RunningExporter(
                    tmp_path_factory.mktemp("exporter"),
                    f"--bootstrap-servers={cluster.kafka.bootstrap_servers}",
                    f"--source={source}",
                    "--interval=0.25",
                    "--stuck-seconds=1",
                    "--by-partition",
                    "--group=ex-.*",
                    "--exclude-group=ex-excluded",
                )
            )
            for source in SOURCES
        ]
        for each in running:
            each.wait_until_serving()
            each.wait_for_refreshes(1)
        yield running
        for each in running:
            assert each.stop() == 0
            assert "Traceback" not in each.log
            assert each.log.endswith("INFO stopped\n")


@pytest.mark.parametrize("group", ["ex-classic", "ex-broker", "ex-empty", "ex-frozen"])
def test_states_members_and_lag_are_those_that_confluent_kafka_tells(
    cluster: Cluster, exporters: list[RunningExporter], group: str
) -> None:
    wait_until(lambda: cluster.state(group)[0] in {"STABLE", "EMPTY"}, f"{group} at rest")
    state, members = cluster.state(group)
    ends, committed = cluster.ends(), cluster.committed(group)
    lags = [end - offset for end, offset in zip(ends, committed, strict=True)]
    labels = {"group": group, "topic": cluster.topic}
    for exporter in exporters:
        exporter.wait_for_refreshes()
        assert exporter.value("cluster_group_state", group=group, state=state.title()) == 1
        assert exporter.value("cluster_group_members", group=group) == members == (group != "ex-empty")
        assert exporter.value("cluster_lag", **labels) == sum(lags) > 0
        assert exporter.value("cluster_lag_max", **labels) == max(lags)
        assert exporter.value("cluster_committed_offsets", **labels) == sum(committed)
        assert exporter.value("cluster_topic_end_offsets", topic=cluster.topic) == sum(ends)
        assert exporter.value("cluster_assigned_partitions", **labels) == PARTITIONS * members
        for number, each in enumerate(lags):
            assert exporter.value("cluster_partition_lag", partition=str(number), **labels) == each


def test_seconds_of_lag_are_the_age_of_the_first_uncommitted_message(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    labels = {"group": "ex-classic", "topic": cluster.topic}
    cluster.commit("ex-classic", cluster.ends()[0])
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 0, "cluster_lag_seconds", **labels)

    refreshed = "exporter_last_refresh_timestamp_seconds"
    before = [exporter.value(refreshed) or 0.0 for exporter in exporters]
    cluster.produce(4)
    end = sum(cluster.ends())
    for exporter, last_without in zip(exporters, before, strict=True):
        exporter.wait_for(lambda value: value == end, "cluster_topic_end_offsets", topic=cluster.topic)
        first_with = exporter.value(refreshed) or 0.0
        exporter.wait_for(lambda value: (value or 0) > 1, "cluster_lag_seconds", **labels)

        def is_of_the_message(
            exporter: RunningExporter = exporter, since: float = last_without, until: float = first_with
        ) -> bool:
            """The message came between these two refreshes."""
            page = exporter.samples()
            seconds = page["groupwright_cluster_lag_seconds", frozenset(labels.items())]
            now = page[f"groupwright_{refreshed}", frozenset()]
            return now - until - 0.001 <= seconds <= now - since + 0.001

        # The page of a refresh is served a moment before its timestamp.
        wait_until(is_of_the_message, "the message's age")
        assert exporter.value("cluster_lag_seconds_unknown_partitions", **labels) == 0


@pytest.mark.parametrize("group", ["ex-classic", "ex-broker"])
def test_members_that_join_and_leave_are_rebalances(
    cluster: Cluster, exporters: list[RunningExporter], group: str
) -> None:
    names = ("rebalances_total", "generation_changes_total", "generation")

    def counts(exporter: RunningExporter) -> list[float | None]:
        return [exporter.value(f"cluster_group_{name}", group=group) for name in names]

    before = [counts(exporter) for exporter in exporters]
    protocol = {"group.protocol": "consumer"} if group == "ex-broker" else {}
    joined = cluster.new_member(group, **protocol)
    cluster.settle(group)
    for exporter in exporters:
        exporter.wait_until_stable(group, 2)
    cluster.members[group].remove(joined)
    joined.close()
    cluster.settle(group)
    for exporter, (rebalances, changes, generation) in zip(exporters, before, strict=True):
        exporter.wait_until_stable(group, 1)
        rebalances_now, changes_now, generation_now = counts(exporter)
        assert rebalances_now == (rebalances or 0) + 2
        assert changes_now == (changes or 0) + 2
        assert generation_now == (None if generation is None else generation + 2)
    assert counts(exporters[1])[2] is not None


def test_a_group_whose_committed_offset_does_not_move_is_stuck(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    labels = {"group": "ex-frozen", "reason": "no_progress"}
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 1, "cluster_group_stuck", **labels)
        stuck = {"group": "ex-frozen", "topic": cluster.topic}
        exporter.wait_for(lambda value: value == PARTITIONS, "cluster_stuck_partitions", **stuck)
        # A group without members consumes nothing, but nothing in it hangs.
        assert exporter.value("cluster_group_stuck", group="ex-empty", reason="no_progress") == 0

    cluster.commit("ex-frozen", cluster.ends()[0])
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 0, "cluster_group_stuck", **labels)


def test_partitions_without_a_committed_offset_have_their_messages_and_no_lag(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    """A group that fails at its first message: nothing is committed, while messages arrive."""
    cluster.new_member("ex-uncommitted")
    cluster.settle("ex-uncommitted")
    labels = {"group": "ex-uncommitted", "topic": cluster.topic}
    for exporter in exporters:
        exporter.wait_for(lambda value: value == PARTITIONS, "cluster_uncommitted_partitions", **labels)
        exporter.wait_for_refreshes()
        assert exporter.value("cluster_lag", **labels) is None
        messages = exporter.value("cluster_uncommitted_messages", **labels)
        assert messages == sum(cluster.ends())
        assert exporter.value("cluster_group_stuck", group="ex-uncommitted", reason="no_progress") == 0

    cluster.produce(4)
    stuck = {"group": "ex-uncommitted", "reason": "no_progress"}
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 1, "cluster_group_stuck", **stuck)
    cluster.commit("ex-uncommitted", cluster.ends()[0])
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 0, "cluster_group_stuck", **stuck)
        assert exporter.value("cluster_uncommitted_partitions", **labels) == 0
        assert exporter.value("cluster_lag", **labels) == 0
    cluster.members.pop("ex-uncommitted")[0].close()


def test_a_rebalance_that_one_member_holds_up_is_stuck(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    cluster.new_member("ex-held-up")
    cluster.settle("ex-held-up")
    cluster.commit("ex-held-up", 1)
    cluster.new_member("ex-held-up").poll(0)  # which waits for the first, which is not polled any more
    labels = {"group": "ex-held-up", "reason": "rebalancing"}
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 1, "cluster_group_stuck", **labels)
        assert (exporter.value("cluster_group_rebalancing_seconds", group="ex-held-up") or 0) >= 1
        assert exporter.value("cluster_group_state", group="ex-held-up", state="PreparingRebalance") == 1
        of_topic = {"group": "ex-held-up", "topic": cluster.topic}
        assert exporter.value("cluster_committed_offsets", **of_topic) == PARTITIONS
        assert exporter.value("cluster_assigned_partitions", **of_topic) is None

    cluster.settle("ex-held-up")
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 0, "cluster_group_stuck", **labels)
    for member in cluster.members.pop("ex-held-up"):
        member.close()


def test_an_open_transaction_holds_the_offsets_topic_back(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    for exporter in exporters:
        exporter.wait_for(lambda value: value == 0, "cluster_offsets_topic_held_partitions")
    with cluster.open_transaction("ex-broker") as id_:
        cluster.commit("ex-broker", 9)
        labels = {"group": "ex-broker", "topic": cluster.topic}
        # The commit after the transaction's beginning counts, and the transaction's own does not.
        assert cluster.committed("ex-broker") == [9] * PARTITIONS
        for exporter in exporters:
            exporter.wait_for_refreshes()
            assert exporter.value("cluster_offsets_topic_held_partitions") == 1
            (partition,) = exporter.held_messages()
            # Any group may write to the partition between a refresh and the look at the broker.
            wait_until(
                lambda exporter=exporter, partition=partition: (  # type: ignore[misc]
                    exporter.held_messages() == {partition: cluster.held_messages(partition)}
                ),
                f"as many messages held back in partition {partition} as the broker has",
            )
            first = exporter.value("cluster_offsets_topic_held_seconds", partition=str(partition)) or 0
            exporter.wait_for(
                lambda value, first=first: (value or 0) > first,  # type: ignore[misc]
                "cluster_offsets_topic_held_seconds",
                partition=str(partition),
            )
            age = exporter.value("cluster_offsets_transaction_age_seconds", transactional_id=id_)
            assert age is not None
            assert age >= 0
            assert exporter.value("cluster_committed_offsets", **labels) == 9 * PARTITIONS

    for exporter in exporters:
        exporter.wait_for(lambda value: value == 0, "cluster_offsets_topic_held_partitions")
        assert exporter.value("cluster_committed_offsets", **labels) == 9 * PARTITIONS
        wait_until(
            lambda exporter=exporter: (  # type: ignore[misc]
                exporter.value("cluster_offsets_transaction_age_seconds", transactional_id=id_) is None
            ),
            "no age of the aborted transaction",
        )


def test_groups_left_out_are_counted_and_deleted_ones_disappear(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    def more_than_listed(exporter: RunningExporter) -> float:
        """Return how many groups are left out, less those that the broker lists: it deletes old ones."""
        left_out = exporter.value("exporter_groups_left_out", reason="excluded") or 0
        return left_out - cluster.excluded()

    for exporter in exporters:
        exporter.wait_for_refreshes()
    before = [more_than_listed(exporter) for exporter in exporters]
    for group in ("ex-excluded", "ex-deleted"):
        cluster.new_member(group)
        cluster.settle(group)
    assert "ex-excluded" in cluster.groups()
    for exporter, number in zip(exporters, before, strict=True):
        exporter.wait_for(lambda value: value == 1, "cluster_group_members", group="ex-deleted")
        wait_until(lambda exporter=exporter, number=number: more_than_listed(exporter) == number, "one more")  # type: ignore[misc]
        assert exporter.value("cluster_group_members", group="ex-excluded") is None

    for group in ("ex-excluded", "ex-deleted"):
        cluster.members.pop(group)[0].close()
        cluster.admin.delete_consumer_groups([group])[group].result(PATIENCE)
    assert "ex-excluded" not in cluster.groups()
    for exporter, number in zip(exporters, before, strict=True):
        exporter.wait_for_refreshes()
        assert exporter.value("cluster_group_members", group="ex-deleted") is None
        wait_until(lambda exporter=exporter, number=number: more_than_listed(exporter) == number, "one less")  # type: ignore[misc]


def test_commits_and_records_are_counted_where_the_log_is_read(
    cluster: Cluster, exporters: list[RunningExporter]
) -> None:
    asking, reading = exporters
    reading.wait_for_refreshes()
    before = reading.value("cluster_group_commits_total", group="ex-broker")
    assert before is not None
    cluster.commit("ex-broker", 10)
    for exporter in exporters:
        exporter.wait_for_refreshes()

    assert reading.value("cluster_group_commits_total", group="ex-broker") == before + PARTITIONS
    assert reading.value("exporter_records_total", outcome="failed") == 0
    assert asking.value("cluster_group_commits_total", group="ex-broker") is None
    assert asking.value("exporter_records_total", outcome="failed") is None


@pytest.mark.parametrize(("source", "number"), [("admin", signal.SIGINT), ("offsets-topic", signal.SIGTERM)])
def test_without_a_broker_it_serves_says_so_and_ends_at_once(
    tmp_path: Path, number: int, source: str
) -> None:
    nowhere = ("--bootstrap-servers=127.0.0.1:1", f"--source={source}", "--interval=0.2", "--timeout=1")
    with RunningExporter(tmp_path, *nowhere) as running:
        running.wait_until_serving()
        running.wait_for(lambda value: (value or 0) >= 2, "exporter_refreshes_total", outcome="failed")

        assert running.value("exporter_up") == 0
        assert running.value("exporter_last_refresh_timestamp_seconds") == 0
        assert "the refresh failed: cannot query the cluster at 127.0.0.1:1" in running.log
        assert running.stop(number) == 0
        assert "Traceback" not in running.log
