"""Synthetic history on Spark, generated lazily as it is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from benchmarks.pipeline.synthetic.commits import commit_batch
from benchmarks.pipeline.synthetic.fleet import Fleet, Numbers
from benchmarks.pipeline.synthetic.generations import generation_batch
from benchmarks.pipeline.synthetic.rows import GENERATION_ROWS, MEMBER_ROWS, generation_rows, member_rows
from groupwright.pipeline._decoding.schema import RAW


class HistoryKind(StrEnum):
    """Kinds of raw records in a history."""

    COMMITS = "commits"
    """Committed offsets, and their tombstones."""

    GENERATIONS = "generations"
    """Coordinators' records of rebalances, of the classic protocol and of KIP-848."""


def history(
    spark: SparkSession,
    fleet: Fleet,
    kinds: Iterable[HistoryKind] = tuple(HistoryKind),
    slices: int | None = None,
) -> DataFrame:
    """Return the raw records of a fleet's history, as Spark's Kafka source would give them.

    Args:
        spark: The session.
        fleet: The groups.
        kinds: The kinds of records.
        slices: Number of Spark partitions; by default Spark's default parallelism.
    """
    wanted = set(kinds)
    parts = []
    if HistoryKind.COMMITS in wanted:
        parts.append(_made(spark, fleet.commits, RAW, lambda numbers: [commit_batch(fleet, numbers)], slices))
    if HistoryKind.GENERATIONS in wanted:
        parts.append(made_by_group(spark, fleet, RAW, generation_batch, slices=slices))
    if not parts:
        raise ValueError("A history needs records of some kind: name one of HistoryKind, or leave kinds out")
    records = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    return records.selectExpr("key", "value", "'__consumer_offsets' AS topic", *RAW.names[2:])


def group_generations(spark: SparkSession, fleet: Fleet, slices: int | None = None) -> DataFrame:
    """Return rows of the table `group_generations`, as if all groups were of the classic protocol."""
    return made_by_group(spark, fleet, GENERATION_ROWS, generation_rows, slices=slices)


def group_members(spark: SparkSession, fleet: Fleet, slices: int | None = None) -> DataFrame:
    """Return rows of the table `group_members` that belong to those of `group_generations`."""
    return made_by_group(spark, fleet, MEMBER_ROWS, member_rows, slices=slices)


def made_by_group(
    spark: SparkSession,
    fleet: Fleet,
    schema: pa.Schema,
    rows: Callable[[Fleet, int], pa.RecordBatch],
    groups: Sequence[int] | None = None,
    slices: int | None = None,
) -> DataFrame:
    """Return the rows that are made for each of these groups; for all groups if None."""
    chosen = range(fleet.groups) if groups is None else groups
    return _made(
        spark,
        len(chosen),
        schema,
        lambda numbers: (rows(fleet, chosen[number]) for number in numbers.tolist()),
        slices,
    )


def _made(
    spark: SparkSession,
    count: int,
    schema: pa.Schema,
    make: Callable[[Numbers], Iterable[pa.RecordBatch]],
    slices: int | None,
) -> DataFrame:
    """Return the rows that are made of the numbers from 0 to the count."""

    def make_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from make(batch.column(0).to_numpy().astype(np.int64))

    numbers = spark.range(0, count, 1, slices or spark.sparkContext.defaultParallelism)
    return numbers.mapInArrow(make_all, from_arrow_schema(schema))
