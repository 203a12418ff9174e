"""The jobs on a real Kafka: what they write, and what a crash does to it."""

import json
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline import Tables, open_tables, schemas
from groupwright.pipeline._jobs import positions
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

EVENTS = "groupwright.rebalances"
BROKEN = b"\x00\x01\x00\x20x"
"""A key of version 1 whose group id goes beyond its end."""


def rows(table: DataFrame) -> list[str]:
    """Rows as text: they hold maps and arrays, which have no order."""
    return sorted(
        json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in table.collect()
    )


def keys(table: DataFrame) -> list[tuple[Any, ...]]:
    columns = ["log_partition", "log_offset", *(["member_id"] if "member_id" in table.columns else [])]
    return [tuple(row) for row in table.select(*columns).collect()]


def versions(folder: Path) -> dict[str, list[str]]:
    """The commits of every table."""
    return {
        path.name: sorted(each.name for each in (path / "_delta_log").glob("*.json"))
        for path in folder.iterdir()
        if path.name != schemas.READ_POSITIONS.name
    }


def one_after_another(groups: Any) -> None:
    """A member joins each group, then another; the first leaves."""
    for number, protocol in ((1, "classic"), (2, "classic"), (1, "consumer"), (2, "consumer")):
        groups.join(f"{protocol}-{number}", protocol, "orders", **{"group.protocol": protocol})
    groups.leave("classic-1", "consumer-1")


@pytest.fixture(scope="module")
def orders(kafka: LocalKafka) -> None:
    kafka.create_topic("orders", partitions=4)
    kafka.create_topic(EVENTS, partitions=1)


@pytest.mark.endurance
@pytest.mark.usefixtures("orders")
def test_a_stream_that_is_killed_and_started_again_writes_what_one_batch_writes(
    kafka: LocalKafka,
    groups: Any,
    start_job: Callable[..., Any],
    run_job: Callable[..., str],
    caplog: pytest.LogCaptureFixture,
    spark: SparkSession,
    small_spark: Mapping[str, str],
    tmp_path: Path,
) -> None:
    feeding = threading.Event()

    def feed() -> None:
        while not feeding.wait(0.05):
            groups.produce("orders", 8, 4)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        one_after_another(groups)
    finally:
        feeding.set()
        feeder.join()
    groups.leave_all()
    # Last, as the coordinator itself gives a partition up that has such a record.
    groups.produce_raw("__consumer_offsets", BROKEN, b"\x00\x03", 0)

    # A stop waits for the derived tables, also on a busy machine.
    where = (f"bootstrap_servers={kafka.bootstrap_servers}", "end_offsets_seconds=0", "stop_seconds=250")
    small = tuple(f"{key}={value}" for key, value in small_spark.items())
    streamed, batched = tmp_path / "streamed", tmp_path / "batched"
    killed = start_job(
        "stream", f"tables={streamed}", "max_offsets_per_trigger=100", "trigger_seconds=0", *where, *small
    )
    # Its third batch has begun to write: some tables have it, and not all.
    groups.wait_until((streamed / "offset_commits" / "_delta_log" / f"{2:020d}.json").exists)
    killed.kill()
    read = positions.load(open_tables(spark, str(streamed))).offsets()["__consumer_offsets"]

    again = start_job("stream", f"tables={streamed}", *where, *small)
    again.wait_for("malformed 1")
    refused = run_job("batch", f"tables={streamed}", *where, exit_code=1)
    assert f"the job stream (process {again.pid} " in refused
    again.signal(signal.SIGTERM)
    assert again.exit_status() == 0, again.output
    run_job("batch", f"tables={batched}", *where)
    everything = positions.load(open_tables(spark, str(batched))).offsets()["__consumer_offsets"]
    assert sum(read.values()) < sum(everything.values()), "it was to be killed in the middle"

    stream_tables, batch_tables = open_tables(spark, str(streamed)), open_tables(spark, str(batched))
    for table in schemas.TABLES.values():
        if table is schemas.READ_POSITIONS:
            continue
        assert rows(stream_tables.read(table)) == rows(batch_tables.read(table)), table.name
    for table in (schemas.OFFSET_COMMITS, schemas.GROUP_MEMBERS, schemas.CLIENT_EVENTS, schemas.QUARANTINE):
        found = keys(stream_tables.read(table))
        assert found, table.name
        assert len(found) == len(set(found)), table.name
    of_all_kinds(stream_tables)

    before = versions(streamed)
    kafka.admin().create_partitions([NewPartitions("__consumer_offsets", 4)])["__consumer_offsets"].result(
        PATIENCE
    )
    run_job("stream", f"tables={streamed}", "once=true", *where)
    assert versions(streamed) == before
    assert "__consumer_offsets has 4 partitions and had 3" in caplog.text


def of_all_kinds(tables: Tables) -> None:
    """Check what the groups went through against the tables."""
    found = {(row.group_id, row.cause): row for row in tables.read(schemas.REBALANCES).collect()}
    for group in ("classic", "consumer"):
        assert found[group, "first"].members_after == 1
        assert (found[group, "join"].moved, found[group, "join"].min_moves) == (2, 2)
        assert found[group, "join"].imbalance_after == 0
        assert found[group, "leave"].left
    assert found["consumer", "join"].duration_seconds > 0
    assert found["classic", "join"].client_events == 2
    broken = tables.read(schemas.QUARANTINE).collect()
    assert [(bytes(row.raw_key), row.record_kind) for row in broken] == [(BROKEN, "malformed")]
