"""Jobs whose topics are recreated, expire, are restored or grow, and jobs that have lost their state."""

import json
import shutil
import threading
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from groupwright.pipeline import Batch, PipelineError, Tables, open_tables, schemas
from groupwright.pipeline._jobs import batch, positions, stream
from groupwright.pipeline._jobs.kafka import connected
from groupwright.pipeline._jobs.samples import EndOffsets, end_offset_rows
from groupwright.pipeline._jobs.state import BatchRange, State
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline.jobs import Settings, run_stream
from groupwright.testing import Listener, LocalKafka, Security
from groupwright.testing._kafka.ports import free_port
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow
from integration_tests.harness.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def produce_events(kafka: LocalKafka, topic: str, number: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for _ in range(number):
        event = {"id": str(uuid.uuid4()), "group": "billing", "ended_at": datetime.now(UTC).isoformat()}
        producer.produce(topic, json.dumps(event).encode(), partition=partition)
    assert producer.flush(PATIENCE) == 0


def commit(kafka: LocalKafka, group: str, number: int, topic: str = "orders") -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    for offset in range(number):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def delete_topic(kafka: LocalKafka, topic: str) -> None:
    admin = kafka.admin()
    admin.delete_topics([topic])[topic].result(PATIENCE)
    wait_until(lambda: topic not in admin.list_topics(timeout=PATIENCE).topics, f"{topic} is deleted")


@pytest.fixture(scope="module")
def orders(kafka: LocalKafka) -> None:
    kafka.create_topic("orders", partitions=1)
    commit(kafka, "billing", 5)


@pytest.fixture
def base_tables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the derived tables, which take most of a job's time."""
    for job in (batch, stream):
        monkeypatch.setattr(job, "derive", lambda *_, **__: None)


def job_arguments(kafka: LocalKafka, tables: Path, events: str) -> tuple[str, ...]:
    """Return the arguments of a job that samples no log-end offsets."""
    return (
        f"bootstrap_servers={kafka.bootstrap_servers}",
        f"tables={tables}",
        f"events_topic={events}",
        "end_offsets_seconds=0",
    )


@pytest.mark.endurance
@pytest.mark.usefixtures("orders", "base_tables_alone")
def test_a_loss_stops_the_job_until_it_is_told_to_go_on(
    kafka: LocalKafka, run_job: Callable[..., str], spark: SparkSession, tmp_path: Path
) -> None:
    events = "events-that-get-lost"
    kafka.create_topic(events)
    produce_events(kafka, events, 5)
    where = (*job_arguments(kafka, tmp_path, events), "max_offsets_per_trigger=1000")
    tables = open_tables(spark, str(tmp_path))

    def number_of(table: schemas.Table) -> int:
        return tables.read(table).count()

    run_job("batch", *where)
    commits = number_of(schemas.OFFSET_COMMITS)
    assert (commits, number_of(schemas.CLIENT_EVENTS)) == (5, 5)

    # The state is lost: nothing is read again.
    shutil.rmtree(tmp_path / "_state")
    assert "0 records added" in run_job("batch", *where)

    # A batch was added, its job was killed before it said so, and some of its records have expired since.
    kafka.delete_records(events, before=3)
    assert low_watermark(kafka, events) == 3
    State(Folder(spark, str(tmp_path / "_state")), MagicMock()).begin(
        BatchRange(Batch("b", 0), {events: {0: 1}}, {events: {0: 5}})
    )
    assert "0 records added" in run_job("batch", *where)
    assert not (tmp_path / "_state" / "pending.json").exists()

    # Records expire before they are read.
    produce_events(kafka, events, 4)
    kafka.delete_records(events, before=7)
    assert low_watermark(kafka, events) == 7
    failed = run_job("batch", *where, exit_code=1)
    assert f"2 offsets of {events} were deleted before they were read" in failed
    assert "2 records added" in run_job("batch", *where, "on_data_loss=restart")

    # The topic is restored from an older copy: its end is below the tables' position.
    before = positions.load(tables)
    at = replace(before.topics[events], offsets={0: 1000})
    ahead = replace(before, sequence=before.sequence + 1, topics={**before.topics, events: at})
    tables.add(schemas.READ_POSITIONS, positions.frame(spark, ahead), Batch("a restored log", 0))
    assert "was truncated or restored" in run_job("batch", *where, exit_code=1)
    produce_events(kafka, events, 3)
    run_job("batch", *where, "on_data_loss=restart")
    assert offsets_of(tables) == {*range(5), *range(7, 12)}

    # Both topics are recreated, and the events' topic grows beyond the old position.
    delete_topic(kafka, events)
    kafka.create_topic(events)
    produce_events(kafka, events, 30)
    delete_topic(kafka, "__consumer_offsets")
    commit(kafka, "shipping", 3)
    failed = run_job("batch", *where, exit_code=1)
    assert f"{events} was deleted and created again: its topic id is" in failed
    assert "__consumer_offsets was deleted and created again: its topic id is" in failed
    assert "set on_data_loss=restart to read the new topic from its beginning" in failed
    assert "33 records added" in run_job("batch", *where, "on_data_loss=restart")
    assert number_of(schemas.OFFSET_COMMITS) == commits + 3
    assert "0 records added" in run_job("batch", *where)


@pytest.mark.endurance
@pytest.mark.usefixtures("orders")
def test_a_running_stream_reads_new_partitions_and_stops_at_a_recreated_topic(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Its metrics show what it reads, and that nothing is left to read after a transaction's marker."""
    events = "events-that-grow"
    kafka.create_topic(events)
    produce_events(kafka, events, 2)
    port = free_port()
    settings = Settings(
        bootstrap_servers=kafka.bootstrap_servers,
        tables=str(tmp_path),
        events_topic=events,
        end_offsets_seconds=0,
        trigger_seconds=0.2,
        derive_seconds=3600,
        stop_seconds=1,
        metrics_address=f"127.0.0.1:{port}",
        # Spark waits so long for a deleted topic, three times.
        kafka={"default.api.timeout.ms": "5000", "request.timeout.ms": "5000"},
    )
    lines: list[str] = []
    failures: list[PipelineError] = []

    def follow() -> None:
        try:
            run_stream(spark, settings, stop, lines.append)
        except PipelineError as error:
            failures.append(error)

    def has_read(number: int) -> bool:
        assert not failures
        return any(f"client_event {number}" in line for line in lines)

    stop = threading.Event()
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        wait_until(lambda: has_read(2), "the first events are read")
        kafka.admin().create_partitions([NewPartitions(events, 2)])[events].result(PATIENCE)
        produce_events(kafka, events, 7, partition=1)
        wait_until(lambda: has_read(7), "those of the new partition are read")
        produce_in_transaction(kafka, events, b"no event")
        wait_until(lambda: has_read(1), "the record of a transaction is read")
        wait_until(lambda: metric(port, "behind_records") == 0, "nothing is left to read")
        assert metric(port, "records_total", kind="client_event") == 10
        assert metric(port, "quarantined_records_total") == 1
        assert metric(port, "behind_seconds") < PATIENCE
        assert metric(port, "lease_held") == 1
        assert metric(port, "task_runs_total", task="batch") >= 3
        assert page(port, "/ready") == "ready\n"
        delete_topic(kafka, events)
        kafka.create_topic(events)
        thread.join(PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    wait_until(lambda: not spark.streams.active, "the query has stopped")
    assert [str(error).partition(":")[0] for error in failures] == ["records are missing"]
    assert f"{events} was deleted and created again" in str(failures[0])


def produce_in_transaction(kafka: LocalKafka, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    producer.commit_transaction(PATIENCE)


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as response:
        return str(response.read().decode())


def metric(port: int, name: str, **labels: str) -> float:
    """A sample of the stream's page."""
    (found,) = (
        sample.value
        for family in text_string_to_metric_families(page(port, "/metrics"))
        for sample in family.samples
        if sample.name == f"groupwright_pipeline_{name}" and sample.labels == labels
    )
    return found


@pytest.mark.usefixtures("orders", "base_tables_alone")
def test_records_behind_an_open_transaction_are_counted_and_read_when_it_ends(
    kafka: LocalKafka, run_job: Callable[..., str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    events = "events-of-a-transaction"
    kafka.create_topic(events)
    where = job_arguments(kafka, tmp_path, events)
    run_job("batch", *where)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(events, b"aborted", partition=0)
    assert producer.flush(PATIENCE) == 0
    produce_events(kafka, events, 3)
    assert "0 records added" in run_job("batch", *where)
    assert "4 records are behind open transactions" in caplog.text
    assert f"({events}-0: 4 from offset 0)" in caplog.text
    producer.abort_transaction(PATIENCE)
    assert "3 records added" in run_job("batch", *where)

    # A stream passes aborted records too, so none is missing when they are deleted.
    producer.begin_transaction()
    producer.produce(events, b"aborted", partition=0)
    assert producer.flush(PATIENCE) == 0
    producer.abort_transaction(PATIENCE)
    run_job("stream", *where, "once=true")
    kafka.delete_records(events, before=OFFSET_END)
    assert low_watermark(kafka, events) == 7
    assert "0 records added" in run_job("batch", *where)


@pytest.mark.endurance
@pytest.mark.usefixtures("orders")
def test_a_batch_samples_once_if_it_reads_all_commits(
    kafka: LocalKafka,
    run_job: Callable[..., str],
    spark: SparkSession,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """The groups `stuck` and `idle` commit no more before a batch that ends before a commit of another group.

    There are no samples before the first such batch, and samples of another topic before the second.
    """
    where = (*job_arguments(kafka, tmp_path, "")[:-1], "end_offsets_seconds=60")
    tables = open_tables(spark, str(tmp_path))
    commit(kafka, "stuck", 3)
    end = datetime.now(UTC).isoformat()
    commit(kafka, "later", 1)
    run_job("batch", *where, f"end={end}")
    assert "before the end of the log: log-end offsets are not sampled" in caplog.text
    assert tables.read(schemas.END_OFFSETS).isEmpty()
    run_job("batch", *where)
    assert "0 records added" in run_job("batch", *where)
    samples = tables.read(schemas.LAG).where("group_id = 'stuck'").collect()
    assert [row.committed_offset for row in samples] == [2, 2]

    kafka.create_topic("invoices", partitions=1)
    commit(kafka, "idle", 2, "invoices")
    end = datetime.now(UTC).isoformat()
    commit(kafka, "later", 1)
    run_job("batch", *where, f"end={end}")
    run_job("batch", *where)
    samples = tables.read(schemas.LAG).where("group_id = 'idle'").collect()
    assert [(row.topic, row.committed_offset) for row in samples] == [("invoices", 1)]


def test_the_bounds_of_logs_are_sampled_as_a_whole(kafka: LocalKafka, spark: SparkSession) -> None:
    """As Kafka's admin client lists them, one by one: up to a transaction that is open."""
    names = {"sampled", "sampled-2-0"}
    for name in names:
        kafka.create_topic(name, partitions=3)
    for partition, number in enumerate((4, 0, 2)):
        produce_events(kafka, "sampled", number, partition)
    produce_events(kafka, "sampled-2-0", 5, 1)
    for deleted in kafka.admin().delete_records([TopicPartition("sampled-2-0", 1, 3)]).values():
        deleted.result(PATIENCE)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "sampled"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("sampled", b"held", partition=1)
    assert producer.flush(PATIENCE) == 0
    with connected(spark, {"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
        topics = cluster.topics(names)
        assert cluster.topics({*names, "never-created", "not a name!"}) == topics
        first, listed = (cluster.offsets(topics, position) for position in ("earliest", "latest"))
        now = datetime(2026, 11, 20, 8, tzinfo=UTC)
        ids = {name: topic.id for name, topic in topics.items()}
        sample = EndOffsets(now, *cluster.log_bounds(topics), ids)
    producer.abort_transaction(PATIENCE)
    found = end_offset_rows(spark, [sample]).collect()
    assert {(row.topic, row.partition, row.start_offset, row.end_offset, row.topic_id) for row in found} == {
        (name, partition, first[name][partition], offset, ids[name])
        for name, by_partition in listed.items()
        for partition, offset in by_partition.items()
    }
    assert first["sampled-2-0"] == {0: 0, 1: 3, 2: 0}
    assert listed == {"sampled": {0: 4, 1: 0, 2: 2}, "sampled-2-0": {0: 0, 1: 5, 2: 0}}
    assert {(row.time.astimezone(UTC), row.date) for row in found} == {(now, now.date())}


def test_a_topic_that_may_not_be_described_is_no_deleted_topic(spark: SparkSession) -> None:
    topic, user, password = "of-another-user", "alice", "alice-secret"
    with LocalKafka(security=Security({user: password}, authorize=True)) as kafka:
        for name in (topic, "open"):
            kafka.create_topic(name)
        binding = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            "User:bob",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        allow(kafka.admin(), binding)
        login = f'PlainLoginModule required username="{user}" password="{password}";'
        client = {
            "bootstrap.servers": kafka.secure_config(Listener.SASL_PLAINTEXT)["bootstrap.servers"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"org.apache.kafka.common.security.plain.{login}",
        }
        with connected(spark, client) as cluster:
            assert cluster.topics({topic, "open"}, skip_forbidden=True).keys() == {"open"}
            with pytest.raises(PipelineError, match=f"may not describe the topic {topic}: grant it Describe"):
                cluster.topics({topic, "open"})


def low_watermark(kafka: LocalKafka, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "watermarks"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE)[0])
    finally:
        consumer.close()


def offsets_of(tables: Tables) -> set[int]:
    return {row.log_offset for row in tables.read(schemas.CLIENT_EVENTS).collect()}
