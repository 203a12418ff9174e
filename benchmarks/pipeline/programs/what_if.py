"""Plays the history of many groups by four assignors on Spark, and prints in a line of JSON what it took.

Arguments: the cores, the groups, and the generations of each. The history is seeded, and written to Parquet
first, as the tables have it, which is not in the time. A group has 2 to 16 members, 1 to 4 topics of 6 to 48
partitions, and `range`; at each generation a member comes, goes, or is replaced by a new one, one time in
three each.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from benchmarks.pipeline.programs.session import local_session
from groupwright.pipeline.what_if import compare, findings, run_what_if

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
_MOST_MEMBERS = 16
_GROUPS_AT_ONCE = 50
_START = 1_760_000_000_000_000  # microseconds since 1970
_MINUTE = 60_000_000
_SEED = 1
_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))
_SCHEMA = (
    "group_id string, generation int, log_partition int, log_offset long, log_time timestamp, "
    "member_id string, "
    "instance_id string, rack string, subscribed array<string>, "
    "assigned array<struct<topic: string, partitions: array<int>>>"
)
_COLUMNS = [
    *("group_id", "generation", "log_partition", "log_offset", "log_time"),
    *("member_id", "instance_id", "rack", "subscribed", "assigned"),
]


def main(cores: int, groups: int, generations: int) -> None:
    """Write a history, play it, and print."""
    spark = local_session(cores, memory="3g")
    with tempfile.TemporaryDirectory(prefix="groupwright-what-if-") as name:
        folder = Path(name)
        _write_history(spark, folder, groups, generations)
        members = spark.read.parquet(str(folder / "group_members"))
        records = spark.read.parquet(str(folder / "group_generations"))
        began = time.perf_counter()
        run_what_if(records, members, ASSIGNORS).write.parquet(str(folder / "what_if_generations"))
        seconds = time.perf_counter() - began
        result = compare(spark.read.parquet(str(folder / "what_if_generations")))
        said = {
            "seconds": seconds,
            "member_rows": members.count(),
            "member_bytes": _size(folder / "group_members"),
            "result_bytes": _size(folder / "what_if_generations"),
            "findings": findings(result),
        }
        spark.stop()
    print(json.dumps(said))


def _write_history(spark: SparkSession, folder: Path, groups: int, generations: int) -> None:
    """Write `group_generations` and `group_members`."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _history(number, generations, np.random.default_rng([_SEED, number]))

    tasks = max(4, groups // _GROUPS_AT_ONCE)
    members = spark.range(0, groups, 1, tasks).mapInArrow(rows, _SCHEMA)
    members.coalesce(8).write.parquet(str(folder / "group_members"))
    written = spark.read.parquet(str(folder / "group_members"))
    records = written.groupBy("group_id", "generation", "log_partition", "log_offset", "log_time").agg(
        F.count("*").cast("int").alias("member_count")
    )
    records.select(
        "*",
        F.lit("classic").alias("group_type"),
        F.lit("consumer").alias("protocol_type"),
        F.lit("range").alias("protocol"),
        F.lit(col=False).alias("tombstone"),
    ).coalesce(8).write.parquet(str(folder / "group_generations"))


def _history(number: int, generations: int, random: np.random.Generator) -> pa.RecordBatch:
    """Return one group's rows of `group_members`."""
    topics = random.choice([1, 1, 1, 2, 2, 3, 4])
    sizes = random.choice([6, 12, 24, 48], topics).tolist()
    members = [f"consumer-{serial}" for serial in range(random.integers(2, _MOST_MEMBERS))]
    born = len(members)
    ids: list[str] = []
    counts = []
    for event in random.integers(3, size=generations).tolist():
        if event and len(members) > 1:
            members.pop(random.integers(len(members)))
        if event < 2 and len(members) < _MOST_MEMBERS:  # noqa: PLR2004 - 0 comes, 1 is replaced, 2 goes
            members.append(f"consumer-{born}")
            born += 1
        members.sort()
        ids += members
        counts.append(len(members))
    generation = np.repeat(np.arange(1, generations + 1, dtype=np.int32), counts)
    log_offset = generation.astype(np.int64) * 7 + number
    names = [f"topic-{number}-{topic}" for topic in range(topics)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([f"group-{number:06d}"] * len(ids)),
            pa.array(generation),
            pa.array(np.full(len(ids), number % 50, np.int32)),
            pa.array(log_offset),
            pa.array(_START + generation.astype(np.int64) * 30 * _MINUTE, pa.timestamp("us", "UTC")),
            pa.array(ids),
            pa.nulls(len(ids), pa.string()),
            pa.nulls(len(ids), pa.string()),
            pa.array([names] * len(ids)),
            pa.array([share for count in counts for share in _ranges(names, sizes, count)], _PARTITIONS),
        ],
        names=_COLUMNS,
    )


def _ranges(names: list[str], sizes: list[int], members: int) -> Iterator[list[dict[str, object]]]:
    """Go through the members' ranges, as `range` cuts them."""
    for place in range(members):
        cuts = [(place * size // members, (place + 1) * size // members) for size in sizes]
        yield [
            {"topic": name, "partitions": list(range(first, end))}
            for name, (first, end) in zip(names, cuts, strict=True)
            if first < end
        ]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.parquet"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
