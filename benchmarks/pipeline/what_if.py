"""What-if at scale: the history of many groups, played by four assignors.

Run alone as `python -m benchmarks.pipeline.what_if`, on its own history: seeded, written to Parquet first (that is not in
the time), as the tables have it. A group has 2 to 16 members, 1 to 4 topics of 6 to 48 partitions, and `range`; at each
generation a member comes, goes, or is replaced by a new one, one time in three each.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline.what_if import compare, findings, run_what_if
from groupwright.testing import find_java

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
LIMIT_SECONDS = 600.0
"""For 10,000 groups of 100 generations, on 2 cores."""

_MOST_MEMBERS = 16
_GROUPS_AT_ONCE = 50
_START = 1_760_000_000_000_000  # microseconds since 1970
_MINUTE = 60_000_000
_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))
_SCHEMA = (
    "group_id string, generation int, log_partition int, log_offset long, log_time timestamp, member_id string, "
    "instance_id string, rack string, subscribed array<string>, "
    "assigned array<struct<topic: string, partitions: array<int>>>"
)
_COLUMNS = [
    *("group_id", "generation", "log_partition", "log_offset", "log_time"),
    *("member_id", "instance_id", "rack", "subscribed", "assigned"),
]


@dataclass(frozen=True)
class WhatIfResult:
    """What was measured.

    Attributes:
        groups: How many groups there were.
        generations: How many generations each had.
        member_rows: Rows of `group_members`.
        cores: Spark's.
        seconds: Reading both tables, playing, and writing the results.
        member_bytes: Of `group_members` as Parquet.
        result_bytes: Of `what_if_generations` as Parquet.
        findings: What came out.
    """

    groups: int
    generations: int
    member_rows: int
    cores: int
    seconds: float
    member_bytes: int
    result_bytes: int
    findings: list[str]

    @property
    def microseconds(self) -> float:
        """Core time of one generation of one group played by one assignor."""
        return self.seconds * self.cores / (self.groups * self.generations * len(ASSIGNORS)) * 1e6


def write_history(spark: SparkSession, folder: Path, groups: int, generations: int, seed: int) -> None:
    """Write `group_generations` and `group_members`."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _history(number, generations, np.random.default_rng([seed, number]))

    tasks = max(4, groups // _GROUPS_AT_ONCE)
    members = spark.range(0, groups, 1, tasks).mapInArrow(rows, _SCHEMA)
    members.coalesce(8).write.parquet(str(folder / "group_members"))
    written = spark.read.parquet(str(folder / "group_members"))
    records = written.groupBy("group_id", "generation", "log_partition", "log_offset", "log_time").agg(
        F.count("*").cast("int").alias("member_count")
    )
    records.select(
        "*", F.lit("consumer").alias("protocol_type"), F.lit(col=False).alias("tombstone")
    ).coalesce(8).write.parquet(str(folder / "group_generations"))


def measure(spark: SparkSession, folder: Path, groups: int, generations: int, seed: int = 1) -> WhatIfResult:
    """Write a history, play it, and measure."""
    write_history(spark, folder, groups, generations, seed)
    members = spark.read.parquet(str(folder / "group_members"))
    records = spark.read.parquet(str(folder / "group_generations"))
    started = time.perf_counter()
    played = run_what_if(records, members, ASSIGNORS)
    played.write.parquet(str(folder / "what_if_generations"))
    seconds = time.perf_counter() - started
    result = compare(spark.read.parquet(str(folder / "what_if_generations")))
    return WhatIfResult(
        groups=groups,
        generations=generations,
        member_rows=members.count(),
        cores=spark.sparkContext.defaultParallelism,
        seconds=seconds,
        member_bytes=_size(folder / "group_members"),
        result_bytes=_size(folder / "what_if_generations"),
        findings=findings(result),
    )


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


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--cores", type=int, default=2)
    wanted = parser.parse_args()
    os.environ.setdefault("JAVA_HOME", str(find_java().executable.resolve().parents[1]))
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    spark = (
        SparkSession.builder.master(f"local[{wanted.cores}]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    folder = Path(tempfile.mkdtemp(prefix="groupwright-what-if-"))
    try:
        result = measure(spark, folder, wanted.groups, wanted.generations)
    finally:
        spark.stop()
        shutil.rmtree(folder)
    for name, value in asdict(result).items():
        print(f"{name}: {value}")
    print(f"microseconds of a core for a generation and assignor: {result.microseconds:.0f}")


if __name__ == "__main__":
    _main()
