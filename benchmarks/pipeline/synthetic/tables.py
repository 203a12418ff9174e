"""Synthetic base tables of a fleet: rows made by Spark itself, so that a thousand million take minutes."""

from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from benchmarks.pipeline.synthetic.dataframe import made_by_group
from benchmarks.pipeline.synthetic.fleet import Fleet
from benchmarks.pipeline.synthetic.generations import generation_batch
from benchmarks.pipeline.synthetic.rows import GENERATION_ROWS, MEMBER_ROWS, generation_rows, member_rows
from groupwright.pipeline import decode, schemas
from groupwright.pipeline._decoding.schema import RAW
from groupwright.pipeline._tables import Batch, Tables
from groupwright.pipeline._transforms import base
from groupwright.pipeline.schemas import Table

_RATE = 100
"""Messages in each partition between two commits of a group."""
_REWIND_EVERY = 1000
_KIP_848_EVERY = 20
_ID = "AAAAAAAAAAAAAAA"
"""The first 15 of the 22 characters of a topic id."""


def add_fleet(spark: SparkSession, tables: Tables, fleet: Fleet) -> None:
    """Add the history of a fleet to the base tables, with whole days.

    Every twentieth group is of KIP-848, the others are classic. Each partition of each group has
    `fleet.commits` / (groups x topics x partitions) commits, at equal intervals, of which one in a thousand
    goes back; the log-end offsets are sampled as often.
    """
    classic, consumer = (
        [group for group in range(fleet.groups) if _is_consumer(group) is wanted] for wanted in (False, True)
    )
    for table, schema, rows in (
        (schemas.GROUP_GENERATIONS, GENERATION_ROWS, generation_rows),
        (schemas.GROUP_MEMBERS, MEMBER_ROWS, member_rows),
    ):
        _add(tables, table, made_by_group(spark, fleet, schema, rows, classic), "classic")
    decoded = decode(made_by_group(spark, fleet, RAW, generation_batch, consumer))
    _add(tables, schemas.GROUP_GENERATIONS, base.group_generations(decoded), "consumer")
    _add(tables, schemas.CONSUMER_GROUP_RECORDS, base.consumer_group_records(decoded), "consumer")
    for number in range(int(fleet.days)):
        _add(tables, schemas.OFFSET_COMMITS, commit_rows(spark, fleet, number), f"day-{number}")
        _add(tables, schemas.END_OFFSETS, end_offset_rows(spark, fleet, number), f"day-{number}")


def copy_days(source: Tables, target: Tables, days: Sequence[date]) -> None:
    """Add the rows of these days to other tables."""
    for table in schemas.BASE_TABLES:
        rows = source.read(table, since=min(days), until=max(days))
        target.add(table, rows, Batch("copy", 0))


def day(fleet: Fleet, number: int) -> date:
    """Return a day of the fleet's history, from 0."""
    return fleet.start.date() + timedelta(days=number)


def commit_rows(spark: SparkSession, fleet: Fleet, number: int) -> DataFrame:
    """Return a day's rows of `offset_commits`, in the log's order."""
    a_day = int(fleet.commits // fleet.days)
    slots = fleet.topics * fleet.partitions
    record = F.col("id")
    turn, slot = F.expr(f"id div {fleet.groups * slots}"), F.pmod(record, F.lit(fleet.groups * slots))
    rows = spark.range(number * a_day, (number + 1) * a_day).select(
        "id", turn.alias("turn"), (slot / slots).cast("bigint").alias("group"), (slot % slots).alias("slot")
    )
    chance = F.pmod(F.xxhash64("id"), F.lit(_REWIND_EVERY))
    time = _time(fleet, record * int(fleet.length_micros // fleet.commits))
    rows = rows.select(
        _name("group-", F.col("group")).alias("group_id"),
        _topic(fleet, F.col("group") + (F.col("slot") / fleet.partitions).cast("bigint")).alias("topic"),
        (F.col("slot") % fleet.partitions).alias("partition"),
        ((F.col("turn") + 1) * _RATE + chance % _RATE - F.when(chance == 0, 2 * _RATE).otherwise(0)).alias(
            "committed_offset"
        ),
        time.alias("commit_time"),
        F.lit(False).alias("tombstone"),  # noqa: FBT003 - a value of the table
        (F.col("group") % fleet.log_partitions).alias("log_partition"),
        record.alias("log_offset"),
        time.alias("log_time"),
        F.lit(day(fleet, number)).alias("date"),
    )
    return _with_all_columns(rows, schemas.OFFSET_COMMITS)


def end_offset_rows(spark: SparkSession, fleet: Fleet, number: int) -> DataFrame:
    """Return a day's rows of `end_offsets`: one sample in the middle of each turn of commits."""
    topics = fleet.cluster_topics or fleet.groups
    turns = round(fleet.commits / (fleet.groups * fleet.topics * fleet.partitions))
    a_day, partitions = turns // int(fleet.days), topics * fleet.partitions
    turn, topic = F.expr(f"id div {partitions}"), F.expr(f"id % {partitions} div {fleet.partitions}")
    time = _time(fleet, ((turn + 0.5) * (fleet.length_micros / turns)).cast("bigint"))
    rows = spark.range(number * a_day * partitions, (number + 1) * a_day * partitions).select(
        _topic(fleet, topic).alias("topic"),
        (F.col("id") % fleet.partitions).alias("partition"),
        F.lit(0).alias("start_offset"),
        (turn * _RATE + _RATE + _RATE // 2).alias("end_offset"),
        time.alias("time"),
        _name(_ID, topic).alias("topic_id"),
        F.lit(day(fleet, number)).alias("date"),
    )
    return _with_all_columns(rows, schemas.END_OFFSETS)


def _is_consumer(group: int) -> bool:
    return group % _KIP_848_EVERY == _KIP_848_EVERY - 1


def _add(tables: Tables, table: Table, rows: DataFrame, batch: str) -> None:
    tables.add(table, _with_all_columns(rows, table), Batch(batch, 0))


def _with_all_columns(rows: DataFrame, table: Table) -> DataFrame:
    missing = {
        field.name: F.lit(None).cast(field.dataType)
        for field in table.schema
        if field.name not in rows.columns
    }
    return base.select_columns(rows.withColumns(missing), table)


def _name(prefix: str, number: Column) -> Column:
    return F.concat(F.lit(prefix), F.lpad(number.cast("string"), 7, "0"))


def _topic(fleet: Fleet, number: Column) -> Column:
    return _name("topic-", number % (fleet.cluster_topics or fleet.groups))


def _time(fleet: Fleet, micros: Column) -> Column:
    return F.timestamp_micros(F.lit(fleet.start_micros) + micros)
